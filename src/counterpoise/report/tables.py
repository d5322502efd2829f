"""`matrix.csv`: one row a cell, in both modes; and `matrix-paper.csv`, which prints 0 for an impossible cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from counterpoise.report.evidence import Evidence

Json = dict[str, Any]

PARTS = ("privacy", "explanation", "utility_loss", "score")


def matrix_csv(decided: Json) -> bytes:
    """Every cell of `decision.json` as a row. Empty: not measured, or not available in that mode."""
    names = [name for name in decided["quantities"] if name != "epsilon"]
    modes = list(decided["modes"])
    header = ["party", "mechanism", "degree", "explainability", "epsilon"]
    for mode in modes:
        header += [f"{mode}.{part}{end}" for part in PARTS for end in ("", ".low", ".high")]
        header += [f"{mode}.{column}" for column in ("possible", "violates", "weight", "aggregate")]
    header += [name + end for name in names for end in ("", ".low", ".high")]
    rows: list[Sequence[object]] = [header]
    for cell in decided["cells"]:
        row: list[object] = [cell[column] for column in header[:5]]
        for mode in modes:
            row += _mode_columns(cell[mode])
        for name in names:
            row += _triple(cell["quantities"].get(name))
        rows.append(row)
    return _csv(rows)


def _mode_columns(view: Json | None) -> list[object]:
    if view is None:
        return [""] * (3 * len(PARTS) + 4)
    row: list[object] = []
    for part in PARTS:
        row += _triple(view[part])
    aggregate = view["aggregate"]["value"] if view["aggregate"] else ""
    return [*row, int(view["possible"]), "; ".join(view["violates"]), view["weight"], aggregate]


def _triple(value: Json | None) -> list[object]:
    return ["", "", ""] if value is None else [value["value"], value["low"], value["high"]]


def paper_csv(evidence: Evidence) -> bytes:
    """The compatibility matrix as its source prints it: paper mode, and 0 where a cell is impossible.

    A 0 here is either 'impossible' or a score of 0; `matrix.csv` tells them apart.
    """
    rows: list[Sequence[object]] = [["party", "mechanism", "degree", "explainability", "trade_off"]]
    for name, panel in evidence.panels("paper").items():
        printed = panel.scores["value"].where(panel.possible, 0.0)
        for p, party in enumerate(printed["party"].values):
            for i, degree in enumerate(printed["privacy"].values):
                for j, level in enumerate(printed["explainability"].values):
                    rows.append([party, name, degree, level, float(printed.values[p, i, j])])
    return _csv(rows)


def _csv(rows: Sequence[Sequence[object]]) -> bytes:
    """Words that a spreadsheet would run as a formula are made plain text with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([[_harmless(value) for value in row] for row in rows])
    return text.getvalue().encode()


def _harmless(value: object) -> object:
    return "'" + value if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} and value != "-inf" else value
