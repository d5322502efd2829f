"""The numbers of a comparison beside the published ones, as tables that any text can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from counterpoise.measures._maps import FLOORS
from counterpoise.measures.comparison import paired_difference, spread
from counterpoise.report import Claim
from counterpoise.reproduce._naidu_maps import Group

PUBLISHED = {
    "gaussian": {
        0.5: (13.29, 67.52, 75.27),
        1.0: (11.66, 62.50, 79.10),
        5.0: (6.76, 84.96, 87.88),
        10.0: (5.81, 86.80, 89.40),
        math.inf: (2.05, 95.04, 97.22),
    },
    "laplace": {
        1.0: (9.61, 66.84, 86.48),
        5.0: (4.39, 90.96, 91.78),
        10.0: (4.18, 92.44, 92.61),
        math.inf: (2.05, 95.04, 97.22),
    },
}
"""Drop, increase and score of the source's tables 1 and 2, in percent, by noise and epsilon."""
MASKED = ("average_drop", "confidence_increase", "masked_score")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def tables(group: Group, settings: Sequence[tuple[float, float]], published: Mapping[float, tuple[float, ...]]) -> str:
    """The source's table beside ours, then the floors and areas of the same models."""
    seeds = len(group.of(*settings[0]))
    models = len(group.looked)
    title = f"**{group.title}**: {len(group.images)} images that all {models} models classify rightly, {seeds} seeds."
    accuracy = [
        [_named(epsilon, clip), ", ".join(f"{100 * one.accuracy:.1f}" for one in group.of(epsilon, clip))]
        for epsilon, clip in settings
    ]
    if not group.decidable:
        return f"{title} Too few to compare maps on.\n\n" + markdown(["", "test accuracy %, a seed each"], accuracy)
    rows, floors = [], []
    for (epsilon, clip), (name, right) in zip(settings, accuracy, strict=True):
        lost = float(np.mean([one.blank for one in group.of(epsilon, clip)]))
        told = published.get(epsilon, ("", "", ""))
        cells = [_cell(group, quantity, epsilon, clip) for quantity in ("whole_score", *MASKED)]
        with_theirs = [f"{cell} ({theirs})" if theirs else cell for cell, theirs in zip(cells[1:], told, strict=True)]
        difference = _difference(group, epsilon, clip, settings[-1])
        rows.append([name, right, cells[0], *with_theirs, difference, f"{100 * lost:.0f}"])
        four = [_mean(group, f"average_drop_of_{of}", epsilon, clip) for of in FLOORS]
        scores = [_mean(group, f"masked_score_of_{of}", epsilon, clip) for of in FLOORS]
        rises = [_mean(group, f"confidence_increase_of_{of}", epsilon, clip) for of in FLOORS]
        areas = [_cell(group, quantity, epsilon, clip, 3) for quantity in ("deletion", "insertion", "faithfulness")]
        others = " / ".join(_mean(group, f"faithfulness_of_{of}", epsilon, clip, 3) for of in ("centre", "edges"))
        floors.append([name, " / ".join(four), " / ".join(rises), " / ".join(scores), *areas, others])
    last = _named(*settings[-1])
    first = markdown(
        ["", "accuracy %", "Y", "drop", "increase", "score", f"drop - drop at {last}, paired", "blank %"], rows
    )
    second = markdown(
        [
            "",
            "drop: floors",
            "increase: floors",
            "score: floors",
            "deletion",
            "insertion",
            "ins. - del.",
            "centre / edges",
        ],
        floors,
    )
    return f"{title}\n\n{first}\n\n{second}"


def _named(epsilon: float, clip: float) -> str:
    name = "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
    return name if clip == 1 else f"{name}, clip {clip:g}"


def _cell(group: Group, quantity: str, epsilon: float, clip: float, digits: int = 1) -> str:
    """Mean [interval over seeds]; deviation over seeds, over images."""
    table = group.table(quantity, epsilon, clip)
    if np.isnan(table).all():
        return "all blank"
    found = spread(table)
    low, high = (f"{x:.{digits}f}" for x in (found.mean.low, found.mean.high))
    seeds = "-" if math.isnan(found.over_seeds) else f"{found.over_seeds:.{digits}f}"
    return f"{found.mean.value:.{digits}f} [{low}, {high}]; {seeds}, {found.over_images:.{digits}f}"


def _mean(group: Group, quantity: str, epsilon: float, clip: float, digits: int = 0) -> str:
    table = group.table(quantity, epsilon, clip)
    return "-" if np.isnan(table).all() else f"{np.nanmean(table):.{digits}f}"


def _difference(group: Group, epsilon: float, clip: float, last: tuple[float, float]) -> str:
    """Of the seeds' mean drops, image by image, with a bootstrap over the images that are scored in both."""
    if (epsilon, clip) == last:
        return ""
    here, there = (group.table("average_drop", *setting) for setting in ((epsilon, clip), last))
    both = ~(np.isnan(here).all(0) | np.isnan(there).all(0))
    if not both.any():
        return "-"
    found = paired_difference(np.nanmean(here[:, both], axis=0), np.nanmean(there[:, both], axis=0))
    return f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]"


def claims_table(claims: Sequence[Claim]) -> str:
    """The claims with their verdicts."""
    return markdown(
        ["statement", "published", "ours", "verdict"], [[c.statement, c.published, c.ours, c.verdict] for c in claims]
    )
