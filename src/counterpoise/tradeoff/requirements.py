"""What a party requires, as typed predicates on one cell: `noise > 1.7`, `utility_loss <= 0.05`, `maximum privacy`.

A predicate looks at one cell and at what the grid offers, never at other predicates; so adding a requirement can only
forbid cells, whoever states it and in whatever order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from counterpoise._check import InputError
from counterpoise.grid import decimal, text
from counterpoise.record import Party

Relation = Literal[">=", ">", "<=", "<"]
Way = Literal["maximum", "minimum"]

_BOUND = re.compile(r"\s*(?P<quantity>[a-z_][a-z0-9_]*)\s*(?P<relation>>=|<=|>|<)\s*(?P<value>[^\s<>=]\S*)\s*")
_EXTREME = re.compile(r"\s*(?P<way>maximum|minimum)\s+(?P<quantity>[a-z_][a-z0-9_]*)\s*")


@dataclass(frozen=True)
class Bound:
    """A quantity against a number: `noise >= 1.8`."""

    quantity: str
    relation: Relation
    value: Decimal

    def __str__(self) -> str:
        return f"{self.quantity} {self.relation} {text(self.value)}"

    def holds(self, value: Decimal | float) -> bool:
        """Whether the value satisfies the bound. Degrees come as decimals and are compared exactly."""
        limit = self.value if isinstance(value, Decimal) else float(self.value)
        if self.relation == ">=":
            return bool(value >= limit)
        if self.relation == ">":
            return bool(value > limit)
        if self.relation == "<=":
            return bool(value <= limit)
        return bool(value < limit)

    def relaxed_to(self, value: float) -> Bound:
        """The bound moved just far enough to admit the value, rounded outwards to six digits."""
        exact = Decimal(f"{value:.6g}")
        step = Decimal(1).scaleb(exact.adjusted() - 5)
        if self.relation in (">=", ">"):
            limit = exact if float(exact) <= value else exact - step
            return Bound(self.quantity, ">=", limit)
        limit = exact if float(exact) >= value else exact + step
        return Bound(self.quantity, "<=", limit)


@dataclass(frozen=True)
class Extreme:
    """The most, or the least, of a quantity that the party's own grid offers: `maximum privacy`."""

    quantity: str
    way: Way

    def __str__(self) -> str:
        return f"{self.way} {self.quantity}"


Requirement = Bound | Extreme


def parse(words: str) -> Requirement:
    """Read one requirement from its words."""
    if match := _EXTREME.fullmatch(words):
        return Extreme(match["quantity"], "maximum" if match["way"] == "maximum" else "minimum")
    if match := _BOUND.fullmatch(words):
        relation: dict[str, Relation] = {">=": ">=", ">": ">", "<=": "<=", "<": "<"}
        return Bound(match["quantity"], relation[match["relation"]], decimal(match["value"], match["quantity"]))
    raise InputError(
        f"requirement {words!r} must read like 'noise >= 1.8', 'utility_loss <= 0.05' or 'maximum privacy'."
    )


def refuse_unknown(
    parties: Iterable[Party], measured: Iterable[str], resolve: Callable[[str], str] = lambda word: word
) -> None:
    """A requirement on a quantity that is no degree and that nothing measures is a mistake, not an impossible wish."""
    known = {*measured, "explainability", "epsilon"}
    for party in parties:
        for words in party.requires:
            quantity = parse(words).quantity
            if resolve(quantity) not in known:
                names = ", ".join(sorted(known | {"privacy", "explanation"}))
                raise InputError(f"party {party.name!r}: '{words}' requires the unknown {quantity!r}; known: {names}.")
