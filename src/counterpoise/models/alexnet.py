"""AlexNet, for images from 32 x 32 to 224 x 224, with one dense layer at the end or with the published three."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, one_of
from counterpoise.models._init import Centre, normalisation, seeded


class AlexNet(nn.Module):
    """Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014, with the usual names.

    Images below 64 pixels get a first convolution of 5 x 5 kernels 2 apart instead of 11 x 11 ones 4 apart; its
    weights alone do not fit the published ones.
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, norm: str, head: str) -> None:
        super().__init__()
        small = min(shape[1:]) < 64
        first = nn.Conv2d(shape[0], 64, 5, 2, 2) if small else nn.Conv2d(shape[0], 64, 11, 4, 2)
        convolutions = (
            first,
            nn.Conv2d(64, 192, 5, padding=2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.Conv2d(256, 256, 3, padding=1),
        )
        parts: list[nn.Module] = []
        for index, convolution in enumerate(convolutions):
            parts += [convolution, *normalisation(norm, convolution.out_channels), nn.ReLU()]
            if index in (0, 1, 4):
                parts.append(nn.MaxPool2d(3, 2))
        self.centre = Centre()
        self.features = nn.Sequential(*parts)
        self.avgpool = nn.AdaptiveAvgPool2d(6 if head == "published" else 1)
        self.classifier: nn.Module = nn.Linear(256, classes)
        if head == "published":
            self.classifier = nn.Sequential(
                nn.Dropout(),
                nn.Linear(256 * 36, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, 4096),
                nn.ReLU(),
                nn.Linear(4096, classes),
            )

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits."""
        x = self.avgpool(self.features(self.centre(pixels)))
        return self.classifier(x.flatten(1))  # type: ignore[no-any-return]


def alexnet(
    shape: tuple[int, int, int], classes: int, rng: torch.Generator, *, norm: str = "none", head: str = "linear"
) -> nn.Module:
    """AlexNet with 2.5 million parameters: its convolutions, then one dense layer on their averages.

    `head` 'published' has three dense layers, 61 million parameters for 1,000 classes. `norm` is 'none' (as published),
    'group' (helps private training) or 'batch' (refused by it).
    """
    one_of(("none", "group", "batch"), norm=norm)
    one_of(("linear", "published"), head=head)
    if min(shape[1:]) < 32:
        raise InputError(f"alexnet needs images of at least 32 x 32 pixels, not {shape[2]} x {shape[1]}.")
    with seeded(rng):
        return AlexNet(shape, classes, norm, head)
