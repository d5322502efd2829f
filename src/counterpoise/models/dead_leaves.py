"""Pictures of nothing: coloured leaves of all sizes fallen on each other, with the statistics of natural images.

What features are adjusted to must not be the private images, or the adjustment is a release of its own. These
images show nobody (Lee, Mumford and Huang, "Occlusion models for natural images", IJCV 2001; learning from such
pictures: Baradad et al., NeurIPS 2021).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from counterpoise import _check

SMALLEST, LARGEST = 1.5, 0.6
"""Radii: pixels, and a share of the side. Their density falls with the square, so that no size is preferred."""

MIXING = ((1.0, 1.0, -2 / 3), (1.0, 0.0, 4 / 3), (1.0, -1.0, -2 / 3))
"""Brightness, red against blue, and green against both, as red, green and blue."""


def dead_leaves(n: int, channels: int, side: int, rng: torch.Generator, leaves: int = 70) -> Tensor:
    """Square images [n, channels, side, side] in [0, 1]: ellipses and rectangles, each with a colour and a slope."""
    _check.at_least(1, n=n, side=side, leaves=leaves)
    _check.one_of(("1", "3"), channels=str(channels))
    fine = 2 * side
    place = torch.arange(fine) + 0.5
    images = _colours(n, channels, rng).expand(n, channels, fine, fine)
    for _ in range(leaves):
        draw = torch.rand(5, n, 1, 1, generator=rng)
        radius = 1 / (1 / (2 * SMALLEST) + draw[0] * (1 / (LARGEST * fine) - 1 / (2 * SMALLEST)))
        across, down = place - fine * draw[1], place[:, None] - fine * draw[2]
        cosine, sine = torch.cos(math.pi * draw[3]), torch.sin(math.pi * draw[3])
        stretch = torch.exp(torch.randn(n, 1, 1, generator=rng) / 4)
        along = (across * cosine + down * sine) / (radius * stretch)
        aside = (down * cosine - across * sine) / (radius / stretch)
        far = torch.where(draw[4] < 0.4, torch.maximum(along.abs(), aside.abs()), torch.hypot(along, aside))
        slope = 0.06 * torch.randn(2, n, 1, 1, generator=rng)
        leaf = _colours(n, channels, rng) + (slope[0] * along + slope[1] * aside)[:, None]
        images = torch.where((far < 1)[:, None], leaf, images)
    images = torch.nn.functional.avg_pool2d(images, 2)
    return (images + 0.015 * torch.randn(images.shape, generator=rng)).clamp(0, 1)


def _colours(n: int, channels: int, rng: torch.Generator) -> Tensor:
    """Natural colours differ in brightness first, and little in hue."""
    drawn = torch.randn(n, 3, generator=rng) * torch.tensor([0.27, 0.09, 0.05]) + torch.tensor([0.5, 0.0, 0.0])
    mixed = drawn @ torch.tensor(MIXING).T
    return (mixed if channels == 3 else drawn[:, :1])[:, :, None, None]
