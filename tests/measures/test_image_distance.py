from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from measured import images, outcome, rng
from torch import Tensor, nn

from counterpoise.datasets.digits import Digits
from counterpoise.measures import MSE, SSIM, EMDPerImage, PooledEMD
from counterpoise.measures.image_distance import similarity
from counterpoise.mechanisms.pixel_shuffle import Shuffle
from counterpoise.record import Measurement


class Plus(nn.Module):
    def __init__(self, change: Tensor) -> None:
        super().__init__()
        self.change = change

    def forward(self, pixels: Tensor) -> Tensor:
        return (pixels + self.change[: len(pixels)]).clamp(0, 1)


def naive(x: Tensor, y: Tensor) -> float:
    """SSIM of one image pair, window by window, from the definition."""
    _, height, width = x.shape
    size = min(11, height, width)
    size = size if size % 2 else size - 1
    middle = size // 2
    weight = torch.tensor(
        [[math.exp(-((i - middle) ** 2 + (j - middle) ** 2) / (2 * 1.5**2)) for j in range(size)] for i in range(size)],
        dtype=torch.float64,
    )
    weight /= weight.sum()
    found = []
    for a, b in zip(x.double(), y.double(), strict=True):
        for i in range(height - size + 1):
            for j in range(width - size + 1):
                p, q = a[i : i + size, j : j + size], b[i : i + size, j : j + size]
                m, k = (weight * p).sum(), (weight * q).sum()
                vp, vq = (weight * (p - m) ** 2).sum(), (weight * (q - k) ** 2).sum()
                c = (weight * (p - m) * (q - k)).sum()
                found.append((2 * m * k + 1e-4) * (2 * c + 9e-4) / ((m * m + k * k + 1e-4) * (vp + vq + 9e-4)))
    return float(torch.stack(found).mean())


@settings(max_examples=20, deadline=None)
@given(channels=st.integers(1, 3), height=st.integers(1, 16), width=st.integers(1, 16), seed=st.integers(0, 99))
def test_ssim_equals_its_naive_twin(channels: int, height: int, width: int, seed: int) -> None:
    x, y = torch.rand(2, 2, channels, height, width, generator=rng(seed))
    for found, a, b in zip(similarity(x, y), x, y, strict=True):
        assert float(found) == pytest.approx(naive(a, b), abs=1e-10)


def test_ssim_is_1_for_equal_images_falls_with_noise_and_is_negative_for_a_negative() -> None:
    x = torch.rand(4, 1, 16, 16, generator=rng())
    noise = torch.randn(4, 1, 16, 16, generator=rng(1))
    test = images(x)
    values = [SSIM()(outcome(test), outcome(test, release=Plus(s * noise))).value for s in (0, 0.1, 0.3)]
    assert values[0] == pytest.approx(1, abs=1e-12)
    assert values[0] > values[1] > values[2]
    assert float(similarity(x, 1 - x).max()) < 0


def test_ssim_sees_the_shuffle_that_histograms_miss() -> None:
    x = torch.linspace(0, 1, 256).view(1, 1, 16, 16)
    shuffled = x.flatten()[torch.randperm(256, generator=rng())].view_as(x)
    assert float(similarity(x, shuffled)) < 0.3


def test_mse_of_a_shift_is_its_square() -> None:
    test = images(0.5 * torch.rand(6, 3, 4, 4, generator=rng()))
    found = MSE()(outcome(test), outcome(test, release=Plus(torch.full((6, 1, 1, 1), 0.2))))
    assert found.value == pytest.approx(0.04, abs=1e-7)
    assert found.high - found.low < 1e-7
    half = Plus(torch.tensor([0.2, 0, 0.2, 0, 0.2, 0]).view(6, 1, 1, 1))
    found = MSE()(outcome(test), outcome(test, release=half))
    assert found.value == pytest.approx(0.02, abs=1e-7)
    assert found.low < 0.01
    assert found.high > 0.03


def test_the_pooled_emd_ranks_destroyed_digits_above_blurred_ones() -> None:
    """The control against a release that keeps the digits readable: only the pooled EMD prefers the control."""
    test = images(Digits().load()[1].pixels)
    control = outcome(test, release=Shuffle(Decimal(1), 3))
    blurred = outcome(test, release=nn.AvgPool2d(3, stride=1, padding=1))
    for blind in (PooledEMD(), EMDPerImage()):
        assert blind(outcome(test), control) == Measurement(0, 0, 0, len(test), "images")
        assert blind(outcome(test), blurred).low > 0.05
    assert SSIM()(outcome(test), control).high < 0.1
    assert SSIM()(outcome(test), blurred).low > 0.5
    assert MSE()(outcome(test), control).low > MSE()(outcome(test), blurred).high
