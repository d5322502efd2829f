"""The slide deck on Rényi privacy and robust interpretation: its trainings, its epsilons, its maps, measured again.

The deck (after Liu, Chen, Liu, Xia and Gan, Artificial Intelligence 2022) trains VGG-16 and a CNN on CIFAR-10 with
DP-SGD, quotes epsilons of .35 and .5, an accuracy of .0954, and a cosine of -1 between maps it calls consistent.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from io import BytesIO
from typing import Any

import torch
from PIL import Image
from torch import nn

from counterpoise import store
from counterpoise._check import InputError
from counterpoise._files import write
from counterpoise.datasets.cifar10 import Cifar10
from counterpoise.fingerprint import images_digest
from counterpoise.interface import Images
from counterpoise.reproduce import _deck_accounts as accounts
from counterpoise.reproduce import _deck_tables as tables
from counterpoise.reproduce._deck_pairs import Pairs, Seen, cosine, gallery, kept_pairs
from counterpoise.reproduce._deck_training import BATCH, CLIP, DECAYING, DELTA, NOISE, SMALL, Arm, Trial, train
from counterpoise.reproduce._kept import kept
from counterpoise.reproduce._private_heads import Head, Level, train_levels, write_json
from counterpoise.reproduce._side_by_side import SAMPLES, Compared, compare
from counterpoise.reproduce.private_cifar10 import HEADS, TUNED_FOR, whitened
from counterpoise.reproduce.settings import Settings

PUBLISHED = 50_000
HEAD_SEEDS = range(2)

EPOCHS = (1, 2, 3, 5, 10, 25, 50)
"""Where the deck's own epsilons are computed, for its 50,000 images, at every scale."""


@dataclass(frozen=True)
class Reduction:
    """What a scale does. `paper` is the deck's own; the others are declared reductions."""

    images: int | None
    test: int | None
    width: int
    epochs: int
    shown: int
    pairs: Pairs
    samples: tuple[int, ...]
    heads: bool

    def sentence(self, images: int) -> str:
        """What was reduced, in words, where the files had so many training images."""
        size = f"all {images:,}" if images >= PUBLISHED else f"{images:,} of the deck's {PUBLISHED:,}"
        width = "its published width" if self.width == 64 else f"{self.width} channels in its first stage, not 64"
        epochs = "1 epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        return (
            f"{size} training images, VGG-16 with {width}, {epochs}; pairs of {self.shown} test images,"
            f" {self.pairs.samples} samples a map"
        )


SCALES = {
    "quick": Reduction(1000, 300, 8, 1, 4, Pairs(samples=50, steps=3, draws=2), (20, 50), False),
    "cpu": Reduction(20_000, 5000, 16, 3, 8, Pairs(samples=200, steps=8, draws=6), SAMPLES, True),
    "paper": Reduction(None, None, 64, 50, 100, Pairs(samples=2000), SAMPLES, True),
}


def arms(width: int) -> tuple[Arm, ...]:
    """VGG-16 as published and with group normalisation, and a plain CNN; without and with privacy."""
    vgg, grouped = {"width": width}, {"width": width, "norm": "group"}
    return (
        Arm("VGG-16, Adam", "vgg16", False, SMALL, "adam", vgg),
        Arm("VGG-16, private, small rate", "vgg16", True, SMALL, "sgd", vgg),
        Arm("VGG-16, private, decaying", "vgg16", True, DECAYING, "sgd", vgg),
        Arm("VGG-16 with groups, Adam", "vgg16", False, SMALL, "adam", grouped),
        Arm("VGG-16 with groups, private, decaying", "vgg16", True, DECAYING, "sgd", grouped),
        Arm("CNN, Adam", "tanh-cnn", False, SMALL, "adam"),
        Arm("CNN, private, small rate", "tanh-cnn", True, SMALL),
        Arm("CNN, private, decaying", "tanh-cnn", True, DECAYING),
    )


def deck_cifar(settings: Settings) -> str:
    """The Rényi deck on CIFAR-10: its epsilons, its chance accuracy, its cosine of -1; certified and attacked maps."""
    reduction = SCALES[settings.scale]
    with store.Store.create(settings.out).locked():
        train_images, test_images = Cifar10(root=None if settings.data is None else str(settings.data)).load()
        return study(train_images, test_images, "object", reduction, settings)


def study(train_images: Images, test_images: Images, label: str, reduction: Reduction, settings: Settings) -> str:
    """Train, account, attack, lay out. Each step's result is kept in a file, so that a killed study goes on there."""
    some, tests = (
        part.take(torch.arange(min(most or len(part), len(part))))
        for part, most in ((train_images, reduction.images), (test_images, reduction.test))
    )
    trials = []
    for arm in arms(reduction.width):
        trials.append(train(arm, some, tests, label, reduction.epochs, 0, settings.out / "weights"))
        print(f"  {arm.name}: accuracy {trials[-1].accuracy:.4f}", file=sys.stderr)
    chosen = tests.take(torch.arange(min(reduction.shown, len(tests))))
    seen: dict[str, Seen] = {}
    refused: dict[str, str] = {}
    for trial in trials:
        try:
            name = store.digest([trial.key, asdict(reduction.pairs), len(chosen)])
            path = settings.out / "pairs" / f"{name}.safetensors"
            seen[trial.arm.name] = kept_pairs(path, trial.model, chosen.pixels, reduction.pairs, 0)
            print(f"  {trial.arm.name}: pairs", file=sys.stderr)
        except InputError as problem:  # a training that went astray has no map to speak of
            refused[trial.arm.name] = str(problem)
            print(f"  {trial.arm.name}: no pairs, because {problem}", file=sys.stderr)
    cnn = next(trial for trial in trials if trial.arm.name == "CNN, Adam")
    compared = _compared(cnn, chosen, label, reduction, settings)
    text = _lay_out(trials, [], seen, refused, compared, reduction, (some, tests), settings)
    if reduction.heads:  # last, as they take as long as all the rest: what is known by then is written
        levels = _heads(some, tests, reduction, settings)
        text = _lay_out(trials, levels, seen, refused, compared, reduction, (some, tests), settings)
    return text


def _compared(trial: Trial, chosen: Images, label: str, reduction: Reduction, settings: Settings) -> list[Compared]:
    """The methods side by side, each number of samples kept once it is known."""
    found: list[Compared] = []
    for count in reduction.samples:
        made_from = {"side by side": trial.key, "pairs": asdict(reduction.pairs), "shown": len(chosen), "count": count}

        def rows(count: int = count) -> dict[str, Any]:
            return {"rows": [asdict(row) for row in compare(trial.model, chosen, label, reduction.pairs, 0, (count,))]}

        found += [Compared(**row) for row in kept(settings.out, made_from, rows)["rows"]]
        print(f"  side by side: {count:,} samples", file=sys.stderr)
    return found


def _heads(some: Images, tests: Images, reduction: Reduction, settings: Settings) -> list[Level]:
    """What works at the quoted and the computed epsilons: the private linear head, with its settings of epsilon 1."""
    print("  features for the linear heads", file=sys.stderr)
    ours = accounts.spending(len(some), min(BATCH, len(some)), NOISE, DELTA, [reduction.epochs])[0].pld
    batch = max(1, round(HEADS[0].batch * len(some) / TUNED_FOR))
    heads = [replace(HEADS[0], epsilon=round(epsilon, 3), batch=batch) for epsilon in (*accounts.QUOTED, ours)]
    data, made_by = whitened(some, tests, settings)
    images = images_digest(some, tests)
    levels = []
    for head in heads:
        made_from = {"head": asdict(head), "seeds": list(HEAD_SEEDS), "features": made_by, "images": images}

        def numbers(head: Head = head) -> dict[str, Any]:
            return {"level": asdict(train_levels(data, [head], HEAD_SEEDS)[0])}

        level = kept(settings.out, made_from, numbers)["level"]
        levels.append(Level(**{**level, "head": head, "accuracies": tuple(level["accuracies"])}))
        print(f"  linear head, epsilon {head.epsilon:g}: accuracies {levels[-1].accuracies}", file=sys.stderr)
    configuration: dict[str, object] = {"data": "cifar10", "n": len(some), "features": made_by}
    write_json(settings.out / f"deck-cifar-{settings.scale}-heads.json", levels, HEAD_SEEDS, configuration)
    return levels


def _lay_out(
    trials: Sequence[Trial],
    levels: Sequence[Level],
    seen: dict[str, Seen],
    refused: Mapping[str, str],
    compared: Sequence[Compared],
    reduction: Reduction,
    data: tuple[Images, Images],
    settings: Settings,
) -> str:
    some, tests = data
    configuration = {
        "reproduction": "deck-cifar",
        "scale": settings.scale,
        "images": len(some),
        "test_images": len(tests),
        "noise": NOISE,
        "clip": CLIP,
        "batch": min(BATCH, len(some)),
        "delta": DELTA,
        "reduction": asdict(reduction),
        "arms": [{**asdict(trial.arm), "options": dict(trial.arm.options)} for trial in trials],
    }
    published = accounts.spending(PUBLISHED, BATCH, NOISE, DELTA, EPOCHS)
    own = accounts.spending(
        len(some),
        min(BATCH, len(some)),
        NOISE,
        DELTA,
        list(range(1, reduction.epochs + 1)) if len(some) > BATCH else [],
    )
    within = {
        f"{goal:g} by {accountant}": accounts.last_epoch_within(goal, PUBLISHED, BATCH, NOISE, DELTA, accountant)
        for goal in accounts.QUOTED
        for accountant in ("pld", "rdp")
    }
    same = next(iter(seen.values())).plain[0]
    sign = {"similarity": float(cosine(same, same).mean()), "as_a_loss": float(_keras_cosine(same).mean())}
    rows = {name: pairs.row(reduction.pairs.k) for name, pairs in seen.items()}
    path = settings.out / f"deck-cifar-{settings.scale}"
    text = "\n\n".join(
        [
            f"deck-cifar, scale {settings.scale}: {reduction.sentence(len(some))}.",
            "Scale quick shows that all works; its accuracies and radii say nothing."
            if settings.scale == "quick"
            else "",
            tables.epsilons(published, within, PUBLISHED),
            tables.epsilons(own, {}, len(some)) if own else "",
            tables.accuracies(trials, len(tests), own[-1] if own else None),
            tables.heads(levels, len(some)) if levels else "",
            tables.costs(trials),
            tables.pairs(rows, reduction.pairs, sign),
            _without(refused),
            tables.side_by_side(compared, reduction.pairs, "CNN, Adam"),
            f"Seed 0. Configuration {store.digest(configuration)}. "
            + ", ".join(f"{name} {number}" for name, number in _versions().items())
            + ".",
        ]
    )
    while "\n\n\n" in text:  # parts that a scale leaves out
        text = text.replace("\n\n\n", "\n\n")
    content = {
        "configuration": configuration,
        "digest": store.digest(configuration),
        "seeds": [0],
        "versions": _versions(),
        "epsilons": {"published": [asdict(row) for row in published], "own": [asdict(row) for row in own]},
        "epochs_within": within,
        "trials": [
            {
                "name": trial.arm.name,
                "accuracies": trial.accuracies,
                "cpu_seconds_an_epoch": trial.cpu_seconds,
                "peak_mib": trial.peak_mib,
                "weights": trial.weights,
                "push": trial.push,
            }
            for trial in trials
        ],
        "heads": [{"epsilon": level.epsilon, "accuracies": level.accuracies} for level in levels],
        "pairs": rows,
        "refused": dict(refused),
        "cosine_of_equal_maps": sign,
        "side_by_side": [asdict(row) for row in compared],
    }
    write(path.with_suffix(".json"), json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")
    write(path.with_suffix(".md"), text.encode() + b"\n")
    write(path.with_suffix(".png"), _png(list(seen.values())))
    also = f", {path}-heads.json" if levels else ""
    return f"{text}\n\nDetails: {path}.json{also}, {path}.md, {path}.png (pairs; they show images of the data set)."


def _without(refused: Mapping[str, str]) -> str:
    """Which models have no pairs, each with the reason that was given."""
    return "\n".join(f"No pairs of {name}: {problem}" for name, problem in refused.items())


def _keras_cosine(maps: torch.Tensor) -> torch.Tensor:
    """The cosine as a loss, with the sign that makes equal maps the minimum: -1 for a map and itself."""
    flat = nn.functional.normalize(maps.double().flatten(1), dim=1)
    return -(flat * flat).sum(1)


def _png(seen: Sequence[Seen]) -> bytes:
    buffer = BytesIO()
    Image.fromarray(gallery(seen, 2)).save(buffer, "PNG")
    return buffer.getvalue()


def _versions() -> dict[str, str]:
    names = ("counterpoise", "torch", "numpy", "scipy", "dp-accounting")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
