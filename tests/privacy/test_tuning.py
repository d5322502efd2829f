"""The cost of choosing among trials, against one trial, against composing them all, and against the theorem."""

from __future__ import annotations

import math

import numpy as np
import pytest

from counterpoise._check import InputError
from counterpoise.privacy import compose, draw_trials, rdp, select_cost
from counterpoise.record import Release

TRIAL = [Release("gaussian", 4.0, 0.01, 1000)]


def test_between_one_trial_and_all_of_them() -> None:
    one = compose(TRIAL, 1e-6, "rdp")
    for shape in (math.inf, 1.0):
        best = select_cost(TRIAL, 1e-6, mean=20, shape=shape)
        assert one < best < compose(TRIAL * 20, 1e-6, "rdp")
    assert select_cost(TRIAL, 1e-6, mean=40) > select_cost(TRIAL, 1e-6, mean=20)


def test_a_poisson_number_of_trials_by_the_theorem() -> None:
    """Theorem 6: rdp(a) + mean * delta'(eps') + log(mean) / (a - 1), with eps' = log(1 + 1 / (a - 1))."""
    orders = rdp.ORDERS[rdp.ORDERS >= 2]
    curve = 1000 * rdp.curve(4.0, 0.01, orders)
    bounds = []
    for order, value in zip(orders, curve, strict=True):
        hidden = math.log1p(1 / (order - 1))
        delta = min(
            math.exp(min(700, (a - 1) * (v - hidden))) / (a - 1) * (1 - 1 / a) ** a
            for a, v in zip(orders, curve, strict=True)
        )
        bounds.append(value + 20 * min(1.0, delta) + math.log(20) / (order - 1))
    total = np.array(bounds)
    epsilon = float((total + np.log1p(-1 / orders) - (math.log(1e-6) + np.log(orders)) / (orders - 1)).min())
    assert select_cost(TRIAL, 1e-6, mean=20) == pytest.approx(epsilon, rel=0.02)


def test_numbers_of_trials_follow_their_law() -> None:
    rng = np.random.default_rng(0)
    poisson = [draw_trials(5, rng) for _ in range(4000)]
    geometric = [draw_trials(5, rng, 1) for _ in range(4000)]
    assert np.mean(poisson) == pytest.approx(5, abs=0.2)
    assert np.var(poisson) == pytest.approx(5, rel=0.15)
    assert np.mean(geometric) == pytest.approx(5, abs=0.5)
    assert min(geometric) == 1


def test_refusals() -> None:
    assert select_cost([Release("gaussian", 0, 0.1, 1)], 1e-6, 5) == math.inf
    with pytest.raises(InputError, match="Gaussian noise and no shuffled batches"):
        select_cost([Release("laplace", 1, 0.1, 1)], 1e-6, 5)
    with pytest.raises(InputError, match="shape=2 must be infinite"):
        select_cost(TRIAL, 1e-6, 5, 2)
    with pytest.raises(InputError, match=r"mean=0\.5 must be at least 1"):
        draw_trials(0.5, np.random.default_rng(0), 1)
