"""LEACE: the smallest change of features after which no linear reader can tell a class.

Belrose et al., "LEACE: perfect linear concept erasure in closed form", NeurIPS 2023. With W the inverse square root of
the features' covariance and P the projection on the columns of W cov(x, z), z the class as a one-hot row:

    x' = x - W^+ P W (x - mean x)

Afterwards cov(x', z) = 0 on the images it was fitted to, and no linear classifier does better there than one that
looks at nothing. What is not linear stays readable.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

TINY = 1e-6
"""Directions with less than this share of the largest variance are taken for empty."""


class Eraser(nn.Module):
    """Rows to rows of the same length; `fit` computes it in closed form, and the state holds all of it."""

    mean: Tensor
    taken: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("taken", torch.zeros(size, size))

    def forward(self, features: Tensor) -> Tensor:
        """The features without what told the class linearly; any shape, read as one row an image."""
        rows = features.flatten(1)
        return (rows - (rows - self.mean) @ self.taken.T).view_as(features)

    @torch.no_grad()
    def fit(self, rows: Tensor, classes: Tensor) -> Eraser:
        """Fitted to these rows; in double precision."""
        x = rows.flatten(1).double()
        z = torch.stack([(classes == label).double() for label in classes.bincount().nonzero().flatten()], 1)
        centred, labels = x - x.mean(0), z - z.mean(0)
        values, axes = torch.linalg.eigh(centred.T @ centred / len(x))
        kept = values > TINY * values[-1]
        roots, axes = values[kept].sqrt(), axes[:, kept]
        # In the whitened coordinates of the kept axes, W is a division by the roots.
        told = (axes / roots).T @ (centred.T @ labels / len(x))
        left, strength, _ = torch.linalg.svd(told, full_matrices=False)
        left = left[:, strength > 1e-9 * max(1.0, float(strength[0]))]
        taken = (axes * roots) @ left @ left.T @ (axes / roots).T
        self.mean.copy_(x.mean(0).float())
        self.taken.copy_(taken.float())
        return self
