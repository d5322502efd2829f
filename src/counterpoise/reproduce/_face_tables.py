"""Learned filters of faces as a table, three figures and a gallery: one layout for all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from counterpoise._files import write
from counterpoise.report.figures.style import EXPLANATION, PRIVACY, new, rendered, tidy
from counterpoise.reproduce._faces import Row, stacked
from counterpoise.reproduce._kept import Numbers
from counterpoise.reproduce.settings import Settings
from counterpoise.store import digest

COLUMNS = ("", "seed", "U: filtered", "raw", "retrained", "S: fixed attacker", "strongest attacker", "advantage [95 %]",
           "nats [95 %]", "p", "moved", "PSNR dB", "digest")  # fmt: skip
LEGEND = (
    "Percent right on test images. U: the provider's network on filtered and on raw images, and one trained on filtered"
    " images alone{classes}. S, on images balanced over its classes: the attacker trained on raw images, and the"
    " strongest of seven (name in brackets), who learned from filtered ones; advantage: its share above chance; nats:"
    " usable information (H = {entropy:.3f}); p: permutations; moved: images whose posterior on S is more than .1 off"
    " the prior; PSNR: of the best reconstruction. Measured against these attackers; nothing is proved."
)


def finish(name: str, title: str, rows: Sequence[Row], original: Tensor, schedule: str, settings: Settings) -> str:
    """Write table, numbers, figures and gallery; return what is printed."""
    first = rows[0].numbers
    classes = ", each class in brackets" if first["utility"]["each"] else ""
    if first["utility"]["top5"] < 1:
        classes += " (top-5 after the stroke)"
    entropy = float(np.log(len(first["secret_fixed"])))
    versions = ", ".join(f"{key} {value}" for key, value in first["configuration"]["versions"].items())
    seconds = sum(row.numbers["cpu_seconds"] for row in rows)
    whole = digest(sorted(row.numbers["digest"] for row in rows))[:8]
    text = "\n".join(
        [
            f"{title}. Scale {settings.scale}: {schedule}.",
            "",
            "| " + " | ".join(COLUMNS) + " |",
            "|---" * len(COLUMNS) + "|",
            *map(_line, rows),
            "",
            LEGEND.format(classes=classes, entropy=entropy),
            f"I(U;S) of the labels: {first['K']:.3f} nats, which no filter gets below in leak plus loss.",
            f"{versions}; {seconds / 60:.1f} CPU minutes; digest of the {len(rows)} trainings' digests: `{whole}`.",
        ]
    )
    stem = f"{name}-{settings.scale}"
    write(settings.out / f"{stem}.md", text.encode() + b"\n")
    everything = [{"name": row.name, "alpha": row.alpha, "seed": row.seed, **row.numbers} for row in rows]
    write(settings.out / f"{stem}.json", json.dumps(everything, indent=1).encode() + b"\n")
    write(settings.out / f"{stem}.png", picture(rows))
    filtered = [row for row in rows if row.alpha is not None and row.seed == 0]
    write(settings.out / f"{stem}-gallery.png", stacked(filtered, original))
    return f"{text}\nFigures: {settings.out / stem}.png; gallery (original faces above): {stem}-gallery.png"


def _line(row: Row) -> str:
    n, told = row.numbers, row.numbers["measured"]
    advantage, nats = told["secret_advantage"], told["information_leak"]
    cells = [
        row.name,
        str(row.seed),
        *(_right(n[key]) for key in ("utility", "utility_raw", "utility_retrained")),
        " / ".join(f"{100 * x:.1f}" for x in n["secret_fixed"]),
        " / ".join(f"{100 * x:.1f}" for x in n["secret_strongest"]) + f" ({n['strongest']})",
        f"{advantage['value']:.3f} [{advantage['low']:.3f}, {advantage['high']:.3f}]",
        f"{nats['value']:.3f} [{nats['low']:.3f}, {nats['high']:.3f}]",
        f"{told['secret_p_value']['value']:.3f}",
        f"{told['secret_moved']['value']:.2f}",
        f"{told['inversion_psnr']['value']:.1f}",
        f"`{n['digest'][:8]}`",
    ]
    return "| " + " | ".join(cells) + " |"


def _right(found: Numbers) -> str:
    """Percent right: of all, in each class or among the first five."""
    each = " / ".join(f"{100 * x:.1f}" for x in found["each"])
    more = f" ({each})" if each else f" / {100 * found['top5']:.1f}"
    return f"{100 * found['top1']:.1f}{more}"


def picture(rows: Sequence[Row]) -> bytes:
    """What is kept and what is told by alpha; leak against loss with the bound; the posteriors on S by true class."""
    figure = new(12, 4.6)
    axes: Any = figure.subplots(1, 3)
    rows = [row for row in rows if row.seed == 0]
    places = range(len(rows))
    for values, colour, label in (
        ([row.numbers["utility"]["top1"] for row in rows], EXPLANATION, "U right, filtered"),
        ([row.numbers["measured"]["secret_advantage"]["value"] for row in rows], PRIVACY, "S, strongest, above chance"),
        ([row.numbers["attackers"]["fixed"]["value"] for row in rows], "grey", "S, fixed, above chance"),
    ):
        axes[0].plot(places, values, "o-", color=colour, label=label)
    axes[0].set_xticks(places, [row.name for row in rows], rotation=90, fontsize=7)
    axes[0].legend(fontsize=7)
    tidy(axes[0], "", "share", "Kept and told")
    bound = rows[0].numbers["K"]
    axes[1].plot([0, bound], [bound, 0], color="grey", linewidth=0.8, label=f"leak + loss = I(U;S) = {bound:.3f}")
    for row in rows:
        leak, loss = row.numbers["measured"]["information_leak"]["value"], row.numbers["utility_nats_lost"]
        axes[1].plot([leak], [loss], "o", color=PRIVACY)
        axes[1].annotate(row.name, (leak, loss), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes[1].legend(fontsize=7)
    tidy(axes[1], "told of S, nats (measured: a lower bound)", "lost of U, nats (measured)", "Leak and loss")
    boxes, names = [], []
    for row in rows:
        for true, (low, q1, middle, q3, high) in enumerate(row.numbers["posterior"][:2]):
            boxes.append({"whislo": low, "q1": q1, "med": middle, "q3": q3, "whishi": high, "fliers": []})
            names.append(f"{row.name}, S={true}")
    axes[2].bxp(boxes, showfliers=False)
    axes[2].set_xticks(range(1, len(names) + 1), names, rotation=90, fontsize=6)
    tidy(axes[2], "", "P(S = 1 | image)", "The surest attacker's belief, by true S")
    return rendered(figure, pdf=False)["png"]
