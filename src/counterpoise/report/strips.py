"""Galleries as the page shows them: one row a degree, the released images side by side, and the maps of one image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoise.grid import text
from counterpoise.report.gallery import Gallery
from counterpoise.report.pixels import data_uri, image_strip, map_strip

IMAGES = 6
"""How many images a page shows of one gallery: it has to stay small enough to send."""


@dataclass(frozen=True)
class Row:
    """One degree: a picture strip, and what it shows in words."""

    label: str
    picture: str
    words: str


@dataclass(frozen=True)
class Shown:
    """The galleries of one mechanism and party. `maps[i]` are the rows of image i."""

    key: str
    mechanism: str
    title: str
    tile: int
    labels: tuple[str, ...]
    levels: tuple[str, ...]
    released: tuple[Row, ...]
    maps: tuple[tuple[Row, ...], ...]


def shown(galleries: Sequence[Gallery]) -> tuple[Shown, ...]:
    """Galleries grouped by mechanism and party, in their order; degrees increase."""
    groups: dict[tuple[str, str], list[Gallery]] = {}
    for gallery in galleries:
        if len(gallery.images):
            groups.setdefault((gallery.mechanism, gallery.party), []).append(gallery)
    return tuple(_shown(str(index), group) for index, group in enumerate(groups.values()))


def _shown(key: str, group: list[Gallery]) -> Shown:
    group = sorted(group, key=lambda gallery: gallery.degree)
    first = group[0]
    count = min(IMAGES, *(len(gallery.images) for gallery in group))
    labels = tuple(f"image {i + 1}" + (f" ({first.labels[i]})" if first.labels else "") for i in range(count))
    original = Row(
        "original", data_uri(image_strip(list(first.originals[:count]))), f"Original images: {', '.join(labels)}"
    )
    released = [_released(gallery, count) for gallery in group]
    maps = tuple(
        tuple(
            Row(
                text(gallery.degree),
                data_uri(map_strip([level[i] for level in gallery.maps])),
                f"Maps of {labels[i]} at degree {text(gallery.degree)}, explainability increasing from left to right",
            )
            for gallery in group
            if len(gallery.levels)
        )
        for i in range(count)
    )
    return Shown(
        key=key,
        mechanism=first.mechanism,
        title=f"{first.mechanism}, {first.party}",
        tile=max(48, min(72, 2 * first.images.shape[1])),
        labels=labels,
        levels=tuple(text(level) for level in first.levels),
        released=(original, *released),
        maps=maps,
    )


def _released(gallery: Gallery, count: int) -> Row:
    said = f"; predicted {', '.join(gallery.predictions[:count])}" if gallery.predictions else ""
    words = f"Released at degree {text(gallery.degree)}{said}"
    return Row(text(gallery.degree), data_uri(image_strip(list(gallery.images[:count]))), words)
