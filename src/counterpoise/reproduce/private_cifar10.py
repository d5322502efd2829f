"""CIFAR-10 with differential privacy: a linear head on fixed scattering features, whitened by pictures of nothing.

Beyond Tramèr and Boneh (ICLR 2021): brightness and colour differences instead of red, green and blue; an image and its
mirror image as one; blocks of two sizes; and features evened out by `dead_leaves`, which are nobody's images.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from counterpoise import training
from counterpoise.datasets.cifar10 import Cifar10
from counterpoise.interface import Images
from counterpoise.models.dead_leaves import dead_leaves
from counterpoise.models.scattering import UnitFeatures
from counterpoise.reproduce._features import cached
from counterpoise.reproduce._private_heads import Fixed, Head, table, train_levels, write_json
from counterpoise.reproduce.settings import Settings

PUBLISHED = 50_000
SUBSETS = {"quick": (10_000, 2_500), "cpu": (20_000, 5_000)}
"""The training and test images of the smaller scales. The settings below were tuned for `cpu`."""

TUNED_FOR = 20_000

HEADS = (
    Head(1.0, 4096, 40, 0.5, 40.0, 0.9, "60.9 (all 50,000 images)", "53.8 +- .5"),
    Head(3.0, 4096, 60, 0.5, 90.0, 0.9, "67.0 to 69.3 (all 50,000 images)", "59.3 +- .2"),
)
SEEDS = {"quick": 1, "cpu": 5, "paper": 5}
SCALES = ((2, 9), (3, 7))
"""Blocks of 4 and of 8 pixels, and how many features are normalised together."""

LEAVES, POWER = 2000, 0.25


def private_cifar10(settings: Settings) -> str:
    """CIFAR-10 at epsilon 1 and 3: linear head on whitened scattering; quick 10,000 images, cpu 20,000, paper all."""
    train, test = Cifar10(root=None if settings.data is None else str(settings.data)).load()
    notes = []
    if settings.scale in SUBSETS:
        train, test = (_first(part, most) for part, most in zip((train, test), SUBSETS[settings.scale], strict=True))
    elif len(train) < PUBLISHED:
        notes.append(
            f"The files hold {len(train):,} of the {PUBLISHED:,} training images, so this is no more than scale cpu;"
            " the published numbers are of all images."
        )
    if settings.scale == "quick":
        notes.append("Scale quick shows that all works, on fewer images; compare scale cpu with the prototype.")
    heads = [replace(head, batch=max(1, round(head.batch * len(train) / TUNED_FOR))) for head in HEADS]
    data, made_by = whitened(train, test, settings)
    seeds = range(SEEDS[settings.scale])
    levels = train_levels(data, heads, seeds)
    path = settings.out / f"private-cifar10-{settings.scale}.json"
    write_json(path, levels, seeds, {"data": "cifar10", "n": len(train), "features": made_by})
    title = f"CIFAR-10, {len(train):,} training and {len(test):,} test images, linear head on whitened scattering"
    return table(title, levels, len(seeds), [*notes, f"Details: {path}"])


def whitened(train: Images, test: Images, settings: Settings) -> tuple[Fixed, list[str]]:
    """Both images' features at every scale side by side, of length 1 together."""
    parts, made_by = [], []
    for scales, group in SCALES:
        features = UnitFeatures(3, scales, angles=8, group=group, mirror=True)
        features.whiten_by(dead_leaves(LEAVES, 3, 32, training.generator(0, "dead leaves")), POWER)
        settled = f"{scales} scales, 8 angles, mirror, groups of {group}, whitened ({LEAVES}, {POWER})"
        made_by.append(f"order-2 scattering, {settled}, version 1")
        parts.append(
            [cached(settings.out / "features", images.pixels, features, made_by[-1]) for images in (train, test)]
        )
    both = [torch.cat(sides, 1).div_(len(SCALES) ** 0.5) for sides in zip(*parts, strict=True)]
    return Fixed(both[0], train.labels["object"], both[1], test.labels["object"]), made_by


def _first(images: Images, most: int) -> Images:
    return images.take(torch.arange(min(most, len(images))))
