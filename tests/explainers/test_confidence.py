"""Bounds from finitely many samples hold as often as they say, at one look and at all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import beta as beta_law

from counterpoise.explainers._confidence import Bounds, binomial, bounded, looks, share
from counterpoise.explainers._scoring import SCORINGS, scored, sigmoid, step, top

UNITS, TRIALS = 12, 400
TRUTH = np.sort(np.random.default_rng(0).dirichlet(np.ones(UNITS)))[::-1].copy()
"""What each unit's chance to be in the top is, over k: k = 3 units are drawn each time."""


def drawn(rng: np.random.Generator, samples: int) -> np.ndarray:
    """[samples, units] of 0 and 1: by sorting noisy values, as maps are."""
    values = np.linspace(1, -1, UNITS) + rng.standard_normal((samples, UNITS))
    return scored(torch.from_numpy(values), torch.from_numpy(step(3, UNITS))).numpy()


LONG = drawn(np.random.default_rng(1), 400_000).mean(0)
"""The true mean, as near as makes no difference to bounds of some hundred samples."""


def missed(bounds: Bounds) -> bool:
    return bool(((bounds.low > LONG) | (bounds.high < LONG)).any())


def test_binomial_bounds_miss_at_most_as_often_as_stated() -> None:
    rng = np.random.default_rng(2)
    found = [drawn(rng, 60).mean(0) for _ in range(TRIALS)]
    for error in (0.05, 0.5):
        misses = sum(missed(binomial(np.rint(mean * 60 * 3), 60, 1 / 3, error)) for mean in found)
        assert misses <= TRIALS * error + 3 * (TRIALS * error * (1 - error)) ** 0.5
    # And the nearby wrong thing, bounds for each unit alone, misses too often.
    alone = sum(missed(binomial(np.rint(mean * 60 * 3), 60, 1 / 3, 0.5 * UNITS)) for mean in found)
    assert alone > TRIALS * 0.5


def test_binomial_bounds_are_those_of_clopper_and_pearson() -> None:
    counts, samples, error = np.array([0.0, 1, 7, 20]), 20, 0.2
    bounds = binomial(counts, samples, 0.5, error)
    each = error / 8
    for index, count in enumerate(counts):
        low = 0 if count == 0 else beta_law.ppf(each, count, samples - count + 1)
        high = 1 if count == samples else beta_law.ppf(1 - each, count + 1, samples - count)
        assert bounds.low[index] == pytest.approx(low / 2)
        assert bounds.high[index] == pytest.approx(high / 2)


@pytest.mark.parametrize("samples", [1, 30, 3000])
def test_bounded_scores_miss_at_most_as_often_as_stated(samples: int) -> None:
    rng = np.random.default_rng(3)
    chance = np.array([0.02, 0.3, 0.5, 0.97])
    misses = 0
    for _ in range(TRIALS):
        draws = 0.1 + 0.4 * (rng.random((samples, 4)) < chance)
        variance = draws.var(0, ddof=1) if samples > 1 else np.zeros(4)
        bounds = bounded(draws.mean(0), variance, samples, 0.1, 0.5, 0.2)
        misses += bool(((bounds.low > 0.1 + 0.4 * chance) | (bounds.high < 0.1 + 0.4 * chance)).any())
        assert (bounds.low >= 0.1).all()
        assert (bounds.high <= 0.5).all()
    assert misses <= TRIALS * 0.2 + 3 * (TRIALS * 0.16) ** 0.5


def test_scores_that_seldom_vary_are_known_better() -> None:
    steady, wild = (bounded(np.array([0.5]), np.array([v]), 5000, 0, 1, 0.05) for v in (0.0001, 0.25))
    assert float((steady.high - steady.low)[0]) < 0.3 * float((wild.high - wild.low)[0])


def test_looking_again_and_again_is_paid_for() -> None:
    """Who stops at the first miss finds one far too often with bounds made for one look, and seldom with these."""
    rng, error = np.random.default_rng(4), 0.3
    planned = looks(20, 2560)
    assert planned == [20, 40, 80, 160, 320, 640, 1280, 2560]
    paid = unpaid = 0
    for _ in range(300):
        totals = np.cumsum(drawn(rng, planned[-1]) * 3, axis=0)
        counts = [np.rint(totals[samples - 1]) for samples in planned]
        paid += any(
            missed(binomial(count, samples, 1 / 3, error * share(look, len(planned))))
            for look, (count, samples) in enumerate(zip(counts, planned, strict=True))
        )
        unpaid += any(
            missed(binomial(count, samples, 1 / 3, error)) for count, samples in zip(counts, planned, strict=True)
        )
    assert paid <= 300 * error
    assert unpaid > 300 * error


def test_the_shares_of_all_looks_together_are_at_most_one() -> None:
    assert sum(share(look, 9) for look in range(9)) <= 1
    assert sum(share(look, 2) for look in range(10_000)) == pytest.approx(1, abs=1e-3)
    assert share(0, 1) == 1
    assert looks(100, 100) == [100]
    assert looks(100, 30) == [30]
    assert looks(100, 250) == [100, 200, 250]


@pytest.mark.parametrize("name", SCORINGS)
@pytest.mark.parametrize(("k", "units"), [(1, 2), (16, 64), (256, 1024)])
def test_scorings_fall_and_sum_to_one(name: str, k: int, units: int) -> None:
    scores = SCORINGS[name](k, units)
    assert scores.shape == (units,)
    assert scores.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(scores) <= 0).all()
    assert (scores >= 0).all()


def test_the_sigmoid_falls_around_k() -> None:
    scores = sigmoid(20, 80)
    assert scores[14] / scores[0] == pytest.approx(0.94, abs=0.02)
    assert scores[25] / scores[0] < 0.07


def test_ranks_and_ties() -> None:
    maps = torch.tensor([[0.1, 0.9, 0.9, 0.5], [0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    scores = torch.tensor([4.0, 3.0, 2.0, 1.0], dtype=torch.float64)
    assert scored(maps, scores).tolist() == [[1, 4, 3, 2], [4, 3, 2, 1]]
    assert top(np.array([0.2, 0.5, 0.5, 0.5]), 2).tolist() == [1, 2]
