"""The page's JavaScript decides as the Python does: run by a small interpreter, without a browser."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from typing import Any

import pytest
import quickjs
from hypothesis import given, settings
from hypothesis import strategies as st
from report_study import PARTIES, results

from counterpoise.grid import Grid
from counterpoise.record import Explained, Measurement, Party, Record, Results
from counterpoise.report.embedded import embedded
from counterpoise.report.evidence import gather
from counterpoise.report.page import SCRIPTS
from counterpoise.tradeoff import MODES, POLICIES, Choice, Decision, Standing, choose

ENGINE = files("counterpoise.report").joinpath("assets/engine.js").read_text()
STUDY = results()
DATA = json.dumps(embedded(gather(STUDY, choose(STUDY))), allow_nan=False)


def page(data: str = DATA) -> Any:
    context = quickjs.Context()
    context.eval(ENGINE)
    context.set("words", data)
    context.eval("const data = JSON.parse(words);")
    # JSON has no infinity, so the answer says it in words.
    context.eval(
        "const said = (x) => JSON.stringify(x, (key, v) => typeof v === 'number' && !isFinite(v) ? String(v) : v);"
        "globalThis.ask = (question) => { const { outcomes, best } = Engine.decide(data, JSON.parse(question));"
        " return said({ outcomes, best }); };"
    )
    return context


PAGE = page()


def in_browser(question: dict[str, Any], context: Any = PAGE) -> Any:
    return json.loads(context.get("ask")(json.dumps(question)))


def question(policy: str, mode: str, parties: Sequence[Party], quorum: int | None = None) -> dict[str, Any]:
    stated = [{"name": p.name, "mechanisms": p.mechanisms, "requires": p.requires} for p in parties]
    return {"policy": policy, "mode": mode, "quorum": quorum, "parties": stated}


def close(said: float | str | None, expected: float) -> bool:
    if said is None or math.isnan(expected):
        return (said is None or said == "NaN") and math.isnan(expected)
    return math.isclose(float(said), expected, rel_tol=1e-12, abs_tol=1e-12)


def assert_standing(said: dict[str, Any], expected: Standing) -> None:
    assert (said["mechanism"], Decimal(said["degree"]), Decimal(said["explainability"])) == (
        expected.mechanism,
        expected.degree,
        expected.explainability,
    )
    for name in ("score", "low", "high", "epsilon"):
        assert close(said[name], getattr(expected, name)), name
    assert close(said["utilityLoss"], expected.utility_loss)


def assert_choice(said: dict[str, Any] | None, expected: object) -> None:
    if not isinstance(expected, Choice):
        assert said is None
        return
    assert said is not None
    assert_standing(said["winner"], expected.winner)
    assert len(said["runnersUp"]) == len(expected.runners_up)
    for runner, standing in zip(said["runnersUp"], expected.runners_up, strict=True):
        assert_standing(runner, standing)
    assert close(
        said["flipMargin"].replace("Infinity", "inf") if isinstance(said["flipMargin"], str) else said["flipMargin"],
        expected.flip_margin,
    )
    assert said["contested"] == expected.contested
    assert said["feasible"] == expected.feasible
    for view, party in zip(said["parties"], expected.parties, strict=True):
        assert (view["party"], view["allows"], tuple(view["forbids"])) == (party.party, party.allows, party.forbids)
        assert close(view["score"], party.score)
        assert close(view["regret"], party.regret)


def assert_same(said: Any, expected: Decision) -> None:
    assert_choice(said["best"], expected.best)
    assert set(said["outcomes"]) == set(expected.outcomes)
    for name, outcome in expected.outcomes.items():
        assert_choice(said["outcomes"][name], outcome)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_and_mode_gives_the_same_choice(policy: str, mode: str) -> None:
    assert_same(in_browser(question(policy, mode, PARTIES)), choose(STUDY, policy, mode))


WISHES = (
    "noise >= 1.2", "noise < 0.6", "code_ratio <= 0.5", "explainability > 0.3", "explainability <= 0.30",
    "epsilon <= 1", "epsilon > 2e0", "utility_loss <= 0.1", "privacy >= 0.9", "maximum privacy", "minimum noise",
    "maximum explanation", "minimum epsilon", "maximum epsilon", "accuracy > 0.87", "deletion <= .35",
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(POLICIES)),
    st.sampled_from(list(MODES)),
    st.lists(st.lists(st.sampled_from(WISHES), max_size=3), min_size=3, max_size=3),
    st.lists(st.sampled_from([(), ("dp-sgd",), ("dp-sgd", "autoencoder")]), min_size=3, max_size=3),
)
def test_any_requirements_give_the_same_choice(
    policy: str, mode: str, wishes: list[list[str]], named: list[tuple[str, ...]]
) -> None:
    parties = [
        replace(party, requires=tuple(own), mechanisms=mechanisms)
        for party, own, mechanisms in zip(PARTIES, wishes, named, strict=True)
    ]
    assert_same(in_browser(question(policy, mode, parties)), choose(STUDY, policy, mode, parties))


@pytest.mark.parametrize("quorum", [1, 2, 3])
def test_a_quorum_counts_alike(quorum: int) -> None:
    said = in_browser(question("quorum", "measured", PARTIES, quorum))
    assert_same(said, choose(STUDY, "quorum", "measured", quorum=quorum))


def flat(epsilons: Sequence[float], losses: Sequence[float]) -> Results:
    """Cells of equal score: only the tie rules can tell them apart."""
    base = next(record for record in STUDY if record.mechanism == "dp-sgd")
    records: list[Record] = []
    for degree, epsilon, loss in zip(Grid.span(1, len(losses), 1), epsilons, losses, strict=True):
        guarantee = replace(next(r for r in STUDY if r.guarantees).guarantees[0], epsilon=epsilon)
        privacy = (2 + loss) * 0.3 - 0.5
        measured = {"membership_privacy": Measurement.exact(privacy), "task_loss": Measurement.exact(loss)}
        paper = {"privacy_gain": Measurement.exact(privacy), "utility_loss": Measurement.exact(loss)}
        quality = {"explanation_quality": Measurement.exact(0.5), "explainability_gain": Measurement.exact(0.5)}
        levels = tuple(Explained(level, quality) for level in Grid.of([0, 1]))
        records += [
            replace(base, party=party.name, degree=degree, measurements={**measured, **paper}, explained=levels,
                    guarantees=(guarantee,))
            for party in PARTIES
        ]  # fmt: skip
    return Results("ties", tuple(Party(party.name) for party in PARTIES), tuple(records))


@pytest.mark.parametrize(
    ("epsilons", "losses", "winner"),
    [((3.0, 1.0, 2.0), (0.1, 0.1, 0.1), 2), ((1.0, 1.0, 1.0), (0.3, 0.2, 0.1), 3), ((1.0, 1.0), (0.1, 0.1), 1)],
)
def test_ties_fall_alike(epsilons: Sequence[float], losses: Sequence[float], winner: int) -> None:
    study = flat(epsilons, losses)
    for policy in POLICIES:
        expected = choose(study, policy, "measured")
        context = page(json.dumps(embedded(gather(study, expected))))
        said = in_browser(question(policy, "measured", study.parties), context)
        assert_same(said, expected)
        assert Decimal(said["best"]["winner"]["degree"]) == winner


@settings(max_examples=200)
@given(st.decimals(-1000, 1000, places=4), st.decimals(-1000, 1000, places=4))
def test_decimals_compare_exactly(a: Decimal, b: Decimal) -> None:
    said = PAGE.eval(f"Engine.compare('{a}', '{b}')")
    assert (said > 0) - (said < 0) == (a > b) - (a < b)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_of_the_page_parses(name: str) -> None:
    context = quickjs.Context()
    context.eval("globalThis.addEventListener = () => {};")
    context.eval(files("counterpoise.report").joinpath("assets", name).read_text())


def test_decimals_need_no_binary_fraction() -> None:
    assert PAGE.eval("Engine.compare('1.7', '1.70')") == 0
    assert PAGE.eval("Engine.compare('1.7000000000000002', '1.7')") > 0
    assert PAGE.eval("Engine.compare('2e-1', '0.2')") == 0
    assert PAGE.eval("Engine.compare('-0', '0')") == 0


@pytest.mark.parametrize("words", ["noise", "noise = 3", "noise >= much", "maximum", "", "1 < noise"])
def test_words_that_are_no_requirement_are_refused(words: str) -> None:
    with pytest.raises(quickjs.JSException, match="must read like"):
        PAGE.get("ask")(json.dumps(question("paper", "paper", [Party("x", (words,)), *PARTIES[1:]])))


def test_an_unknown_quantity_is_refused() -> None:
    with pytest.raises(quickjs.JSException, match="requires the unknown 'colour'"):
        PAGE.get("ask")(json.dumps(question("paper", "paper", [Party("x", ("colour > 1",)), *PARTIES[1:]])))


def test_a_quorum_above_the_parties_is_refused() -> None:
    with pytest.raises(quickjs.JSException, match="quorum=4 must not be above the number of parties, 3"):
        in_browser(question("quorum", "paper", PARTIES, 4))


def test_binding_requirements_are_those_of_the_advice() -> None:
    parties = (
        replace(PARTIES[0], requires=("noise > 1.1",)),
        replace(PARTIES[1], requires=("noise < 1", "epsilon < 50")),
        PARTIES[2],
    )
    expected = choose(STUDY, "unanimous", "measured", parties).outcomes["dp-sgd"]
    asked = json.dumps(question("unanimous", "measured", parties))
    PAGE.set("asked", asked)
    said = json.loads(PAGE.eval("said(Engine.binding(data, JSON.parse(asked), 'dp-sgd'))"))
    assert not isinstance(expected, Choice)
    assert tuple((one["party"], one["words"]) for one in said) == expected.binding
    assert len(said) == 2
