"""Intervals of the untaught probes hold a truth that is known or drawn very large; the nearby wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import beta
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from counterpoise.measures._interval import bootstrap, half_samples
from counterpoise.measures.class_leakage import _twice
from counterpoise.measures.clusters import (
    Clusters,
    axes_needed,
    axis_squares,
    clusters,
    entropy,
    information,
    nearest,
    principal,
    settled,
    share_of_energy,
    unseen,
)
from counterpoise.measures.unit_agreement import agreement, gap, within_and_between
from counterpoise.record import Measurement

Draw = Callable[[int], tuple[Tensor, Tensor]]


def blobs(seed: int, apart: float) -> Draw:
    rng = np.random.default_rng(seed)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        classes = torch.from_numpy(rng.integers(3, size=n))
        return apart * torch.eye(4)[classes] + torch.from_numpy(rng.normal(size=(n, 4))).float(), classes

    return draw


def share_inside(truth: float, found: list[Measurement]) -> float:
    return sum(m.low <= truth <= m.high for m in found) / len(found)


@pytest.mark.parametrize("apart", [0.0, 2.0])
def test_the_gap_of_agreement(apart: float) -> None:
    draw = blobs(0, apart)
    truth = gap(*draw(100_000)).value
    found = [gap(*draw(60)) for _ in range(200)]
    assert share_inside(truth, found) > 0.9
    if apart:  # half as wide, as if an image mattered to its own pairs alone, is too narrow
        narrow = [Measurement(m.value, (m.low + m.value) / 2, (m.high + m.value) / 2, m.n, m.over) for m in found]
        assert share_inside(truth, narrow) < 0.8
    else:
        assert np.mean([m.value for m in found]) == pytest.approx(0, abs=0.003)


def test_the_gap_is_the_difference_of_the_rates_and_classes_of_one_are_no_pair() -> None:
    rows, classes = blobs(1, 2.0)(50)
    assert gap(rows, classes).value == pytest.approx(np.subtract(*within_and_between(agreement(rows, classes))))
    classes[0] = 3
    alone = gap(rows, classes)
    assert alone.value == pytest.approx(np.subtract(*within_and_between(agreement(rows, classes))))
    assert alone.low < alone.value < alone.high


def test_a_mean_over_pairs_moves_twice_with_each_image() -> None:
    rng = np.random.default_rng(2)
    inside = {"twice": 0, "once": 0}
    for _ in range(200):
        units = torch.from_numpy(rng.normal(1.0, 1.0, (50, 1)))  # the mean of all products tends to 1
        means = ((units @ units.sum(0)) - units.square().sum(1)) / 49
        for name, parts in (("twice", _twice(means)), ("once", means)):
            found = bootstrap(parts.numpy())
            inside[name] += found.low <= 1 <= found.high
    assert inside["twice"] > 180
    assert inside["once"] < 160


@pytest.mark.parametrize("apart", [2.0, 4.0])  # true values of .56, and of .97: one image in 160 is misplaced
def test_information_by_halves(apart: float) -> None:
    draw = blobs(0, apart)
    truth = clusters(*draw(40_000)).information
    given = [clusters(*draw(200)) for _ in range(50)]
    found = [information(each) for each in given]
    assert share_inside(truth, found) >= 0.88
    assert all(m.low < m.value <= m.high <= 1 for m in found)
    if apart == 4.0:  # halves alone know nothing of the images that were not misplaced this time
        halves = [replace(m, low=_by_halves(each).low) for m, each in zip(found, given, strict=True)]
        assert share_inside(truth, halves) < 0.7


def _by_halves(found: Clusters) -> Measurement:
    def again(half: np.ndarray) -> float:
        return float(normalized_mutual_info_score(found.labels[half], nearest(found.scores, found.centres)[half]))

    return half_samples(found.information, again, len(found.labels))


def test_information_of_nothing_and_of_all() -> None:
    assert information(clusters(*blobs(3, 0.0)(200))).low < 0.01
    for classes in (3, 7, 10):  # of some numbers of classes, rounding makes the whole information 1 + 2e-16
        labels = torch.arange(classes).repeat(30)
        told = information(clusters(50.0 * torch.eye(classes)[labels] + 1e-3 * torch.rand(len(labels), 1), labels))
        assert told.value == pytest.approx(1)
        assert 0.85 < told.low < told.value <= told.high <= 1


def test_what_was_not_seen_is_bounded_as_by_a_beta_posterior() -> None:
    """Two classes in two clusters without a mistake: a mistake's share is Beta(1/2, n + 1/2) by the same prior."""
    labels = torch.arange(2).repeat(100)
    found = clusters(50.0 * torch.eye(2)[labels], labels)
    share = float(beta(0.5, 200.5).ppf(0.975))
    expected = 1 - float(entropy(np.array([[share, 1 - share]]))[0]) / np.log(2)
    assert unseen(found) == pytest.approx(expected, abs=0.015)
    assert settled(found.scores, found.centres).tolist() == nearest(found.scores, found.centres).tolist()


def test_halves_take_the_bias_out_that_repeated_images_double() -> None:
    """Chance that two draws of twenty equally likely kinds agree: 1 / 20, overestimated by (1 - 1 / 20) / n."""
    rng = np.random.default_rng(4)
    halves, repeated = [], []
    for _ in range(100):
        kinds = rng.integers(20, size=100)

        def agree(chosen: np.ndarray, kinds: np.ndarray = kinds) -> float:
            return float(((np.bincount(kinds[chosen], minlength=20) / len(chosen)) ** 2).sum())

        halves.append(half_samples(agree(np.arange(100)), agree, 100))
        repeated.append(bootstrap(np.eye(20)[kinds], lambda means: (means**2).sum(-1)))
    assert share_inside(1 / 20, halves) > 0.9
    assert share_inside(1 / 20, repeated) < 0.5


def energies(rows: Tensor) -> np.ndarray:
    scores, shares = principal(rows.double())
    return axis_squares(scores, np.cumsum(shares))


def test_the_share_of_the_energy() -> None:
    rng = np.random.default_rng(5)
    deviations = torch.tensor([3.0, 1.0, 1.0, 1.0])  # the first axis holds 9 / 12 of the energy
    found = [energies(torch.from_numpy(rng.normal(size=(150, 4))).float() * deviations) for _ in range(150)]
    assert share_inside(9 / 12, [share_of_energy(squares, 1) for squares in found]) > 0.9
    assert share_inside(8 / 12, [share_of_energy(squares, 1) for squares in found]) < 0.6


def test_axes_near_the_bound_are_uncertain_and_clear_ones_are_not() -> None:
    normal = torch.from_numpy(np.random.default_rng(6).normal(size=(200, 3))).float()
    near = axes_needed(energies(normal * torch.tensor([1.0, 1.0, 0.33])))  # 5.2 % of the energy is on the last
    assert (near.low, near.high) == (2, 3)
    clear = axes_needed(energies(normal * torch.tensor([1.0, 1.0, 0.01])))
    assert (clear.low, clear.value, clear.high) == (2, 2, 2)


def test_settled_clusters_are_those_of_the_library() -> None:
    from sklearn.cluster import KMeans

    rows, starts = blobs(7, 2.0)(150)[0].double().numpy(), 2 * np.eye(4)[:3]
    assert (settled(rows, starts) == KMeans(3, init=starts, n_init=1, tol=0).fit(rows).labels_).all()
