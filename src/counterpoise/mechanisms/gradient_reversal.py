"""Adversarial removal: a reader of the hidden class learns along, and the network is trained against it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from counterpoise._check import at_least, one_of
from counterpoise.grid import DegreeKind
from counterpoise.interface import Mechanism, Penalty, Task, Trained
from counterpoise.mechanisms import _hiding
from counterpoise.mechanisms.plain import Plain
from counterpoise.record import Guarantee
from counterpoise.representation.layers import size
from counterpoise.training import derive, generator, seeded


@dataclass(frozen=True)
class GradientReversal:
    """Gives a layer's features to a reader of the hidden class and turns its gradient round, times `reversal`.

    Ganin and Lempitsky, "Unsupervised domain adaptation by backpropagation", ICML 2015. The reader has one hidden layer
    of `units`. It hides from this reader; a fresh one may read more. `at` as in `non-discriminatory`. Proves nothing.
    """

    name: ClassVar[str] = "gradient-reversal"
    kind: ClassVar[DegreeKind] = DegreeKind("reversal", "up")
    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "accuracy_loss"
    reversal: Decimal
    units: int = 64
    at: str = ""
    batches: Literal["balanced", "shuffled"] = "balanced"
    then: Mechanism = Plain()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        self.kind.check(self.reversal)
        at_least(1, units=self.units)
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
        """Cross-entropy of the task, and of the reader behind the reversal."""
        hidden = _hiding.hidden_labels(task, self.name)
        width = size(task.new_model(torch.Generator()), self.at, task.train.shape)
        with seeded(generator(derive(rng.initial_seed(), self.name, "reader"))):
            reader = nn.Sequential(
                nn.Linear(width, self.units), nn.ReLU(), nn.Linear(self.units, int(hidden.max()) + 1)
            )
        strength = float(self.reversal)

        def of(features: Tensor, batch: Tensor) -> Tensor:
            turned: Tensor = _Reverse.apply(features.flatten(1), strength)  # type: ignore[no-untyped-call]
            return nn.functional.cross_entropy(reader(turned), hidden[batch])

        penalty = Penalty(self.at, of, reader)
        return _hiding.train_hiding(task, rng, penalty, then=self.then, name=self.name, batches=self.batches)


class _Reverse(torch.autograd.Function):
    """The identity forwards; backwards the gradient, turned round and scaled."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, strength: float) -> Tensor:
        """The features as they are."""
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The other way."""
        return -ctx.strength * gradients[0], None
