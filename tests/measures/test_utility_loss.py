from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from measured import Pick, images, outcome, rng
from scipy.stats import wasserstein_distance
from torch import Tensor, nn

from counterpoise.measures import Accuracy, AccuracyLoss, EMDPerImage, NoLoss, PooledEMD, TaskLoss
from counterpoise.record import Measurement


class Do(nn.Module):
    """A release that is one function of the pixels."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, pixels: Tensor) -> Tensor:
        assert callable(self.function)
        result: Tensor = self.function(pixels)
        return result


def pictures(n: int = 20, side: int = 6, levels: int = 256) -> Tensor:
    return torch.randint(levels, (n, 1, side, side), generator=rng(n)).float() / 255


def signed(n: int, right: int) -> Tensor:
    """Images of class 0, of which `Pick` gets the first `right` right."""
    pixels = torch.zeros(n, 1, 1, 2)
    pixels[:right, ..., 0] = 1
    pixels[right:, ..., 1] = 1
    return pixels


SWAP = Do(lambda pixels: pixels.flip(3))


def test_accuracy_is_of_the_released_images() -> None:
    test = images(signed(100, 80))
    found = Accuracy()(outcome(test), outcome(test))
    assert (found.value, found.n) == (0.8, 100)
    assert found.low == pytest.approx(0.8 - 1.96 * 0.04, abs=0.02)
    assert Accuracy()(outcome(test), outcome(test, release=SWAP)).value == pytest.approx(0.2)


def test_losses_compare_the_same_images_and_keep_the_sign() -> None:
    test = images(signed(100, 80))

    class Reversed(Pick):
        def forward(self, pixels: Tensor) -> Tensor:
            return super().forward(pixels).flip(1)

    good, bad = outcome(test), outcome(test, model=Reversed())
    assert AccuracyLoss()(good, bad).value == pytest.approx(0.6)
    assert AccuracyLoss()(bad, good).value == pytest.approx(-0.6)
    both = outcome(test, model=Reversed(), release=SWAP)  # a model that needs its filter
    assert AccuracyLoss()(good, both).value == pytest.approx(0.6)
    assert TaskLoss()(good, both).value == pytest.approx(0)
    filtered = outcome(test, release=SWAP)
    assert TaskLoss()(good, filtered).value == pytest.approx(0.6)
    assert AccuracyLoss()(good, filtered).value == pytest.approx(0)


def test_the_interval_is_paired() -> None:
    """Two models that err on nearly the same images differ by little: far less than two accuracies' noise."""
    right, nearly = signed(400, 200), signed(400, 200)
    nearly[0] = signed(1, 0)[0]
    lookup = Do(lambda pixels: nearly)
    found = TaskLoss()(outcome(images(right)), outcome(images(right), release=lookup))
    assert found.value == pytest.approx(1 / 400)
    assert found.high - found.low < 0.01


@pytest.mark.parametrize("k", [0, 1, 10, 100])
def test_emd_of_a_shift_is_the_shift(k: int) -> None:
    test = images(pictures(levels=100))
    shifted = outcome(test, release=Do(lambda pixels: pixels + k / 255))
    assert PooledEMD()(outcome(test), shifted).value == pytest.approx(k / 255, abs=1e-12)
    assert EMDPerImage()(outcome(test), shifted).value == pytest.approx(k / 255, abs=1e-12)


def test_emd_of_black_and_white_is_1() -> None:
    test = images(torch.zeros(3, 1, 4, 4))
    assert PooledEMD()(outcome(test), outcome(test, release=Do(torch.ones_like))).value == pytest.approx(1)


def test_emd_cannot_see_a_shuffle() -> None:
    test = images(pictures())
    order = torch.randperm(36, generator=rng(3))
    shuffled = outcome(test, release=Do(lambda pixels: pixels.flatten(2)[..., order].view_as(pixels)))
    assert PooledEMD()(outcome(test), shuffled) == Measurement(0, 0, 0, 20, "images")
    assert EMDPerImage()(outcome(test), shuffled).value == 0


def test_only_the_emd_per_image_sees_images_trade_their_pixels() -> None:
    test = images(torch.cat([torch.zeros(5, 1, 2, 2), torch.ones(5, 1, 2, 2)]))
    traded = outcome(test, release=Do(lambda pixels: pixels.flip(0)))
    assert PooledEMD()(outcome(test), traded).value == 0
    assert EMDPerImage()(outcome(test), traded).value == 1


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), channels=st.integers(1, 3), side=st.integers(1, 5), seed=st.integers(0, 999))
def test_emd_equals_scipy_s(n: int, channels: int, side: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    before, after = (draw.integers(256, size=(n, channels, side, side)) for _ in range(2))
    test = images(torch.from_numpy(before / 255).float())
    candidate = outcome(test, release=Do(lambda pixels: torch.from_numpy(after / 255).float()), model=Pick(1))
    pooled = wasserstein_distance(before.ravel() / 255, after.ravel() / 255)
    single = [wasserstein_distance(a.ravel() / 255, b.ravel() / 255) for a, b in zip(before, after, strict=True)]
    found = PooledEMD()(candidate, candidate)
    assert found.value == pytest.approx(pooled, abs=1e-9)
    assert 0 <= found.low <= found.high <= 1
    assert EMDPerImage()(candidate, candidate).value == pytest.approx(np.mean(single), abs=1e-9)
    assert found.value <= EMDPerImage()(candidate, candidate).value + 1e-12


def test_an_identical_candidate_loses_nothing() -> None:
    same = outcome(images(pictures()))
    for measure in (AccuracyLoss(), TaskLoss(), PooledEMD(), EMDPerImage()):
        assert measure(same, same) == Measurement(0, 0, 0, 20, "images")
    assert NoLoss()(same, same) == Measurement.exact(0)
