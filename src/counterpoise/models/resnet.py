"""ResNet-18, for images from 32 x 32 to 224 x 224, with the normalisation of one's choice."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, one_of
from counterpoise.models._init import Centre, seeded

Norm = Callable[[int], nn.Module]

NORMS: dict[str, Norm] = {
    "group": lambda channels: nn.GroupNorm(min(32, channels), channels),
    "batch": nn.BatchNorm2d,
}
"""Private training needs 'group': batch statistics mix the examples."""


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut. Parts are named as the published weights name them."""

    def __init__(self, channels: int, wider: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, wider, 3, stride, padding=1, bias=False)
        self.bn1 = norm(wider)
        self.conv2 = nn.Conv2d(wider, wider, 3, padding=1, bias=False)
        self.bn2 = norm(wider)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != wider:
            self.downsample = nn.Sequential(nn.Conv2d(channels, wider, 1, stride, bias=False), norm(wider))

    def forward(self, x: Tensor) -> Tensor:
        """The input, plus what the two convolutions change about it."""
        change = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(change + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016.

    Images below 64 pixels get the stem of the paper's CIFAR networks, a 3 x 3 convolution without pooling; its
    weights alone do not fit the published ones.
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, blocks: tuple[int, ...], norm: Norm) -> None:
        super().__init__()
        small = min(shape[1:]) < 64
        self.centre = Centre()
        self.conv1 = nn.Conv2d(shape[0], 64, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False)
        self.bn1 = norm(64)
        self.pool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, count in enumerate(blocks):
            wider = 64 * 2**stage
            first = BasicBlock(channels, wider, 1 if stage == 0 else 2, norm)
            rest = [BasicBlock(wider, wider, 1, norm) for _ in range(count - 1)]
            self.add_module(f"layer{stage + 1}", nn.Sequential(first, *rest))
            channels = wider
        self.stages = len(blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        x = self.pool(torch.relu(self.bn1(self.conv1(self.centre(pixels)))))
        for stage in range(self.stages):
            x = self.get_submodule(f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))  # type: ignore[no-any-return]


def resnet18(
    shape: tuple[int, int, int],
    classes: int,
    rng: torch.Generator,
    *,
    norm: str = "group",
    blocks: tuple[int, ...] = (2, 2, 2, 2),
) -> nn.Module:
    """About 11.2 million parameters. GroupNorm by default, so that it can be trained privately."""
    one_of(tuple(NORMS), norm=norm)
    if min(shape[1:]) < 16:
        raise InputError(f"resnet18 needs images of at least 16 x 16 pixels, not {shape[2]} x {shape[1]}.")
    with seeded(rng):
        return ResNet(shape, classes, blocks, NORMS[norm])


def resnet18_batchnorm(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """ResNet-18 as published; refused by private training, which wants the GroupNorm one."""
    return resnet18(shape, classes, rng, norm="batch")
