"""What a study will do, before any training: grid, epsilon of every degree, refusals, conflicts, cost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol, runtime_checkable

import torch

from counterpoise.grid import Grid, text
from counterpoise.interface import Mechanism, Planned, Task, Trained
from counterpoise.prepare import BASELINE, Family, Prepared
from counterpoise.record import Explained, Guarantee, Measurement, Party, Record, Results
from counterpoise.tradeoff import Infeasible, choose, parse
from counterpoise.training import generator, one_thread
from counterpoise.work import explain_degrees, outcome

_SAMPLE = 4
"""How many batches the timed trainings see."""
_SHARE = 0.02
"""Of a mechanism's own steps, where it has any."""


@runtime_checkable
class Shortened(Protocol):
    """A mechanism with steps of its own, as many for few images as for many: timed on a share of them."""

    def shortened(self, share: float) -> Mechanism:
        """The same with this share of its steps."""


@dataclass(frozen=True)
class Row:
    """One mechanism: its degrees, what each will prove (per degree, the largest epsilon over the parties), refusal."""

    name: str
    degree_name: str
    degrees: Grid
    epsilons: Mapping[Decimal, float]
    trainings: int
    cells: int
    refusal: str


@dataclass(frozen=True)
class Preview:
    """The plan of a study. `conflicts` are sentences; `seconds` is an estimate of the whole on one core."""

    rows: tuple[Row, ...]
    explainabilities: Grid
    images: Mapping[str, int]
    conflicts: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def trainings(self) -> int:
        """How many models are trained."""
        return sum(row.trainings for row in self.rows)

    @property
    def cells(self) -> int:
        """How many cells the matrices have; explaining never retrains."""
        return sum(row.cells for row in self.rows)


def preview(prepared: Prepared, timed: bool = True) -> Preview:
    """Everything that can be said before training."""
    families = sorted(prepared.mechanisms.values(), key=lambda family: family.name != BASELINE)
    study = prepared.study
    repeats = len(study.parties) * len(study.seeds)
    rows, proved = [], {}
    for family in families:
        refused = prepared.refusals[family.name]
        guarantees = {} if refused else {d: _guarantees(prepared, family, d) for d in family.degrees}
        proved[family.name] = guarantees
        trainings = 0 if refused else len(family.degrees) * repeats
        cells = 0 if refused else len(family.degrees) * len(study.parties) * len(prepared.explainer.degrees)
        epsilons = {degree: max(map(_epsilon, found.values())) for degree, found in guarantees.items()}
        rows.append(Row(family.name, family.kind.name, family.degrees, epsilons, trainings, cells, refused))
    seconds = 0.0
    if timed:
        with one_thread():  # as a worker has it
            seconds = sum(_seconds(prepared, f) * r.trainings for f, r in zip(families, rows, strict=True))
    return Preview(
        rows=tuple(rows),
        explainabilities=prepared.explainer.degrees,
        images={name: len(images) for name, images in prepared.data.items()},
        conflicts=_conflicts(prepared, proved),
        notes=_notes(prepared),
        seconds=seconds,
    )


def _guarantees(prepared: Prepared, family: Family, degree: Decimal) -> dict[str, tuple[Guarantee, ...]]:
    """What each party's training at this degree will prove."""
    mechanism: Mechanism = family.at(degree)
    if not isinstance(mechanism, Planned):
        return {party.name: () for party in prepared.study.parties}
    return {party.name: mechanism.guarantees(prepared.task(party.name)) for party in prepared.study.parties}


def _epsilon(guarantees: tuple[Guarantee, ...]) -> float:
    return min((g.epsilon for g in guarantees if g.notion == "dp"), default=math.inf)


def _notes(prepared: Prepared) -> tuple[str, ...]:
    """Choices that are legal and that people regret."""
    notes = []
    names = {family.kind.name: family.name for family in prepared.mechanisms.values()}
    for party in prepared.study.parties:
        bounded = {names[q] for words in party.requires if (q := parse(words).quantity) in names}
        if bounded and not party.mechanisms and len(prepared.mechanisms) > 1:
            notes.append(
                f"{party.name} bounds the degree of {' and '.join(sorted(bounded))} and lists no mechanisms,"
                " so every other mechanism is impossible for it; list them under mechanisms to allow them."
            )
    return tuple(notes)


def _conflicts(
    prepared: Prepared, proved: Mapping[str, Mapping[Decimal, Mapping[str, tuple[Guarantee, ...]]]]
) -> tuple[str, ...]:
    """Requirements that no cell can meet whatever training brings: those on degrees and on epsilon.

    The decision is asked with placeholder measurements, and only with the requirements known by now.
    """
    known = {"explainability", "epsilon", *(family.kind.name for family in prepared.mechanisms.values())}
    parties = tuple(
        replace(party, requires=tuple(words for words in party.requires if parse(words).quantity in known))
        for party in prepared.study.parties
    )
    nothing = Measurement.exact(0.0)
    cells = tuple(Explained(level, {"explainability_gain": nothing}) for level in prepared.explainer.degrees)
    records = []
    for family in prepared.mechanisms.values():
        for degree, by_party in proved[family.name].items():
            for name, guarantees in by_party.items():
                blank = Record("", name, family.name, family.kind, degree, 0, guarantees=guarantees, explained=cells)
                records.append(replace(blank, measurements={"privacy_gain": nothing, "utility_loss": nothing}))
    if not records:
        return ()
    decision = choose(Results(prepared.study.name, parties, tuple(records)), policy="unanimous", mode="paper")
    return tuple(
        outcome.sentence
        for mechanism, outcome in decision.outcomes.items()
        if isinstance(outcome, Infeasible) and not _shut_out(parties, mechanism)
    )


def _shut_out(parties: tuple[Party, ...], mechanism: str) -> bool:
    """Whether a party left the mechanism out on purpose: that is a wish, not a conflict."""
    return any(party.mechanisms and mechanism not in party.mechanisms for party in parties)


def _seconds(prepared: Prepared, family: Family) -> float:
    """Seconds of one training at the middle degree, from two short ones on a few batches: a + b * epochs, scaled."""
    if prepared.refusals[family.name]:
        return 0.0
    party = prepared.study.parties[0].name
    task, recipe = prepared.task(party), prepared.study.training
    mechanism: Mechanism = family.at(family.degrees.values[len(family.degrees) // 2])
    few = task.train.take(torch.arange(min(len(task.train), _SAMPLE * recipe.batch)))
    few_task = replace(task, train=few)
    brief = mechanism.shortened(_SHARE) if isinstance(mechanism, Shortened) else mechanism
    own = 0.0
    (_, _), (seconds, trained), (longer, _) = (_timed(brief, few_task, epochs) for epochs in (1, 1, 2))  # 1: warms up
    if isinstance(mechanism, Shortened):
        own = max(0.0, _timed(mechanism.shortened(2 * _SHARE), few_task, 1)[0] - seconds) / _SHARE
    per_epoch = max(0.0, longer - seconds)
    rest = max(0.0, seconds - per_epoch - own * _SHARE)
    fitting = own + (rest + per_epoch * recipe.epochs) * len(task.train) / len(few)
    job = next(job for job in prepared.jobs if job.mechanism == family.name)
    start = time.perf_counter()
    seen = outcome(few_task, mechanism, job, trained)
    seeing, start = time.perf_counter() - start, time.perf_counter()
    two = prepared.explained[:2]
    explain_degrees(prepared, trained, seen.released_test[two], seen.test_logits[two].argmax(1), generator(0, "timing"))
    # Each image is explained twice, the second time from nearby: as often as the two that were timed.
    return fitting + seeing + (time.perf_counter() - start) * len(prepared.explained)


def _timed(mechanism: Mechanism, task: Task, epochs: int) -> tuple[float, Trained]:
    start = time.perf_counter()
    trained = mechanism.train(replace(task, recipe=replace(task.recipe, epochs=epochs)), generator(0, "timing"))
    return time.perf_counter() - start, trained


def describe(row: Row) -> str:
    """The degrees of a mechanism in a few words: '0 to 2, 21 degrees'."""
    values = row.degrees.values
    if len(values) == 1:
        return f"{row.degree_name} {text(values[0])}"
    return f"{row.degree_name} {text(values[0])} to {text(values[-1])}, {len(values)} degrees"
