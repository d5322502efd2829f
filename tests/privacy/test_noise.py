"""Both kinds of noise from both sources have the right distribution at the right scale, and not at 2/3 or 3/2 of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from counterpoise._check import InputError
from counterpoise.privacy import Gaussian, Laplace
from counterpoise.privacy.noise import Noise, hide, secure_draw, secure_uniform

COUNT = 20_000
LAWS: dict[str, Any] = {"gaussian": stats.norm, "laplace": stats.laplace}


def drawn(noise: Noise, clip: float, secure: bool) -> np.ndarray[Any, Any]:
    zeros = {"a": torch.zeros(COUNT // 2), "b": torch.zeros(COUNT // 4, 2)}
    hidden = hide(zeros, noise, clip, None if secure else torch.Generator().manual_seed(5))
    return np.concatenate([value.flatten().numpy() for value in hidden.values()])


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("noise", [Gaussian(1.5), Laplace(1.5)])
def test_distribution_and_scale(noise: Noise, secure: bool) -> None:
    sample = drawn(noise, 2.0, secure)
    law = LAWS[noise.kind]
    assert stats.kstest(sample, law(scale=3.0).cdf).pvalue > 1e-6
    for wrong in (2.0, 4.5, 1.5, 6.0):
        assert stats.kstest(sample, law(scale=wrong).cdf).pvalue < 1e-9
    other = LAWS["laplace" if noise.kind == "gaussian" else "gaussian"]
    same_spread = 3 / math.sqrt(2) if noise.kind == "gaussian" else 3 * math.sqrt(2)
    assert stats.kstest(sample, other(scale=same_spread).cdf).pvalue < 1e-9


@pytest.mark.parametrize("secure", [False, True])
def test_draws_are_independent_of_each_other(secure: bool) -> None:
    sample = drawn(Gaussian(1.0), 1.0, secure)
    for lag in (1, 2, COUNT // 4, COUNT // 2):
        correlation = float(np.corrcoef(sample[:-lag], sample[lag:])[0, 1])
        assert abs(correlation) < 5 / math.sqrt(COUNT - lag)


def test_seeded_noise_repeats_and_secure_noise_does_not() -> None:
    noise = Gaussian(1.0)
    assert (drawn(noise, 1.0, False) == drawn(noise, 1.0, False)).all()
    assert not (drawn(noise, 1.0, True) == drawn(noise, 1.0, True)).any()


def test_one_generator_never_gives_the_same_noise_twice() -> None:
    rng = torch.Generator().manual_seed(0)
    first, second = (hide({"a": torch.zeros(1000)}, Gaussian(1.0), 1.0, rng)["a"] for _ in range(2))
    assert abs(float(torch.corrcoef(torch.stack((first, second)))[0, 1])) < 0.2


def test_no_noise_adds_nothing() -> None:
    total = {"a": torch.randn(5)}
    assert hide(total, Gaussian(0.0), 1.0, None)["a"] is total["a"]


def test_secure_sums_lie_on_a_grid_whatever_the_data() -> None:
    """The attack asks which numbers can appear: in doubles, only multiples of the grid, at every data."""
    grid = 2.0 ** (math.floor(math.log2(3.0)) - 30)
    for data in (0.0, 1 / 3, math.pi * 1e-5):
        hidden = hide({"a": torch.full((500,), data, dtype=torch.float64)}, Gaussian(1.5), 2.0, None)["a"].numpy()
        assert (np.rint(hidden / grid) == hidden / grid).all()
    plain = hide({"a": torch.full((500,), 1 / 3, dtype=torch.float64)}, Gaussian(1.5), 2.0, torch.Generator())["a"]
    assert (np.rint(plain.numpy() / grid) != plain.numpy() / grid).any()


def test_secure_noise_makes_up_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a coarse grid of 1/16, ten thousand numbers may round apart by 6.25: so much more must the noise hide."""
    assert drawn(Gaussian(1.0), 1.0, True).std() == pytest.approx(1, rel=0.05)
    monkeypatch.setattr("counterpoise.privacy.noise._GRID_BITS", 4)
    hidden = hide({"a": torch.zeros(10_000)}, Gaussian(1.0), 1.0, None)["a"]
    assert float(hidden.std()) == pytest.approx(1 + 100 / 16, rel=0.05)


def test_secure_uniforms_and_tails() -> None:
    uniform = secure_uniform(COUNT)
    assert 0 < uniform.min() < uniform.max() <= 1
    assert stats.kstest(uniform, stats.uniform.cdf).pvalue > 1e-6
    assert np.abs(secure_draw("gaussian", 400_000)).max() > 4


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_wrong_multipliers(kind: Any) -> None:
    for wrong in (-1, math.nan, math.inf, "much"):
        with pytest.raises(InputError, match=r"multiplier=.* must be a number, 0 or above"):
            kind(wrong)
