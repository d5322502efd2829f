"""One-line validations with one style of error: the argument, its value, the rule.

`positive(noise=-1)` raises `InputError: noise=-1 must be a number above 0.`
Every mistake of a user ends in an `InputError`, whose text is one sentence a person can act on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints


class InputError(ValueError):
    """A user's input breaks a rule; the text names the input, its value, and what to do."""


class NothingFitsError(InputError):
    """The input is in order, and nothing in the run meets what is required: exit code 1."""


@contextmanager
def naming(place: str) -> Iterator[None]:
    """A mistake that is found inside is told with the place it is in: the file, and the key."""
    try:
        yield
    except InputError as mistake:
        raise InputError(f"{place}: {mistake}" if place else str(mistake)) from None


def _number(value: object) -> float | None:
    """The value as a float, or None where it is no number (booleans, text and NaN are none)."""
    if isinstance(value, bool | str):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else number


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise InputError(f"{name}={value!r} must be {rule}.")


def positive(**arguments: object) -> None:
    """Each argument is a finite number above 0."""
    for name, value in arguments.items():
        number = _number(value)
        _require(number is not None and 0 < number < math.inf, name, value, "a number above 0")


def not_negative(**arguments: object) -> None:
    """Each argument is a finite number, 0 or above."""
    for name, value in arguments.items():
        number = _number(value)
        _require(number is not None and 0 <= number < math.inf, name, value, "a number, 0 or above")


def at_least(low: int, **arguments: object) -> None:
    """Each argument is a whole number, `low` or above."""
    for name, value in arguments.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        _require(whole and value >= low, name, value, f"a whole number, {low} or above")  # type: ignore[operator]


def in_range(low: float, high: float, **arguments: object) -> None:
    """Each argument is a number in the closed interval [low, high]."""
    for name, value in arguments.items():
        number = _number(value)
        _require(number is not None and low <= number <= high, name, value, f"a number in [{low:g}, {high:g}]")


def inside(low: float, high: float, **arguments: object) -> None:
    """Each argument is a number in the open interval (low, high)."""
    for name, value in arguments.items():
        number = _number(value)
        _require(
            number is not None and low < number < high,
            name,
            value,
            f"a number strictly between {low:g} and {high:g}",
        )


def one_of(options: Collection[str], **arguments: object) -> None:
    """Each argument is one of the named options."""
    known = sorted(options)  # in a set, a list from a study file could not even be looked up
    for name, value in arguments.items():
        _require(value in known, name, value, "one of " + ", ".join(repr(option) for option in known))


def text_and_switches(make: Callable[..., object], options: Mapping[str, object]) -> None:
    """A part gets text and switches where its hints ask for them; it checks its numbers itself, but `"no"` is true."""
    try:
        hints = get_type_hints(make)
    except (NameError, TypeError, AttributeError):  # a third party's hints need not be readable from here
        return
    for name, value in options.items():
        hint = hints.get(name)
        either = get_origin(hint) in (Union, UnionType)  # the arguments of a list of text are its entries' kinds
        kinds = set(get_args(hint) if either else (hint,)) - {type(None)}
        if kinds == {bool} and not isinstance(value, bool):
            raise InputError(f"{name}={value!r} must be true or false.")
        if kinds == {str} and not isinstance(value, str | Path | None):
            raise InputError(f"{name}={value!r} must be text.")
