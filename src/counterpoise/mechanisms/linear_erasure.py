"""LEACE after training: what a linear reader could tell of the hidden class is taken out of one layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import ClassVar

import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.grid import DegreeKind
from counterpoise.interface import Mechanism, Task, Trained
from counterpoise.mechanisms import _hiding
from counterpoise.mechanisms.plain import Plain
from counterpoise.record import Guarantee
from counterpoise.representation.erasure import Eraser
from counterpoise.representation.layers import LAST, features, find, last_linear, size

WIDEST = 8192
"""The eraser is a square matrix of this side."""


@dataclass(frozen=True)
class LinearErasure:
    """Trains `then` and puts LEACE behind the layer `at`: no linear reader of its training output beats guessing.

    Belrose et al., "LEACE: perfect linear concept erasure in closed form", NeurIPS 2023. The rest of the network is not
    trained again. `at` as in `non-discriminatory`. Proves nothing: the eraser is fitted to the private images.
    """

    name: ClassVar[str] = "linear-erasure"
    kind: ClassVar[DegreeKind] = DegreeKind("erased", "up", Decimal(1), Decimal(1))
    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "accuracy_loss"
    erased: Decimal = Decimal(1)
    at: str = ""
    then: Mechanism = Plain()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        self.kind.check(self.erased)

    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        """Nothing is proved; a task that cannot be trained on is refused here, before training."""
        _hiding.check_task(task, self.name, self.at, "shuffled")
        return ()

    def blank(self, task: Task) -> Trained:
        """The untrained network with an eraser that takes nothing."""
        inner = self.then.blank(task)
        attach(inner.model, self.at, task.train.shape)
        return replace(inner, guarantees=())

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """First the inner training, then the eraser in closed form."""
        hidden = _hiding.hidden_labels(task, self.name)
        inner = self.then.train(task, rng)
        rows = features(inner.model, self.at, inner.release(task.train.pixels))
        attach(inner.model, self.at, task.train.shape).fit(rows, hidden)
        inner.model.eval()
        return replace(inner, guarantees=())


def attach(model: nn.Module, at: str, shape: tuple[int, int, int]) -> Eraser:
    """An eraser that belongs to the layer and works on what it puts out; for '' on what the last linear layer gets."""
    width = size(model, at, shape)
    if width > WIDEST:
        raise InputError(
            f"at={at!r}: linear-erasure is a square matrix of the layer's {width} outputs; name a layer of at most"
            f" {WIDEST}."
        )
    layer = last_linear(model) if at == LAST else find(model, at)
    # By the layer's own child, so that a copy of the model has a copy of the eraser.
    if at == LAST:
        layer.register_forward_pre_hook(lambda module, given: (module.get_submodule("eraser")(given[0]),))
    elif not isinstance(layer, nn.Sequential):  # a Sequential runs what is added to it
        layer.register_forward_hook(lambda module, given, output: module.get_submodule("eraser")(output))
    eraser = Eraser(width)
    layer.add_module("eraser", eraser)
    return eraser
