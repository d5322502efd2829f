"""Galleries as figures: released images by degree, and the maps of one image by degree and explainability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from counterpoise.grid import text
from counterpoise.report.figures.style import SOFT, new, plain_words
from counterpoise.report.gallery import Bytes, Gallery
from counterpoise.report.pixels import stretched, viridis

COLUMNS = 8
TILE = 0.62
"""Inches an image is wide."""


def released(galleries: Sequence[Gallery]) -> Figure:
    """Originals in the first row, then one row a degree."""
    count = min(COLUMNS, *(len(gallery.images) for gallery in galleries))
    rows = [("original", list(galleries[0].originals[:count]))]
    rows += [(text(gallery.degree), list(gallery.images[:count])) for gallery in galleries]
    return _grid(rows, [], galleries[0], "released images by degree")


def maps(galleries: Sequence[Gallery], image: int = 0) -> Figure:
    """One row a degree, one column an explainability degree; each map over its own range."""
    palette = viridis()
    rows = [(text(g.degree), [palette[stretched(level[image], 255)] for level in g.maps]) for g in galleries]
    levels = [text(level) for level in galleries[0].levels]
    return _grid(rows, levels, galleries[0], "maps of one image, degree by explainability")


def noisy(gallery: Gallery) -> Figure:
    """What SmoothGrad averages over: one draw an image and explainability degree, which is the noise's deviation."""
    shown = gallery.originals[:COLUMNS]
    draws = np.random.default_rng(0).standard_normal(shown.shape)
    noise = [255 * float(level) * draws for level in gallery.levels]
    rows = [
        (text(level), list(np.clip(np.rint(shown + added), 0, 255).astype(np.uint8)))
        for level, added in zip(gallery.levels, noise, strict=True)
    ]
    return _grid(rows, [], gallery, "what SmoothGrad averages over, by explainability")


def _grid(rows: Sequence[tuple[str, Sequence[Bytes]]], heads: Sequence[str], first: Gallery, title: str) -> Figure:
    """All images in one picture: far faster than one axes for each."""
    height, width = first.images.shape[1:3]
    gap = max(1, width // 12)
    columns = max(len(pictures) for _, pictures in rows)
    canvas = np.full((len(rows) * (height + gap), columns * (width + gap), 3), 255, dtype=np.uint8)
    for r, (_, pictures) in enumerate(rows):
        for c, picture in enumerate(pictures):
            top, left = r * (height + gap), c * (width + gap)
            canvas[top : top + height, left : left + width] = picture
    figure = new(max(4.0, TILE * columns + 1.0), TILE * len(rows) * height / width + 0.9)
    axes = figure.subplots()
    axes.imshow(canvas, interpolation="nearest")
    axes.set_yticks([r * (height + gap) + height / 2 - 0.5 for r in range(len(rows))], [label for label, _ in rows])
    axes.set_xticks([c * (width + gap) + width / 2 - 0.5 for c in range(len(heads))], list(heads))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=7, colors=SOFT)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{plain_words(first.mechanism)}, {plain_words(first.party)}: {title}", fontsize=9, loc="left")
    return figure
