"""`check_mechanism` passes what is sound, and catches each broken promise with its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from counterpoise.interface import Task, Trained
from counterpoise.mechanisms.autoencoder import Autoencoder
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.mechanisms.local_noise import LocalNoise
from counterpoise.mechanisms.pixel_shuffle import PixelShuffle
from counterpoise.record import Guarantee
from counterpoise.testing import check_explainer, check_measure, check_mechanism, small_task
from counterpoise.testing._bed import Plain


@pytest.mark.parametrize(
    "mechanism",
    [
        Plain(),
        DPSGD(Decimal("1.1")),
        Autoencoder(Decimal("0.3"), steps=30),
        PixelShuffle(Decimal(1)),
        LocalNoise(Decimal(8)),
    ],
    ids=lambda mechanism: str(mechanism.name),
)
def test_the_built_in_mechanisms_are_sound(mechanism: Any) -> None:
    check_mechanism(mechanism)


def test_a_mechanism_is_checked_on_a_task_of_one_s_own() -> None:
    check_mechanism(Plain(), small_task((3, 6, 4), train=40, test=20))


@dataclass(frozen=True)
class Spoilt(Plain):
    """A baseline with one promise broken: what `spoil` does to what was trained."""

    spoil: Callable[[Trained, Task, torch.Generator], Trained | None] = lambda trained, task, rng: trained

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        trained = super().train(task, rng)
        return self.spoil(trained, task, rng) or trained


class Release(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, pixels: Tensor) -> Tensor:
        return self.function(pixels)


def shift(trained: Trained, by: float) -> None:
    with torch.no_grad():
        list(trained.model.parameters())[-1].add_(by)


def same_weights(trained: Trained, task: Task, rng: torch.Generator) -> None:
    trained.model.load_state_dict({key: torch.ones_like(x) for key, x in trained.model.state_dict().items()})


def images_changed(trained: Trained, task: Task, rng: torch.Generator) -> None:
    task.train.pixels.mul_(0.5)


def labels_changed(trained: Trained, task: Task, rng: torch.Generator) -> None:
    task.train.labels["side"].zero_()


def a_number(trained: Trained, task: Task, rng: torch.Generator) -> Trained:
    proved: Any = (1.0,)
    return replace(trained, guarantees=proved)


def darken_in_place(pixels: Tensor) -> Tensor:
    return pixels.mul_(0.5)


def wider(trained: Trained, task: Task, rng: torch.Generator) -> Trained:
    return replace(trained, model=nn.Sequential(trained.model, nn.PReLU()))


def claims(trained: Trained, task: Task, rng: torch.Generator) -> Trained:
    return replace(trained, guarantees=(Guarantee("dp", 1, 1e-5),))


def not_a_number(trained: Trained, task: Task, rng: torch.Generator) -> None:
    shift(trained, float("nan"))


def released(function: Callable[[Tensor], Tensor]) -> Callable[[Trained, Task, torch.Generator], Trained]:
    return lambda trained, task, rng: replace(trained, release=Release(function))


MECHANISMS: dict[str, tuple[Callable[[Trained, Task, torch.Generator], Trained | None], str]] = {
    "images changed": (images_changed, "changed the task's images or labels"),
    "labels changed": (labels_changed, "changed the task's images or labels"),
    "torch's global generator": (lambda t, task, rng: shift(t, torch.randn(()).item()), "one seed differ in model.4"),
    "numpy's global generator": (lambda t, task, rng: shift(t, np.random.randn()), "one seed differ in model.4.bias"),
    "test images used": (lambda t, task, rng: shift(t, task.test.pixels.mean().item()), "depends on the test images"),
    "seed ignored": (same_weights, "another seed gives the same weights"),
    "release changes its input": (released(darken_in_place), "release changed its input in place"),
    "release changes the shape": (released(lambda x: x[..., 1:]), r"keep shape and type, not turn \[22, 1, 8, 8\]"),
    "release leaves [0, 1]": (released(lambda x: x + 0.1), r"released pixels must lie in \[0, 1\]"),
    "not finite": (not_a_number, "finite logits"),
    "blank is another network": (wider, "blank's model has other weights than train's"),
    "learnt outside the state": (released(lambda x: 1 - x), "blank's release with train's weights gives other outputs"),
    "guarantee without noise": (claims, "claims a guarantee at protection=0"),
    "guarantee that is a number": (a_number, "a tuple of Guarantee objects"),
}  # fmt: skip


@pytest.mark.parametrize("broken", MECHANISMS)
def test_a_broken_mechanism_is_caught(broken: str) -> None:
    spoil, sentence = MECHANISMS[broken]
    with pytest.raises(AssertionError, match=f"plain: .*({sentence})"):
        check_mechanism(Spoilt(spoil=spoil))


@dataclass(frozen=True)
class PlansTooMuch(Plain):
    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        return (Guarantee("dp", 1, 1e-5),)


@dataclass(frozen=True)
class FloatDegree(Plain):
    protection: Any = 0.0


def test_a_plan_that_training_does_not_keep_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"plans what train\(\) does not prove"):
        check_mechanism(PlansTooMuch())


def test_a_degree_must_be_a_decimal() -> None:
    with pytest.raises(AssertionError, match="'protection' must hold the degree as a Decimal"):
        check_mechanism(FloatDegree())


def test_what_lacks_a_verb_or_a_name_is_told_what_it_lacks() -> None:
    part: Any = object()
    with pytest.raises(AssertionError, match="object is no Mechanism: it lacks blank, kind, name, needs"):
        check_mechanism(part)
    with pytest.raises(AssertionError, match="object is no Explainer: it lacks degree_field, explain, kind"):
        check_explainer(part)
    with pytest.raises(AssertionError, match=r"object is no Measure: it lacks .*level.*__call__"):
        check_measure(part)
