"""Matrices: seeds, intervals, scores, slopes, the front and the ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from cells import about, record, simple
from hypothesis import given
from hypothesis import strategies as st

from counterpoise._check import InputError
from counterpoise.grid import Grid
from counterpoise.record import Guarantee, Measurement, Party, Release, Results
from counterpoise.tradeoff import MEASURED, PAPER, budgets, build, choose, front, score, shaken, slopes
from counterpoise.tradeoff.matrix import over_seeds

A = Party("a")
GAINS = st.floats(0, 2)


def test_one_seed_keeps_its_own_interval() -> None:
    assert over_seeds([about(0.5)]) == about(0.5)


def test_two_seeds_give_the_hull_since_no_deviation_can_be_estimated() -> None:
    assert over_seeds([about(0.4), about(0.6)]) == Measurement(0.5, 0.39, 0.61, 2, "seeds")


def test_three_seeds_give_the_student_interval() -> None:
    found = over_seeds([about(x) for x in (1.0, 2.0, 3.0)])
    half = 4.302652729911275 * 1 / math.sqrt(3)  # t(.975, 2 degrees of freedom) from a printed table
    assert (found.value, found.n, found.over) == (2.0, 3, "seeds")
    assert found.low == pytest.approx(2 - half)
    assert found.high == pytest.approx(2 + half)


def test_an_infinite_seed_stays_infinite() -> None:
    found = over_seeds([Measurement.exact(math.inf)] * 3)
    assert found.value == found.high == math.inf


@given(GAINS, GAINS, st.floats(-0.5, 0.9))
def test_the_score_is_the_formula_and_its_interval_holds_every_corner(gain: float, quality: float, loss: float) -> None:
    made = record("a", Decimal(1), [Decimal(0)], lambda d, w: {"privacy": gain, "loss": loss, "explanation": quality})
    table = score(build(Results("one", (A,), (made,)), "dp-sgd"), PAPER)
    value, low, high = (float(table[part].squeeze()) for part in ("value", "low", "high"))
    assert value == pytest.approx((gain + quality) / (2 + loss))
    corners = [
        (gain + p + quality + e) / (2 + loss + u) for p in (-0.01, 0.01) for e in (-0.01, 0.01) for u in (-0.01, 0.01)
    ]
    assert low <= min(corners) + 1e-12
    assert high >= max(corners) - 1e-12


def test_a_mode_without_its_measurement_is_refused() -> None:
    results = simple([A])
    bare = [type(r)(**{**r.__dict__, "measurements": {"privacy_gain": about(1)}}) for r in results]
    with pytest.raises(InputError, match=r"mode='measured' needs the measurement 'membership_privacy'"):
        score(build(Results("bare", (A,), tuple(bare)), "dp-sgd"), MEASURED)


def test_the_source_derivative_along_explainability_is_met() -> None:
    scores = score(build(simple([A]), "dp-sgd"), PAPER)["value"].sel(party="a")
    slope = slopes(scores)["along_explainability"].sel(privacy="1").values
    np.testing.assert_allclose(slope[:-1], (1 - 0.1) / (2 + 0.1))
    assert np.isnan(slope[-1])


def test_the_slope_along_privacy_is_a_difference_per_unit_of_degree() -> None:
    scores = score(build(simple([A]), "dp-sgd"), PAPER)["value"].sel(party="a")
    np.testing.assert_allclose(slopes(scores)["along_privacy"].sel(privacy="1", explainability="0"), 0.5 / 2.1)


def test_the_front_keeps_what_nothing_beats() -> None:
    points = np.array([[1, 1], [2, 0], [0, 2], [0.5, 0.5], [1, 1], [np.nan, 9]])
    assert front(points).tolist() == [True, True, True, False, True, False]


@given(st.lists(st.tuples(GAINS, GAINS, GAINS), min_size=1, max_size=30))
def test_the_front_is_never_empty_and_none_of_it_is_dominated(rows: list[tuple[float, float, float]]) -> None:
    points = np.array(rows)
    kept = points[front(points)]
    assert len(kept)
    for point in kept:
        assert not ((points >= point).all(axis=1) & (points > point).any(axis=1)).any()


def test_budgets_compose_all_private_trainings_of_a_party_and_count_the_others() -> None:
    results = simple([A, Party("b")])
    asked: list[tuple[Release, ...]] = []

    def compose(releases: tuple[Release, ...], delta: float) -> float:
        asked.append(tuple(releases))
        assert delta == 1e-5
        return float(len(releases))

    winner = choose(results, mode="paper").best
    assert winner is not None
    first, second = budgets(results, winner.winner, compose)  # type: ignore[arg-type]
    assert (first.party, first.chosen, first.campaign, first.trainings, first.unproved) == ("a", 0.5, 4.0, 5, 1)
    assert second.party == "b"
    assert [release.noise for release in asked[0]] == [0.5, 1.0, 1.5, 2.0]
    assert "the chosen model alone has epsilon 0.5" in first.sentence()
    assert "all 4 private trainings of the sweep has epsilon 4" in first.sentence()
    assert "1 further trainings carry no guarantee" in first.sentence()


def test_images_sent_behind_noise_again_and_again_add_up_and_are_not_mixed_with_epsilon() -> None:
    """A quarter, a half and one about the same image: 1.75 together, not the largest, and no part of the campaign's."""
    results = simple([A])

    def hidden(epsilon: float, *also: Guarantee) -> tuple[Guarantee, ...]:
        return (Guarantee("local-dp", epsilon, 1e-5, adjacency="replace-one", accountant="analytic Gaussian"), *also)

    first, *others = results
    inside = others[0].guarantees
    records = (
        replace(first, guarantees=hidden(0.25)),
        replace(others[0], guarantees=hidden(0.5, *inside)),
        replace(others[1], guarantees=hidden(1.0)),
        *others[2:],
    )
    asked: list[int] = []

    def compose(releases: Sequence[Release], delta: float) -> float:
        asked.append(len(releases))
        return 2.0

    (budget,) = budgets(replace(results, records=records), None, compose)
    assert asked == [3]
    assert (budget.trainings, budget.unproved, budget.hidden, budget.local_only) == (5, 0, 3, 2)
    assert budget.local_epsilon == 1.75
    assert budget.local_delta == pytest.approx(3e-5)
    told = budget.sentence()
    assert "publishing all 3 private trainings of the sweep has epsilon 2" in told
    assert "each image was sent 3 times, behind fresh noise each time" in told
    assert "which has local epsilon 1.75 (delta 3e-05) together, added up, and a prediction sends it again" in told
    assert "no guarantee" not in told
    alone = budgets(replace(results, records=records[:1]), None, compose)[0].sentence()
    assert "each image was sent once, which has local epsilon 0.25 (delta 1e-05), and a prediction" in alone
    assert "private trainings" not in alone


def test_a_choice_without_a_guarantee_has_no_epsilon() -> None:
    results = simple([A], degrees=Grid.of([0]))
    choice = choose(results, mode="paper").best
    assert choice is not None
    (budget,) = budgets(results, choice.winner, lambda releases, delta: 1.0)
    assert math.isinf(budget.chosen)
    assert "no proved epsilon" in budget.sentence()
    (budget,) = budgets(results, None, lambda releases, delta: 1.0)
    assert budget.sentence().startswith("a: no single model is chosen")
    assert "no proved epsilon" not in budget.sentence()


def test_a_winner_far_ahead_stays_when_inputs_move_and_a_narrow_one_flips() -> None:
    clear = simple([A, Party("b")])
    decision = choose(clear, mode="paper")
    assert decision.best is not None
    shakes = shaken(clear, decision)
    assert len(shakes) == 2 * 3 * 2
    assert all(s.winner is not None and str(s.winner) == str(decision.best.winner) for s in shakes)
    close = [
        record("a", Decimal(1), [Decimal(0)], lambda d, w: {"privacy": 1.0, "loss": 0.0, "explanation": 0.0}),
        record("a", Decimal(2), [Decimal(0)], lambda d, w: {"privacy": 0.0, "loss": 0.0, "explanation": 0.95}),
    ]
    narrow = Results("narrow", (A,), tuple(close))
    flips = {
        (s.quantity, s.factor)
        for s in shaken(narrow, choose(narrow, mode="paper"))
        if s.winner and s.winner.degree == 2
    }
    assert flips == {("privacy_gain", 0.9), ("explainability_gain", 1.1)}
    # Scores are half the sum of both gains: 1 / 2 against .95 / 2, and a loss of 0 stays 0.
    margins = {(s.quantity, s.factor): s.flip_margin for s in shaken(narrow, choose(narrow, mode="paper"))}
    assert margins["privacy_gain", 0.9] == pytest.approx((0.95 - 0.9) / 2)
    assert margins["privacy_gain", 1.1] == pytest.approx((1.1 - 0.95) / 2)
    assert margins["utility_loss", 1.1] == pytest.approx((1 - 0.95) / 2)


def test_a_requirement_sees_the_moved_values() -> None:
    results = simple([Party("a", ("utility_loss <= 0.1", "noise >= 2"))])
    shakes = shaken(results, choose(results, mode="paper"))
    assert [s.winner is None for s in shakes] == [False, False, False, False, False, True]
    assert [math.isnan(s.flip_margin) for s in shakes] == [False, False, False, False, False, True]


def test_moving_inputs_asks_for_one_mechanism_or_for_the_best_of_all() -> None:
    both = simple([A])
    other = [replace(r, mechanism="other", digest=f"{r.digest}-other") for r in both]
    results = replace(both, records=(*both.records, *other))
    paper, measured = choose(results, mode="paper"), choose(results, mode="measured")
    assert all(s.winner is None for s in shaken(results, paper))
    assert {s.winner.mechanism for s in shaken(results, paper, "other") if s.winner} == {"other"}
    assert all(s.flip_margin == 0 for s in shaken(results, measured))  # the other mechanism ties with every cell
