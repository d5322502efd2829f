"""What mechanisms that hide a class by a penalty on one layer share: checks, batches, and the training itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Mechanism, Penalised, Penalty, Task, Trained
from counterpoise.mechanisms._balanced import BalancedBatches
from counterpoise.representation.layers import LAST, find
from counterpoise.training import derive

BATCHES = ("balanced", "shuffled")


def check_then(then: Mechanism, name: str) -> None:
    """Refuse a training that takes no loss over whole batches."""
    if not isinstance(then, Penalised):
        raise InputError(
            f"{name}: then={then.name!r} takes no loss over pairs of images (private training needs each image's own"
            " gradient); leave then out, which trains plainly."
        )


def hidden_labels(task: Task, name: str) -> Tensor:
    """The labels to hide."""
    return task.train.labels[task.to_hide(name)]


def check_task(task: Task, name: str, at: str, batches: str) -> None:
    """What would go wrong only when training starts: no hidden label, no such layer, too small a batch."""
    labels = hidden_labels(task, name)
    if at != LAST:
        find(task.new_model(torch.Generator()), at)
    if batches == "balanced":
        BalancedBatches(labels, task.recipe.batch, 0)


def train_hiding(
    task: Task, rng: torch.Generator, penalty: Penalty, *, then: Mechanism, name: str, batches: str
) -> Trained:
    """Train with the penalty, on batches balanced over the hidden classes or on the usual ones."""
    assert isinstance(then, Penalised), "checked when the mechanism was made"
    seed = derive(rng.initial_seed(), name, "batches")
    balanced = BalancedBatches(hidden_labels(task, name), task.recipe.batch, seed) if batches == "balanced" else None
    return then.train_with(task, rng, penalty, balanced)


def blank(task: Task) -> Trained:
    """The untrained network; images pass unchanged."""
    return Trained(task.new_model(torch.Generator()), nn.Identity())
