"""One training with all its measurements, ending in its record. Sees Protocols only, names no part.

Explaining never retrains: every explainability degree is evaluated on the one trained model, on shared noise draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise._files import write
from counterpoise.fingerprint import versions
from counterpoise.grid import text
from counterpoise.interface import (
    Explainer,
    Explaining,
    Explanation,
    Mechanism,
    Outcome,
    Progress,
    SharesDraws,
    Task,
    Trained,
)
from counterpoise.prepare import BASELINE, Job, Prepared, prepare
from counterpoise.record import Explained, Measurement, Record
from counterpoise.store import Store
from counterpoise.study import Study
from counterpoise.training import apply, generator

NEARBY = 0.02
"""Standard deviation, in [0, 1] pixels, of the small move under which an explanation should stay the same."""

Gallery = dict[str, NDArray[Any]]


@dataclass
class Worker:
    """Does the jobs of one study in one process; the data is loaded once."""

    study: Study
    store: Store
    given: Prepared | None = None
    _baselines: dict[str, Outcome] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def prepared(self) -> Prepared:
        """The study with its data."""
        return self.given or prepare(self.study)

    def __call__(self, job: Job, progress: Progress) -> None:
        """Do the job, unless its record is there already."""
        if self.store.load(job.digest) is not None:
            return
        family = self.prepared.mechanisms[job.mechanism]
        record = Record(
            job.digest,
            job.party,
            job.mechanism,
            family.kind,
            job.degree,
            job.seed,
            refusal=self.prepared.refusals[family.name],
            configuration={
                "study": self.study.name,
                "model": self.study.model.name,
                "explainer": self.study.explainer.name,
                "images": len(self._data(job)),
            },
            versions=versions(),
        )
        self.store.save(record if record.refusal else self._train(job, record, progress))

    def _data(self, job: Job) -> Tensor:
        return self.prepared.data[job.party].pixels

    def _train(self, job: Job, record: Record, progress: Progress) -> Record:
        mechanism: Mechanism = self.prepared.mechanisms[job.mechanism].at(job.degree)
        checkpoint = self.store.checkpoint(job.digest)
        task = self.prepared.task(job.party, lambda share: progress(0.8 * share), checkpoint)
        # The mechanism and its degree are part of the seed: two private trainings that shared their noise could be
        # subtracted from each other, and no accountant covers that.
        trained = mechanism.train(task, generator(job.seed, "train", job.party, job.mechanism, text(job.degree)))
        candidate = outcome(task, mechanism, job, trained)
        baseline = candidate if job.mechanism == BASELINE else self._baseline(job, task)
        candidate = replace(candidate, measured=self._measure("training", baseline, candidate))
        cells, gallery = self._explain(baseline, candidate)
        write(self.store.weights(job.digest), save(weights(trained)))
        if self.study.gallery_images and job.seed == self.study.seeds[0]:
            self.store.save_gallery(job.digest, gallery)
        checkpoint.unlink(missing_ok=True)
        return replace(record, measurements=candidate.measured, explained=cells, guarantees=trained.guarantees)

    def _baseline(self, job: Job, task: Task) -> Outcome:
        """The same party's and seed's baseline, from its stored weights; kept, as every degree is compared with it."""
        if job.baseline in self._baselines:
            return self._baselines[job.baseline]
        mechanism: Mechanism = self.prepared.mechanisms[BASELINE].at(
            self.prepared.mechanisms[BASELINE].degrees.values[0]
        )
        trained = load_weights(mechanism.blank(task), self.store, job.baseline)
        self._baselines[job.baseline] = outcome(task, mechanism, job, trained)
        return self._baselines[job.baseline]

    def _measure(self, level: str, baseline: Outcome, candidate: Outcome) -> dict[str, Measurement]:
        """Every measure of the level; and, under their roles, the two that the mechanism's paper uses."""
        measures, mechanism = self.prepared.measures, candidate.mechanism
        roles = {"privacy_gain": mechanism.privacy_gain, "utility_loss": mechanism.utility_loss}
        wanted = {name: measures[name] for name in self.prepared.everywhere}
        if level == "training":
            wanted |= {role: measures[name] for role, name in roles.items()}
        return {name: m(baseline, candidate) for name, m in wanted.items() if m.level == level}

    def _explain(self, baseline: Outcome, candidate: Outcome) -> tuple[tuple[Explained, ...], Gallery]:
        """All explainability degrees on one model, and a few images and maps for the report."""
        prepared, chosen = self.prepared, self.prepared.explained
        images, target = candidate.released_test[chosen], candidate.test_logits[chosen].argmax(1)
        move = torch.randn(images.shape, generator=generator(0, "nearby"))
        nearby = (images + NEARBY * move).clamp(0, 1)
        here, there = (
            explain_degrees(prepared, candidate.trained, these, target, generator(candidate.seed, purpose))
            for these, purpose in ((images, "explain"), (nearby, "explain nearby"))
        )
        cells = []
        for degree, explanation, moved in zip(prepared.explainer.degrees, here, there, strict=True):
            again = partial(explain_again, prepared, degree, target, candidate.seed)
            explaining = Explaining(degree, images, target, explanation, nearby, moved, chosen, again)
            seen = replace(candidate, explaining=explaining)
            cells.append(Explained(degree, self._measure("explanation", baseline, seen)))
        count = self.study.gallery_images
        names, truth = np.array(prepared.test.classes[prepared.target]), prepared.test.labels[prepared.target]
        gallery = {
            "original": _bytes(prepared.test.pixels[chosen[:count]]),
            "released": _bytes(images[:count]),
            "maps": np.stack([_scaled(explanation.maps[:count]) for explanation in here]),
            "labels": names[truth[chosen[:count]].numpy()],
            "predictions": names[target[:count].numpy()],
        }
        return tuple(cells), gallery


def explain_degrees(
    prepared: Prepared, trained: Trained, images: Tensor, target: Tensor, rng: torch.Generator
) -> Sequence[Explanation]:
    """One explanation a degree; on shared draws where the explainer can."""
    degrees = list(prepared.explainer.degrees)
    explainer: Explainer = prepared.explainer.at(degrees[-1])
    if isinstance(explainer, SharesDraws):
        return explainer.explain_degrees(degrees, trained, images, target, rng)
    each: list[Explainer] = [prepared.explainer.at(degree) for degree in degrees]
    return [one.explain(trained, images, target, generator(rng.initial_seed(), "one")) for one in each]


def explain_again(
    prepared: Prepared, degree: Decimal, target: Tensor, seed: int, model: nn.Module, images: Tensor, purpose: str
) -> Explanation:
    """More maps at one degree, for measures that ask for them."""
    explainer: Explainer = prepared.explainer.at(degree)
    return explainer.explain(model, images, target, generator(seed, "again", purpose))


def outcome(task: Task, mechanism: Mechanism, job: Job, trained: Trained) -> Outcome:
    """What measures look at, computed once."""
    unchanged = isinstance(trained.release, nn.Identity)
    raw_test_logits = apply(trained.model, task.test.pixels)
    released_train = task.train.pixels if unchanged else apply(trained.release, task.train.pixels)
    released_test = task.test.pixels if unchanged else apply(trained.release, task.test.pixels)
    return Outcome(
        task=task,
        mechanism=mechanism,
        degree=job.degree,
        trained=trained,
        released_train=released_train,
        released_test=released_test,
        train_logits=apply(trained.model, released_train),
        test_logits=raw_test_logits if unchanged else apply(trained.model, released_test),
        raw_test_logits=raw_test_logits,
        seed=job.seed,
    )


def weights(trained: Trained) -> dict[str, Tensor]:
    """Model and release as one flat table."""
    tables = {"model": trained.model.state_dict(), "release": trained.release.state_dict()}
    return {f"{part}.{key}": value.contiguous() for part, table in tables.items() for key, value in table.items()}


def load_weights(blank: Trained, store: Store, key: str) -> Trained:
    """The stored weights in an untrained architecture."""
    path = store.weights(key)
    try:
        table = load_file(path)
        for part, module in (("model", blank.model), ("release", blank.release)):
            prefix = f"{part}."
            module.load_state_dict({k.removeprefix(prefix): v for k, v in table.items() if k.startswith(prefix)})
    except (OSError, SafetensorError, RuntimeError):
        raise InputError(
            f"{path}: these weights are missing, damaged, or another model's; delete records/{key}.json and run again."
        ) from None
    blank.model.eval()
    blank.release.eval()
    return blank


def _bytes(pixels: Tensor) -> NDArray[np.uint8]:
    """Images as [n, height, width, channels] bytes."""
    scaled: NDArray[np.uint8] = (pixels.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    return scaled


def _scaled(maps: Tensor) -> NDArray[np.uint8]:
    """Maps as bytes, each by its own maximum: for the eye only."""
    top = maps.flatten(1).amax(1).clamp(min=torch.finfo(maps.dtype).tiny)
    scaled: NDArray[np.uint8] = (maps / top[:, None, None] * 255).clamp(0, 255).round().to(torch.uint8).numpy()
    return scaled
