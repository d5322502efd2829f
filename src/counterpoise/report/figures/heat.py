"""Heat maps of the compatibility matrix: each party's before the aggregation, and all together after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from counterpoise.grid import text
from counterpoise.report.evidence import Evidence, choices
from counterpoise.report.figures.style import HATCH, SOFT, Values, new, plain_words
from counterpoise.tradeoff import Decision, Panel


def heat_maps(evidence: Evidence, mechanism: str, mode: str) -> Figure:
    """One map a party, and one for the policy's aggregate; hatched where forbidden, blank where not measured."""
    decision = evidence.answer(mode)
    assert isinstance(decision, Decision)
    panel = decision.panels[mechanism]
    scores = panel.scores["value"].values
    allowed = np.where(panel.possible.values, scores, np.nan)
    together = panel.aggregate["value"].values
    maps = [*zip([party.name for party in decision.parties], allowed, scores, strict=True)]
    maps.append((f"together ({decision.policy})", together, np.where(np.isnan(scores).all(0), np.nan, 0.0)))
    shown = np.concatenate([values.ravel() for _, values, _ in maps])
    finite = shown[np.isfinite(shown)]
    limits = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    columns = min(4, len(maps))
    rows = -(-len(maps) // columns)
    figure = new(3.1 * columns + 0.6, 3.0 * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(maps) :]:
        axes.set_visible(False)
    for axes, (name, values, measured) in zip(grid.flat, maps, strict=False):
        _map(axes, panel, values, np.isnan(measured), limits)
        axes.set_title(plain_words(name), fontsize=9, loc="left")
        _mark(axes, panel, decision, mechanism)
    bar = figure.colorbar(grid.flat[0].images[0], ax=list(grid.flat), shrink=0.8, pad=0.01)
    bar.set_label("score, higher is better", color=SOFT, fontsize=8)
    bar.ax.tick_params(labelsize=7)
    figure.suptitle(f"{plain_words(mechanism)}, {mode} mode: trade-off before and after aggregation", fontsize=10)
    return figure


def _map(axes: Any, panel: Panel, values: Values, missing: np.ndarray, limits: tuple[float, float]) -> None:
    degrees = [str(degree) for degree in panel.table["privacy"].values]
    levels = [str(level) for level in panel.table["explainability"].values]
    axes.patch.set(facecolor="#f3f4f1", hatch="////", edgecolor=HATCH)
    axes.imshow(
        np.ma.masked_invalid(values.T),
        origin="lower", aspect="auto", cmap="viridis", vmin=limits[0], vmax=limits[1], interpolation="nearest",
    )  # fmt: skip
    for i, j in np.argwhere(missing):
        axes.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, facecolor="white", edgecolor="none"))
    for set_ticks, words in ((axes.set_xticks, degrees), (axes.set_yticks, levels)):
        step = max(1, -(-len(words) // 6))
        set_ticks(range(0, len(words), step), words[::step])
    arrow = "→" if panel.table.attrs["more_private"] == "up" else "←"
    axes.set_xlabel(f"{panel.table.attrs['degree']} ({arrow} more private)", fontsize=8, color=SOFT)
    axes.set_ylabel("explainability", fontsize=8, color=SOFT)
    axes.tick_params(labelsize=7, colors=SOFT, length=2)


def _mark(axes: Any, panel: Panel, decision: Decision, mechanism: str) -> None:
    choice = choices(decision).get(mechanism)
    if choice is None:
        return
    i = [str(degree) for degree in panel.table["privacy"].values].index(text(choice.winner.degree))
    j = [str(level) for level in panel.table["explainability"].values].index(text(choice.winner.explainability))
    for width, colour in ((3.0, "white"), (1.2, "black")):
        axes.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, edgecolor=colour, linewidth=width))
