"""`check_measure` passes what is sound, and catches each broken promise with its own sentence."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from counterpoise.explainers import SmoothGrad
from counterpoise.interface import Level, Outcome
from counterpoise.measures import BUILTIN
from counterpoise.record import Measurement
from counterpoise.testing import check_explainer, check_measure
from counterpoise.training import apply

FOUND = "was not given back as it was found"


@pytest.mark.parametrize("name", BUILTIN)
def test_the_built_in_measures_are_sound(name: str) -> None:
    check_measure(BUILTIN[name]())


class Spread:
    """A sound measure of a third party. `spoil` breaks one promise."""

    name: ClassVar[str] = "spread_loss"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "logit"
    higher_is_better: ClassVar[bool] = False

    def __init__(self, spoil: Callable[[Outcome, float], Any] = lambda outcome, x: Measurement.exact(x)) -> None:
        self.spoil = spoil

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        value = float(baseline.test_logits.std() - candidate.test_logits.std())
        found: Measurement = self.spoil(candidate, value)
        return found


def draws(outcome: Outcome, value: float) -> Measurement:
    return Measurement.exact(value * random.random())


def draws_from_numpy(outcome: Outcome, value: float) -> Measurement:
    return Measurement.exact(value + np.random.rand())


def sorts_in_place(outcome: Outcome, value: float) -> Measurement:
    outcome.test_logits[:] = outcome.test_logits.sort(0).values
    return Measurement.exact(value)


def leaves_training(outcome: Outcome, value: float) -> Measurement:
    apply(outcome.trained.model, outcome.task.test.pixels)
    outcome.trained.model.train()
    return Measurement.exact(value)


MEASURES: dict[str, tuple[Callable[[Outcome, float], Any], str]] = {
    "a bare number": (lambda outcome, x: x, "must return a Measurement, not float"),
    "without an end": (lambda outcome, x: Measurement.exact(float("inf")), "must be finite"),
    "python's generator": (draws, "measured twice, it gives"),
    "numpy's generator": (draws_from_numpy, "measured twice, it gives"),
    "in place": (sorts_in_place, "changed the outcome it measured"),
    "model left in training": (leaves_training, FOUND),
    "a loss against itself": (lambda outcome, x: Measurement.exact(x + 0.1), "itself must lose 0, not 0.1"),
}  # fmt: skip


def test_a_measure_of_a_third_party_is_sound() -> None:
    check_measure(Spread())


@pytest.mark.parametrize("broken", MEASURES)
def test_a_broken_measure_is_caught(broken: str) -> None:
    spoil, sentence = MEASURES[broken]
    with pytest.raises(AssertionError, match=f"spread_loss: .*{sentence}"):
        check_measure(Spread(spoil))


class Nowhere(Spread):
    level: ClassVar[Any] = "pixel"


def test_the_level_must_be_known() -> None:
    with pytest.raises(AssertionError, match="level must be 'training' or 'explanation'"):
        check_measure(Nowhere())


def test_the_global_generators_are_put_back() -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(5)
    np.random.seed(5)
    check_measure(Spread())
    check_explainer(SmoothGrad())
    assert (torch.rand(1), np.random.rand()) == expected
