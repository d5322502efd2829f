"""Integrated gradients: the score's way from a blank image to this one, split among the pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.explainers._borrowed import input_gradient
from counterpoise.explainers._single import Single
from counterpoise.interface import Explanation


@dataclass(frozen=True)
class IntegratedGradients(Single):
    """map = sum over channels of (x - b) * integral over t in [0, 1] of d S_target(b + t (x - b)) / d pixel.

    Sundararajan et al., ICML 2017. S is the logit. The map keeps its sign, and adds up to S(x) - S(b), but for the
    error of the quadrature: Gauss and Legendre's, exact where the gradient is a polynomial in t of degree
    2 steps - 1 or less. `baseline` b is one colour: a grey level, or one number a channel. A baseline made from
    training images, as an average is, would be one more release of them.
    """

    steps: int = 32
    baseline: float | tuple[float, ...] = 0.0

    name: ClassVar[str] = "integrated-gradients"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.at_least(1, steps=self.steps)

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        start = colour(self.baseline, images, "baseline")
        way = images - start
        nodes, weights = np.polynomial.legendre.leggauss(self.steps)
        total = torch.zeros_like(images)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            total += float(weight) * input_gradient(model, start + float(node) * way, target)
        return Explanation((way * total).sum(1))


def colour(value: float | tuple[float, ...], images: Tensor, name: str) -> Tensor:
    """One colour as [channels, 1, 1], or a sentence on what is wrong with it."""
    channels = images.shape[1]
    numbers = torch.as_tensor(value, dtype=images.dtype, device=images.device).flatten()
    if len(numbers) not in (1, channels) or not bool(numbers.isfinite().all()):
        raise InputError(f"{name}={value!r} must be one finite number, or one for each of the {channels} channels.")
    return numbers.view(-1, 1, 1)
