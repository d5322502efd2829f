"""Where 'more noise, better explanation' stops being true: the paper's gain and score beside the measured quality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from counterpoise.report.evidence import Evidence
from counterpoise.report.quantities import quantity
from counterpoise.report.unseen.parts import (
    ENDS,
    Chart,
    Colour,
    Curve,
    Dash,
    Line,
    Part,
    Table,
    curve,
    has,
    with_degrees,
)
from counterpoise.report.words import say

GAIN, QUALITY = "explainability_gain", "explanation_quality"
DRAWN: tuple[tuple[str, Colour, Dash], ...] = (
    (GAIN, "soft", "dash"),
    (QUALITY, "explanation", "solid"),
    ("faithfulness", "privacy", "dot"),
)


@dataclass(frozen=True)
class Course:
    """How a measured quantity goes along an axis, by position.

    `best`: where it is highest. `enough`: the first position that none is clearly above. `falls`: the first one after
    the best that is clearly below it. Clearly means that the 95 % intervals do not overlap.
    """

    best: int
    enough: int
    falls: int | None


def course(along: Curve) -> Course | None:
    """The course over the positions that were measured; None where fewer than two were."""
    value, low, high = along
    known = [int(i) for i in np.flatnonzero(np.isfinite(value))]
    if len(known) < 2:
        return None
    best = max(known, key=lambda i: value[i])
    enough = next(i for i in known if high[i] >= max(low[j] for j in known))
    return Course(best, enough, next((i for i in known if i > best and high[i] < low[best]), None))


def smoothing(evidence: Evidence) -> Part | None:
    """Along the explainability degree, and along the mechanism's own degree."""
    sentences: list[str] = []
    charts: list[Chart] = []
    tables: list[Table] = []
    for name, panel in with_degrees(evidence).items():
        table = panel.table
        if table.sizes["explainability"] < 2 or not has(table, GAIN, QUALITY):
            continue
        score = _paper_score(evidence, name)
        mean = _averaged(table)
        along = mean.mean("privacy")
        sentences += _along_smoothing(name, along)
        charts.append(_chart(f"{name}: over explainability", "mean over degrees", "explainability", along))
        # The source's own choice: its gain is highest at the last level.
        chosen = mean.isel(explainability=-1)
        level = str(table["explainability"].values[-1])
        paper = None if score is None else score.isel(explainability=-1)
        sentences += _along_degree(name, table, chosen, paper, level)
        arrow = "→" if table.attrs["more_private"] == "up" else "←"
        title = f"{table.attrs['degree']} ({arrow} more private)"
        charts.append(
            _chart(f"{name}: over {table.attrs['degree']}", f"at explainability {level}", title, chosen, paper)
        )
        tables.append(_by_degree(name, table, mean, score))
    if not sentences:
        return None
    note = "Clearly: the 95 % intervals do not overlap."
    title = "Is more noise a better explanation?"
    return Part("smoothing", title, note, tuple(sentences), tuple(charts), tuple(tables))


def _averaged(table: xr.Dataset) -> xr.Dataset:
    """The mean over parties of each drawn quantity and of its interval."""
    names = [name + end for name, *_ in DRAWN for end in ENDS if name in table]
    return table[names].mean("party")


def _paper_score(evidence: Evidence, name: str) -> xr.DataArray | None:
    panel = evidence.panels("paper").get(name)
    return None if panel is None else panel.scores["value"].mean("party")


def _along_smoothing(name: str, along: xr.Dataset) -> list[str]:
    levels, gain = [str(level) for level in along["explainability"].values], along[GAIN].values
    quality = curve(along, QUALITY)
    found = course(quality)
    if found is None:
        return []
    start = (
        f"{name}: from explainability {levels[0]} to {levels[-1]} the paper’s gain goes from {say(gain[0])} to"
        f" {say(gain[-1])}, whatever the maps show."
    )
    if quality.value[found.best] <= 0:
        return [f"{start} The measured quality is 0 throughout: the maps tell no more than random ones."]
    best = f"The measured quality is highest at {levels[found.best]}, with {quality.told(found.best)},"
    if found.falls is not None:
        fallen = quality.told(found.falls)
        told = (
            f"and first falls clearly below that at {levels[found.falls]}, {fallen}: there, more noise explains worse."
        )
    elif found.enough < len(levels) - 1:
        still = say(gain[-1] - gain[found.enough], 2)
        told = (
            f"and never falls clearly below that. But no degree is clearly better than {levels[found.enough]}, and"
            f" above it the paper’s gain still grows by {still}."
        )
    else:
        told = "and clearly better there than at every lower degree: here the paper’s order holds."
    return [f"{start} {best} {told}"]


def _along_degree(
    name: str, table: xr.Dataset, chosen: xr.Dataset, score: xr.DataArray | None, level: str
) -> list[str]:
    """From the least private degree to the most private one."""
    step = 1 if table.attrs["more_private"] == "up" else -1
    degrees = [str(degree) for degree in table["privacy"].values][::step]
    quality = Curve(*(part[::step] for part in curve(chosen, QUALITY)))
    found = course(quality)
    if found is None or quality.value[found.best] <= 0:
        return []
    degree = str(table.attrs["degree"])
    start = f"{name}: as {degree} goes from {degrees[0]} to {degrees[-1]} at explainability {level},"
    if score is not None:
        start += f" the paper’s score goes from {say(score.values[::step][0])} to {say(score.values[::step][-1])};"
    best = f"the measured quality is highest at {degrees[found.best]}, with {quality.told(found.best)},"
    if found.falls is None:
        return [f"{start} {best} and never falls clearly below that."]
    return [
        f"{start} {best} and first falls clearly below that at {degrees[found.falls]}, {quality.told(found.falls)}."
    ]


def _chart(title: str, note: str, x: str, mean: xr.Dataset, score: xr.DataArray | None = None) -> Chart:
    (axis,) = mean.dims
    at = mean[axis].values.astype(float)
    lines = [
        Line(
            quantity(name).label,
            colour,
            at,
            curve(mean, name) if name == QUALITY else Curve.exact(mean[name].values),
            dash,
        )
        for name, colour, dash in DRAWN
        if name in mean
    ]
    if score is not None:
        lines.append(Line("score (paper)", "trade", at, Curve.exact(score.values), "dashdot"))
    return Chart(title, note, x, "higher is better", tuple(lines))


def _by_degree(name: str, table: xr.Dataset, mean: xr.Dataset, score: xr.DataArray | None) -> Table:
    """Each degree's own best explainability, by the paper and as measured."""
    levels = [str(level) for level in table["explainability"].values]
    rows = []
    for i, degree in enumerate(table["privacy"].values):
        quality = Curve(*(part[i] for part in curve(mean, QUALITY)))
        found = course(quality)
        if found is None:
            continue
        paper = mean[GAIN].values[i] if score is None else score.values[i]
        rows.append(
            (
                str(degree),
                levels[int(np.nanargmax(paper))],
                levels[found.best],
                quality.told(found.best),
                levels[found.enough],
                "never" if found.falls is None else levels[found.falls],
            )
        )
    head = ("paper’s best", "measured best", "quality there", "none clearly better than", "first clearly lower at")
    return Table(
        f"{name}: the best explainability at every degree", (str(table.attrs["degree"]), *head), tuple(rows), True
    )
