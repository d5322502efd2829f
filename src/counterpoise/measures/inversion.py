"""What of the original image can be had back from the released one, by a network that learned to undo the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import Values, bootstrap
from counterpoise.measures.image_distance import CHUNK, similarity
from counterpoise.record import Measurement
from counterpoise.training import apply, fast_layout, fit, generator, seeded, shuffled_batch, steps_per_epoch

SEED = 20_252
MOST = 2000
EPOCHS, LEAST_STEPS, BATCH, RATE = 10, 400, 32, 2e-3
WIDTH = 32
SMALLEST = 1e-10
"""A mean squared error below which images count as equal: 100 dB, far beyond 256 levels."""


class Inverter(nn.Module):
    """The released image plus what three convolutions add to it, cut to [0, 1]: at the start it changes nothing."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        last = nn.Conv2d(WIDTH, channels, 3, padding=1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)  # type: ignore[arg-type]
        first, middle = nn.Conv2d(channels, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.added = nn.Sequential(first, nn.ReLU(), middle, nn.ReLU(), last)

    def forward(self, released: Tensor) -> Tensor:
        """The guess; while it learns it may leave [0, 1], or gradients would end there."""
        guess: Tensor = released + self.added(released)
        return guess if self.training else guess.clamp(0, 1)


def inverted(outcome: Outcome) -> Tensor:
    """The test images as an inverter, trained on pairs of released and raw training images, has them back."""
    chosen = torch.randperm(len(outcome.task.train), generator=generator(SEED, "pairs"))[:MOST]
    released, raw = outcome.released_train[chosen], outcome.task.train.pixels[chosen]
    with seeded(generator(SEED, "inverter")):
        inverter = Inverter(released.shape[1])
    optimiser = torch.optim.Adam(inverter.parameters(), lr=RATE)
    arrange = fast_layout(inverter, released)
    inverter.train()

    def step(index: int) -> None:
        batch = shuffled_batch(len(released), BATCH, SEED, index)
        optimiser.zero_grad()
        loss = nn.functional.mse_loss(inverter(arrange(released[batch])), arrange(raw[batch]))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    steps = max(LEAST_STEPS, EPOCHS * steps_per_epoch(len(released), BATCH))
    fit(step, steps, {"inverter": inverter, "optimiser": optimiser})
    return apply(inverter, outcome.released_test)


@dataclass(frozen=True)
class InversionPSNR:
    """-10 log10 of the mean squared error between a test image and what a trained inverter makes of its release.

    A small residual convolutional network, trained on released and raw training images. Unit: dB; 100 stands for
    equal images. Lower is better: more of the image is gone for good. Interval: bootstrap over test images. A better
    inverter has more back.
    """

    name: ClassVar[str] = "inversion_psnr"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "dB"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Of all test images together."""
        errors = (candidate.once(inverted) - candidate.task.test.pixels).double().square().mean((1, 2, 3))

        def decibel(means: Values) -> Values:
            found: Values = -10 * np.log10(means[..., 0].clip(SMALLEST))
            return found

        return bootstrap(errors.numpy(), decibel)


@dataclass(frozen=True)
class InversionSSIM:
    """Structural similarity of a test image and what the inverter of `inversion_psnr` makes of its release.

    Wang et al. 2004. Unit: similarity in [-1, 1]. Lower is better. Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "inversion_ssim"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "similarity in [-1, 1]"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of each image's similarity."""
        pairs = zip(
            torch.split(candidate.task.test.pixels, CHUNK), torch.split(candidate.once(inverted), CHUNK), strict=True
        )
        return bootstrap(torch.cat([similarity(original, guess) for original, guess in pairs]).numpy())
