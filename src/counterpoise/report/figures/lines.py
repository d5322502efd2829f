"""The source's four lines (privacy, explanation, utility loss, trade-off), over all settings and at single degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from counterpoise.report.evidence import Evidence
from counterpoise.report.figures.style import (
    EXPLANATION,
    LOSS,
    PRIVACY,
    RULE,
    TRADE,
    Values,
    name_ends,
    new,
    over_parties,
    plain_words,
    tidy,
)
from counterpoise.report.quantities import quantity
from counterpoise.tradeoff import MODES, Panel

WANTED = ("0.1", "1", "2")
"""The source's slices, where the grid has them."""


def four_lines(evidence: Evidence, mechanism: str, mode: str) -> Figure:
    """All four over the nested axis: within each degree, explainability from its lowest to its highest."""
    panel = evidence.panels(mode)[mechanism]
    degrees, levels = panel.table["privacy"].values, panel.table["explainability"].values
    figure = new(max(7.5, min(13.0, 0.45 * len(degrees) + 4)), 3.6)
    axes = figure.subplots()
    size = len(levels)
    _draw(axes, panel, mode, np.arange(len(degrees) * size, dtype=float), slice(None))
    for edge in range(size, len(degrees) * size, size):
        axes.axvline(edge - 0.5, color=RULE, linewidth=0.6, zorder=0)
    step = max(1, -(-len(degrees) // 22))
    axes.set_xticks([i * size + (size - 1) / 2 for i in range(0, len(degrees), step)], degrees[::step])
    nested = f"{panel.table.attrs['degree']}; within each, explainability {levels[0]} to {levels[-1]}"
    tidy(axes, nested, "mean over parties", f"{plain_words(mechanism)}, {mode} mode")
    return figure


def slices(evidence: Evidence, mechanism: str, mode: str) -> Figure:
    """The four lines over explainability, at the source's degrees or at a low, a middle and a high one."""
    panel = evidence.panels(mode)[mechanism]
    measured = over_parties(panel.scores["value"])
    degrees = [
        str(d) for d, row in zip(panel.table["privacy"].values, measured, strict=True) if not np.isnan(row).all()
    ]
    chosen = chosen_degrees(degrees)
    figure = new(3.9 * len(chosen), 3.2)
    grid = figure.subplots(1, len(chosen), squeeze=False, sharey=True)
    levels = panel.table["explainability"].values.astype(float)
    for axes, degree in zip(grid.flat, chosen, strict=True):
        _draw(axes, panel, mode, levels, degree)
        tidy(axes, "explainability", "mean over parties", f"{panel.table.attrs['degree']} {degree}")
    figure.suptitle(f"{plain_words(mechanism)}, {mode} mode", fontsize=10)
    return figure


def chosen_degrees(degrees: list[str]) -> list[str]:
    """Three degrees, or all where there are fewer."""
    if set(WANTED) <= set(degrees):
        return list(WANTED)
    if len(degrees) <= 3:
        return degrees
    return [degrees[1 if len(degrees) > 4 else 0], degrees[(len(degrees) - 1) // 2], degrees[-1]]


def _draw(axes: Any, panel: Panel, mode: str, x: Values, where: slice | str) -> None:
    named = MODES[mode]
    lines = [
        (named.privacy, panel.table, ("", ".low", ".high"), PRIVACY, "--"),
        (named.explanation, panel.table, ("", ".low", ".high"), EXPLANATION, ":"),
        (named.utility_loss, panel.table, ("", ".low", ".high"), LOSS, "-."),
        ("trade-off", panel.scores, ("value", "low", "high"), TRADE, "-"),
    ]
    ends = []
    for name, table, parts, colour, dash in lines:
        prefix = "" if table is panel.scores else name
        value, low, high = (_at(table[prefix + part], where) for part in parts)
        axes.plot(x, value, color=colour, linestyle=dash, linewidth=1.5)
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        known = np.flatnonzero(np.isfinite(value))
        if known.size:
            label = name if table is panel.scores else quantity(name).label.replace(" (paper)", "")
            ends.append((float(x[known[-1]]), float(value[known[-1]]), label, colour))
    name_ends(axes, ends)


def _at(values: xr.DataArray, where: slice | str) -> Values:
    mean = values.mean("party")
    found: Values = mean.values.ravel() if isinstance(where, slice) else mean.sel(privacy=where).values
    return np.where(np.isfinite(found), found, np.nan)
