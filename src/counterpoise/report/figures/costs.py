"""What privacy costs: epsilon against the degree, and accuracy against the degree with the utility loss in per cent."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from counterpoise.report.evidence import Evidence
from counterpoise.report.figures.style import EXPLANATION, PRIVACY, SOFT, Values, new, over_parties, plain_words, tidy
from counterpoise.report.words import say


def epsilon(evidence: Evidence, mechanism: str) -> Figure | None:
    """Epsilon on a logarithmic axis, the worst over the parties; none where nothing is proved."""
    table = evidence.decision.panels[mechanism].table
    degrees = table["privacy"].values.astype(float)
    # One value a degree: epsilon belongs to the training, so every explainability degree has the same.
    worst = table["epsilon"].isel(explainability=0).fillna(-np.inf).max("party").values
    finite = np.isfinite(worst) & (worst > 0)
    if len(degrees) < 2 or not finite.any():
        return None
    figure = new(4.8, 3.4)
    axes = figure.subplots()
    axes.semilogy(degrees[finite], worst[finite], "o-", color=PRIVACY, markersize=3.5, linewidth=1.5)
    top = 3 * float(worst[finite].max())
    for degree in degrees[np.isposinf(worst)]:
        axes.annotate("∞", (degree, top), color=PRIVACY, fontsize=13, ha="center", va="center")
    axes.set_ylim(float(worst[finite].min()) / 1.6, 2 * top)
    margin = 0.04 * float(np.ptp(degrees))
    axes.set_xlim(degrees.min() - margin, degrees.max() + margin)
    name = str(table.attrs["degree"])
    tidy(
        axes, f"{name} (∞: nothing is proved)", "epsilon, lower is better", f"{plain_words(mechanism)}: proved epsilon"
    )
    return figure


def accuracy(evidence: Evidence, mechanism: str) -> Figure | None:
    """Accuracy in per cent with its interval, and the source's utility loss U beside the points."""
    table = evidence.decision.panels[mechanism].table
    if table.sizes["privacy"] < 2 or "accuracy" not in table:
        return None
    degrees = table["privacy"].values.astype(float)
    value, low, high = (
        100 * over_parties(table[f"accuracy{end}"].isel(explainability=0)) for end in ("", ".low", ".high")
    )
    figure = new(5.2, 3.4)
    axes = figure.subplots()
    axes.plot(degrees, value, "o-", color=EXPLANATION, markersize=3.5, linewidth=1.5)
    axes.fill_between(degrees, low, high, color=EXPLANATION, alpha=0.15, linewidth=0)
    if "utility_loss" in table:
        _losses(axes, degrees, over_parties(table["utility_loss"].isel(explainability=0)))
    degree = str(table.attrs["degree"])
    tidy(axes, degree, "accuracy in %, higher is better", f"{plain_words(mechanism)}: accuracy, mean over parties")
    return figure


def _losses(axes: Any, degrees: Values, loss: Values) -> None:
    """U above the plot, in the first of two rows that has room: beside the points, the curve would cross it."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))
    room, taken = 0.13 * float(np.ptp(degrees)), [-np.inf, -np.inf]
    for x, u in zip(degrees, loss, strict=True):
        row = next((i for i, last in enumerate(taken) if x - last >= room), None)
        if row is None or not np.isfinite(u):
            continue
        taken[row] = float(x)
        at = (x, 0.98 - 0.07 * row)
        axes.text(*at, f"U {say(100 * float(u), 2)} %", transform=axes.get_xaxis_transform(), fontsize=7, color=SOFT,
                  ha="center", va="top")  # fmt: skip
