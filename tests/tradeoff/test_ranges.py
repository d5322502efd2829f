"""Requirements beyond what a quantity can be are refused with the reason; those at its ends are not."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from counterpoise._check import InputError
from counterpoise.measures import BUILTIN
from counterpoise.record import Party
from counterpoise.report import quantities
from counterpoise.study import Study, Sweep, parse_study
from counterpoise.tradeoff import parse
from counterpoise.tradeoff.asking import with_requirements
from counterpoise.tradeoff.ranges import RANGES, check_reachable, range_of

ROLES = {"code_share", "inverse_epsilon", "no_gain", "no_loss"}
"""Measures that stand in a record under the name of their role: privacy gain, utility loss."""


@pytest.mark.parametrize(
    ("words", "verdict", "reason"),
    [
        ("certified_radius >= -0.1", "everything", "never below 0; give a number that is not below 0."),
        ("certified_radius < -0.1", "nothing", "never below 0; give a number that is not below 0."),
        ("attacked_overlap >= 1.2", "nothing", "never above 1; give a number in [0, 1]."),
        ("attacked_overlap <= 1.2", "everything", "never above 1; give a number in [0, 1]."),
        ("accuracy > 93", "nothing", "never above 1; give a number in [0, 1]."),
        ("accuracy_loss <= -3", "nothing", "never below -1; give a number in [-1, 1]."),
        ("average_drop_of_edges >= 101", "nothing", "never above 100; give a number in [0, 100]."),
        ("epsilon <= -1", "nothing", "never below 0; give a number that is not below 0."),
        ("privacy >= -2", "everything", "never below 0; give a number that is not below 0."),
    ],
)
def test_a_limit_outside_the_range_is_refused_with_what_it_comes_to(words: str, verdict: str, reason: str) -> None:
    quantity = words.split()[0]
    expected = f"requirement '{words}' is met by {verdict}: {quantity} is {reason}"
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        check_reachable(parse(words))


@pytest.mark.parametrize(
    "words",
    [
        "certified_radius >= 0",
        "certified_radius >= 3.5",
        "attacked_overlap >= 1",
        "accuracy_loss <= -0.01",
        "mine > -7",
    ],
)
def test_the_ends_of_a_range_and_unknown_quantities_are_taken(words: str) -> None:
    check_reachable(parse(words))
    check_reachable(parse("maximum certified_radius"))


def test_a_refusal_says_the_truth() -> None:
    """What is refused as met by everything is met all over the range, and what is met by nothing nowhere in it."""
    for quantity, (low, high) in RANGES.items():
        ends = [low, (low + min(high, 1e9)) / 2, min(high, 1e9)]
        for limit in (low - 1, high + 1):
            if limit == float("inf"):
                continue
            for relation in (">=", ">", "<=", "<"):
                bound = parse(f"{quantity} {relation} {Decimal(str(limit))}")
                met = {bound.holds(value) for value in ends}  # type: ignore[union-attr]
                assert len(met) == 1
                with pytest.raises(InputError, match=f"is met by {'everything' if met.pop() else 'nothing'}:"):
                    check_reachable(bound)


def test_every_built_in_measure_has_a_range_and_every_described_quantity() -> None:
    assert set(BUILTIN) - set(RANGES) == ROLES
    assert set(quantities.QUANTITIES) - set(RANGES) == set()
    assert range_of("deletion_of_random") == RANGES["deletion"]
    assert range_of("somebody_elses") is None


def test_it_is_refused_where_it_is_stated(tmp_path: Path) -> None:
    wrong = "certified_radius >= -0.1"
    party = {"name": "a", "requires": ["noise > 1", wrong]}
    content = {"mechanisms": [{"name": "dp-sgd", "degrees": [2]}], "parties": [party]}
    with pytest.raises(InputError, match=r"^s\.toml: parties: 'a': requirement 'certified_radius >= -0\.1' is met by"):
        parse_study(content, "s.toml")
    with pytest.raises(ValueError, match="is met by everything"):
        Study(mechanisms=[Sweep("plain")], parties=[Party("a", (wrong,))])
    with pytest.raises(InputError, match=r"^requirement 'certified_radius >= -0\.1' is met by everything"):
        with_requirements((Party("a"),), [f"a: {wrong}"])
