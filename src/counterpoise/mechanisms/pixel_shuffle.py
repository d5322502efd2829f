"""A control, not a protection: images whose pixels are shuffled, which the pooled EMD takes for unharmed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise.grid import DegreeKind
from counterpoise.interface import Task, Trained
from counterpoise.mechanisms.plain import Plain
from counterpoise.training import apply, derive, generator


@dataclass(frozen=True)
class PixelShuffle:
    """Shows what a histogram cannot see: each image keeps its pixels and loses their places. Protects nothing.

    `shuffled` is the share of an image's pixels that change places with each other. Every histogram of grey levels, and
    so the pooled EMD and the EMD per image, stays as it was. Nothing is proved: the pixels are all there, and at small
    shares so is the picture.
    """

    name: ClassVar[str] = "pixel-shuffle"
    kind: ClassVar[DegreeKind] = DegreeKind("shuffled", "up", Decimal(0), Decimal(1))
    needs: ClassVar[frozenset[str]] = frozenset()
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "pooled_emd"
    shuffled: Decimal

    def __post_init__(self) -> None:
        self.kind.check(self.shuffled)

    def blank(self, task: Task) -> Trained:
        """The untrained network behind a shuffle whose seed is not set yet."""
        return replace(Plain().blank(task), release=Shuffle(self.shuffled))

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """Ordinary training on shuffled images."""
        seed = derive(rng.initial_seed(), "pixel-shuffle")
        release = Shuffle(self.shuffled, seed)
        images = replace(task.train, pixels=apply(release, task.train.pixels))
        return replace(Plain().train(replace(task, train=images), generator(seed, "then")), release=release)


class Shuffle(nn.Module):
    """Moves a share of each image's pixels, all channels of a pixel together.

    The order belongs to the image: it is drawn from the seed and the pixels. One order for all images would only rename
    the pixels, which a dense network would not even notice.
    """

    seed: Tensor

    def __init__(self, share: Decimal, seed: int = 0) -> None:
        super().__init__()
        self.share = share
        self.register_buffer("seed", torch.tensor(seed))

    def forward(self, pixels: Tensor) -> Tensor:
        """The images with their pixels in a new order."""
        orders = torch.stack([self._order(image) for image in pixels])
        return pixels.flatten(2).gather(2, orders[:, None].expand(-1, pixels.shape[1], -1)).view_as(pixels)

    def _order(self, image: Tensor) -> Tensor:
        content = image.detach().contiguous().numpy().tobytes()
        places = image[0].numel()
        drawn = torch.randperm(places, generator=generator(int(self.seed), hashlib.sha256(content).hexdigest()))
        moved = drawn[: int((self.share * places).to_integral_value(ROUND_HALF_UP))]
        order = torch.arange(places)
        order[moved.sort().values] = moved
        return order
