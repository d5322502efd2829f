"""An inverter has back what is there, and no more."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import torch
from secrets_told import outcome
from torch import Tensor, nn

from counterpoise.measures import InversionPSNR, InversionSSIM
from counterpoise.training import one_thread


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def shapes(secret: Tensor, rng: torch.Generator) -> Tensor:
    """A bright rectangle on dark ground."""
    n = len(secret)
    corner, size = torch.randint(8, (n, 2), generator=rng), torch.randint(3, 6, (n, 2), generator=rng)
    places = torch.arange(12)
    inside = [(places >= corner[:, [i]]) & (places < (corner + size)[:, [i]]) for i in (0, 1)]
    return 0.2 + 0.6 * (inside[0][:, None, :, None] & inside[1][:, None, None, :]).float()


def test_what_was_not_changed_is_had_back() -> None:
    raw = outcome(shapes, train=300, test=100)
    assert InversionPSNR()(raw, raw).value == pytest.approx(100)
    assert InversionSSIM()(raw, raw).value > 0.999


def test_of_blank_images_only_the_mean_is_had_back() -> None:
    noise = outcome(
        lambda secret, rng: torch.rand(len(secret), 1, 12, 12, generator=rng), release=lambda x: torch.full_like(x, 0.2)
    )
    found = InversionPSNR()(noise, noise)
    assert found.value == pytest.approx(10 * math.log10(12), abs=0.1)
    assert InversionSSIM()(noise, noise).value < 0.1


def test_what_is_only_turned_round_or_blurred_is_had_back_and_what_is_noise_is_not() -> None:
    def decibel(first: Tensor, second: Tensor) -> float:
        return float(-10 * (first - second).square().mean().log10())

    turned = outcome(shapes, train=300, test=100, release=lambda x: 1 - x)
    raw = turned.task.test.pixels
    assert decibel(turned.released_test, raw) < 8
    assert InversionPSNR()(turned, turned).low > 25

    blurred = outcome(shapes, train=300, test=100, release=lambda x: nn.functional.avg_pool2d(x, 3, 1, 1))
    before = decibel(blurred.released_test, raw)
    assert InversionPSNR()(blurred, blurred).low > before + 2
    assert InversionSSIM()(blurred, blurred).value > 0.8

    lost = outcome(shapes, train=300, test=100, release=lambda x: torch.zeros_like(x))
    assert InversionPSNR()(lost, lost).high < InversionPSNR()(blurred, blurred).low - 5
