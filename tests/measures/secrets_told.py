"""Outcomes whose released images tell a known amount of a hidden label."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import torch
from torch import Tensor, nn

from counterpoise.interface import Images, Outcome, Task, Trained
from counterpoise.mechanisms.plain import Plain
from counterpoise.models.small_cnn import small_cnn
from counterpoise.training import apply

Paint = Callable[[Tensor, torch.Generator], Tensor]
"""Secret classes [n] to pixels [n, 1, side, side]."""


class Same(nn.Module):
    """Says the same of every image: the task does not matter here."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.zeros(len(pixels), 2)


class Release(nn.Module):
    """A release given as a function."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.change = change

    def forward(self, pixels: Tensor) -> Tensor:
        return self.change(pixels)


def grey(n: int, rng: torch.Generator, side: int = 12) -> Tensor:
    return 0.3 * torch.rand(n, 1, side, side, generator=rng)


def pixel(secret: Tensor, rng: torch.Generator) -> Tensor:
    """The first pixel is bright for class 1."""
    pixels = grey(len(secret), rng)
    pixels[:, 0, 0, 0] = 0.1 + 0.6 * secret
    return pixels


def bar(secret: Tensor, rng: torch.Generator) -> Tensor:
    """Six bars of three pixels anywhere, also across the edge: they stand for class 1, they lie for class 0.

    Every pixel is as often part of a bar in one class as in the other. Forty single pixels are as bright.
    """
    places, side = torch.arange(len(secret)), 16
    pixels = grey(len(secret), rng, side)
    for _ in range(40):
        top, left = torch.randint(side, (2, len(secret)), generator=rng)
        pixels[places, 0, top, left] = 1.0
    for _ in range(6):
        top, left = torch.randint(side, (2, len(secret)), generator=rng)
        for number in range(3):
            down, along = secret * number, (1 - secret) * number
            pixels[places, 0, (top + down) % side, (left + along) % side] = 1.0
    return pixels


def nothing(secret: Tensor, rng: torch.Generator) -> Tensor:
    return grey(len(secret), rng)


def outcome(
    paint: Paint,
    *,
    train: int = 800,
    test: int = 600,
    release: Callable[[Tensor], Tensor] | None = None,
    adversary: nn.Module | None = None,
    model: nn.Module | None = None,
    seed: int = 0,
) -> Outcome:
    """What a training that released these images would have left behind; the target is a fair coin's."""
    rng = torch.Generator().manual_seed(seed)

    def part(name: str, n: int) -> Images:
        secret, target = torch.randint(2, (2, n), generator=rng)
        classes = {"target": ("a", "b"), "secret": ("no", "yes")}
        return Images(name, paint(secret, rng), {"target": target, "secret": secret}, classes)

    task = Task(part("train", train), part("test", test), "target", small_cnn, hidden="secret")
    network = Same() if model is None else model
    filtered = nn.Identity() if release is None else Release(release)
    released_train, released_test = (
        images.pixels if release is None else apply(filtered, images.pixels) for images in (task.train, task.test)
    )
    return Outcome(
        task,
        Plain(),
        Decimal(0),
        Trained(network, filtered, adversary=adversary),
        released_train,
        released_test,
        train_logits=apply(network, released_train),
        test_logits=apply(network, released_test),
        raw_test_logits=apply(network, task.test.pixels),
        seed=0,
    )
