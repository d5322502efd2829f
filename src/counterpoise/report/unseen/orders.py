"""Do the paper's numbers put the settings in the order that measuring puts them in?"""

from __future__ import annotations

import math

import numpy as np

from counterpoise.report.agreement import interval, rank_correlation
from counterpoise.report.evidence import Evidence
from counterpoise.report.unseen.parts import FEW, Part, Table, Values, has, trainings
from counterpoise.report.unseen.smoothing import GAIN, QUALITY
from counterpoise.report.words import say


def orders(evidence: Evidence) -> Part | None:
    """Rank correlations over the cells of each mechanism."""
    paper, measured = evidence.panels("paper"), evidence.panels("measured")
    rows = []
    for name, panel in evidence.decision.panels.items():
        if trainings(panel.table, "epsilon").sizes["training"] < FEW:
            continue
        if name in paper and name in measured:
            scores = (panels[name].scores["value"].values for panels in (paper, measured))
            rows += _row(name, "score in paper mode, score in measured mode", *scores)
        if has(panel.table, GAIN, QUALITY):
            rows += _row(
                name,
                "explainability gain, measured quality of the maps",
                panel.table[GAIN].values,
                panel.table[QUALITY].values,
            )
    if not rows:
        return None
    note = (
        "1 is the same order, 0 none, −1 the reverse. The intervals redraw trainings, as the cells of one training"
        " share a model."
    )
    head = ("mechanism", "the paper’s number and the measured one", "rank correlation", "95 % interval", "cells")
    return Part("orders", "Do both put the settings in one order?", note, (), (), (Table("", head, tuple(rows)),))


def _row(name: str, what: str, first: Values, second: Values) -> list[tuple[str, ...]]:
    rho = rank_correlation(first, second)
    if math.isnan(rho):
        return []
    low, high = interval(first, second)
    count = int((~np.isnan(first) & ~np.isnan(second)).sum())
    return [(name, what, say(rho, 2), f"{say(low, 2)} to {say(high, 2)}", str(count))]
