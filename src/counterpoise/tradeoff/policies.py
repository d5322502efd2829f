"""How the parties' scores become one: five policies over the same matrix and mask.

A policy maps scores and a mask over (party, privacy, explainability) to one score a cell; NaN where it would not
settle. Only `Paper` and `Quorum` can settle on a cell that some party forbade; `willing` says how many must agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import xarray as xr

from counterpoise._check import InputError, at_least, one_of


class Policy(Protocol):
    """Aggregates the parties' scores."""

    name: ClassVar[str]

    def willing(self, parties: int) -> int:
        """How many parties must allow a cell."""

    def aggregate(self, scores: xr.DataArray, possible: xr.DataArray) -> xr.DataArray:
        """One score a cell, NaN where too few parties allow it."""


def weights(possible: xr.DataArray) -> xr.DataArray:
    """1/(number of parties for which the cell is possible) for those, 0 for the others, 0 where nobody allows it."""
    willing = possible.sum("party")
    share = 1 / willing.where(willing > 0, 1)
    return possible.astype(float) * share


def _mean_over_willing(scores: xr.DataArray, possible: xr.DataArray, needed: int) -> xr.DataArray:
    mean = (scores.where(possible, 0) * weights(possible)).sum("party")
    return mean.where(possible.sum("party") >= needed)


@dataclass(frozen=True)
class Paper:
    """The source's: the mean over the parties that allow the cell; one willing party is enough."""

    name: ClassVar[str] = "paper"

    def willing(self, parties: int) -> int:
        """One."""
        return 1

    def aggregate(self, scores: xr.DataArray, possible: xr.DataArray) -> xr.DataArray:
        """Mean over the willing."""
        return _mean_over_willing(scores, possible, 1)


@dataclass(frozen=True)
class Unanimous:
    """The mean, over cells that every party allows. The default: it can never return a forbidden cell."""

    name: ClassVar[str] = "unanimous"

    def willing(self, parties: int) -> int:
        """All."""
        return parties

    def aggregate(self, scores: xr.DataArray, possible: xr.DataArray) -> xr.DataArray:
        """Mean over all."""
        return _mean_over_willing(scores, possible, possible.sizes["party"])


@dataclass(frozen=True)
class Quorum:
    """The mean over the willing, where at least `needed` of them are (default: more than half)."""

    needed: int | None = None
    name: ClassVar[str] = "quorum"

    def __post_init__(self) -> None:
        if self.needed is not None:
            at_least(1, quorum=self.needed)

    def willing(self, parties: int) -> int:
        """`needed`, or more than half."""
        if self.needed is None:
            return parties // 2 + 1
        if self.needed > parties:
            raise InputError(f"quorum={self.needed} must not be above the number of parties, {parties}.")
        return self.needed

    def aggregate(self, scores: xr.DataArray, possible: xr.DataArray) -> xr.DataArray:
        """Mean over the willing, NaN below the quorum."""
        return _mean_over_willing(scores, possible, self.willing(possible.sizes["party"]))


@dataclass(frozen=True)
class Egalitarian:
    """Max-min: among cells that all allow, the score of the party that is served worst."""

    name: ClassVar[str] = "egalitarian"

    def willing(self, parties: int) -> int:
        """All."""
        return parties

    def aggregate(self, scores: xr.DataArray, possible: xr.DataArray) -> xr.DataArray:
        """Minimum over parties."""
        return scores.min("party", skipna=False).where(possible.all("party"))


@dataclass(frozen=True)
class Nash:
    """The Nash bargain: among cells that all allow, the geometric mean of the parties' gains over no agreement.

    No agreement means no model, which scores 0; a cell where a party's score is not above 0 gives it nothing.
    """

    name: ClassVar[str] = "nash"

    def willing(self, parties: int) -> int:
        """All."""
        return parties

    def aggregate(self, scores: xr.DataArray, possible: xr.DataArray) -> xr.DataArray:
        """Geometric mean over parties of max(score, 0)."""
        gains = scores.clip(min=0)
        return (gains.prod("party", skipna=False) ** (1 / scores.sizes["party"])).where(possible.all("party"))


POLICIES: dict[str, Policy] = {p.name: p for p in (Paper(), Unanimous(), Quorum(), Egalitarian(), Nash())}


def policy_named(name: str, quorum: int | None = None) -> Policy:
    """The policy of that name; `quorum` sets how many must be willing."""
    one_of(POLICIES, policy=name)
    if quorum is not None and name != "quorum":
        raise InputError(f"quorum={quorum} is only for policy='quorum', not {name!r}.")
    return Quorum(quorum) if name == "quorum" else POLICIES[name]
