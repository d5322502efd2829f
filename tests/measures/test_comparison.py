"""Comparing models: which images, paired, and the seeds' part of a difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from counterpoise.measures.comparison import paired_difference, right_by_all, spread, trend


def test_only_images_that_every_model_classifies_rightly() -> None:
    labels = torch.tensor([0, 1, 1, 0])
    first = torch.eye(2)[torch.tensor([0, 1, 0, 0])]
    second = torch.eye(2)[torch.tensor([0, 1, 1, 1])]
    assert right_by_all([first], labels).tolist() == [0, 1, 3]
    assert right_by_all([first, second], labels).tolist() == [0, 1]
    assert right_by_all([first, 1 - first], labels).tolist() == []


def test_pairing_sees_what_two_intervals_do_not() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(size=200)
    found = paired_difference(hard + 0.1, hard)
    assert [found.low, found.high] == pytest.approx([0.1, 0.1])
    unpaired = paired_difference(hard + 0.1, rng.permutation(hard))
    assert unpaired.low < 0 < unpaired.high
    with pytest.raises(ValueError, match="not of the same images"):
        paired_difference(hard, hard[1:])


def test_deviation_over_seeds_and_over_images_are_told_apart() -> None:
    rng = np.random.default_rng(1)
    of_seeds, of_images = np.array([-1.0, 0, 1])[:, None], rng.normal(size=(1, 500))
    only_seeds = spread(np.broadcast_to(of_seeds, (3, 500)))
    assert [only_seeds.over_seeds, only_seeds.over_images] == pytest.approx([1, 0])
    assert only_seeds.mean.high == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)  # Student's, two degrees of freedom
    only_images = spread(np.broadcast_to(of_images, (3, 500)))
    assert only_images.over_seeds == pytest.approx(0)
    assert only_images.over_images == pytest.approx(float(of_images.std(ddof=1)))
    both = spread(of_seeds + of_images)
    assert [both.over_seeds, both.over_images] == pytest.approx([1, only_images.over_images])
    assert (both.mean.n, both.mean.over) == (3, "seeds")


def test_one_seed_has_an_interval_over_images_and_no_deviation_over_seeds() -> None:
    found = spread(np.arange(10.0))
    assert math.isnan(found.over_seeds)
    assert (found.mean.n, found.mean.over) == (10, "images")


def test_unscored_images_are_left_out_seed_by_seed() -> None:
    found = spread([[1.0, math.nan, 3], [5, math.nan, math.nan], [math.nan] * 3])
    assert found.mean.value == pytest.approx((2 + 5) / 2)
    assert found.mean.n == 2
    with pytest.raises(ValueError, match="no image is scored for any seed"):
        spread([[math.nan, math.nan]])


def test_the_interval_over_seeds_covers_the_truth() -> None:
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(400):
        found = spread(rng.normal(size=(3, 1)) + 0.1 * rng.normal(size=(3, 20))).mean
        inside += found.low <= 0 <= found.high
    assert 0.92 < inside / 400 < 0.98


def test_a_trend_is_decided_only_where_seeds_and_settings_suffice() -> None:
    x = [0.5, 1, 5, 10, 1e9]
    up = np.array([[1, 2, 3, 4, 5]] * 3)
    found = trend(x, up)
    assert found.value == pytest.approx(1)
    assert 0.4 < found.low < 0.5  # five settings, three seeds: agreement by chance is not ruled out below
    assert trend(x, -up).high == pytest.approx(-found.low)
    assert trend(x, up[:1]).low == -1
    assert trend([1, 2], [[1, 2]] * 2).low < 0
    assert trend(x, np.zeros((3, 5))).value == 0
    torn = trend(x, np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [1, 2, 3, 5, 4]]))
    assert torn.low < 0 < torn.high


def test_unrelated_values_are_seldom_called_a_trend() -> None:
    rng = np.random.default_rng(3)
    called = sum(
        not found.low <= 0 <= found.high for found in (trend(range(5), rng.normal(size=(3, 5))) for _ in range(400))
    )
    assert called / 400 < 0.06
