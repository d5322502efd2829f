"""EnD: features of one hidden class are turned apart, those of one target class across hidden classes together."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

import torch
from torch import Tensor

from counterpoise._check import not_negative, one_of
from counterpoise.grid import DegreeKind
from counterpoise.interface import Mechanism, Penalty, Task, Trained
from counterpoise.mechanisms import _hiding
from counterpoise.mechanisms.plain import Plain
from counterpoise.record import Guarantee
from counterpoise.representation.alignment import alignment, groups, unit


@dataclass(frozen=True)
class EntangleDisentangle:
    """Adds alpha * (mean |cosine| within hidden classes) - beta * (mean cosine within a target across hidden classes).

    Tartaglione, Barbano and Grangetto, "EnD: Entangling and Disentangling deep representations for bias correction",
    CVPR 2021. Means are over pairs of a batch, then over classes. `at` as in `non-discriminatory`. Proves nothing.
    """

    name: ClassVar[str] = "end"
    kind: ClassVar[DegreeKind] = DegreeKind("alpha", "up")
    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "accuracy_loss"
    alpha: Decimal
    beta: float = 0.1
    at: str = ""
    batches: Literal["balanced", "shuffled"] = "balanced"
    then: Mechanism = Plain()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        self.kind.check(self.alpha)
        not_negative(beta=self.beta)
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
        """Cross-entropy with both terms."""
        hidden, targets = _hiding.hidden_labels(task, self.name), task.train.labels[task.target]
        alpha, beta = float(self.alpha), self.beta

        def of(features: Tensor, batch: Tensor) -> Tensor:
            apart = alignment(features, hidden[batch], "strong")
            return alpha * apart - beta * togetherness(features, targets[batch], hidden[batch])

        penalty = Penalty(self.at, of)
        return _hiding.train_hiding(task, rng, penalty, then=self.then, name=self.name, batches=self.batches)


def togetherness(features: Tensor, targets: Tensor, hidden: Tensor) -> Tensor:
    """Mean cosine of the pairs of one target class and different hidden classes, then over the classes that have any.

    By sums: of all pairs of a target class, those of one hidden class are taken away.
    """
    units, found = unit(features), []
    for members in groups(targets):
        own = units[members]
        parts = groups(hidden[members])
        pairs = len(members) ** 2 - sum(len(part) ** 2 for part in parts)
        if pairs:
            alike = torch.stack([own[part].sum(0).square().sum() for part in parts]).sum()
            found.append((own.sum(0).square().sum() - alike) / pairs)
    return torch.stack(found).mean() if found else 0 * units.sum()
