"""A network small enough for private training on a few hundred images."""

from __future__ import annotations

import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.models._init import Centre, seeded


def small_cnn(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Two convolutions and one dense layer: 3,818 parameters for ten classes of grey images.

    Few weights and bounded activations (tanh) suit DP-SGD, whose noise grows with the number of weights. The
    pooling gives 4 x 4 positions whatever the image size is.
    """
    channels, height, width = shape
    if min(height, width) < 8:
        raise InputError(f"small-cnn needs images of at least 8 x 8 pixels, not {width} x {height}.")
    with seeded(rng):
        return nn.Sequential(
            Centre(),
            nn.Conv2d(channels, 8, 3, padding=1),
            nn.Tanh(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.Tanh(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(256, classes),
        )
