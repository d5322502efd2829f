"""How the score moves along each axis of the matrix, and whether the winner stays when what was measured moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import xarray as xr

from counterpoise.record import Results
from counterpoise.tradeoff.choice import Decision, Question, Standing, standings
from counterpoise.tradeoff.masks import degree_names
from counterpoise.tradeoff.matrix import decimals
from counterpoise.tradeoff.modes import mode_named
from counterpoise.tradeoff.policies import policy_named


def slopes(scores: xr.DataArray) -> xr.Dataset:
    """dT per unit of degree, `along_privacy` and `along_explainability`, between neighbouring cells.

    Each slope stands at the lower of its two cells; the last cell of an axis has none (NaN). An axis with a single
    degree has no slope at all.
    """
    found = {}
    for axis in ("privacy", "explainability"):
        degrees = [float(degree) for degree in decimals(scores.to_dataset(name="score"), axis)]
        steps = xr.DataArray(
            [after - before for before, after in pairwise(degrees)] + [float("nan")],
            dims=[axis],
            coords={axis: scores[axis]},
        )
        found[f"along_{axis}"] = (scores.shift({axis: -1}) - scores) / steps
    return xr.Dataset(found)


@dataclass(frozen=True)
class Shake:
    """One measured input of one party moved by a factor in all its cells, and what then wins (None: nothing).

    `flip_margin` is that winner's lead: infinite without a runner-up, NaN where nothing wins.
    """

    party: str
    quantity: str
    factor: float
    winner: Standing | None
    flip_margin: float


def shaken(results: Results, decision: Decision, mechanism: str | None = None, share: float = 0.1) -> tuple[Shake, ...]:
    """The decision taken again with each party's privacy, explanation and utility loss moved by `share`, both ways.

    `mechanism` asks for one mechanism's optimum; without it, for the best of all (where the mode has one). Requirements
    see the moved values too.
    """
    mode = mode_named(decision.mode)
    policy = policy_named(decision.policy, decision.quorum)
    question = Question(decision.parties, policy, mode, degree_names(results))
    asked = {name: panel.table for name, panel in decision.panels.items() if mechanism in (None, name)}
    compared = mode.comparable or len(asked) == 1
    found = []
    for party in decision.parties:
        for quantity in (mode.privacy, mode.explanation, mode.utility_loss):
            for factor in (1 - share, 1 + share):
                moved = {name: _moved(table, party.name, quantity, factor) for name, table in asked.items()}
                ranked = standings(moved, question) if compared else []
                found.append(Shake(party.name, quantity, factor, ranked[0] if ranked else None, _lead(ranked)))
    return tuple(found)


def _lead(ranked: list[Standing]) -> float:
    if len(ranked) < 2:
        return math.inf if ranked else math.nan
    return ranked[0].score - ranked[1].score


def _moved(table: xr.Dataset, party: str, quantity: str, factor: float) -> xr.Dataset:
    """The matrix with one party's values of a quantity, and their intervals, multiplied."""
    own = table["party"] == party
    names = [quantity, f"{quantity}.low", f"{quantity}.high"]
    return table.assign({name: table[name].where(~own, table[name] * factor) for name in names})
