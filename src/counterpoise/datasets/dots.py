"""Synthetic images with a known answer: what can be learned, and what an attacker can learn, is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from counterpoise._check import at_least, in_range
from counterpoise.interface import Images, Progress
from counterpoise.training import generator

POSITIONS = ("upper left", "upper right", "lower left", "lower right")
DARK, BRIGHT = 0.6, 1.0


@dataclass(frozen=True)
class Dots:
    """One dot of 2 x 2 pixels somewhere in a quarter of the image; the quarter is the label `position`.

    The label `secret` is independent of the position. With probability `visibility` the dot's brightness shows
    it, otherwise the brightness is a fair coin's. Both labels were planted in the dot, which `evidence` marks.
    """

    name: ClassVar[str] = "dots"
    train: int = 600
    test: int = 300
    size: int = 8
    visibility: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(1, train=self.train, test=self.test)
        at_least(4, size=self.size)
        in_range(0, 1, visibility=self.visibility)
        at_least(0, seed=self.seed)

    def best_attack_accuracy(self) -> float:
        """The accuracy of the best possible guess of `secret`: (1 + visibility) / 2.

        The brightness equals the secret when it shows it, and in half of the other cases; nothing else depends on it.
        """
        return (1 + self.visibility) / 2

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """Independent draws for training and for test."""
        train, test = self._draw("train", self.train), self._draw("test", self.test)
        progress(1.0)
        return train, test

    def _draw(self, part: str, n: int) -> Images:
        rng = generator(self.seed, "dots", part)
        half = self.size // 2
        position = torch.randint(4, (n,), generator=rng)
        secret = torch.randint(2, (n,), generator=rng)
        shows = torch.rand(n, generator=rng) < self.visibility
        bright = torch.where(shows, secret, torch.randint(2, (n,), generator=rng))
        offset = torch.randint(half - 1, (2, n), generator=rng)
        top, left = offset[0] + half * (position // 2), offset[1] + half * (position % 2)
        pixels = 0.2 * torch.rand(n, 1, self.size, self.size, generator=rng)
        value = torch.where(bright == 1, BRIGHT, DARK)
        evidence = torch.zeros(n, self.size, self.size, dtype=torch.bool)
        for row in (0, 1):
            for column in (0, 1):
                pixels[torch.arange(n), 0, top + row, left + column] = value
                evidence[torch.arange(n), top + row, left + column] = True
        classes = {"position": POSITIONS, "secret": ("dark", "bright")}
        return Images("dots", pixels, {"position": position, "secret": secret}, classes, evidence)
