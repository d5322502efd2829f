"""Training without protection: the baseline that every other mechanism is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise.grid import DegreeKind
from counterpoise.interface import Penalty, Task, Trained
from counterpoise.training import derive, fit_classifier


@dataclass(frozen=True)
class Plain:
    """Fits the model to the images as they are, and releases it as it is. Nothing is proved about it."""

    name: ClassVar[str] = "plain"
    kind: ClassVar[DegreeKind] = DegreeKind("protection", "up", Decimal(0), Decimal(0))
    needs: ClassVar[frozenset[str]] = frozenset()
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "no_loss"
    protection: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        self.kind.check(self.protection)

    def blank(self, task: Task) -> Trained:
        """The untrained network; images pass unchanged."""
        return Trained(task.new_model(torch.Generator()), nn.Identity())

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """Cross-entropy on shuffled batches, as the task's recipe says."""
        return self.train_with(task, rng)

    def train_with(
        self,
        task: Task,
        rng: torch.Generator,
        penalty: Penalty | None = None,
        batches: Callable[[int], Tensor] | None = None,
    ) -> Trained:
        """The same with a penalty on a layer, and with other batches; without them, the same bits."""
        model = task.new_model(rng)
        fit_classifier(
            model,
            task.train.pixels,
            task.train.labels[task.target],
            task.recipe,
            derive(rng.initial_seed(), "plain"),
            penalty=penalty,
            batches=batches,
            progress=task.progress,
            checkpoint=task.checkpoint,
        )
        return Trained(model, nn.Identity())
