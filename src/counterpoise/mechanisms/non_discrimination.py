"""NDR: training that turns apart the features of images which share a class that must not be told."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

import torch
from torch import Tensor

from counterpoise._check import one_of
from counterpoise.grid import DegreeKind
from counterpoise.interface import Mechanism, Penalty, Task, Trained
from counterpoise.mechanisms import _hiding
from counterpoise.mechanisms.plain import Plain
from counterpoise.record import Guarantee
from counterpoise.representation.alignment import FORMS, NORMALISERS, Form, Normaliser, alignment


@dataclass(frozen=True)
class NonDiscriminatory:
    """Adds gamma * R to the loss: R is how much a layer's features of one hidden class point the same way.

    Tartaglione and Grangetto, "A non-discriminatory approach to ethical deep learning", 2020; see
    `counterpoise.representation.alignment` for the forms. `at` names the layer whose output may leave the trusted
    device; '' is what goes into the last linear layer. `then` is the training that the penalty is added to.

    Proves nothing. Features of one class at right angles to each other can still be told from another class's:
    ask the probes (`class_leak`) what is left.
    """

    name: ClassVar[str] = "non-discriminatory"
    kind: ClassVar[DegreeKind] = DegreeKind("gamma", "up")
    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "accuracy_loss"
    gamma: Decimal
    at: str = ""
    form: Form = "weak"
    normaliser: Normaliser = "pairs"
    batches: Literal["balanced", "shuffled"] = "balanced"
    then: Mechanism = Plain()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        self.kind.check(self.gamma)
        one_of(FORMS, form=self.form)
        one_of(NORMALISERS, normaliser=self.normaliser)
        one_of(_hiding.BATCHES, batches=self.batches)
        _hiding.check_then(self.then, self.name)

    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        """Nothing is proved; a task that cannot be trained on is refused here, before training."""
        _hiding.check_task(task, self.name, self.at, self.batches)
        return ()

    def blank(self, task: Task) -> Trained:
        """The untrained network; images pass unchanged."""
        return _hiding.blank(task)

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """Cross-entropy plus gamma * R."""
        labels, gamma = _hiding.hidden_labels(task, self.name), float(self.gamma)

        def of(features: Tensor, batch: Tensor) -> Tensor:
            return gamma * alignment(features, labels[batch], self.form, self.normaliser)

        penalty = Penalty(self.at, of)
        return _hiding.train_hiding(task, rng, penalty, then=self.then, name=self.name, batches=self.batches)
