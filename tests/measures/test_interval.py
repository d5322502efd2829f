from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from counterpoise._check import InputError
from counterpoise.measures import _interval
from counterpoise.measures._interval import bootstrap
from counterpoise.record import Measurement


def coverage(draw: str, n: int, trials: int = 300) -> float:
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(trials):
        sample = rng.exponential(1.0, n) if draw == "exponential" else rng.normal(1.0, 1.0, n)
        found = bootstrap(sample)
        inside += found.low <= 1 <= found.high
    return inside / trials


@pytest.mark.parametrize(("draw", "n"), [("normal", 40), ("normal", 200), ("exponential", 200)])
def test_about_95_of_100_intervals_hold_the_truth(draw: str, n: int) -> None:
    assert 0.91 < coverage(draw, n) < 0.985


def test_an_interval_of_half_the_width_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "quantile", lambda values, q: np.percentile(values, [16, 84]))
    assert coverage("normal", 100) < 0.8


def test_agrees_with_scipy() -> None:
    values = np.random.default_rng(3).gamma(2.0, size=300)
    ours = bootstrap(values)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=5000, rng=1).confidence_interval
    assert ours.value == pytest.approx(values.mean())
    width = theirs.high - theirs.low
    assert abs(ours.low - theirs.low) < 0.1 * width
    assert abs(ours.high - theirs.high) < 0.1 * width


def test_columns_of_an_image_are_redrawn_together() -> None:
    first = np.random.default_rng(0).normal(size=400)
    table = np.stack([first, first + 0.01], axis=1)
    paired = bootstrap(table, lambda means: means[..., 1] - means[..., 0])
    assert paired.high - paired.low < 1e-12
    alone = bootstrap(first)
    assert alone.high - alone.low > 0.15


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_the_value_lies_in_its_interval_and_the_draws_are_seeded(values: list[float]) -> None:
    found = bootstrap(values, lambda means: np.abs(means[..., 0]))
    assert found.low <= found.value <= found.high
    assert found == bootstrap(values, lambda means: np.abs(means[..., 0]))
    assert (found.n, found.over) == (len(values), "images")


def test_one_value_and_equal_values_have_no_width() -> None:
    assert bootstrap([0.25]) == Measurement(0.25, 0.25, 0.25, 1, "images")
    assert bootstrap([1.0] * 9, over="seeds") == Measurement(1, 1, 1, 9, "seeds")


def test_large_tables_are_redrawn_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_interval, "CHUNK", 1000)
    values = np.random.default_rng(2).normal(size=333)
    assert _interval._redrawn_means(values[:, None]).shape == (1000, 1)
    found = bootstrap(values)
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(333), rel=0.15)


def test_a_model_gone_astray_is_told() -> None:
    with pytest.raises(InputError, match="2 of 4 images have no finite value: the model's output is not finite"):
        bootstrap([0, np.nan, np.inf, 1])


def test_nothing_to_measure_is_an_error() -> None:
    with pytest.raises(ValueError, match="no images to measure"):
        bootstrap([])


@pytest.mark.parametrize("kept", [0, 2**25])
def test_draws_are_the_same_kept_or_not(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_interval, "KEPT", kept)
    values = np.random.default_rng(3).normal(size=(300, 2))
    rows = np.random.default_rng(_interval.SEED).integers(300, size=(1000, 300))
    assert np.allclose(_interval._redrawn_means(values), values[rows].mean(axis=1))
    assert np.allclose(_interval._redrawn_means(values), _interval._redrawn_means(values))
