"""Predicates: how they read, what they mean, and that degrees are compared exactly."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise._check import InputError
from counterpoise.record import Party
from counterpoise.tradeoff import Bound, Extreme, parse
from counterpoise.tradeoff.asking import with_requirements


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("noise >= 1.8", Bound("noise", ">=", Decimal("1.8"))),
        ("epsilon<=1", Bound("epsilon", "<=", Decimal(1))),
        ("  utility_loss  <  0.05 ", Bound("utility_loss", "<", Decimal("0.05"))),
        ("maximum privacy", Extreme("privacy", "maximum")),
        ("minimum utility_loss", Extreme("utility_loss", "minimum")),
    ],
)
def test_reads_the_words_of_a_requirement(words: str, expected: object) -> None:
    assert parse(words) == expected
    assert parse(str(expected)) == expected


@pytest.mark.parametrize("words", ["noise", "noise = 1", "1 <= noise", "maximum", "noise >= ", "Noise > 1", ""])
def test_refuses_other_words_with_examples(words: str) -> None:
    with pytest.raises(InputError, match=r"requirement .* must read like 'noise >= 1.8'"):
        parse(words)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "one"])
def test_refuses_bounds_that_are_no_finite_number(number: str) -> None:
    with pytest.raises(InputError, match="noise="):
        parse(f"noise > {number}")


def test_a_degree_on_the_bound_is_not_above_it() -> None:
    bound = parse("noise > 1.7")
    assert isinstance(bound, Bound)
    assert not bound.holds(Decimal("1.7"))
    assert 17 * 0.1 > 1.7  # the trap: as binary floats the 18th degree of the grid passes
    assert bound.holds(Decimal("1.8"))


@given(st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-9), st.sampled_from([">=", ">", "<=", "<"]))
def test_a_relaxed_bound_admits_the_value_it_is_relaxed_to(value: float, relation: str) -> None:
    bound = parse(f"noise {relation} 0")
    assert isinstance(bound, Bound)
    relaxed = bound.relaxed_to(value)
    assert relaxed.holds(value)
    assert abs(float(relaxed.value) - value) <= 2e-5 * abs(value)


def test_wishes_are_added_for_all_or_for_one() -> None:
    parties = (Party("a", ("noise > 1",)), Party("b"))
    asked = with_requirements(parties, ["epsilon <= 1", "b: explainability >= 0.5"])
    assert asked == (Party("a", ("noise > 1", "epsilon <= 1")), Party("b", ("epsilon <= 1", "explainability >= 0.5")))


def test_a_wish_of_nobody_is_refused() -> None:
    with pytest.raises(InputError, match=r"there is no party 'c'; parties: a\."):
        with_requirements((Party("a"),), ["c: epsilon <= 1"])
