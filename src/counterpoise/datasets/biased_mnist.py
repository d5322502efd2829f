"""Biased MNIST: digits on coloured grounds, where the colour nearly always tells the digit; in the test it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from counterpoise._check import in_range
from counterpoise.datasets._listing import check_options
from counterpoise.datasets.idx import Mnist
from counterpoise.interface import Images, Progress
from counterpoise.training import generator

COLOURS = torch.tensor(
    [
        [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.9, 0.9, 0.0], [1.0, 0.0, 1.0],
        [0.0, 1.0, 1.0], [1.0, 0.5, 0.0], [0.5, 0.0, 1.0], [0.5, 0.25, 0.0], [1.0, 0.6, 0.7],
    ]
)  # fmt: skip
NAMES = ("red", "green", "blue", "yellow", "magenta", "cyan", "orange", "violet", "brown", "pink")


@dataclass(frozen=True)
class BiasedMnist:
    """MNIST with the labels `digit` and `colour`: a training digit has its own colour with probability `rho`.

    After Bahng et al., "Learning de-biased representations with biased representations", ICML 2020; otherwise it has
    one of the nine others. Test images have every colour with probability .1. The ten colours are ours.
    """

    name: ClassVar[str] = "biased-mnist"
    rho: float = 0.99
    root: str | None = None
    limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        in_range(0, 1, rho=self.rho)
        check_options(limit=self.limit, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        train, test = Mnist(self.root, self.limit).load(progress)
        return coloured(train, self.rho, self.seed), coloured(test, 0.1, self.seed + 1)


def coloured(images: Images, rho: float, seed: int) -> Images:
    """White digits on a ground whose colour is the digit's with probability rho, else another."""
    digit = images.labels["digit"]
    rng = generator(seed, "colour")
    own = torch.rand(len(digit), generator=rng) < rho
    other = (digit + torch.randint(1, 10, (len(digit),), generator=rng)) % 10
    colour = torch.where(own, digit, other)
    ground: Tensor = COLOURS[colour][:, :, None, None]
    pixels = images.pixels + (1 - images.pixels) * ground
    classes = {"digit": images.classes["digit"], "colour": NAMES}
    return replace(
        images, name="biased-mnist", pixels=pixels, labels={"digit": digit, "colour": colour}, classes=classes
    )
