"""VGG-16, for 224 x 224 images as published and for 32 x 32 ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, one_of
from counterpoise.models._init import Centre, normalisation, seeded

_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class VGG(nn.Module):
    """Simonyan and Zisserman, "Very deep convolutional networks", ICLR 2015, with the published names of its parts."""

    def __init__(self, shape: tuple[int, int, int], classes: int, norm: str) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        channels = shape[0]
        for stage in _STAGES:
            for wider in stage:
                parts.append(nn.Conv2d(channels, wider, 3, padding=1))
                parts += [*normalisation(norm, wider), nn.ReLU()]
                channels = wider
            parts.append(nn.MaxPool2d(2))
        self.centre = Centre()
        self.features = nn.Sequential(*parts)
        small = min(shape[1:]) < 64
        self.avgpool = nn.AdaptiveAvgPool2d(1 if small else 7)
        if small:
            self.classifier: nn.Module = nn.Linear(512, classes)
        else:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 49, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, classes),
            )

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        x = self.avgpool(self.features(self.centre(pixels)))
        return self.classifier(x.flatten(1))  # type: ignore[no-any-return]


def vgg16(shape: tuple[int, int, int], classes: int, rng: torch.Generator, *, norm: str = "none") -> nn.Module:
    """138 million parameters at 224 x 224 (1,000 classes); 14.7 million below 64 pixels, where one dense layer ends it.

    `norm` is 'none' (as published first), 'group' (helps private training) or 'batch' (refused by it).
    """
    one_of(("none", "group", "batch"), norm=norm)
    if min(shape[1:]) < 32:
        raise InputError(f"vgg16 needs images of at least 32 x 32 pixels, not {shape[2]} x {shape[1]}.")
    with seeded(rng):
        return VGG(shape, classes, norm)
