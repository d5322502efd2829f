"""Maps as masks in [0, 1], and the floors: maps that have not looked at the model."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from counterpoise import _check
from counterpoise.training import generator

Of = Literal["map", "ones", "random", "centre", "edges"]
FLOORS: tuple[Of, ...] = get_args(Of)[1:]
"""Everything; noise; a Gaussian hill in the middle, where photographers put things; where the image itself changes."""

HILL = 0.25
"""The hill's standard deviation, as a share of the side."""
SEED = 0


def check_of(of: str) -> None:
    """Raise unless it is the map or one of the floors."""
    _check.one_of(get_args(Of), of=of)


def blank(maps: Tensor) -> Tensor:
    """Which maps call nothing important: no value above 0. Such a map cannot be scored, only counted."""
    return maps.flatten(1).amax(1) <= 0


def as_masks(maps: Tensor) -> Tensor:
    """Negative values cut off, then each map spread over [0, 1]. A flat positive map says "everything": ones."""
    positive = maps.clamp(min=0)
    low, high = (extreme[:, None, None] for extreme in (positive.flatten(1).amin(1), positive.flatten(1).amax(1)))
    flat = high == low
    return torch.where(flat, (high > 0).to(maps.dtype), (positive - low) / (high - low).where(~flat, 1))


def floor_maps(of: Of, images: Tensor) -> Tensor:
    """The floor's map of each image, in [0, 1]. Edges: the length of the grey image's Sobel gradient."""
    n, _, height, width = images.shape
    if of == "ones":
        return images.new_ones(n, height, width)
    if of == "random":
        return torch.rand(n, height, width, generator=generator(SEED, "floor"), dtype=images.dtype)
    if of == "centre":
        down, along = (torch.linspace(-0.5, 0.5, side, dtype=images.dtype) / HILL for side in (height, width))
        hill = torch.exp(-(down[:, None].square() + along.square()) / 2)
        return as_masks(hill[None]).expand(n, -1, -1)
    return as_masks(edges(images))


def edges(images: Tensor) -> Tensor:
    """How fast the grey image changes at each pixel, [n, height, width]; its border is continued outwards."""
    grey = functional.pad(images.mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    across = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=images.dtype)
    kernels = torch.stack([across, across.T])[:, None]
    return functional.conv2d(grey, kernels).square().sum(1).sqrt()
