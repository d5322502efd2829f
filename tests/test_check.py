"""Each rule lets the right values pass, and names argument, value and rule for the others."""

import math
import re

import pytest

from counterpoise import _check
from counterpoise._check import InputError


@pytest.mark.parametrize("good", [1, 0.5, 1e-300])
def test_positive_lets_pass(good: object) -> None:
    _check.positive(noise=good)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, None, "much", "2"])
def test_positive_refuses(bad: object) -> None:
    with pytest.raises(InputError, match=rf"^noise={re.escape(repr(bad))} must be a number above 0\.$"):
        _check.positive(noise=bad)


def test_not_negative_includes_zero() -> None:
    _check.not_negative(noise=0, clip=0.0)
    with pytest.raises(InputError, match=r"^clip=-0\.1 must be a number, 0 or above\.$"):
        _check.not_negative(noise=0, clip=-0.1)


@pytest.mark.parametrize("bad", [0, 1.0, "1", True, math.nan])
def test_at_least_wants_whole_numbers(bad: object) -> None:
    _check.at_least(1, epochs=1)
    with pytest.raises(InputError, match=r"^epochs=.* must be a whole number, 1 or above\.$"):
        _check.at_least(1, epochs=bad)


@pytest.mark.parametrize(("closed", "value"), [(True, 0), (True, 1), (False, 0.5)])
def test_in_range_is_closed_and_inside_is_open(closed: bool, value: float) -> None:
    _check.in_range(0, 1, share=value)
    if not closed:
        _check.inside(0, 1, share=value)
        return
    with pytest.raises(InputError, match=rf"^share={value} must be a number strictly between 0 and 1\.$"):
        _check.inside(0, 1, share=value)


@pytest.mark.parametrize("bad", [-0.01, 1.01, math.nan, None])
def test_in_range_refuses(bad: object) -> None:
    with pytest.raises(InputError, match=r"must be a number in \[0, 1\]\.$"):
        _check.in_range(0, 1, share=bad)


def test_one_of_lists_the_options_in_order() -> None:
    _check.one_of({"b", "a"}, policy="a")
    with pytest.raises(InputError, match=r"^policy='c' must be one of 'a', 'b'\.$"):
        _check.one_of({"b", "a"}, policy="c")
    with pytest.raises(InputError, match=r"policy=\['a'\] must be one of 'a', 'b'\."):
        _check.one_of({"b": 1, "a": 2}, policy=["a"])
    with pytest.raises(InputError, match="first='c' must be one of"):
        _check.one_of({"b", "a"}, first="c", last="a")
