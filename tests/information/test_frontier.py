"""The oracle against brute force, against descent, against itself on finer grids; and the theorem that it refutes."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from counterpoise._check import InputError
from counterpoise.information.discrete import Values, information, leak_and_loss, seen, synthetic
from counterpoise.information.frontier import Frontier, _posteriors, best, frontier

PARTLY = synthetic(0.4)
K = information(PARTLY)


@cache
def curve(k: float, grid: int = 40) -> Frontier:
    return frontier(synthetic(k), grid)


def descended(joint: Values, alpha: float, outputs: int, starts: int) -> tuple[float, float, float]:
    """The best filter that descent on channels finds: objective, leak, loss. It knows no posterior and no program."""
    given = torch.from_numpy(seen(joint))
    rng = np.random.default_rng(0)

    def entropy(p: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = -torch.special.xlogy(p, p).sum()
        return found

    def objective(flat: Values) -> tuple[float, Values]:
        logits = torch.from_numpy(flat).requires_grad_(True)
        with_q = given @ logits.reshape(-1, outputs).softmax(1).clamp(min=1e-12)
        q, secret, useful = with_q.sum((0, 1)), with_q.sum(0), with_q.sum(1)
        leak = entropy(secret.sum(1)) + entropy(q) - entropy(secret)
        loss = entropy(useful) - entropy(q)
        value = (1 - alpha) * loss**2 + alpha * leak**2
        (gradient,) = torch.autograd.grad(value, logits)
        return float(value.detach()), gradient.numpy()

    found = min(
        (minimize(objective, 3 * rng.normal(size=joint.size * outputs), jac=True, tol=1e-9) for _ in range(starts)),
        key=lambda result: float(result.fun),
    )
    channel = torch.from_numpy(found.x).reshape(-1, outputs).softmax(1).numpy()
    return (float(found.fun), *leak_and_loss(seen(joint), channel))


@pytest.mark.parametrize(("alpha", "known"), [(0.05, 0.0065), (0.1, 0.0134), (0.3, 0.0458), (0.5, 0.0841)])
def test_the_floor_under_each_term_is_none(alpha: float, known: float) -> None:
    """It was claimed that the best filter loses at least alpha K of utility; at k = .4 it loses less."""
    point = curve(0.4).best(alpha)
    assert point.loss == pytest.approx(known, abs=1e-4)
    assert point.loss < alpha * K - 0.002
    # The true optimum has no larger objective; what does hold is the bound on sum and objective.
    assert point.leak + point.loss >= K - 1e-9
    assert point.objective >= alpha * (1 - alpha) * K**2


def test_descent_finds_the_counterexample_too() -> None:
    objective, leak, loss = descended(PARTLY, 0.3, outputs=3, starts=20)
    assert loss < 0.3 * K - 0.008
    assert leak + loss > K
    oracle = curve(0.4).best(0.3)
    assert objective == pytest.approx(oracle.objective, rel=0.006)
    assert oracle.objective > objective  # the grid's is a filter, too, and not quite the best


def test_no_filter_found_by_descent_beats_the_oracle_by_more_than_its_slack() -> None:
    joint = np.array([[0.3, 0.05], [0.1, 0.2], [0.05, 0.3]])
    oracle = frontier(joint, grid=16)
    for alpha in (0.2, 0.6):
        objective, leak, loss = descended(joint, alpha, outputs=4, starts=60)
        assert loss >= oracle.at(leak + oracle.slack) - 1e-6
        assert oracle.best(alpha).objective == pytest.approx(objective, rel=0.05)


def test_against_every_binary_channel_in_steps_of_a_tenth() -> None:
    share = np.array(list(itertools.product(np.linspace(0, 1, 11), repeat=4)))
    channels = np.stack([share, 1 - share], 2)
    for k in (0.4, 1.0, 1.7):
        points = np.array([leak_and_loss(seen(synthetic(k)), channel) for channel in channels[::3]])
        oracle = curve(k)
        assert (points[:, 1] >= [oracle.at(leak + oracle.slack) - 1e-9 for leak in points[:, 0]]).all()
        # Brute force comes near it, where two outputs are enough.
        gap = min(0.5 * a**2 + 0.5 * b**2 for a, b in points) - oracle.best(0.5).objective
        assert -1e-4 < gap < 0.015


def test_independent_labels_cost_nothing_and_opposite_ones_all() -> None:
    free = curve(1.0)
    assert free.best(0.5).objective == pytest.approx(0, abs=1e-9)
    assert free.at(0) == pytest.approx(0, abs=1e-6)
    for k in (0.0, 2.0):
        line = curve(k)
        assert line.leak + line.loss == pytest.approx(math.log(2), abs=1e-6)
        assert line.leak[[0, -1]] == pytest.approx([0, math.log(2)], abs=1e-6)
        point = line.best(0.3)
        assert (point.leak, point.loss) == pytest.approx((0.7 * math.log(2), 0.3 * math.log(2)), abs=1e-4)


def test_the_curve_falls_is_convex_and_lies_above_the_line() -> None:
    found = curve(0.4)
    assert (np.diff(found.leak) > 0).all()
    assert (np.diff(found.loss) <= 1e-9).all()
    assert (np.diff(np.diff(found.loss) / np.diff(found.leak)) >= -1e-5).all()
    assert (found.leak + found.loss >= K - 1e-9).all()
    assert found.at(K) == pytest.approx(0, abs=1e-6)
    # It leaves (K, 0) steeper than the line of slope -1 on which A + B = K.
    steepness = (found.at(K - 0.01) - found.at(K)) / 0.01
    assert steepness == pytest.approx(1.5, abs=0.15)


def test_a_finer_grid_is_lower_and_by_less_than_the_slack() -> None:
    coarse, fine = curve(0.4, 20), curve(0.4, 60)
    leaks = np.linspace(0, K, 30)
    gained = np.array([coarse.at(a) - fine.at(a) for a in leaks])
    assert gained.min() > -1e-3  # chords between 41 filters
    assert 0 < gained.max() < 0.005
    assert all(fine.at(a) >= coarse.at(a + coarse.slack) - 1e-9 for a in leaks)


def test_posteriors_with_a_cycle_are_not_missed() -> None:
    """The program over the whole grid of the simplex gives the same curve."""
    kept = {tuple(row) for row in np.rint(10 * _posteriors((2, 2), 10)).astype(int)}
    whole = {w for w in itertools.product(range(11), repeat=4) if sum(w) == 10}
    assert kept == {w for w in whole if 0 in w}
    some = np.array(sorted(whole)) / 10
    tables = some.reshape(-1, 2, 2)
    told = math.log(2) - _entropies(tables.sum(1))
    lost = _entropies(tables.sum(2))
    from scipy.optimize import linprog

    for price in (0.5, 1.0, 1.5):
        free = linprog(lost + price * told, A_eq=some.T, b_eq=PARTLY.ravel(), bounds=(0, None)).fun
        points = curve(0.4, 10)
        assert (points.loss + price * points.leak).min() == pytest.approx(free, abs=2e-3)
        assert (points.loss + price * points.leak).min() >= free - 1e-7


def _entropies(rows: Values) -> Values:
    found: Values = -np.where(rows > 0, rows * np.log(np.where(rows > 0, rows, 1)), 0).sum(-1)
    return found


def test_what_is_no_distribution_and_what_is_too_fine_is_refused() -> None:
    with pytest.raises(InputError, match=r"^joint must be a table \[u, s\] of probabilities that add up to 1, not"):
        frontier(np.array([[0.5, 0.5], [0.5, 0.0]]))
    with pytest.raises(InputError, match=r"^grid=900 makes more than 200,000 posteriors of \(2, 2\): choose a smaller"):
        frontier(PARTLY, 900)
    with pytest.raises(InputError, match=r"^alpha=1.5 must be a number in \[0, 1\]\.$"):
        best(PARTLY, 1.5, 4)
