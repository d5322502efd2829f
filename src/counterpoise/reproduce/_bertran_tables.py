"""The synthetic case laid out: a table of filters beside the oracle, and three figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise._files import write
from counterpoise.information.frontier import Frontier
from counterpoise.report.figures.style import EXPLANATION, LOSS, PRIVACY, RULE, SOFT, new, rendered, tidy
from counterpoise.reproduce._kept import Numbers
from counterpoise.reproduce.settings import Settings

NAME = "bertran-synthetic"
COLUMNS = ("k", "filter", "alpha", "A = I(S;Q) [95 %]", "B = I(U;X\\|Q) [95 %]", "A + B", "K", "loss", "best loss",
           "alpha (1 - alpha) K^2", "off the frontier", "digest")  # fmt: skip
COLOURS = {0.1: PRIVACY, 0.5: LOSS, 0.8: EXPLANATION}
CORNERS = {(0, 0): "0,0", (0, 1): "0,1", (1, 0): "1,0", (1, 1): "1,1"}


@dataclass(frozen=True)
class Cell:
    """One trained filter."""

    k: float
    kind: str
    alpha: float
    numbers: Numbers

    @property
    def leak(self) -> float:
        """A."""
        return float(self.numbers["leak"][0])

    @property
    def loss(self) -> float:
        """B."""
        return float(self.numbers["loss"][0])

    @property
    def objective(self) -> float:
        """(1 - alpha) B^2 + alpha A^2."""
        return (1 - self.alpha) * self.loss**2 + self.alpha * self.leak**2

    def gap(self, front: Frontier) -> float:
        """How far the frontier is: more lost at the same leak, or leaked at the same loss, whichever is more."""
        leak = float(np.interp(self.loss, front.loss[::-1], front.leak[::-1]))
        return max(self.loss - front.at(self.leak), self.leak - leak)


def finish(title: str, cells: Sequence[Cell], fronts: Mapping[float, Frontier], settings: Settings) -> str:
    """Write table, numbers and figures; return what is printed."""
    table = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", *(_line(c, fronts[c.k]) for c in cells)]
    versions = cells[0].numbers["configuration"]["versions"]
    seconds = sum(cell.numbers["cpu_seconds"] for cell in cells)
    made = f"{', '.join(f'{key} {value}' for key, value in versions.items())}; {seconds / 60:.1f} CPU minutes."
    text = "\n\n".join([f"{title}.", "\n".join(table), _sentences(cells, fronts), made])
    stem = settings.out / f"{NAME}-{settings.scale}"
    write(stem.with_suffix(".md"), text.encode() + b"\n")
    everything = {
        "title": title,
        "filters": [{"k": c.k, "filter": c.kind, "alpha": c.alpha, **c.numbers} for c in cells],
        "frontiers": [{"k": k, "A": f.leak.tolist(), "B": f.loss.tolist()} for k, f in fronts.items()],
    }
    write(stem.with_suffix(".json"), json.dumps(everything, indent=1).encode() + b"\n")
    figures = {"outputs": scatter(cells), "losses": losses(cells, fronts), "plane": plane(cells, fronts)}
    for name, picture in figures.items():
        write(stem.with_name(f"{stem.name}-{name}.png"), picture)
    return f"{text}\nFigures: {stem}-{{{','.join(figures)}}}.png"


def _line(cell: Cell, front: Frontier) -> str:
    n = cell.numbers
    parts = [
        f"{cell.k:g}",
        cell.kind,
        f"{cell.alpha:g}",
        *("{:.4f} [{:.4f}, {:.4f}]".format(*n[key]) for key in ("leak", "loss")),
        f"{n['sum'][0]:.4f}",
        f"{n['least']:.4f}",
        f"{cell.objective:.4f}",
        f"{front.best(cell.alpha).objective:.4f}",
        f"{cell.alpha * (1 - cell.alpha) * n['least'] ** 2:.4f}",
        f"{cell.gap(front):+.4f}",
        f"`{n['digest'][:8]}`",
    ]
    return "| " + " | ".join(parts) + " |"


def _sentences(cells: Sequence[Cell], fronts: Mapping[float, Frontier]) -> str:
    """What the table shows of the bound, of the estimate of I(U;S), and of the oracle."""
    below = [c for c in cells if c.numbers["sum"][2] < c.numbers["least"]]
    off = max(abs(c.numbers["estimated"] - c.numbers["least"]) for c in cells)
    lines = [
        f"A + B lies below K, beyond its interval, for {len(below)} of {len(cells)} filters.",
        f"I(U;S), estimated from the rows' labels, is off by {off:.4f} nats at most.",
    ]
    for k, front in fronts.items():
        for kind in dict.fromkeys(c.kind for c in cells):
            own = [c for c in cells if (c.k, c.kind) == (k, kind)]
            widest, far = max(own, key=lambda c: c.gap(front)), max(own, key=lambda c: _away(c, front))
            lines.append(
                f"k = {k:g}, {kind} filter: off the frontier by at most {widest.gap(front):.4f} nats (alpha ="
                f" {widest.alpha:g}), and from the best filter of its alpha by at most {_away(far, front):.4f} (alpha ="
                f" {far.alpha:g})."
            )
    return "\n".join(f"- {line}" for line in lines)


def _away(cell: Cell, front: Frontier) -> float:
    """The larger difference, in A or in B, to the best filter for this alpha."""
    best = front.best(cell.alpha)
    return max(abs(cell.leak - best.leak), abs(cell.loss - best.loss))


def scatter(cells: Sequence[Cell]) -> bytes:
    """Outputs of every filter, coloured by (U, S)."""
    ks, columns = list(dict.fromkeys(c.k for c in cells)), list(dict.fromkeys((c.kind, c.alpha) for c in cells))
    figure = new(2.2 * len(columns), 2.3 * len(ks))
    axes: Any = figure.subplots(len(ks), len(columns), squeeze=False)
    for cell in cells:
        panel = axes[ks.index(cell.k), columns.index((cell.kind, cell.alpha))]
        shown = np.array(cell.numbers["shown"])
        for (u, s), words in CORNERS.items():
            some = shown[(shown[:, 2] == u) & (shown[:, 3] == s)]
            colour = PRIVACY if u else EXPLANATION
            panel.scatter(some[:, 0], some[:, 1], s=5, c=colour, marker="x" if s else "o", linewidths=0.6, label=words)
        tidy(panel, "", "", f"k {cell.k:g}, {cell.kind}, alpha {cell.alpha:g}")
        panel.set_xticks([])
        panel.set_yticks([])
    axes[0, 0].legend(fontsize=6, title="U,S", title_fontsize=6)
    return rendered(figure, pdf=False)["png"]


def losses(cells: Sequence[Cell], fronts: Mapping[float, Frontier]) -> bytes:
    """The loss against alpha, with the oracle's and the bound; and the sum A + B against K."""
    figure = new(3.4 * len(fronts), 5.4)
    axes: Any = figure.subplots(2, len(fronts), squeeze=False)
    fine = np.linspace(0, 1, 41)
    for column, (k, front) in enumerate(fronts.items()):
        above, below = axes[:, column]
        least = next(c.numbers["least"] for c in cells if c.k == k)
        above.plot(fine, [front.best(a).objective for a in fine], color=SOFT, label="best filter")
        above.plot(fine, fine * (1 - fine) * least**2, "--", color=RULE, label="alpha (1 - alpha) K^2")
        below.axhline(least, linestyle="--", color=SOFT, label="K")
        for kind, mark in (("linear", "o"), ("MLP", "s")):
            own = [c for c in cells if (c.k, c.kind) == (k, kind)]
            alphas = [c.alpha for c in own]
            colour = PRIVACY if kind == "linear" else EXPLANATION
            above.plot(alphas, [c.objective for c in own], mark, color=colour, label=kind)
            sums = np.array([c.numbers["sum"] for c in own])
            reach = np.abs(sums[:, 1:] - sums[:, :1]).T
            below.errorbar(alphas, sums[:, 0], reach, fmt=mark, color=colour, label=kind, capsize=2)
        tidy(above, "alpha", "loss", f"k = {k:g}")
        tidy(below, "alpha", "A + B, nats")
        below.set_ylim(bottom=0)
    axes[0, 0].legend(fontsize=7)
    axes[1, 0].legend(fontsize=7)
    return rendered(figure, pdf=False)["png"]


def plane(cells: Sequence[Cell], fronts: Mapping[float, Frontier]) -> bytes:
    """The information plane: the oracle's frontier, the line A + B = K, and how each filter got to where it is."""
    kinds = list(dict.fromkeys(c.kind for c in cells))
    figure = new(3.4 * len(fronts), 3.2 * len(kinds))
    axes: Any = figure.subplots(len(kinds), len(fronts), squeeze=False)
    for row, kind in enumerate(kinds):
        for column, (k, front) in enumerate(fronts.items()):
            panel = axes[row, column]
            panel.plot(front.leak, front.loss, color=SOFT, linewidth=1.5, label="best filters")
            for cell in (c for c in cells if (c.k, c.kind) == (k, kind)):
                least, colour = cell.numbers["least"], COLOURS.get(cell.alpha, SOFT)
                panel.plot([0, least], [least, 0], "--", color=RULE)
                panel.plot([(1 - cell.alpha) * least], [cell.alpha * least], "|", color=colour)
                path = np.array(cell.numbers["trajectory"])
                panel.plot(path[:, 1], path[:, 2], color=colour, linewidth=0.6, alpha=0.6)
                panel.plot([cell.leak], [cell.loss], "o", color=colour, label=f"alpha {cell.alpha:g}")
            tidy(panel, "A = I(S;Q), nats", "B = I(U;X|Q), nats", f"k = {k:g}, {kind}")
    axes[0, 0].legend(fontsize=7)
    return rendered(figure, pdf=False)["png"]
