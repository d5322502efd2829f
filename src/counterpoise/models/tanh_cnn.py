"""The network with bounded activations that DP-SGD trains best on MNIST."""

from __future__ import annotations

import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.models._init import Centre, seeded


def tanh_cnn(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Papernot, Thakurta, Song, Chien and Erlingsson, "Tempered sigmoid activations", AAAI 2021: 26,010 parameters.

    16 kernels 8 x 8 with stride 2, 32 kernels 4 x 4 with stride 2, each pooled by 2 with stride 1, 32 units.
    """
    channels, height, width = shape
    if min(height, width) < 16:
        raise InputError(f"tanh-cnn needs images of at least 16 x 16 pixels, not {width} x {height}.")
    with seeded(rng):
        return nn.Sequential(
            Centre(),
            nn.Conv2d(channels, 16, 8, stride=2, padding=3),
            nn.Tanh(),
            nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, stride=2),
            nn.Tanh(),
            nn.MaxPool2d(2, 1),
            nn.Flatten(),
            nn.Linear(32 * _left(height) * _left(width), 32),
            nn.Tanh(),
            nn.Linear(32, classes),
        )


def _left(side: int) -> int:
    """What the two convolutions and poolings leave of a side: 4 of 28."""
    first = (side + 6 - 8) // 2 + 1 - 1
    return (first - 4) // 2 + 1 - 1
