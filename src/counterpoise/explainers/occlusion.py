"""Occlusion: how much the score falls when a patch of the image is covered. Needs no gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.explainers._single import Single
from counterpoise.explainers.integrated_gradients import colour
from counterpoise.interface import Explanation


@dataclass(frozen=True)
class Occlusion(Single):
    """map at a pixel = mean, over the patches that cover it, of S_target(x) - S_target(x with the patch covered).

    Zeiler and Fergus, ECCV 2014. S is the logit. Square patches of `patch` pixels stand `stride` apart from the top
    left corner on, the last ones cut by the edge; `fill` is their colour: a grey level, or one number a channel.
    Negative where covering helps the class.
    """

    patch: int = 4
    stride: int = 2
    fill: float | tuple[float, ...] = 0.5

    name: ClassVar[str] = "occlusion"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.at_least(1, patch=self.patch, stride=self.stride)
        if self.stride > self.patch:
            raise InputError(f"stride={self.stride} must be at most patch={self.patch}, or pixels are never covered.")

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        height, width = images.shape[2:]
        if self.patch > min(height, width):
            raise InputError(f"patch={self.patch} must fit into the images of {width} x {height} pixels.")
        fill = colour(self.fill, images, "fill")
        drops = torch.zeros_like(images[:, 0])
        covered = torch.zeros_like(images[0, 0])
        with torch.no_grad():
            whole = model(images).gather(1, target[:, None])[:, 0]
            for top in starts(height, self.patch, self.stride):
                for left in starts(width, self.patch, self.stride):
                    patch = (slice(top, top + self.patch), slice(left, left + self.patch))
                    without = images.clone()
                    without[:, :, *patch] = fill
                    score = model(without).gather(1, target[:, None])[:, 0]
                    drops[:, *patch] += (whole - score)[:, None, None]
                    covered[patch] += 1
        return Explanation(drops / covered)


def starts(side: int, patch: int, stride: int) -> range:
    """Where patches begin along one side: as many as it takes to reach the far edge."""
    count = -(-(side - patch) // stride) + 1
    return range(0, count * stride, stride)
