"""What all figures share: one look, no global state, and the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

Values = NDArray[np.float64]

PRIVACY, EXPLANATION, LOSS, TRADE, SOFT = "#0065a3", "#b8500a", "#8a4f96", "#1b1f24", "#545d68"
RULE, HATCH = "#d9dcd8", "#b9bdb8"
DPI = 120


def new(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, drawn by Agg; pyplot is never involved."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Any, x: str, y: str, title: str = "") -> None:
    """Labels with their unit or direction, light rules, no box."""
    axes.set_xlabel(x, color=SOFT, fontsize=9)
    axes.set_ylabel(y, color=SOFT, fontsize=9)
    if title:
        axes.set_title(title, fontsize=10, loc="left")
    axes.tick_params(labelsize=8, colors=SOFT, length=3)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(HATCH)


def name_ends(axes: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Names (x, y, words, colour) beside the lines' ends, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    gap, above = (high - low) * 0.075, -np.inf
    for x, y, words, colour in sorted(ends, key=lambda end: end[1]):
        above = max(y, above + gap)
        axes.annotate(words, (x, above), xytext=(5, 0), textcoords="offset points", color=colour, fontsize=8,
                      va="center", annotation_clip=False)  # fmt: skip


def over_parties(values: xr.DataArray) -> Values:
    """The mean over the parties that measured; NaN where none did."""
    found: Values = values.mean("party").values
    return found


def slug(words: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-.") or "unnamed"


def plain_words(words: str) -> str:
    """Words as they are: matplotlib would read what stands between two dollar signs as mathematics."""
    return words.replace("$", r"\$")


def rendered(figure: Figure, *, pdf: bool) -> dict[str, bytes]:
    """The figure's files by ending. They hold no date, so the same numbers give the same bytes."""
    files = {"png": _saved(figure, "png", {"Software": None})}
    if pdf:
        figure.set_layout_engine("none")  # laid out once, above: both files look alike, in half the time
        files["pdf"] = _saved(figure, "pdf", {"CreationDate": None})
    return files


def _saved(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()
