"""Degrees on an integer grid of decimals.

A degree such as a noise of 1.8 is compared with requirements such as `noise > 1.7`. Binary floats make
0.1 * 17 equal to 1.7000000000000002, which is above 1.7, so degrees are decimals, and a grid is walked by
an integer index. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from counterpoise._check import InputError

Direction = Literal["up", "down"]


_DIGITS = 100
"""On either side of the point. Python's decimals go up to a googol of them, and would be spelled out."""


def decimal(value: object, name: str = "value") -> Decimal:
    """The value as an exact decimal: 0.1 means one tenth, not the nearest binary float."""
    shown = str(value) if isinstance(value, Decimal) else repr(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise InputError(f"{name}={shown} must be a decimal number such as 1.8.")
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise InputError(f"{name}={shown} must be a decimal number such as 1.8.") from None
    if not number.is_finite():
        raise InputError(f"{name}={shown} must be a finite decimal number such as 1.8.")
    if number and abs(number.adjusted()) > _DIGITS:
        raise InputError(f"{name}={shown} must be a decimal number of at most {_DIGITS} digits such as 1.8.")
    return number


_MOST = 10_000
"""How many degrees a grid may have."""


def text(value: Decimal) -> str:
    """The shortest plain spelling: 1.80 is '1.8', 2E+1 is '20'. Equal decimals have equal spellings."""
    spelled = format(value.normalize(), "f")
    return "0" if spelled == "-0" else spelled


@dataclass(frozen=True)
class DegreeKind:
    """What a mechanism can be tuned by.

    `more_private` tells which way protects more: noise goes 'up', the share of the image a code keeps goes 'down'.
    """

    name: str
    more_private: Direction
    low: Decimal = Decimal(0)
    high: Decimal | None = None

    def check(self, value: Decimal) -> None:
        """Raise unless the value is one this degree can take; a number will do where a decimal is meant."""
        try:
            value = Decimal(str(value))
        except ArithmeticError:
            value = Decimal("nan")
        if value.is_nan():
            raise InputError(f"{self.name} must be a number, such as Decimal('1.8').")
        if value < self.low or (self.high is not None and value > self.high):
            top = "" if self.high is None else f" and at most {text(self.high)}"
            raise InputError(f"{self.name}={text(value)} must be at least {text(self.low)}{top}.")


@dataclass(frozen=True)
class Grid:
    """Degrees in increasing order, exact."""

    values: tuple[Decimal, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InputError("degrees=[] must hold at least one degree.")
        for before, after in zip(self.values, self.values[1:], strict=False):
            if after <= before:
                raise InputError(f"degrees must increase, but {text(after)} follows {text(before)}.")

    @classmethod
    def of(cls, values: Iterable[object]) -> Grid:
        """A grid of these degrees: `Grid.of([0, 0.5, "1.25"])`."""
        return cls(tuple(decimal(value, "degree") for value in values))

    @classmethod
    def span(cls, start: object, stop: object, step: object) -> Grid:
        """From start to stop, both included: `Grid.span(0, 2, 0.1)` has 21 degrees."""
        first, last, width = decimal(start, "from"), decimal(stop, "to"), decimal(step, "step")
        if width <= 0:
            raise InputError(f"step={text(width)} must be above 0.")
        if last < first:
            raise InputError(f"to={text(last)} must not be below from={text(first)}.")
        if (last - first) / width > _MOST:
            raise InputError(
                f"step={text(width)} gives {int((last - first) / width) + 1} degrees; use at most {_MOST}."
            )
        steps, rest = divmod(last - first, width)
        if rest:
            raise InputError(
                f"step={text(width)} does not divide the grid from {text(first)} to {text(last)};"
                f" the last degree would be {text(first + steps * width)}."
            )
        return cls(tuple(first + index * width for index in range(int(steps) + 1)))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Decimal]:
        return iter(self.values)
