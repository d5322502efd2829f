"""Policies against hand-made numbers, and their properties on drawn scores and masks."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterpoise._check import InputError
from counterpoise.tradeoff import POLICIES, Egalitarian, Nash, Paper, Quorum, Unanimous, weights
from counterpoise.tradeoff.policies import policy_named

DIMS = ("party", "privacy", "explainability")


def arrays(scores: object, mask: object) -> tuple[xr.DataArray, xr.DataArray]:
    return xr.DataArray(np.array(scores, dtype=float), dims=DIMS), xr.DataArray(np.array(mask, dtype=bool), dims=DIMS)


# Three parties, one privacy degree, three levels. Columns: all allow, two allow, one allows.
SCORES = [[[1.0, 4.0, 9.0]], [[4.0, 2.0, 8.0]], [[2.0, 6.0, 7.0]]]
MASK = [[[1, 1, 1]], [[1, 1, 0]], [[1, 0, 0]]]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Paper(), [7 / 3, 3.0, 9.0]),
        (Unanimous(), [7 / 3, np.nan, np.nan]),
        (Quorum(), [7 / 3, 3.0, np.nan]),
        (Quorum(1), [7 / 3, 3.0, 9.0]),
        (Quorum(3), [7 / 3, np.nan, np.nan]),
        (Egalitarian(), [1.0, np.nan, np.nan]),
        (Nash(), [2.0, np.nan, np.nan]),
    ],
)
def test_aggregates_as_defined(policy: Paper, expected: list[float]) -> None:
    aggregated = policy.aggregate(*arrays(SCORES, MASK))
    np.testing.assert_allclose(aggregated.values[0], expected)


def test_weights_are_shares_of_the_willing() -> None:
    _, mask = arrays(SCORES, MASK)
    np.testing.assert_allclose(weights(mask).values[:, 0], [[1 / 3, 1 / 2, 1], [1 / 3, 1 / 2, 0], [1 / 3, 0, 0]])


def test_a_score_of_zero_is_a_score_and_not_a_mark_for_impossible() -> None:
    scores, mask = arrays([[[0.0, 0.0]], [[0.0, 5.0]]], [[[1, 0]], [[1, 1]]])
    np.testing.assert_allclose(Unanimous().aggregate(scores, mask).values, [[0.0, np.nan]])


SHAPE = (3, 4, 3)
DRAWN_SCORES = hnp.arrays(np.float64, SHAPE, elements=st.floats(0, 10))
DRAWN_MASKS = hnp.arrays(np.bool_, SHAPE)


@given(DRAWN_SCORES, DRAWN_MASKS)
def test_policies_that_need_all_never_settle_on_a_forbidden_cell(scores: np.ndarray, mask: np.ndarray) -> None:
    drawn = arrays(scores, mask)
    for policy in (Unanimous(), Egalitarian(), Nash()):
        settled = policy.aggregate(*drawn).notnull().values
        assert not (settled & ~mask.all(axis=0)).any()
        assert (settled == mask.all(axis=0)).all()


@given(DRAWN_SCORES, DRAWN_MASKS)
def test_the_papers_policy_does_settle_on_forbidden_cells(scores: np.ndarray, mask: np.ndarray) -> None:
    settled = Paper().aggregate(*arrays(scores, mask)).notnull().values
    assert (settled == mask.any(axis=0)).all()


@given(DRAWN_SCORES, DRAWN_MASKS)
def test_an_aggregate_lies_between_the_willing_scores(scores: np.ndarray, mask: np.ndarray) -> None:
    drawn = arrays(scores, mask)
    low = np.where(mask, scores, np.inf).min(axis=0) - 1e-9
    high = np.where(mask, scores, -np.inf).max(axis=0) + 1e-9
    for policy in POLICIES.values():
        found = policy.aggregate(*drawn).values
        there = ~np.isnan(found)
        assert (found[there] >= low[there]).all()
        assert (found[there] <= high[there]).all()


@given(DRAWN_SCORES, DRAWN_MASKS, st.permutations(range(3)))
def test_the_order_of_the_parties_does_not_matter(scores: np.ndarray, mask: np.ndarray, order: list[int]) -> None:
    for policy in POLICIES.values():
        one = policy.aggregate(*arrays(scores, mask)).values
        other = policy.aggregate(*arrays(scores[order], mask[order])).values
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "quorum", "complaint"),
    [
        ("majority", None, r"policy='majority' must be one of 'egalitarian', 'nash', 'paper', 'quorum', 'unanimous'\."),
        ("paper", 2, r"quorum=2 is only for policy='quorum', not 'paper'\."),
        ("quorum", 0, r"quorum=0 must be a whole number, 1 or above\."),
    ],
)
def test_refuses_what_is_no_policy(name: str, quorum: int | None, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        policy_named(name, quorum)


def test_refuses_a_quorum_above_the_number_of_parties() -> None:
    with pytest.raises(InputError, match=r"quorum=4 must not be above the number of parties, 3\."):
        Quorum(4).aggregate(*arrays(SCORES, MASK))
