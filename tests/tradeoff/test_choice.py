"""Decisions: winners, ties, regret, margins, masks, and advice when nothing fits."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from cells import CODE, cell_values, record, simple
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoise._check import InputError
from counterpoise.grid import Grid
from counterpoise.record import Explained, Measurement, Party, Record, Results
from counterpoise.tradeoff import Choice, Infeasible, choose, parse

A, B = Party("a"), Party("b")
REQUIREMENTS = st.sampled_from(
    ["noise > 0.5", "noise <= 1.0", "epsilon <= 1", "explainability > 0", "utility_loss <= 0.05", "privacy >= 0.5",
     "maximum privacy", "minimum utility_loss", "maximum explainability", "explanation < 0.5"]
)  # fmt: skip


def chosen(results: Results, policy: str = "unanimous", mode: str = "paper", **asked: object) -> Choice:
    best = choose(results, policy, mode, **asked).best  # type: ignore[arg-type]
    assert best is not None
    return best


def test_the_winner_has_the_highest_score_and_the_margin_is_the_gap() -> None:
    choice = chosen(simple([A, B]))
    assert (choice.winner.degree, choice.winner.explainability) == (Decimal("2.0"), Decimal("1.0"))
    assert choice.winner.score == pytest.approx((1 + 0.9) / 2.1)
    runner = choice.runners_up[0]
    assert choice.flip_margin == pytest.approx(choice.winner.score - runner.score)
    assert [s.score for s in choice.runners_up] == sorted((s.score for s in choice.runners_up), reverse=True)


def test_moving_the_winner_by_more_than_the_margin_flips_it() -> None:
    results = simple([A])
    choice = chosen(results)
    for factor, same in ((0.9, True), (1.1, False)):
        lower = choice.flip_margin * factor * 2.1  # the score is (privacy + explanation) / 2.1 here
        moved = replace(results, records=tuple(_lowered(r, choice, lower) for r in results.records))
        again = chosen(moved).winner
        assert ((again.degree, again.explainability) == (choice.winner.degree, choice.winner.explainability)) is same


def _lowered(item: Record, choice: Choice, amount: float) -> Record:
    if item.degree != choice.winner.degree:
        return item
    cells = []
    for cell in item.explained:
        gain = cell.measurements["explainability_gain"].value
        shift = amount if cell.degree == choice.winner.explainability else 0.0
        cells.append(
            Explained(cell.degree, {**cell.measurements, "explainability_gain": Measurement.exact(gain - shift)})
        )
    return replace(item, explained=tuple(cells))


def test_ties_go_to_the_lower_epsilon_then_to_the_lower_loss() -> None:
    levels = Grid.of([0]).values
    level = {"explanation": 0.0}
    scores = {Decimal(1): (0.5, 0.0), Decimal(2): (0.5, 0.0), Decimal(3): (0.5, 0.0)}
    epsilons = {Decimal(1): 3.0, Decimal(2): 1.0, Decimal(3): 2.0}
    records = [
        record(
            "a", d, levels, lambda d, _: {"privacy": scores[d][0], "loss": scores[d][1], **level}, epsilon=epsilons[d]
        )
        for d in scores
    ]
    assert chosen(Results("ties", (A,), tuple(records))).winner.degree == 2

    equal_score = {Decimal(1): (1.0, 0.0), Decimal(2): (0.95, -0.1)}  # 1/2 and .95/1.9
    records = [
        record(
            "a", d, levels, lambda d, _: {"privacy": equal_score[d][0], "loss": equal_score[d][1], **level}, epsilon=1.0
        )
        for d in equal_score
    ]
    assert chosen(Results("ties", (A,), tuple(records))).winner.degree == 2


def test_regret_is_what_the_partys_own_best_exceeds_the_winner_by() -> None:
    bounded = Party("b", ("noise <= 1.0",))
    choice = chosen(simple([A, bounded]))
    view = {v.party: v for v in choice.parties}
    assert choice.winner.degree == 1
    assert view["a"].best == pytest.approx((1 + 0.9) / 2.1)
    assert view["a"].regret == pytest.approx(view["a"].best - view["a"].score)
    assert view["b"].regret == 0
    assert all(v.allows and not v.forbids for v in choice.parties)


def test_a_single_feasible_cell_cannot_be_flipped() -> None:
    choice = chosen(simple([Party("a", ("noise > 1.5", "explainability > 0.5"))]))
    assert math.isinf(choice.flip_margin)
    assert not choice.contested
    assert choice.runners_up == ()


@settings(deadline=None, max_examples=40)
@given(st.lists(REQUIREMENTS, max_size=3), st.lists(REQUIREMENTS, max_size=3), REQUIREMENTS)
def test_a_further_requirement_never_allows_a_forbidden_cell(first: list[str], second: list[str], more: str) -> None:
    results = simple([A, B])
    for mode in ("paper", "measured"):
        before = choose(results, "paper", mode, (replace(A, requires=tuple(first)), replace(B, requires=tuple(second))))
        after = choose(
            results, "paper", mode, (replace(A, requires=(*first, more)), replace(B, requires=tuple(second)))
        )
        mask, stricter = (d.panels["dp-sgd"].possible.values for d in (before, after))
        assert not (stricter & ~mask).any()


@settings(deadline=None, max_examples=40)
@given(st.lists(REQUIREMENTS, max_size=3), st.lists(REQUIREMENTS, max_size=3))
def test_the_advice_makes_an_infeasible_study_feasible(first: list[str], second: list[str]) -> None:
    results = simple([A, B])
    parties = (replace(A, requires=tuple(first)), replace(B, requires=tuple(second)))
    outcome = choose(results, "unanimous", "paper", parties).outcomes["dp-sgd"]
    if not isinstance(outcome, Infeasible):
        return
    assert outcome.relaxations
    relaxed = []
    for party in parties:
        swaps = {r.requirement: r.instead for r in outcome.relaxations if r.party == party.name}
        requires = tuple(swaps.get(_spelled(words), words) for words in party.requires)
        relaxed.append(replace(party, requires=requires))
    assert isinstance(choose(results, "unanimous", "paper", relaxed).outcomes["dp-sgd"], Choice)


def _spelled(words: str) -> str:
    return str(parse(words))


def test_binding_requirements_are_those_that_would_be_enough_to_give_up() -> None:
    parties = (Party("a", ("noise >= 1.5",)), Party("b", ("utility_loss <= 0.05", "explainability > 0")))
    outcome = choose(simple([A, B]), "unanimous", "paper", parties).outcomes["dp-sgd"]
    assert isinstance(outcome, Infeasible)
    assert outcome.binding == (("a", "noise >= 1.5"), ("b", "utility_loss <= 0.05"))
    assert "b: 'utility_loss <= 0.05' to 'utility_loss <= 0.1'" in outcome.sentence


def _two_mechanisms() -> Results:
    """The autoencoder is better everywhere, by numbers that only the measured mode may compare."""
    levels = Grid.span(0, 1, "0.5").values
    dp = [record("a", d, levels, lambda d, w: cell_values(0.3, 0.1, float(w)), epsilon=1.0) for d in Grid.of([1, 2])]
    auto = [
        record("a", d, levels, lambda d, w: cell_values(0.6, 0.0, float(w)), "autoencoder", CODE)
        for d in Grid.of(["0.1", "0.5"])
    ]
    return Results("two", (A,), tuple(dp + auto))


def test_only_the_measured_mode_compares_mechanisms() -> None:
    results = _two_mechanisms()
    measured = choose(results, mode="measured")
    assert measured.best is not None
    assert measured.best.winner.mechanism == "autoencoder"
    paper = choose(results, mode="paper")
    assert paper.best is None
    assert set(paper.outcomes) == {"dp-sgd", "autoencoder"}
    assert "mechanisms are not on one scale, so there is one optimum for each" in paper.sentence()


def test_a_degree_binds_its_mechanism_and_forbids_the_others_unless_they_are_listed() -> None:
    results = _two_mechanisms()
    strict = choose(results, parties=(Party("a", ("noise >= 2",)),))
    assert isinstance(strict.outcomes["autoencoder"], Infeasible)
    listed = choose(results, parties=(Party("a", ("noise >= 2", "code_ratio <= 0.1"), ("dp-sgd", "autoencoder")),))
    assert listed.best is not None
    assert (listed.best.winner.mechanism, listed.best.winner.degree) == ("autoencoder", Decimal("0.1"))


def test_a_refused_training_is_impossible_and_a_missing_cell_is_not_zero() -> None:
    results = simple([A, B])
    refused = tuple(
        replace(r, refusal="no.", measurements={}, explained=()) if (r.party, r.degree) == ("b", Decimal(2)) else r
        for r in results
    )
    decision = choose(replace(results, records=refused), "paper", "paper")
    scores = decision.panels["dp-sgd"].scores["value"].sel(party="b", privacy="2")
    assert bool(scores.isnull().all())
    assert not bool(decision.panels["dp-sgd"].possible.sel(party="b", privacy="2").any())


@pytest.mark.parametrize(
    ("parties", "complaint"),
    [
        ((Party("a", ("colour > 1",)), B), r"party 'a': 'colour > 1' requires the unknown 'colour'; known: .*noise"),
        ((A,), r"parties=\['a'\] must be the study's: \['a', 'b'\]\."),
    ],
)
def test_refuses_wrong_questions(parties: tuple[Party, ...], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        choose(simple([A, B]), parties=parties)


def test_refuses_an_unknown_mode_and_empty_results() -> None:
    with pytest.raises(InputError, match=r"mode='best' must be one of 'measured', 'paper'\."):
        choose(simple([A]), mode="best")
    with pytest.raises(InputError, match="has no finished record to choose from; run it first"):
        choose(Results("empty", (A,), ()))


def test_where_every_mechanism_was_refused_the_reasons_are_given() -> None:
    results = simple([A, B])
    first, second, *_ = (replace(r, refusal="grad-cam needs feature maps: choose SmoothGrad.") for r in results)
    refused = (first, second, replace(first, mechanism="plain"), replace(first, mechanism="x", refusal="x needs y."))
    with pytest.raises(InputError) as told:
        choose(replace(results, records=refused))
    reasons = "grad-cam needs feature maps: choose SmoothGrad (dp-sgd, plain); x needs y (x)"
    assert str(told.value) == f"study {results.study!r}: every mechanism was refused: {reasons}."
