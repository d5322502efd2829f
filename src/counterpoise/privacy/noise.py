"""The noise that hides one image: how much, and where the randomness comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from counterpoise import _check


@dataclass(frozen=True)
class Gaussian:
    """Normal noise of standard deviation `multiplier * clip`, for gradients clipped in the L2 norm."""

    multiplier: float
    kind: ClassVar[Literal["gaussian", "laplace"]] = "gaussian"
    norm: ClassVar[Literal[1, 2]] = 2

    def __post_init__(self) -> None:
        _check.not_negative(multiplier=self.multiplier)


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of scale `multiplier * clip`, for gradients clipped in the L1 norm."""

    multiplier: float
    kind: ClassVar[Literal["gaussian", "laplace"]] = "laplace"
    norm: ClassVar[Literal[1, 2]] = 1

    def __post_init__(self) -> None:
        _check.not_negative(multiplier=self.multiplier)


Noise = Gaussian | Laplace


def draw(noise: Noise, clip: float, like: Tensor, rng: torch.Generator) -> Tensor:
    """Noise in the shape of `like`, reproducible from the generator."""
    scale = noise.multiplier * clip
    if noise.kind == "gaussian":
        return torch.randn(like.shape, generator=rng, dtype=like.dtype) * scale
    # The difference of two exponentials is Laplace, and needs no logarithm of a uniform that can be 0.
    first = torch.empty_like(like).exponential_(generator=rng)
    return first.sub_(torch.empty_like(like).exponential_(generator=rng)).mul_(scale)
