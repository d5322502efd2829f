"""The noise that hides one image: how much, and where its randomness comes from.

Seeded noise is drawn from a torch generator: reproducible, and as secret as its seed. Secure noise is drawn from
the operating system's generator (ChaCha20 on Linux) and cannot be repeated. Its sampler is made so that the bits
of a noisy number do not betray the number below the noise:

- each draw combines four normals, so that its value cannot be traced back to one uniform (Holohan and Braghin,
  "Secure random sampling in differential privacy", ESORICS 2021; the attack is Jin et al., S&P 2022);
- sum and noise are both rounded to one grid, far finer than the noise, so that which numbers can appear does not
  depend on the data (Mironov 2012; Haney et al. 2022); what rounding adds to the sensitivity, the noise makes up for;
- there is no rejection loop, whose time would tell.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
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


def hide(totals: Mapping[str, Tensor], noise: Noise, clip: float, rng: torch.Generator | None) -> dict[str, Tensor]:
    """Add noise to the sums in place; from the operating system's randomness where there is no generator."""
    if noise.multiplier == 0:
        return dict(totals)
    if rng is None:
        return _hide_securely(totals, noise, clip)
    return {name: total.add_(draw(noise, clip, total, rng)) for name, total in totals.items()}


def draw(noise: Noise, clip: float, like: Tensor, rng: torch.Generator) -> Tensor:
    """Noise in the shape of `like`, reproducible from the generator."""
    scale = noise.multiplier * clip
    if noise.kind == "gaussian":
        return torch.randn(like.shape, generator=rng, dtype=like.dtype).mul_(scale)
    # The difference of two exponentials is Laplace, and needs no logarithm of a uniform that can be 0.
    first, second = (torch.empty(like.shape, dtype=like.dtype).exponential_(generator=rng) for _ in range(2))
    return first.sub_(second).mul_(scale)


_GRID_BITS = 30
"""The grid is 2^-30 of the noise: doubles resolve a draw to 2^-52 of itself, so every grid point has its mass."""


def _hide_securely(totals: Mapping[str, Tensor], noise: Noise, clip: float) -> dict[str, Tensor]:
    count = sum(total.numel() for total in totals.values())
    scale = noise.multiplier * clip
    grid = 2.0 ** (math.floor(math.log2(scale)) - _GRID_BITS)
    # Rounding moves neighbouring sums apart by at most one grid step in every coordinate.
    widened = scale * (1 + grid * count ** (1 / noise.norm) / clip)
    hidden = {}
    for name, total in totals.items():
        units = np.rint(total.detach().double().numpy() / grid)
        units += np.rint(secure_draw(noise.kind, total.numel()).reshape(total.shape) * (widened / grid))
        hidden[name] = torch.from_numpy(units * grid).to(total.dtype)
    return hidden


def secure_draw(kind: Literal["gaussian", "laplace"], count: int) -> NDArray[np.float64]:
    """Draws of scale 1, each from four normals of the operating system's randomness."""
    a, b, c, d = _normals(4 * count).reshape(4, count)
    if kind == "gaussian":
        return (a + b + c + d) / 2
    return a * b + c * d  # the characteristic function of a product of normals is 1 / sqrt(1 + t^2); squared, Laplace's


def secure_uniform(count: int) -> NDArray[np.float64]:
    """Multiples of 2^-53 in (0, 1], from the operating system."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return ((words >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def _normals(count: int) -> NDArray[np.float64]:
    """Box and Muller's transform."""
    half = -(-count // 2)
    uniform = secure_uniform(2 * half)
    radius, angle = np.sqrt(-2 * np.log(uniform[:half])), 2 * math.pi * uniform[half:]
    return np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))[:count]
