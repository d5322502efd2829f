"""Informations against sums written out, and the synthetic joint against its closed form."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from discrete_worlds import worlds

from counterpoise._check import InputError
from counterpoise.information.discrete import (
    conditional_information,
    divergence,
    entropy,
    information,
    leak_and_loss,
    seen,
    synthetic,
)


def test_against_the_sums_written_out() -> None:
    for joint, _ in worlds(20):
        total = 0.0
        for x, y, z in itertools.product(*map(range, joint.shape)):
            p = joint[x, y, z]
            if p > 0:
                total += p * math.log(p * joint[:, :, z].sum() / (joint[x, :, z].sum() * joint[:, y, z].sum()))
        assert conditional_information(joint) == pytest.approx(total, abs=1e-12)
        pair = joint.sum(2)
        product = pair.sum(1, keepdims=True) * pair.sum(0)
        assert information(pair) == pytest.approx(float(divergence(pair.ravel(), product.ravel())), abs=1e-12)
        assert information(pair) == pytest.approx(entropy(pair.sum(0)) - (entropy(pair) - entropy(pair.sum(1))))


def test_what_is_never_seen_adds_nothing_and_what_cannot_be_is_infinite() -> None:
    assert entropy(np.array([1.0, 0.0])) == 0
    assert divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert math.isinf(divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])))


@pytest.mark.parametrize(("k", "nats"), [(1, 0.0), (0.4, 0.1927), (0, math.log(2)), (2, math.log(2))])
def test_the_synthetic_case(k: float, nats: float) -> None:
    joint = synthetic(k)
    assert joint.sum() == pytest.approx(1)
    assert joint[1, 1] == pytest.approx(k / 4)
    assert information(joint) == pytest.approx(nats, abs=5e-5)


def test_the_synthetic_case_keeps_its_margins() -> None:
    joint = synthetic(0.7, 0.3, 0.6)
    assert joint.sum(1) == pytest.approx([0.7, 0.3])
    assert joint.sum(0) == pytest.approx([0.4, 0.6])
    assert joint[0, 1] == pytest.approx((1 - 0.7 * 0.3) * 0.6)
    assert joint[1, 0] == pytest.approx((1 - 0.7 * 0.6) * 0.3)


def test_a_k_that_makes_no_distribution_is_refused() -> None:
    with pytest.raises(InputError, match=r"^k=3 with rho=0.5 and beta=0.5 gives a negative probability: choose"):
        synthetic(3)
    with pytest.raises(InputError, match=r"^rho=2 must be a number in \[0, 1\]\.$"):
        synthetic(1, rho=2)


def test_a_filter_that_keeps_all_leaks_all_and_one_that_keeps_nothing_loses_all() -> None:
    joint = seen(synthetic(0.4))
    everything, nothing = leak_and_loss(joint, np.eye(4)), leak_and_loss(joint, np.ones((4, 1)))
    assert everything == pytest.approx((math.log(2), 0), abs=1e-12)
    assert nothing == pytest.approx((0, math.log(2)), abs=1e-12)
