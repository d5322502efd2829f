"""Published accuracy and R beside ours, what probes read, and the figures: one layout for all that hide a class."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise._files import write
from counterpoise.report.figures.style import EXPLANATION, PRIVACY, new, rendered, tidy
from counterpoise.reproduce._kept import Numbers
from counterpoise.reproduce.settings import Settings

PLAINLY = (
    "Probes read the hidden class from balanced, unseen images (chance {chance:.2f}; {target:.2f} for somebody who"
    " knows the true target and nothing else). Features at right angles inside a class do not hide the class:"
    " the MLP probe reads {first:.2f} at {first_name} and {last:.2f} at {last_name}."
)
COLUMNS = ("", "accuracy %", "published", "R", "published", "linear", "kNN", "MLP [95 %]", "after LEACE", "code",
           "k-means, NMI", "digest")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One training: its name, the published accuracy (percent) and R where there are such, and our numbers."""

    name: str
    published: tuple[float, float] | None
    numbers: Numbers


def table(rows: Sequence[Row]) -> str:
    """A markdown table; intervals are 95 % over test images."""
    return "\n".join(["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", *map(_line, rows)])


def _line(row: Row) -> str:
    n = row.numbers
    accuracy, probes = n["accuracy"], n["probes"]
    published = ("", "") if row.published is None else (f"{row.published[0]:.2f}", f"{row.published[1]:.2f}")
    mlp = probes["mlp"]
    cells = [
        row.name,
        f"{100 * accuracy['value']:.2f}",
        published[0],
        f"{n['R']:.3f}",
        published[1],
        f"{probes['linear']['value']:.3f}",
        f"{probes['knn']['value']:.3f}",
        f"{mlp['value']:.3f} [{mlp['low']:.3f}, {mlp['high']:.3f}]",
        f"{max(value['value'] for value in n['after_leace'].values()):.3f}",
        f"{n['code_length']['value']:.2f}",
        f"{n['cluster_match']:.2f}, {n['cluster_nmi']:.2f}",
        f"`{n['digest'][:8]}`",
    ]
    return "| " + " | ".join(cells) + " |"


def finish(name: str, title: str, rows: Sequence[Row], settings: Settings) -> str:
    """Write table, numbers and figures; return what is printed."""
    first, last = rows[0], rows[-1]
    said = PLAINLY.format(
        chance=first.numbers["chance"],
        target=first.numbers["told_by_target"],
        first=first.numbers["probes"]["mlp"]["value"],
        first_name=first.name,
        last=last.numbers["probes"]["mlp"]["value"],
        last_name=last.name,
    )
    versions = first.numbers["configuration"]["versions"]
    seconds = sum(row.numbers["cpu_seconds"] for row in rows)
    made = f"{', '.join(f'{key} {value}' for key, value in versions.items())}; {seconds / 60:.1f} CPU minutes."
    text = "\n\n".join([f"{title}.", table(rows), said, made])
    write(settings.out / f"{name}-{settings.scale}.md", text.encode() + b"\n")
    everything = {"title": title, "rows": [{"name": row.name, **row.numbers} for row in rows]}
    write(settings.out / f"{name}-{settings.scale}.json", json.dumps(everything, indent=1).encode() + b"\n")
    figure = settings.out / f"{name}-{settings.scale}.png"
    write(figure, picture(rows))
    return f"{text}\nFigures: {figure}"


def picture(rows: Sequence[Row]) -> bytes:
    """Accuracy and R, energy curves, centroid distances and agreement, of the first and the last row."""
    figure = new(11, 7)
    axes: Any = figure.subplots(2, 3)
    places = range(len(rows))
    for values, colour, label in (
        ([row.numbers["accuracy"]["value"] for row in rows], PRIVACY, "accuracy"),
        ([row.numbers["R"] for row in rows], EXPLANATION, "R"),
        ([row.numbers["probes"]["mlp"]["value"] for row in rows], "black", "MLP probe"),
    ):
        axes[0, 0].plot(places, values, "o-", color=colour, label=label)
    axes[0, 0].set_xticks(places, [row.name for row in rows], rotation=30)
    axes[0, 0].legend(fontsize=7)
    tidy(axes[0, 0], "", "share; R", "Accuracy, R, probe")
    for row in rows:
        energy = row.numbers["figures"]["energy"]
        axes[1, 0].plot(range(1, len(energy) + 1), energy, label=row.name)
    axes[1, 0].axhline(0.95, color="grey", linewidth=0.8)
    axes[1, 0].legend(fontsize=7)
    tidy(axes[1, 0], "principal components", "cumulative energy", "PCA energy")
    for line, (key, title) in enumerate(
        (("distances", "class to cluster centroids"), ("agreement", "on/off agreement"))
    ):
        ends = (rows[0], rows[-1])
        values = [np.array(row.numbers["figures"][key]) for row in ends]
        for column, (row, matrix) in enumerate(zip(ends, values, strict=True)):
            shown = axes[line, column + 1].imshow(matrix, cmap="viridis")
            axes[line, column + 1].set_title(f"{title}, {row.name}", fontsize=9, loc="left")
            figure.colorbar(shown, ax=axes[line, column + 1], shrink=0.8)
    return rendered(figure, pdf=False)["png"]
