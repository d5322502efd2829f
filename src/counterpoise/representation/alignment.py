"""R: how much the features of images of one class point the same way, whatever their length.

Tartaglione and Grangetto, "A non-discriminatory approach to ethical deep learning", 2020. With unit features u_i, g_ij
their cosines and c(i) the class of image i, over the pairs i != j of one class:

    strong form   mean |g_ij|      needs every pair: the Gram matrix of one class at a time
    weak form     |mean g_ij|      needs the sum of a class's unit features alone: |sum u|^2 = sum_ij g_ij

Where features are not negative, as after a ReLU, no g_ij is, and both are one. The gradient is autograd's: the printed
one does not agree with finite differences.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from counterpoise._check import one_of

Form = Literal["weak", "strong"]
Normaliser = Literal["pairs", "paper"]
FORMS, NORMALISERS = ("weak", "strong"), ("pairs", "paper")


def alignment(features: Tensor, classes: Tensor, form: Form = "weak", normaliser: Normaliser = "pairs") -> Tensor:
    """R of features [n, ...], differentiable. A class with one image has no pair and is skipped.

    'pairs' is the mean over a class's pairs, then over the classes: in [0, 1] for any batch. 'paper' is the printed
    sum over 2 n, which grows with the batch.
    """
    one_of(FORMS, form=form)
    one_of(NORMALISERS, normaliser=normaliser)
    units, sizes = unit(features), classes.bincount()
    sizes = sizes[sizes > 0]
    several = sizes > 1
    if not bool(several.any()):
        return 0 * units.sum()
    if form == "weak":
        # One sum a class: the Gram matrix is never made, however wide the features are.
        member = (classes[:, None] == classes.bincount().nonzero().flatten()).to(units.dtype)
        sums = (member.T @ units).square().sum(1) - member.T @ units.square().sum(1)
        sums = sums.abs()[several]
    else:
        # Brought together once, each class is a view: copies would cost more than the products.
        together = torch.split(units[classes.argsort()], sizes.tolist())
        grams = [(u @ u.T).abs() for u in together if len(u) > 1]
        sums = torch.stack([gram.sum() - gram.diagonal().sum() for gram in grams])
    if normaliser == "paper":
        return sums.sum() / (2 * len(units))
    return (sums / (sizes * (sizes - 1))[several]).mean()


def unit(features: Tensor) -> Tensor:
    """Each image's features as one row of length 1; a row of zeros stays."""
    return torch.nn.functional.normalize(features.flatten(1), dim=1)


def groups(classes: Tensor) -> list[Tensor]:
    """The indices of the images of each class that has any."""
    return [torch.nonzero(classes == label).flatten() for label in classes.bincount().nonzero().flatten()]
