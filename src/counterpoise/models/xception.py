"""Xception in small: separable convolutions with shortcuts, for faces and other photographs of 24 pixels and more."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, at_least, one_of
from counterpoise.models._init import Centre, normalisation, seeded


def xception_small(
    shape: tuple[int, int, int], classes: int, rng: torch.Generator, width: int = 24, norm: str = "group"
) -> nn.Module:
    """A convolution, three separable blocks that halve the image (2, 4 and 8 times `width` channels), a mean, a layer.

    After Chollet, "Xception: deep learning with depthwise separable convolutions", CVPR 2017: each channel is
    convolved by itself, and channels are mixed point by point. 105,000 parameters at width 24.
    """
    at_least(4, width=width)
    one_of(("group", "batch", "none"), norm=norm)
    channels, height, wide = shape
    if min(height, wide) < 16:
        raise InputError(f"xception-small needs images of at least 16 x 16 pixels, not {wide} x {height}.")
    with seeded(rng):
        return nn.Sequential(
            Centre(),
            nn.Conv2d(channels, width, 3, stride=2, padding=1),
            *normalisation(norm, width),
            nn.ReLU(),
            *(_Block(width * 2**level, norm) for level in range(3)),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8 * width, classes),
        )


class _Block(nn.Module):
    """Two separable convolutions and a pooling, beside a shortcut of stride 2; twice as many channels."""

    def __init__(self, channels: int, norm: str) -> None:
        super().__init__()
        self.separable = nn.Sequential(
            *_separable(channels, 2 * channels, norm),
            nn.ReLU(),
            *_separable(2 * channels, 2 * channels, norm),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        self.shortcut = nn.Conv2d(channels, 2 * channels, 1, stride=2)
        self.after = nn.ReLU()

    def forward(self, maps: Tensor) -> Tensor:
        """Half the size."""
        joined: Tensor = self.after(self.separable(maps) + self.shortcut(maps))
        return joined


def _separable(inputs: int, outputs: int, norm: str) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False),
        nn.Conv2d(inputs, outputs, 1),
        *normalisation(norm, outputs),
    ]
