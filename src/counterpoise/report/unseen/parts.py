"""What a part of the section is made of: sentences, charts and tables, all numbers computed before the page is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from counterpoise.report.evidence import Evidence, plain_number
from counterpoise.report.words import say
from counterpoise.tradeoff import Panel

Values = NDArray[np.float64]
Colour = Literal["privacy", "explanation", "loss", "trade", "other", "soft"]
Dash = Literal["solid", "dash", "dot", "dashdot"]

ENDS = ("", ".low", ".high")
FEW = 5
"""Fewer trainings have no order worth a number."""


class Curve(NamedTuple):
    """Values along an axis, with their intervals."""

    value: Values
    low: Values
    high: Values

    @classmethod
    def exact(cls, value: Values) -> Curve:
        """Values that are drawn without a band."""
        return cls(value, value, value)

    def told(self, i: int) -> str:
        """The value there with its interval, where it has one."""
        value, low, high = (round(float(part[i]), 4) for part in self)
        return f"{say(value)} ({say(low)} to {say(high)})" if high > low else say(value)


def curve(table: xr.Dataset, name: str) -> Curve:
    """A quantity of a table that has one axis left, or of trainings."""
    value, low, high = (table[name + end].values for end in ENDS)
    return Curve(value, low, high)


@dataclass(frozen=True)
class Line:
    """One line with its band, or one kind of dots. The colours are the page's own, by name."""

    name: str
    colour: Colour
    x: Values
    y: Curve
    dash: Dash = "solid"

    def as_json(self) -> dict[str, Any]:
        """What the page draws."""
        columns = {"x": self.x, "y": self.y.value, "low": self.y.low, "high": self.y.high}
        numbers = {name: [plain_number(value) for value in column] for name, column in columns.items()}
        return {"name": self.name, "colour": self.colour, "dash": self.dash, **numbers}


@dataclass(frozen=True)
class Chart:
    """Lines over one axis; `dots` are not joined, and `logarithmic` is the axis."""

    title: str
    note: str
    x: str
    y: str
    lines: tuple[Line, ...]
    dots: bool = False
    logarithmic: bool = False

    def as_json(self) -> dict[str, Any]:
        """What the page draws."""
        lines = [line.as_json() for line in self.lines]
        return {"x": self.x, "y": self.y, "dots": self.dots, "logarithmic": self.logarithmic, "lines": lines}


@dataclass(frozen=True)
class Table:
    """Rows of words. `folded` tables are opened by a click."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False


@dataclass(frozen=True)
class Part:
    """One question to the paper, and what the records answer. `note` says how to read the answer."""

    key: str
    title: str
    note: str
    sentences: tuple[str, ...]
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


def has(table: xr.Dataset, *names: str) -> bool:
    """Whether all these quantities were measured somewhere."""
    return all(name in table and bool(table[name].notnull().any()) for name in names)


def with_degrees(evidence: Evidence) -> dict[str, Panel]:
    """The mechanisms that can be turned up: a single degree has no course."""
    panels = evidence.decision.panels
    return {name: panel for name, panel in panels.items() if panel.table.sizes["privacy"] > 1}


def trainings(table: xr.Dataset, *names: str) -> xr.Dataset:
    """These quantities and their intervals, one entry a party and degree that measured them all."""
    wanted = table[[name + end for name in names for end in ENDS if name + end in table]]
    return wanted.isel(explainability=0, drop=True).stack(training=("party", "privacy")).dropna("training")
