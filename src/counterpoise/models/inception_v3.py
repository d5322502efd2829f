"""Inception-v3 (Szegedy et al. 2016), without the auxiliary classifier; and its stem alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.models._init import Centre, seeded

SMALLEST = 75
Size = int | tuple[int, int]


def inception_v3(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Inception-v3 with batch normalisation: 23.8 million parameters, images of at least 75 x 75.

    `1` is the stem, whose output (192 x 71 x 71 for images of 299 x 299) goes into the pooling before the first block.
    """
    if min(shape[1:]) < SMALLEST:
        raise InputError(f"inception-v3 needs images of at least {SMALLEST} x {SMALLEST}, not {shape[2]} x {shape[1]}.")
    first = stem(rng, shape[0])
    with seeded(rng):
        blocks = [
            _block_a(192, 32), _block_a(256, 64), _block_a(288, 64), _block_b(288),
            _block_c(768, 128), _block_c(768, 160), _block_c(768, 160), _block_c(768, 192), _block_d(768),
            _block_e(1280), _block_e(2048),
        ]  # fmt: skip
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(2048, classes)]
        return nn.Sequential(Centre(), first, nn.MaxPool2d(3, 2), *blocks, *head)


def inception_stem(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """The stem of Inception-v3 with a linear layer on its mean: layer `1` is what the whole network's is."""
    if min(shape[1:]) < 19:
        raise InputError(f"inception-stem needs images of at least 19 x 19, not {shape[2]} x {shape[1]}.")
    first = stem(rng, shape[0])
    with seeded(rng):
        return nn.Sequential(Centre(), first, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, classes))


def stem(rng: torch.Generator, channels: int = 3) -> nn.Sequential:
    """Five convolutions and a pooling, up to the last pooling before the first block."""
    with seeded(rng):
        return nn.Sequential(
            _conv(channels, 32, 3, stride=2),
            _conv(32, 32, 3),
            _conv(32, 64, 3, padding=1),
            nn.MaxPool2d(3, 2),
            _conv(64, 80, 1),
            _conv(80, 192, 3),
        )


class Beside(nn.Module):
    """Branches that see the same input; their channels are joined."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, images: Tensor) -> Tensor:
        """All outputs, one after the other."""
        return torch.cat([branch(images) for branch in self.branches], 1)


def _conv(given: int, made: int, size: Size, stride: int = 1, padding: Size = 0) -> nn.Sequential:
    convolution = nn.Conv2d(given, made, size, stride, padding, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(made, eps=1e-3), nn.ReLU(inplace=True))


def _chain(widths: Sequence[int], sizes: Sequence[Size], last_stride: int = 1) -> nn.Sequential:
    """Convolutions that keep the size, but for the last where it strides."""
    layers = []
    for index, ((given, made), size) in enumerate(zip(pairwise(widths), sizes, strict=True)):
        final = last_stride > 1 and index == len(sizes) - 1
        high, wide = (size, size) if isinstance(size, int) else size
        padding = 0 if final else (high // 2, wide // 2)
        layers.append(_conv(given, made, size, last_stride if final else 1, padding))
    return nn.Sequential(*layers)


def _pooled(given: int, made: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _conv(given, made, 1))


def _block_a(given: int, pooled: int) -> nn.Module:
    return Beside(
        _chain([given, 64], [1]),
        _chain([given, 48, 64], [1, 5]),
        _chain([given, 64, 96, 96], [1, 3, 3]),
        _pooled(given, pooled),
    )


def _block_b(given: int) -> nn.Module:
    return Beside(_chain([given, 384], [3], 2), _chain([given, 64, 96, 96], [1, 3, 3], 2), nn.MaxPool2d(3, 2))


def _block_c(given: int, c: int) -> nn.Module:
    row, column = (1, 7), (7, 1)
    return Beside(
        _chain([given, 192], [1]),
        _chain([given, c, c, 192], [1, row, column]),
        _chain([given, c, c, c, c, 192], [1, column, row, column, row]),
        _pooled(given, 192),
    )


def _block_d(given: int) -> nn.Module:
    return Beside(
        _chain([given, 192, 320], [1, 3], 2),
        _chain([given, 192, 192, 192, 192], [1, (1, 7), (7, 1), 3], 2),
        nn.MaxPool2d(3, 2),
    )


def _block_e(given: int) -> nn.Module:
    def both() -> nn.Module:
        return Beside(_chain([384, 384], [(1, 3)]), _chain([384, 384], [(3, 1)]))

    return Beside(
        _chain([given, 320], [1]),
        nn.Sequential(_chain([given, 384], [1]), both()),
        nn.Sequential(_chain([given, 448, 384], [1, 3]), both()),
        _pooled(given, 192),
    )
