"""EnD's protocol on Biased MNIST, with every way to hide in one harness: who is right where colour misleads, who leaks?

Published (Tartaglione, Barbano and Grangetto, CVPR 2021): EnD reaches 52.3, 83.7, 93.9 and 96.0 % at rho .999, .997,
.995 and .990.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import torch
from torch import nn

from counterpoise._files import write
from counterpoise.datasets.biased_mnist import BiasedMnist
from counterpoise.interface import Mechanism, Recipe, Task
from counterpoise.measures.probes import best, material, read
from counterpoise.mechanisms.entangle import EntangleDisentangle
from counterpoise.mechanisms.gradient_reversal import GradientReversal
from counterpoise.mechanisms.linear_erasure import LinearErasure
from counterpoise.mechanisms.non_discrimination import NonDiscriminatory
from counterpoise.mechanisms.plain import Plain
from counterpoise.models._init import Centre
from counterpoise.representation.layers import features
from counterpoise.reproduce._kept import Numbers, kept
from counterpoise.reproduce.settings import Settings
from counterpoise.store import digest
from counterpoise.training import apply, generator, one_thread, seeded

PUBLISHED = {0.999: 52.3, 0.997: 83.7, 0.995: 93.9, 0.990: 96.0}
"""EnD's accuracy in percent."""

WAYS: Mapping[str, Mechanism] = {
    "plain": Plain(),
    "end": EntangleDisentangle(Decimal("1"), beta=1.0, batches="shuffled"),
    "non-discriminatory": NonDiscriminatory(Decimal("1"), batches="shuffled"),
    "gradient-reversal": GradientReversal(Decimal("0.1"), batches="shuffled"),
    "linear-erasure": LinearErasure(),
}


@dataclass(frozen=True)
class Schedule:
    """How much is trained."""

    images: int | None
    rhos: tuple[float, ...]
    seeds: int
    recipe: Recipe
    network: str

    def sentence(self) -> str:
        """In words."""
        images = "all images" if self.images is None else f"the first {self.images} images"
        r = self.recipe
        return f"{images}, {r.epochs} epochs, Adam {r.learning_rate:g}, batch {r.batch}, {self.network}"


SCHEDULES = {
    "quick": Schedule(1500, (0.99,), 1, Recipe(2, 128, 0.001, optimiser="adam"), "small network"),
    "cpu": Schedule(10_000, tuple(PUBLISHED), 3, Recipe(6, 128, 0.002, optimiser="adam"), "small network"),
    "paper": Schedule(None, tuple(PUBLISHED), 3, Recipe(80, 256, 0.001, optimiser="adam"), "7 x 7 kernels"),
}


def small(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Three convolutions that halve the image, then its mean: 64 features."""
    with seeded(rng):
        return nn.Sequential(
            Centre(),
            nn.Conv2d(shape[0], 16, 5, 2, 2), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes),
        )  # fmt: skip


def wide(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """The protocol's network: four convolutions with 7 x 7 kernels, 16 to 128 channels, then the mean."""
    widths = (shape[0], 16, 32, 64, 128)
    with seeded(rng):
        blocks = [
            layer
            for given, made in pairwise(widths)
            for layer in (nn.Conv2d(given, made, 7, padding=3), nn.BatchNorm2d(made), nn.ReLU())
        ]
        return nn.Sequential(Centre(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))


def biased_mnist(settings: Settings) -> str:
    """Digits whose ground nearly always tells them: plain, EnD, NDR, gradient reversal, LEACE; EnD's protocol."""
    schedule = SCHEDULES[settings.scale]
    found: dict[tuple[str, float], list[Numbers]] = {}
    for seed in range(schedule.seeds):
        for rho in schedule.rhos:
            for name in WAYS:
                configuration = {"source": "biased-mnist", "way": repr(WAYS[name]), "rho": rho, "seed": seed,
                                 "schedule": schedule.sentence()}  # fmt: skip
                numbers = kept(settings.out, configuration, lambda n=name, r=rho, s=seed: train_one(n, r, s, settings))  # type: ignore[misc]
                found.setdefault((name, rho), []).append(numbers)
    return finish(found, schedule, settings)


def train_one(name: str, rho: float, seed: int, settings: Settings) -> Numbers:
    """One training: accuracy where colours tell nothing, and what probes read of the colour."""
    schedule = SCHEDULES[settings.scale]
    root = None if settings.data is None else str(settings.data)
    train, test = BiasedMnist(rho, root, schedule.images, seed).load()
    make = wide if schedule.network == "7 x 7 kernels" else small
    task = Task(train, test, "digit", make, schedule.recipe, hidden="colour")
    with one_thread():
        model = WAYS[name].train(task, generator(seed, "biased-mnist")).model
        right = apply(model, test.pixels).argmax(1) == test.labels["digit"]
        # Where the colour tells the digit it cannot be told apart: the probes learn on one half of the unbiased images.
        rows, colours = features(model, "", test.pixels), test.labels["colour"]
        half = len(rows) // 2
        reading = best(read(material(rows[:half], colours[:half], rows[half:], colours[half:])))
    return {
        "accuracy": round(100 * float(right.double().mean()), 2),
        "leak": reading.leak.value,
        "reader": reading.name,
    }


def finish(found: Mapping[tuple[str, float], list[Numbers]], schedule: Schedule, settings: Settings) -> str:
    """Mean and standard deviation over seeds, a line a rho."""
    lines = ["| rho | EnD published | " + " | ".join(WAYS) + " |", "|---" * (2 + len(WAYS)) + "|"]
    for rho in schedule.rhos:
        cells = []
        for name in WAYS:
            runs = found[name, rho]
            accuracies, leaks = [run["accuracy"] for run in runs], [run["leak"] for run in runs]
            cells.append(f"{_spread(accuracies, 1)} (leak {_spread(leaks, 2)})")
        lines.append(f"| {rho:.3f} | {PUBLISHED[rho]} | " + " | ".join(cells) + " |")
    runs = [run for several in found.values() for run in several]
    made = ", ".join(f"{key} {value}" for key, value in runs[0]["configuration"]["versions"].items())
    seconds = sum(run["cpu_seconds"] for run in runs)
    text = "\n".join(
        [
            f"Biased MNIST, scale {settings.scale}: {schedule.sentence()}, seeds 0 to {schedule.seeds - 1}."
            " Accuracy in percent on unbiased test images; leak: best probe of the colour, above chance.",
            "",
            *lines,
            "",
            f"{made}; {seconds / 60:.1f} CPU minutes. Digest of the digests of its {len(runs)} trainings:"
            f" `{digest(sorted(run['digest'] for run in runs))[:8]}`.",
        ]
    )
    write(settings.out / f"biased-mnist-{settings.scale}.md", text.encode() + b"\n")
    write(settings.out / f"biased-mnist-{settings.scale}.json", json.dumps(runs, indent=1).encode() + b"\n")
    return text


def _spread(values: list[float], digits: int) -> str:
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"
