"""MNIST with differential privacy: a linear head on fixed scattering features, whitened by pictures of nothing.

Tramèr and Boneh, "Differentially private learning needs better features", ICLR 2021, with Poisson sampling, the PLD
accountant, and without their private batch statistics: every image is normalised by itself,
and features are evened out by statistics of `dead_leaves`, which are of nobody's images.
"""

from __future__ import annotations

from counterpoise import training
from counterpoise.datasets.idx import Mnist
from counterpoise.models.dead_leaves import dead_leaves
from counterpoise.models.scattering import UnitFeatures
from counterpoise.reproduce._features import cached
from counterpoise.reproduce._private_heads import Fixed, Head, table, train_levels, write_json
from counterpoise.reproduce.settings import Settings

HEADS = (
    Head(1.0, 8192, 80, 0.1, 500.0, 0.95, "97.9 (DPSUR 97.93, accounting contested)", "98.33 +- .05"),
    Head(3.0, 8192, 80, 0.1, 1500.0, 0.9, "98.7 (Tramèr and Boneh)", "98.74 +- .05"),
)
SEEDS = {"quick": 1, "cpu": 5, "paper": 10}
LEAVES, POWER = 1000, 0.25


def private_mnist(settings: Settings) -> str:
    """MNIST at epsilon 1 and 3: linear head on whitened scattering; quick 1 seed, cpu 5, paper 10."""
    train, test = Mnist(root=None if settings.data is None else str(settings.data)).load()
    features = UnitFeatures(channels=1, scales=2, angles=8, group=3)
    features.whiten_by(dead_leaves(LEAVES, 1, 28, training.generator(0, "dead leaves")), POWER)
    made_by = f"order-2 scattering, 2 scales, 8 angles, groups of 3, whitened ({LEAVES}, {POWER}), version 1"
    folder = settings.out / "features"
    data = Fixed(
        cached(folder, train.pixels, features, made_by),
        train.labels["digit"],
        cached(folder, test.pixels, features, made_by),
        test.labels["digit"],
    )
    seeds = range(SEEDS[settings.scale])
    levels = train_levels(data, HEADS, seeds)
    path = settings.out / f"private-mnist-{settings.scale}.json"
    write_json(path, levels, seeds, {"data": "mnist", "n": len(train), "features": made_by})
    title = f"MNIST, {len(train):,} training and {len(test):,} test images, linear head on whitened scattering"
    return table(title, levels, len(seeds), [f"Details: {path}"])
