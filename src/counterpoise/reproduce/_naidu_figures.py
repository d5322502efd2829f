"""The source's figures: accuracy by epsilon and noise, scores by epsilon and clip, drop and increase under local noise,
and a gallery of maps by epsilon. The gallery shows images of the data set: it stays in the run's folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from counterpoise._files import write
from counterpoise.explainers.grad_cam import GradCAM
from counterpoise.report.figures.style import EXPLANATION, LOSS, PRIVACY, TRADE, new, rendered, slug, tidy
from counterpoise.report.pixels import stretched, viridis
from counterpoise.reproduce._naidu_cells import Bench, Cell
from counterpoise.reproduce._naidu_claims import seed_means
from counterpoise.reproduce._naidu_maps import Group
from counterpoise.training import generator

COLOURS = (PRIVACY, EXPLANATION, LOSS, TRADE)
SHOWN = 6

__all__ = ["Figure", "gallery", "lines", "save", "slug"]


def lines(groups: Sequence[Group], quantities: Sequence[str], along: str, title: str) -> Figure | None:
    """One line a group and quantity: the seeds' mean, and every seed as a dot."""
    figure = new(5.2, 3.2)
    axes = figure.subplots()
    drawn, ticks = 0, dict[float, str]()
    for group in groups:
        settings = _settings(group)
        x = [epsilon if along == "epsilon" else clip for epsilon, clip in settings]
        finite = [value for value in x if math.isfinite(value)]
        x = [value if math.isfinite(value) else 4 * max(finite, default=1.0) for value in x]
        ticks |= {
            place: "none"
            if math.isinf(epsilon) and along == "epsilon"
            else f"{epsilon if along == 'epsilon' else clip:g}"
            for place, (epsilon, clip) in zip(x, settings, strict=True)
        }
        for quantity in quantities:
            if quantity == "accuracy":
                means = np.array([[100 * one.accuracy for one in group.of(*setting)] for setting in settings]).T
            elif group.decidable:
                means = seed_means(group, quantity, settings)
            else:
                continue
            if len(means):
                colour = COLOURS[drawn % len(COLOURS)]
                label = (
                    f"{group.title}: {quantity.replace('_', ' ')}" if len(groups) > 1 else quantity.replace("_", " ")
                )
                axes.plot(x, means.mean(0), color=colour, linewidth=1.5, label=label)
                for row in means:
                    axes.plot(x, row, ".", color=colour, markersize=4, alpha=0.6)
                drawn += 1
    if not drawn:
        return None
    axes.set_xscale("log")
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.legend(fontsize=7, frameon=False)
    tidy(axes, along, "percent", title)
    return figure


def gallery(bench: Bench, group: Group, seed: int = 0) -> Figure | None:
    """A row of images, then their maps by each model of one seed, from no noise to the most."""
    if not group.decidable:
        return None
    chosen = group.images[:SHOWN]
    images, truth = bench.test.pixels[chosen], bench.test.labels[bench.case.target][chosen]
    cells = sorted((one.cell for one in group.looked if one.cell.seed == seed), key=lambda cell: -cell.epsilon)
    figure = new(1.2 * len(chosen) + 1, 1.1 * (len(cells) + 1))
    axes = figure.subplots(len(cells) + 1, len(chosen), squeeze=False)
    rows = [("image", [_picture(image) for image in images])]
    rows += [(_name(cell), _maps(bench, cell, images, truth)) for cell in cells]
    for row, (name, pictures) in zip(axes, rows, strict=True):
        for place, picture in zip(row, pictures, strict=True):
            place.imshow(picture, interpolation="nearest")
            place.set_xticks([])
            place.set_yticks([])
        row[0].set_ylabel(name, fontsize=7)
    return figure


def _name(cell: Cell) -> str:
    return "no noise" if math.isinf(cell.epsilon) else f"epsilon {cell.epsilon:g}"


def _maps(bench: Bench, cell: Cell, images: Tensor, truth: Tensor) -> list[np.ndarray]:
    maps = GradCAM().explain(bench.trained(cell).model, images, truth, generator(0, "maps")).maps
    return [viridis()[stretched((one / one.max().clamp(min=1e-12) * 255).byte().numpy(), 255)] for one in maps]


def _picture(image: Tensor) -> np.ndarray:
    return (image.permute(1, 2, 0).expand(-1, -1, 3) * 255).round().byte().numpy()


def _settings(group: Group) -> list[tuple[float, float]]:
    return sorted({(one.cell.epsilon, one.cell.clip) for one in group.looked})


def save(folder: Path, figures: dict[str, Figure | None]) -> list[str]:
    """Write those that could be drawn; their names."""
    for name, figure in figures.items():
        if figure is not None:
            write(folder / f"{name}.png", rendered(figure, pdf=False)["png"])
    return [f"{name}.png" for name, figure in figures.items() if figure is not None]
