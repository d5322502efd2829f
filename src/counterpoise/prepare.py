"""A study with its names resolved to parts, its data loaded and split among the parties, and its trainings listed.

Everything that can be wrong with a study is found here, before any training.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from counterpoise import catalogue
from counterpoise._check import InputError, naming, text_and_switches
from counterpoise.dealing import deal
from counterpoise.fingerprint import images_digest, versions
from counterpoise.grid import DegreeKind, Grid, text
from counterpoise.interface import (
    ChecksModel,
    Dataset,
    Explainer,
    Images,
    Measure,
    Mechanism,
    Planned,
    Progress,
    ReadBeside,
    Recipe,
    Task,
)
from counterpoise.record import Party
from counterpoise.store import digest
from counterpoise.study import Study, Sweep, Use
from counterpoise.tags import ADVICE, refusal, uncertified
from counterpoise.tradeoff import refuse_unknown
from counterpoise.training import generator

BASELINE = "plain"
"""The mechanism that every other one is compared with; a study that does not list it gets it."""
ROLES = ("privacy", "privacy_gain", "explanation", "utility_loss")
"""What a requirement may name besides degrees and measures: each mechanism, or mode, has its own measure for it."""


@runtime_checkable
class ChecksTask(Protocol):
    """A measure that cannot be taken of every task: it names a layer, or needs some images of a class."""

    def check_task(self, task: Task) -> None:
        """Raise an InputError unless it can be taken of a model that is trained on this task."""


@dataclass(frozen=True)
class Job:
    """One training: the unit of work, of storage and of resuming."""

    party: str
    mechanism: str
    degree: Decimal
    seed: int
    digest: str
    baseline: str

    def __str__(self) -> str:
        return f"{self.party}: {self.mechanism} {text(self.degree)}, seed {self.seed}"


@dataclass(frozen=True)
class Family:
    """A mechanism or explainer over its degrees: `at(degree)` is the part itself."""

    name: str
    kind: DegreeKind
    degrees: Grid
    at: Callable[[Decimal], Any]
    canonical: Mapping[str, Any]


@dataclass(frozen=True)
class Prepared:
    """Everything a training needs, and the list of trainings."""

    study: Study
    target: str
    data: Mapping[str, Images]
    test: Images
    mechanisms: Mapping[str, Family]
    explainer: Family
    measures: Mapping[str, Measure]
    everywhere: tuple[str, ...]

    def task(self, party: str, progress: Progress = lambda done: None, checkpoint: Path | None = None) -> Task:
        """What a mechanism trains on for this party."""
        recipe = Recipe(**self.study.training.model_dump())
        options = (recipe, self.study.delta, progress, checkpoint, self.study.hidden)
        return Task(self.data[party], self.test, self.target, self._make_model, *options)

    def _make_model(self, shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
        use = self.study.model
        make = catalogue.find("models", use.part) if isinstance(use.part, str) else use.part
        model: nn.Module = _call(make, f"model {use.name!r}", shape, classes, rng, **use.options)
        return model

    @cached_property
    def explained(self) -> Tensor:
        """Which test images are explained: the same ones for every training, so that cells are paired."""
        count = min(self.study.explained_images, len(self.test))
        return torch.randperm(len(self.test), generator=generator(0, "explained"))[:count].sort().values

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """All trainings, baselines first."""
        found = []
        for family in sorted(self.mechanisms.values(), key=lambda f: f.name != BASELINE):
            for degree in family.degrees:
                for party in self.study.parties:
                    for seed in self.study.seeds:
                        base = self._digest(party, self.mechanisms[BASELINE], Decimal(0), seed)
                        own = self._digest(party, family, degree, seed)
                        found.append(Job(party.name, family.name, degree, seed, own, base))
        return tuple(found)

    @cached_property
    def refusals(self) -> dict[str, str]:
        """Why a mechanism cannot train this model, or why its results could not be explained; empty where it can."""
        model = self.task(self.study.parties[0].name).new_model(torch.Generator())
        explainer: Explainer = self.explainer.at(self.explainer.degrees.values[-1])
        given = frozenset({"hidden"} if self.study.hidden else ())
        found = {}
        for name, family in self.mechanisms.items():
            needs: frozenset[str] = family.at(family.degrees.values[-1]).needs
            found[name] = refusal(name, needs, model, given) or refusal(explainer.name, explainer.needs, model)
        if isinstance(explainer, ChecksModel) and not refusal(explainer.name, explainer.needs, model):
            with naming(f"explainer {explainer.name!r}"):
                explainer.check_model(model, self.test.shape)
        return found

    def check_plans(self) -> None:
        """Raise where a party's images or the network do not allow a mechanism's plan, or a measure."""
        for family in self.mechanisms.values():
            mechanism: Mechanism = family.at(family.degrees.values[-1])
            if isinstance(mechanism, Planned) and not self.refusals[family.name]:
                for party in self.study.parties:
                    with naming(f"mechanism {family.name!r} for party {party.name!r}"):
                        mechanism.guarantees(self.task(party.name))
        for measure in self.measures.values():
            if isinstance(measure, ChecksTask):
                for party in self.study.parties:
                    with naming(f"measure {measure.name!r} for party {party.name!r}"):
                        measure.check_task(self.task(party.name))

    def _digest(self, party: Party, family: Family, degree: Decimal, seed: int) -> str:
        study = self.study.canonical()
        shared = {key: study[key] for key in ("model", "training", "explainer", "explained_images", "gallery_images")}
        return digest(
            {
                "data": self._data_digests[party.name],
                "code": versions(),
                "shared": shared,
                "measures": study["measures"],
                "delta": study["delta"],
                "target": self.target,
                "hidden": study["hidden"],
                "party": party.name,
                "mechanism": {**family.canonical, "degrees": None},
                "degree": text(degree),
                "seed": seed,
            }
        )

    @cached_property
    def _data_digests(self) -> dict[str, str]:
        return {name: images_digest(images, self.test) for name, images in self.data.items()}


def prepare(study: Study) -> Prepared:
    """Resolve, load, split, check."""
    study = study.with_required(catalogue.requested_measures())
    dataset = _part("datasets", study.data, "data", Dataset)
    with naming(f"data {study.data.name!r}"):
        train, test = dataset.load()
        if train.shape != test.shape or not len(test):
            raise InputError(
                f"its test images ({len(test)} of {_sides(test)}) must be some, of the size of its training images"
                f" ({_sides(train)})."
            )
    target = _target(study.target, study.hidden, train)
    mechanisms = {}
    for sweep in study.mechanisms:
        family = _family("mechanisms", sweep, Mechanism)
        mechanisms[family.name] = family
    if BASELINE not in mechanisms:
        mechanisms[BASELINE] = _family("mechanisms", Sweep(part=BASELINE), Mechanism)
    measures, everywhere = _measures(study, mechanisms)
    degrees = [family.kind.name for family in mechanisms.values()]
    refuse_unknown(study.parties, [*everywhere, *ROLES, *degrees])
    explainer = _family("explainers", study.explainer, Explainer)
    if told := uncertified(measures, explainer.at(explainer.degrees.values[-1])):
        raise InputError(told)
    prepared = Prepared(
        study=study,
        target=target,
        data=deal(train, target, study.parties),
        test=test,
        mechanisms=mechanisms,
        explainer=explainer,
        measures=measures,
        everywhere=everywhere,
    )
    prepared.refusals  # noqa: B018 - makes the model once: wrong options, sizes and layers are told now
    return prepared


def _call(make: Callable[..., Any], what: str, *arguments: Any, **options: Any) -> Any:
    """Make a part from its options; an unknown option is one sentence, not a traceback."""
    try:
        inspect.signature(make).bind(*arguments, **options)
    except TypeError as problem:
        known = [name for name in inspect.signature(make).parameters if name not in ("self", "shape", "classes", "rng")]
        raise InputError(f"{what}: {problem}; its options are: {', '.join(known) or 'none'}.") from None
    with naming(what):
        text_and_switches(make, options)
        return make(*arguments, **options)


def _part(room: str, use: Use, what: str, protocol: type[Any]) -> Any:
    made = use.part
    if isinstance(made, str | type):
        made = _call(
            catalogue.find(room, made) if isinstance(made, str) else made, f"{what} {use.name!r}", **use.options
        )
    elif use.options:
        raise InputError(f"{what} {use.name!r} is given as an object, so set its options on it: {list(use.options)}.")
    if not isinstance(made, protocol):
        raise InputError(
            f"{what} {use.name!r} is not a {protocol.__name__}: see counterpoise.interface.{protocol.__name__}."
        )
    return made


def _family(room: str, sweep: Sweep, protocol: type[Any]) -> Family:
    """One mechanism or explainer over its degrees, every degree checked by making the part."""
    what = room.removesuffix("s")
    part = catalogue.find(room, sweep.part) if isinstance(sweep.part, str) else sweep.part
    kind: DegreeKind | None = getattr(part, "kind", None)
    if kind is None:
        raise InputError(f"{what} {sweep.name!r} has no degree: see counterpoise.interface.{protocol.__name__}.")
    field = str(getattr(part, "degree_field", kind.name))
    degrees = sweep.degrees
    if degrees is None and not isinstance(part, type) and is_dataclass(part):
        degrees = Grid.of([getattr(part, field)])
    if degrees is None and kind.low == kind.high:
        degrees = Grid((kind.low,))
    if degrees is None:
        raise InputError(f"{what} {sweep.name!r}: degrees is missing: give a list, or a table with from, to and step.")
    if field in sweep.options:
        raise InputError(
            f"{what} {sweep.name!r}: {field} is what its degrees are, and is given beside them as"
            f" {sweep.options[field]!r}; leave it out."
        )
    if kind.low == kind.high and degrees.values != (kind.low,):
        raise InputError(f"{what} {sweep.name!r} has no degree to tune: leave its degrees out.")

    def at(degree: Decimal) -> Any:
        if isinstance(part, type):
            return _call(part, f"{what} {sweep.name!r}", **{field: degree, **sweep.options})
        return replace(cast(Any, part), **{field: degree})

    for degree in degrees:
        with naming(f"{what} {sweep.name!r}"):
            kind.check(degree)
        if not isinstance(at(degree), protocol):
            raise InputError(f"{what} {sweep.name!r} is not a {protocol.__name__}: see counterpoise.interface.")
    return Family(
        sweep.name if isinstance(sweep.part, str) else str(getattr(part, "name", "")),
        kind,
        degrees,
        at,
        _identity(part, sweep),
    )


def _identity(part: object, sweep: Sweep) -> dict[str, Any]:
    """What a part contributes to the digest; the source of a third party's, whose version is not ours to know."""
    canonical = sweep.canonical()
    kind = part if isinstance(part, type) else type(part)
    if not kind.__module__.startswith("counterpoise."):
        try:
            canonical["source"] = hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()[:12]
        except (OSError, TypeError):
            canonical["source"] = "unknown"
    if not isinstance(part, type) and is_dataclass(part):
        canonical["fields"] = sorted(field.name for field in fields(part))
    return canonical


def _measures(study: Study, mechanisms: Mapping[str, Family]) -> tuple[dict[str, Measure], tuple[str, ...]]:
    """The measures of every study, those the mechanisms' papers use, and the study's own; and which all trainings get.

    A measure asked for brings those it is read beside.
    """
    everywhere = list(catalogue.standard_measures())
    wanted = {name: Use(part=name) for name in everywhere}
    for family in mechanisms.values():
        part: Mechanism = family.at(family.degrees.values[0])
        wanted |= {name: Use(part=name) for name in (part.privacy_gain, part.utility_loss)}
    found = {name: cast(Measure, _part("measures", use, "measure", Measure)) for name, use in wanted.items()}
    standard, asked = frozenset(found), set[str]()
    for use in study.measures:
        measure = cast(Measure, _part("measures", use, "measure", Measure))
        if measure.name in asked or measure.name in standard:
            raise InputError(f"measure {measure.name!r} is in every study already, or named twice; rename yours.")
        if "hidden" in getattr(measure, "needs", ()) and study.hidden is None:
            raise InputError(f"measure {measure.name!r} {ADVICE['hidden']}.")
        asked.add(measure.name)
        for each in (measure, *(measure.beside if isinstance(measure, ReadBeside) else ())):
            if each.name not in found:
                found[each.name] = each
                everywhere.append(each.name)
    return found, tuple(everywhere)


def _sides(images: Images) -> str:
    return " x ".join(map(str, images.shape))


def _target(name: str | None, hidden: str | None, images: Images) -> str:
    labels = list(images.labels)
    if name is None and len(labels) == 1:
        name = labels[0]
    if name not in labels:
        raise InputError(f"target={name!r} must be one of the labels of {images.name!r}: {', '.join(labels)}.")
    others = [label for label in labels if label != name]
    if hidden not in (None, *others):
        rule = f"must be one of the labels of {images.name!r} other than the target {name!r}"
        raise InputError(f"hidden={hidden!r} {rule}: {', '.join(others) or 'none'}.")
    if hidden is not None and bool((images.labels[hidden] == images.labels[hidden][0]).all()):
        raise InputError(
            f"hidden={hidden!r} has one class only among the training images of {images.name!r}, so there is nothing"
            " to hide; name a label with two or more."
        )
    return name
