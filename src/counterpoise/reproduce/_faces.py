"""One learned filter of faces, judged: what the provider keeps, what every attacker tells, what comes back.

The pictures are of people. Numbers go into the results; filtered faces only into the folder that the user names.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from counterpoise import catalogue
from counterpoise._files import write
from counterpoise.information.discrete import information
from counterpoise.interface import Outcome, Recipe, Task
from counterpoise.measures.attackers import Attack, attacks, strongest, surest
from counterpoise.mechanisms.filtering import Point
from counterpoise.mechanisms.plain import Plain
from counterpoise.mechanisms.privatizer import Privatizer
from counterpoise.prepare import Job
from counterpoise.record import Measurement
from counterpoise.report.figures.style import slug
from counterpoise.reproduce._kept import Numbers, kept
from counterpoise.reproduce.settings import Settings
from counterpoise.training import apply, fit_classifier, generator, one_thread
from counterpoise.work import outcome

MEASURED = ("secret_advantage", "information_leak", "secret_p_value", "fixed_gap", "secret_moved", "utility_moved",
            "inversion_psnr", "inversion_ssim")  # fmt: skip
GALLERY = 8


@dataclass(frozen=True)
class Schedule:
    """How much is trained: images, their side, the networks, the game."""

    side: int
    images: int | None
    network: str
    recipe: Recipe
    alphas: tuple[str, ...]
    steps: int
    width: int
    refresh: int = 200
    seeds: int = 1

    def sentence(self) -> str:
        """In words."""
        images = "all images" if self.images is None else f"at most {self.images} images"
        r = self.recipe
        return (
            f"{images} at {self.side} x {self.side}; provider and attackers: {self.network}, {r.epochs} epochs of"
            f" {r.optimiser} {r.learning_rate:g}, batch {r.batch}; filter: U-Net of width {self.width},"
            f" {self.steps} steps, judged by attackers of {self.refresh} steps, faces mirrored at random"
        )

    def model(self, shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
        """A fresh network of the schedule's kind."""
        made: nn.Module = catalogue.find("models", self.network)(shape, classes, rng)
        return made

    def privatizer(self, alpha: str, **options: Any) -> Privatizer:
        """The filter at this alpha."""
        game = {
            "steps": self.steps,
            "width": self.width,
            "refresh": self.refresh,
            "adversary_rate": 2e-3,
            "flip": True,  # faces are as good mirrored
            "check_every": max(1, self.steps // 6),
        }
        return Privatizer(Decimal(alpha), **{**game, **options})


@dataclass(frozen=True)
class Row:
    """One training: its name, its alpha (None: no filter), its seed, its numbers, and its strip of filtered faces."""

    name: str
    alpha: str | None
    seed: int
    numbers: Numbers
    strip: Path


@dataclass
class Sweep:
    """Filters of one task, each trained once and kept; the raw training to compare with is made if needed."""

    source: str
    task: Task
    schedule: Schedule
    settings: Settings
    _raw: dict[int, Outcome] = field(default_factory=dict)

    def rows(self, variants: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[Row]:
        """Raw, then each variant (alpha and the privatizer's options), for every seed."""
        found = []
        with one_thread():
            for seed in range(self.schedule.seeds):
                found.append(self._row("raw", None, {}, seed))
                found += [self._row(name, alpha, options, seed) for name, (alpha, options) in variants.items()]
        return found

    def _row(self, name: str, alpha: str | None, options: Mapping[str, Any], seed: int) -> Row:
        task, folder = self.task, self.settings.out
        configuration = {
            "source": self.source,
            "target": task.target,
            "hidden": task.hidden,
            "row": name,
            "alpha": alpha,
            "options": {key: repr(value) for key, value in options.items()},
            "schedule": self.schedule.sentence(),
            "seed": seed,
        }
        strip = folder / "strips" / f"{slug(f'{task.target} {task.hidden} {name}')}-{seed}.png"

        def work() -> Numbers:
            plain = self._plain(seed)
            if alpha is None:
                return numbers(plain, plain)
            return judged(task, self.schedule.privatizer(alpha, **options), seed, plain, strip)

        return Row(name, alpha, seed, kept(folder, configuration, work), strip)

    def _plain(self, seed: int) -> Outcome:
        """The provider's own training on raw images."""
        if seed not in self._raw:
            trained = Plain().train(self.task, generator(seed, "faces", "plain"))
            self._raw[seed] = _outcome(self.task, Plain(), Decimal(0), seed, trained)
        return self._raw[seed]


def judged(task: Task, privatizer: Privatizer, seed: int, plain: Outcome, strip_file: Path) -> Numbers:
    """Train one filter and measure it; a strip of filtered test images goes into a file."""
    trace: list[Point] = []
    mechanism = replace(privatizer, trace=trace.extend)
    trained = mechanism.train(task, generator(seed, "faces", str(privatizer.alpha)))
    found = _outcome(task, mechanism, privatizer.alpha, seed, trained)
    write(strip_file, strip(spread(found.released_test)))
    return {**numbers(found, plain), "trajectory": [asdict(point) for point in trace]}


def numbers(found: Outcome, plain: Outcome) -> Numbers:
    """Everything that is measured of one outcome, as plain numbers."""
    task = found.task
    target = task.test.labels[task.target]
    tried = attacks(plain, found)
    told = {name: plainly(catalogue.find("measures", name)()(plain, found)) for name in MEASURED}
    return {
        "utility": _by_class(found.test_logits, target, task.classes),
        "utility_raw": _by_class(found.raw_test_logits, target, task.classes),
        "utility_retrained": _by_class(_retrained(found), target, task.classes),
        "utility_nats_lost": _cross(found.test_logits, target) - _cross(plain.test_logits, target),
        "attackers": {name: plainly(attack.reading.leak) for name, attack in tried.items()},
        "strongest": strongest(tried).reading.name,
        "secret_fixed": _by_answers(tried["fixed"]),
        "secret_strongest": _by_answers(strongest(tried)),
        "posterior": _posteriors(surest(tried)),
        "measured": told,
        "K": information(_joint(task.train.labels[task.target], task.train.labels[task.to_hide("faces")])),
    }


def _outcome(task: Task, mechanism: Any, degree: Decimal, seed: int, trained: Any) -> Outcome:
    return outcome(task, mechanism, Job("all", mechanism.name, degree, seed, "", ""), trained)


def _retrained(found: Outcome) -> Tensor:
    """Logits of a provider's network that has learned from filtered images only."""
    task = found.task
    network = task.new_model(generator(0, "retrained"))
    labels = task.train.labels[task.target]
    fit_classifier(network, found.released_train, labels, task.recipe, 0)
    return apply(network, found.released_test)


def _by_class(logits: Tensor, labels: Tensor, classes: int) -> dict[str, Any]:
    """Share of right answers: of all with its standard error, among the first five, in each class if they are few."""
    right = logits.argmax(1) == labels
    five = (logits.topk(min(5, classes), 1).indices == labels[:, None]).any(1)
    mean = float(right.double().mean())
    each = [round(float(right[labels == c].double().mean()), 4) for c in range(classes)] if classes <= 5 else []
    error = (mean * (1 - mean) / max(1, len(labels))) ** 0.5
    return {
        "top1": round(mean, 4),
        "error": round(error, 4),
        "top5": round(float(five.double().mean()), 4),
        "each": each,
    }


def _by_answers(attack: Attack) -> list[float]:
    reading = attack.reading
    right = reading.answers == reading.classes
    return [round(float(right[reading.classes == c].mean()), 4) for c in range(reading.count)]


def _posteriors(attack: Attack) -> list[list[float]]:
    """Quantiles (5, 25, 50, 75, 95 %) of the surest attacker's P(second class), by true class."""
    second = attack.posterior[:, 1].exp()
    points = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95], dtype=second.dtype)
    return [
        [round(float(x), 4) for x in second[attack.classes == c].quantile(points)] for c in range(attack.reading.count)
    ]


def _cross(logits: Tensor, labels: Tensor) -> float:
    return float(nn.functional.cross_entropy(logits, labels))


def _joint(target: Tensor, hidden: Tensor) -> Any:
    table = np.zeros((int(target.max()) + 1, int(hidden.max()) + 1))
    np.add.at(table, (target.numpy(), hidden.numpy()), 1)
    return table / table.sum()


def plainly(found: Measurement) -> dict[str, float]:
    """A measurement as plain numbers."""
    return {key: round(float(getattr(found, key)), 4) for key in ("value", "low", "high")}


def spread(images: Tensor) -> Tensor:
    """A few images from all over the set, which may be in the order of people."""
    return images[:: max(1, len(images) // GALLERY)][:GALLERY]


def strip(images: Tensor) -> bytes:
    """Images side by side, as PNG."""
    values = (images.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    buffer = io.BytesIO()
    Image.fromarray(np.concatenate(list(values), 1)).save(buffer, "PNG")
    return buffer.getvalue()


def stacked(rows: Sequence[Row], original: Tensor, scale: int = 3) -> bytes:
    """One picture: the original faces, and below them those of each filter, in order; a lost strip is left white."""
    first = Image.open(io.BytesIO(strip(spread(original))))
    wide, high = first.size
    whole = Image.new("RGB", (wide, high * (1 + len(rows))), "white")
    whole.paste(first, (0, 0))
    for index, row in enumerate(rows, start=1):
        if row.strip.exists():
            with Image.open(row.strip) as faces:
                whole.paste(faces, (0, index * high))
    buffer = io.BytesIO()
    whole.resize((wide * scale, whole.height * scale), Image.Resampling.NEAREST).save(buffer, "PNG")
    return buffer.getvalue()
