"""Does the paper's privacy gain, 1/epsilon, go with what an attack can do?"""

from __future__ import annotations

import numpy as np
import xarray as xr

from counterpoise.report.evidence import Evidence
from counterpoise.report.quantities import quantity
from counterpoise.report.unseen.losses import correlation
from counterpoise.report.unseen.parts import Chart, Curve, Line, Part, curve, has, trainings
from counterpoise.report.words import percent, say

ADVANTAGE, BOUND = "membership_advantage", "advantage_bound"


def attack(evidence: Evidence) -> Part | None:
    """The measured advantage of the membership attack over 1/epsilon, for every mechanism that proves one."""
    plain = _unprotected(evidence)
    sentences, charts = [], []
    for name, panel in evidence.decision.panels.items():
        table = panel.table
        if not has(table, ADVANTAGE):
            continue
        proved = table.where(np.isfinite(table["epsilon"]) & (table["epsilon"] > 0))
        found = trainings(proved, "epsilon", ADVANTAGE)
        told = _told(name, found)
        if told:
            sentences += told
            charts.append(_chart(name, proved, plain))
    if not charts:
        return None
    if plain is not None:
        sentences.append(f"Without protection its advantage over guessing is {percent(plain)} on average.")
    note = "It is one simple attack: a better one may find more, up to the bound that epsilon proves."
    return Part("attack", "Does a larger 1/epsilon leak less?", note, tuple(sentences), tuple(charts))


def _told(name: str, found: xr.Dataset) -> list[str]:
    gain = 1 / found["epsilon"].values
    told = correlation(gain, found[ADVANTAGE].values)
    if not told:
        return []
    unseen = int((found[f"{ADVANTAGE}.low"] <= 0).sum())
    return [
        f"{name}: the paper’s privacy gain, 1/epsilon, goes from {say(float(gain.min()))} to {say(float(gain.max()))}."
        f" Its rank correlation with the attack’s measured advantage is {told}; −1 would mean that every larger gain"
        " leaks less.",
        f"In {unseen} of these {len(gain)} trainings the attack cannot be told from guessing: its interval reaches 0.",
    ]


def _unprotected(evidence: Evidence) -> float | None:
    """The advantage against plain training, where the study has it."""
    panel = evidence.decision.panels.get("plain")
    return None if panel is None or not has(panel.table, ADVANTAGE) else float(panel.table[ADVANTAGE].mean())


def _chart(name: str, proved: xr.Dataset, plain: float | None) -> Chart:
    mean = proved.isel(explainability=0).mean("party").dropna("privacy", subset=["epsilon", ADVANTAGE])
    gain = (1 / proved["epsilon"].isel(explainability=0)).mean("party").sel(privacy=mean["privacy"]).values
    order = np.argsort(gain, kind="stable")
    gain, mean = gain[order], mean.isel(privacy=order)
    lines = [Line(quantity(ADVANTAGE).label, "privacy", gain, curve(mean, ADVANTAGE))]
    if has(mean, BOUND):
        lines.append(Line(quantity(BOUND).label, "soft", gain, curve(mean, BOUND), "dash"))
    if plain is not None:
        flat = np.full(len(gain), plain)
        lines.append(Line("without protection", "loss", gain, Curve.exact(flat), "dot"))
    return Chart(
        f"{name}: attack against 1/epsilon",
        "mean over parties",
        "1/epsilon (log) → more private by proof",
        "advantage, lower is better",
        tuple(lines),
        logarithmic=True,
    )
