"""LeNet-5 as the Caffe framework's examples have it."""

from __future__ import annotations

import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.models._init import Centre, seeded


def lenet5_caffe(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """20 and 50 kernels 5 x 5, each pooled by 2, then 500 units: 431,080 parameters on MNIST."""
    channels, height, width = shape
    if min(height, width) < 16:
        raise InputError(f"lenet5-caffe needs images of at least 16 x 16 pixels, not {width} x {height}.")
    left = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2)
    with seeded(rng):
        return nn.Sequential(
            Centre(),
            nn.Conv2d(channels, 20, 5),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(50 * left, 500),
            nn.ReLU(),
            nn.Linear(500, classes),
        )
