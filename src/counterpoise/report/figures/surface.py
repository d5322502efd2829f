"""The trade-off as a surface over degree and explainability."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from counterpoise.report.evidence import Evidence
from counterpoise.report.figures.style import SOFT, new, over_parties, plain_words


def surface(evidence: Evidence, mechanism: str, mode: str) -> Figure | None:
    """The mean over parties of every measured cell, allowed or not; none where an axis has a single degree."""
    panel = evidence.panels(mode)[mechanism]
    score = over_parties(panel.scores["value"])
    measured = np.isfinite(score).any(axis=1)
    if measured.sum() < 2 or score.shape[1] < 2:
        return None
    x, y = panel.table["privacy"].values.astype(float)[measured], panel.table["explainability"].values.astype(float)
    figure = new(5.4, 4.4)
    axes = figure.add_subplot(projection="3d")
    grid_x, grid_y = np.meshgrid(x, y, indexing="ij")
    axes.plot_surface(grid_x, grid_y, score[measured], cmap="viridis", linewidth=0.2, edgecolor="#ffffff40")
    axes.view_init(elev=26, azim=-130)
    for set_label, words in (
        (axes.set_xlabel, str(panel.table.attrs["degree"])),
        (axes.set_ylabel, "explainability"),
        (axes.set_zlabel, "trade-off, higher is better"),
    ):
        set_label(words, fontsize=8, color=SOFT)
    axes.tick_params(labelsize=7, colors=SOFT)
    axes.set_title(f"{plain_words(mechanism)}, {mode} mode", fontsize=10)
    return figure
