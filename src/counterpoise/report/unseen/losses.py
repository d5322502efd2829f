"""What the pooled EMD, the source's utility loss of released images, misses: a control, and the loss of the task."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr

from counterpoise.report.agreement import interval, rank_correlation
from counterpoise.report.evidence import Evidence
from counterpoise.report.quantities import quantity
from counterpoise.report.unseen.parts import FEW, Chart, Colour, Line, Part, Table, Values, curve, has, trainings
from counterpoise.report.words import listed, percent, say

EMD, OWN_EMD, SSIM, LOSS = "pooled_emd", "emd_per_image", "ssim", "task_loss"
NOTHING = 1e-9
"""An EMD below this is 0 but for rounding."""
COLOURS: tuple[Colour, ...] = ("privacy", "explanation", "loss", "other", "trade")


def releasing(evidence: Evidence) -> dict[str, xr.Dataset]:
    """The mechanisms that change images before anybody sees them, and measured how far."""
    tables = {name: panel.table for name, panel in evidence.decision.panels.items()}
    return {name: table for name, table in tables.items() if has(table, EMD, LOSS) and _changed(table)}


def _changed(table: xr.Dataset) -> bool:
    moved = bool((table[EMD] > NOTHING).any())
    return moved or (has(table, SSIM) and bool((table[SSIM] < 1 - 1e-6).any()))


def fooled(table: xr.Dataset) -> bool:
    """Whether the pooled EMD calls every release of this mechanism unharmed, although the images have changed."""
    return has(table, SSIM) and _changed(table) and not bool((table[EMD] > NOTHING).any())


def control(evidence: Evidence) -> Part | None:
    """A mechanism that the pooled EMD cannot tell from the original images, beside the others."""
    tables = releasing(evidence)
    controls = [name for name, table in tables.items() if fooled(table)]
    if not controls:
        return None
    sentences = [_told(name, tables[name]) for name in controls]
    others = {name: float(table[EMD].max()) for name, table in tables.items() if name not in controls}
    if others:
        sentences.append(
            f"By the paper’s utility loss nothing is better: the pooled EMD of {listed(list(others))} is up to"
            f" {say(max(others.values()))}, and lower is better."
        )
    names = [name for name in (EMD, OWN_EMD, SSIM, LOSS) if any(name in table for table in tables.values())]
    rows = tuple(row for name, table in tables.items() for row in _rows(name, table, names))
    head = ("mechanism", "degree", *(quantity(name).label for name in names))
    title = "Released images: mean over parties with 95 % interval. Lower is better, except for structural similarity."
    note = "Such a mechanism is a control: it protects nothing, and shows what the paper’s measure lets through."
    return Part("control", "What the pooled EMD misses", note, tuple(sentences), (), (Table(title, head, rows),))


def _told(name: str, table: xr.Dataset) -> str:
    first = table.isel(explainability=0)
    worst = int(np.nanargmax(first[LOSS].mean("party").values))
    there = first.isel(privacy=worst).mean("party")
    degree = f"{name} at {table.attrs['degree']} {table['privacy'].values[worst]}"
    blind = OWN_EMD in there and float(there[OWN_EMD]) <= NOTHING
    own = ", and so is the EMD of each image: a histogram does not know where a pixel was" if blind else ""
    return (
        f"{degree} keeps every grey level and moves it elsewhere. Its pooled EMD is 0{own}. Yet the structural"
        f" similarity is {say(round(float(there[SSIM]), 3))}, where 1 is unchanged, and the task loss is"
        f" {percent(float(there[LOSS]))}."
    )


def _rows(name: str, table: xr.Dataset, names: list[str]) -> list[tuple[str, ...]]:
    mean = table.isel(explainability=0).mean("party")
    found = []
    for i, degree in enumerate(table["privacy"].values):
        if not np.isfinite(mean[LOSS].values[i]):
            continue
        cells = [curve(mean, part).told(i) if part in mean else "not measured" for part in names]
        found.append((name, f"{table.attrs['degree']} {degree}", *cells))
    return found


def losses(evidence: Evidence) -> Part | None:
    """The accuracy that is lost against the EMD that stands for it, and against the similarity that sees places."""
    tables = releasing(evidence)
    sentences, charts = [], []
    for name in (EMD, SSIM):
        found = {mechanism: trainings(table, name, LOSS) for mechanism, table in tables.items() if has(table, name)}
        told = _orders(found, name)
        if told:
            sentences += told
            charts.append(_dots(found, name))
    if not charts:
        return None
    note = "What stands for the loss has a rank correlation of 1 with it; a similarity, which falls as it grows, of −1."
    return Part("losses", "Does the EMD stand for what is lost?", note, tuple(sentences), tuple(charts))


def _orders(found: Mapping[str, xr.Dataset], name: str) -> list[str]:
    """The rank correlations of each mechanism, and of all together."""
    columns = {mechanism: (each[name].values, each[LOSS].values) for mechanism, each in found.items()}
    if len(columns) > 1:
        emd, loss = (np.concatenate(parts) for parts in zip(*columns.values(), strict=True))
        columns["All of them together"] = (emd, loss)
    told = {mechanism: correlation(*both) for mechanism, both in columns.items()}
    label = f"{quantity(name).label} and task loss"
    return [f"{mechanism}: the rank correlation of {label} is {words}." for mechanism, words in told.items() if words]


def _dots(found: Mapping[str, xr.Dataset], name: str) -> Chart:
    lines = tuple(
        Line(mechanism, COLOURS[i % len(COLOURS)], each[name].values, curve(each, LOSS))
        for i, (mechanism, each) in enumerate(found.items())
    )
    label = quantity(name).label
    return Chart(
        f"Task loss against {label}", "one dot a training", label, "task loss, lower is better", lines, dots=True
    )


def correlation(first: Values, second: Values) -> str:
    """The rank correlation of two columns of trainings with its interval; nothing where there is no order to tell."""
    rho = rank_correlation(first, second)
    if len(first) < FEW or math.isnan(rho):
        return ""
    low, high = interval(first[:, None], second[:, None])
    return f"{say(rho, 2)} over {len(first)} trainings (95 % interval {say(low, 2)} to {say(high, 2)})"
