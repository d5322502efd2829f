"""Stop drawing where another sample of the same size would name the same pixels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from counterpoise.explainers._moments import Moments
from counterpoise.interface import Explanation

FIRST = 8
"""Draws of the first half: fewer say little about agreement."""

Draw = Callable[[int, Tensor, Moments], None]
"""Adds so many draws of the chosen images to the moments."""


def until_stable(
    draw: Draw,
    new: Callable[[], Moments],
    maps_of: Callable[[Moments], tuple[Tensor, Tensor]],
    images: int,
    most: int,
    top: float,
    agreement: float,
) -> Explanation:
    """Double each image's draws until the old half and the new half agree on the top share of pixels, or `most`.

    The halves are independent samples of one size, so their agreement is what a repetition would agree to; a map
    compared with its own older version would look stable because most of its draws are the same.
    """
    chosen = torch.arange(images)
    so_far = new()
    draw(min(FIRST, most), chosen, so_far)
    finished: list[tuple[Tensor, Tensor, Tensor, int]] = []
    while so_far.count < most:
        half = Moments(so_far.order, so_far.pilot)
        draw(min(so_far.count, most - so_far.count), chosen, half)
        stable = _agreement(maps_of(so_far)[0], maps_of(half)[0], top) >= agreement
        so_far = so_far.merged(half)
        if stable.any():
            finished.append((chosen[stable], *maps_of(so_far.of(stable)), so_far.count))
            chosen, so_far = chosen[~stable], so_far.of(~stable)
        if not len(chosen):
            break
    else:
        finished.append((chosen, *maps_of(so_far), so_far.count))
    order = torch.cat([which for which, _, _, _ in finished]).argsort()
    drawn = torch.cat([torch.full_like(which, count) for which, _, _, count in finished])
    maps = torch.cat([found for _, found, _, _ in finished])
    errors = torch.cat([found for _, _, found, _ in finished])
    return Explanation(maps[order], errors[order], most, drawn[order])


def _agreement(one: Tensor, two: Tensor, top: float) -> Tensor:
    """The share of each map's most important pixels that the other map names too."""
    k = max(1, round(top * one[0].numel()))
    marked = []
    for maps in (one, two):
        flat = maps.flatten(1)
        marked.append(torch.zeros_like(flat).scatter(1, flat.topk(k).indices, 1.0))
    return (marked[0] * marked[1]).sum(1) / k
