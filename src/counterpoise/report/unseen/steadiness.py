"""How the scores move along each axis of the matrix, and whether the choice stays when what was measured moves."""

from __future__ import annotations

import math
from itertools import groupby

import numpy as np
import xarray as xr

from counterpoise.report.evidence import Evidence, choices
from counterpoise.report.quantities import quantity
from counterpoise.report.unseen.parts import Part, Table, Values
from counterpoise.report.words import listed, say, setting
from counterpoise.tradeoff import Choice, Shake, shaken, slopes

SHARE = 0.1
AXES = ("along_privacy", "along_explainability")


def steadiness(evidence: Evidence) -> Part | None:
    """The slopes of both modes' scores, and the choice under 10 % more or less of each measured input."""
    sentences, tables = [], []
    found = _slopes(evidence)
    if found:
        sentences += _signs(found)
        tables += [_ranges(evidence, found), *_single(evidence, found)]
    for choice, shakes in _shakes(evidence):
        sentences.append(_stays(choice, shakes))
        tables.append(_moved(choice, shakes))
    if not tables:
        return None
    note = "A slope is the difference of two neighbouring settings, divided by the difference of their degrees."
    return Part("steadiness", "How steep, and how steady?", note, tuple(sentences), (), tuple(tables))


def _slopes(evidence: Evidence) -> dict[tuple[str, str], xr.Dataset]:
    """By (mechanism, mode), of the mean over the parties."""
    found = {}
    for mode in ("paper", "measured"):
        for name, panel in evidence.panels(mode).items() if mode in evidence.modes else ():
            along = slopes(panel.scores["value"].mean("party"))
            if bool(along.notnull().any().to_array().any()):
                found[name, mode] = along
    return found


def _signs(found: dict[tuple[str, str], xr.Dataset]) -> list[str]:
    """How often a step of the explainability degree lowers the score."""
    told = []
    for mode in ("paper", "measured"):
        steps = np.concatenate(
            [_known(along[AXES[1]]) for (_, m), along in found.items() if m == mode] or [np.empty(0)]
        )
        if len(steps):
            told.append(f"{int((steps < 0).sum())} of {len(steps)} in {mode} mode")
    if not told:
        return []
    sentence = f"Steps of the explainability degree that lower the score: {listed(told)}."
    if any(mode == "paper" for _, mode in found):
        sentence += (
            " In paper mode that slope is proportional to (1 − U)/(2 + U): above 0 for every U below 1, whatever the"
            " maps show."
        )
    return [sentence]


def _known(along: xr.DataArray) -> Values:
    values: Values = along.values[np.isfinite(along.values)]
    return values


def _ranges(evidence: Evidence, found: dict[tuple[str, str], xr.Dataset]) -> Table:
    rows = []
    for (name, mode), along in found.items():
        degree = str(evidence.decision.panels[name].table.attrs["degree"])
        for axis, per in zip(AXES, (degree, "explainability"), strict=True):
            steps = _known(along[axis])
            if len(steps):
                low, mean, high = (say(float(v)) for v in (steps.min(), steps.mean(), steps.max()))
                rows.append((name, mode, per, low, mean, high))
    head = ("mechanism", "mode", "per unit of", "lowest", "mean", "highest")
    return Table("Change of the score between neighbouring settings, mean of the parties", head, tuple(rows))


def _single(evidence: Evidence, found: dict[tuple[str, str], xr.Dataset]) -> list[Table]:
    """The slopes at every degree, averaged along the other axis."""
    tables = []
    for name, group in groupby(sorted(found), key=lambda key: key[0]):
        modes = [mode for _, mode in group]
        table = evidence.decision.panels[name].table
        degree = str(table.attrs["degree"])
        if table.sizes["privacy"] < 2:
            continue
        columns = [found[name, mode][axis].mean("explainability").values for mode in modes for axis in AXES]
        head = (degree, *(f"{mode}, per unit of {per}" for mode in modes for per in (degree, "explainability")))
        rows = tuple(
            (str(at), *("" if math.isnan(column[i]) else say(float(column[i])) for column in columns))
            for i, at in enumerate(table["privacy"].values)
        )
        tables.append(Table(f"{name}: slopes at every degree, mean over explainability", head, rows, folded=True))
    return tables


def _shakes(evidence: Evidence) -> list[tuple[Choice, tuple[Shake, ...]]]:
    """For the best of all; for each mechanism's optimum where mechanisms are not compared."""
    results, decision = evidence.results, evidence.decision
    if decision.best is not None:
        return [(decision.best, shaken(results, decision, share=SHARE))]
    return [(choice, shaken(results, decision, name, SHARE)) for name, choice in choices(decision).items()]


def _same(choice: Choice, shake: Shake) -> bool:
    return shake.winner is not None and str(shake.winner) == str(choice.winner)


def _stays(choice: Choice, shakes: tuple[Shake, ...]) -> str:
    kept = [shake.flip_margin for shake in shakes if _same(choice, shake)]
    start = (
        f"{setting(choice.winner)} leads by {say(choice.flip_margin, 2)}. With one measured input of one party moved by"
        f" 10 %, it stays first in {len(kept)} of {len(shakes)} cases"
    )
    return f"{start}, and then leads by {say(min(kept), 2)} or more." if kept else f"{start}."


def _moved(choice: Choice, shakes: tuple[Shake, ...]) -> Table:
    """One row an input: what wins with 10 % less and with 10 % more of it, and by how much."""
    rows = []
    for (party, name), pair in groupby(shakes, key=lambda shake: (shake.party, shake.quantity)):
        cells = [cell for shake in pair for cell in (_winner(choice, shake), _lead(shake))]
        rows.append((party, quantity(name).label, *cells))
    head = ("party", "input", "10 % less: first is", "leads by", "10 % more: first is", "leads by")
    return Table(
        f"{setting(choice.winner)}: the choice under 10 % less or more of each input", head, tuple(rows), folded=True
    )


def _winner(choice: Choice, shake: Shake) -> str:
    if shake.winner is None:
        return "nothing is feasible"
    return "the same" if _same(choice, shake) else setting(shake.winner)


def _lead(shake: Shake) -> str:
    return "" if shake.winner is None else say(shake.flip_margin, 2)
