"""What the rooms agree on: the data they exchange, and one verb for each kind of part.

    Dataset.load()                                 -> training Images, test Images
    Mechanism.train(task, rng)                     -> Trained
    Explainer.explain(trained, images, target, rng) -> Explanation
    Measure(baseline, candidate)                    -> Measurement

Parts are Protocols: nothing to inherit, nothing to register. Imports no room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.grid import DegreeKind
from counterpoise.record import Certificate, Guarantee, Measurement

T = TypeVar("T")

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""


@dataclass(frozen=True)
class Images:
    """Images with named labels. `pixels` is float32 [n, channels, height, width] in [0, 1], outside every model.

    `evidence`, where it is known, marks the pixels that a label was planted in: bool [n, height, width].
    """

    name: str
    pixels: Tensor
    labels: Mapping[str, Tensor]
    classes: Mapping[str, tuple[str, ...]]
    evidence: Tensor | None = None

    def __post_init__(self) -> None:
        if self.pixels.ndim != 4 or self.pixels.dtype != torch.float32:
            raise InputError(
                f"{self.name}: pixels must be float32 [n, channels, height, width],"
                f" not {self.pixels.dtype} {list(self.pixels.shape)}."
            )
        if len(self.pixels) and not (float(self.pixels.min()) >= 0 and float(self.pixels.max()) <= 1):
            raise InputError(f"{self.name}: pixels must lie in [0, 1].")
        for label, values in self.labels.items():
            if values.shape != (len(self.pixels),):
                raise InputError(f"{self.name}: label {label!r} has {len(values)} values for {len(self)} images.")
        places = (len(self.pixels), *self.pixels.shape[2:])
        if self.evidence is not None and (self.evidence.dtype != torch.bool or self.evidence.shape != places):
            raise InputError(
                f"{self.name}: evidence must be bool {list(places)}, one mark a pixel,"
                f" not {self.evidence.dtype} {list(self.evidence.shape)}."
            )

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        channels, height, width = self.pixels.shape[1:]
        return channels, height, width

    def take(self, indices: Tensor) -> Images:
        """The chosen images, in the given order."""
        labels = {name: values[indices] for name, values in self.labels.items()}
        evidence = None if self.evidence is None else self.evidence[indices]
        return replace(self, pixels=self.pixels[indices], labels=labels, evidence=evidence)


@runtime_checkable
class Dataset(Protocol):
    """Where images come from. A frozen dataclass whose fields are its options."""

    name: ClassVar[str]

    def load(self) -> tuple[Images, Images]:
        """The training and the test images: the same ones at every call."""


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train. `batch` is the expected batch size of private training."""

    epochs: int = 10
    batch: int = 64
    learning_rate: float = 0.1
    momentum: float = 0.0
    optimiser: Literal["sgd", "adam"] = "sgd"
    weight_decay: float = 0.0
    falling: bool = False  # the rate, to 0 in equal steps; private training keeps it


@dataclass(frozen=True)
class Penalty:
    """An extra loss on what one layer puts out: `of(features, batch)`, `batch` the indices of the images.

    `learns` is trained along with the model, by the same optimiser (an adversary, say).
    """

    at: str
    of: Callable[[Tensor, Tensor], Tensor]
    learns: nn.Module | None = None


@dataclass(frozen=True)
class Task:
    """What a mechanism trains on. `make_model(shape, classes, rng)` gives a fresh network with random weights.

    `hidden` names the label, of those the images carry, that must not be told: what mechanisms may hide, and what
    probes try to read. None where the study names none.
    """

    train: Images
    test: Images
    target: str
    make_model: Callable[[tuple[int, int, int], int, torch.Generator], nn.Module]
    recipe: Recipe = field(default_factory=Recipe)
    delta: float = 1e-5
    progress: Progress = field(default=lambda done: None)
    checkpoint: Path | None = None
    hidden: str | None = None

    @property
    def classes(self) -> int:
        """How many classes the target label has."""
        return len(self.train.classes[self.target])

    def new_model(self, rng: torch.Generator) -> nn.Module:
        """A fresh network of the right size, its weights drawn from `rng`."""
        return self.make_model(self.train.shape, self.classes, rng)

    def to_hide(self, asking: str) -> str:
        """The name of the hidden label, or a sentence on who misses it."""
        if self.hidden is None:
            raise InputError(f"{asking} needs to know what is to be hidden: set hidden to one of the images' labels.")
        return self.hidden


@dataclass(frozen=True)
class Trained:
    """A model, what an input must pass through before anybody outside sees it, and what is proved about both.

    `release` maps images to images of the same shape: the identity where nothing is filtered.
    `facts` are plain numbers of the training worth keeping (final loss, images a second are not: no times).
    `adversary`, where the release was trained against one, gives logits of the hidden label; it is not stored.
    """

    model: nn.Module
    release: nn.Module
    guarantees: tuple[Guarantee, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
    adversary: nn.Module | None = None


@runtime_checkable
class Mechanism(Protocol):
    """Protects a training. A frozen dataclass whose field named `kind.name` holds the degree.

    `privacy_gain` and `utility_loss` name the measures that its source paper uses for it.
    `needs` are tags the model must provide: 'per-example' (no batch statistics).
    """

    name: ClassVar[str]
    kind: ClassVar[DegreeKind]
    needs: ClassVar[frozenset[str]]
    privacy_gain: ClassVar[str]
    utility_loss: ClassVar[str]

    def blank(self, task: Task) -> Trained:
        """The untrained architecture, into which stored weights are loaded. Must not look at pixels."""

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """Train on `task.train`; every random choice is drawn from `rng`."""


@runtime_checkable
class Planned(Protocol):
    """A mechanism that can tell its guarantees before training (plan prints them)."""

    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        """What `train` will prove; computed from sizes and settings alone."""


@runtime_checkable
class Penalised(Protocol):
    """A mechanism whose training takes an extra loss over whole batches, and batches chosen by the caller."""

    def train_with(
        self, task: Task, rng: torch.Generator, penalty: Penalty, batches: Callable[[int], Tensor] | None
    ) -> Trained:
        """As `train`, with the penalty added to the loss; `batches(step)` gives indices, or None for the usual ones."""


@dataclass(frozen=True)
class Explanation:
    """One map a image: float32 [n, height, width], larger = more important.

    `stderr` is the Monte-Carlo standard error of each map's values, and `samples` how many draws each map
    is the mean of, where maps are sampled. Where each image stops by itself, `drawn` [n] says after how many draws,
    and `samples` how many it could have had. `certificates` are about the input, one a map, where they are earned.
    """

    maps: Tensor
    stderr: Tensor | None = None
    samples: int | None = None
    drawn: Tensor | None = None
    certificates: tuple[Certificate | None, ...] | None = None


@runtime_checkable
class Explainer(Protocol):
    """Explains a trained model's decision for one fixed class an image.

    The maps must not depend on which images share a batch: noise is seeded from `rng.initial_seed()` and
    the image itself.
    """

    name: ClassVar[str]
    kind: ClassVar[DegreeKind]
    degree_field: ClassVar[str]
    """The constructor argument that takes the degree: 'noise', where `kind.name` is 'explainability'."""
    needs: ClassVar[frozenset[str]]

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        """Maps for images [n, c, h, w] and class indices [n]. The model is given back as it was found."""


@runtime_checkable
class SharesDraws(Protocol):
    """An explainer that evaluates many degrees on shared noise, cheaper than one by one, with the same results."""

    def explain_degrees(
        self,
        degrees: Sequence[Decimal],
        trained: Trained | nn.Module,
        images: Tensor,
        target: Tensor,
        rng: torch.Generator,
    ) -> list[Explanation]:
        """One explanation a degree, equal to what `explain` gives at that degree."""


@runtime_checkable
class ChecksModel(Protocol):
    """An explainer that is wrong for some networks in ways its `needs` cannot say: it names a layer, for instance."""

    def check_model(self, model: nn.Module, shape: tuple[int, int, int]) -> None:
        """Raise an InputError unless it can explain this untrained network on images of this shape."""


Again = Callable[[nn.Module, Tensor, str], Explanation]
"""Explains the same classes at the same degree once more: another model, or other images. The words seed its noise."""


@dataclass(frozen=True)
class Explaining:
    """One explainability degree on one candidate: some released test images, and their maps.

    `target` is the class each map is about: the candidate's own prediction. `nearby` are the same images moved
    a little, explained for the same classes with fresh noise: what stability is measured on. `chosen` are the
    images' places among the test images. `again` is for measures that need more maps (of images moved by an attack,
    say), and costs as much as these.
    """

    degree: Decimal
    images: Tensor
    target: Tensor
    explanation: Explanation
    nearby: Tensor
    nearby_explanation: Explanation
    chosen: Tensor | None = None
    again: Again | None = None


@dataclass(frozen=True)
class Outcome:
    """A trained mechanism with everything measures look at, computed once and shared.

    All tensors are about the task's images in their order; `released_*` are the images after `trained.release`,
    and the logits are the model's on them. `raw_test_logits` are the model's on the unfiltered test images.
    `measured` holds the training-level measurements, for explanation-level measures that build on them.
    """

    task: Task
    mechanism: Mechanism
    degree: Decimal
    trained: Trained
    released_train: Tensor
    released_test: Tensor
    train_logits: Tensor
    test_logits: Tensor
    raw_test_logits: Tensor
    seed: int
    measured: Mapping[str, Measurement] = field(default_factory=dict)
    explaining: Explaining | None = None
    across: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    _shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, compute: Callable[[Outcome], T], *of: object) -> T:
        """What `compute(self)` gives, computed at most once: for measures that share work.

        A changed copy (`dataclasses.replace`) starts empty, so nothing stale is ever seen. What needs nothing but
        the objects `of` is shared with every copy that has the very same objects.
        """
        table = self.across if of else self._shared
        key = (compute, *map(id, of))
        if key not in table:
            table[key] = (compute(self), of)  # the objects are kept: an id lives as long as they do
        shared: T = table[key][0]
        return shared


@runtime_checkable
class ReadBeside(Protocol):
    """A measure that means little alone: a study that asks for it gets these others too."""

    @property
    def beside(self) -> tuple[Any, ...]:
        """The measures to read it beside: its floors, say."""


Level = Literal["training", "explanation"]
"""What a measure looks at: a training (once), or the explanations of one degree."""


@runtime_checkable
class Measure(Protocol):
    """Compares a candidate with its non-private baseline. Its name is what a requirement calls it by."""

    name: ClassVar[str]
    level: ClassVar[Level]
    unit: ClassVar[str]
    higher_is_better: ClassVar[bool]

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The measured value with its interval."""
