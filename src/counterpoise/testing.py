"""Property suites for parts of your own: `check_mechanism`, `check_explainer`, `check_measure`.

Each makes its own small task, takes about a second, and raises an AssertionError whose sentence says which promise
of `counterpoise.interface` is broken. Call them from your tests: `check_explainer(Edges())`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise.grid import DegreeKind, text
from counterpoise.interface import (
    Explainer,
    Explaining,
    Explanation,
    Images,
    Measure,
    Mechanism,
    Outcome,
    Planned,
    Recipe,
    SharesDraws,
    Task,
    Trained,
)
from counterpoise.record import Guarantee, Measurement
from counterpoise.training import apply, fit_classifier, generator

SHAPES = ((1, 8, 8), (3, 8, 6))
TOLERANCE = 1e-4
"""Of the largest value: a convolution may round differently in another batch."""


def check_mechanism(mechanism: Mechanism, task: Task | None = None) -> None:
    """Train it a few times, on a small task where none is given, and hold it to what `Mechanism` promises."""
    name = _is_a(Mechanism, mechanism)
    task = small_task() if task is None else task
    degree = getattr(mechanism, mechanism.kind.name, None)
    _hold(isinstance(degree, Decimal), f"{name}: its field {mechanism.kind.name!r} must hold the degree as a Decimal.")
    before = _copies(task)
    first = _train(mechanism, task, 1)
    _hold(_equal(before, _copies(task)), f"{name}: training changed the task's images or labels in place.")
    other = _difference(first, _train(mechanism, task, 1))
    _hold(not other, f"{name}: two trainings with one seed differ in {other}; draw every random number from rng.")
    mirrored = replace(task, test=replace(task.test, pixels=1 - task.test.pixels))
    other = _difference(first, _train(mechanism, mirrored, 1))
    _hold(not other, f"{name}: {other} depends on the test images; train on task.train alone.")
    changed = _difference(first, _train(mechanism, task, 2))
    _hold(bool(changed), f"{name}: another seed gives the same weights; draw them, and all noise, from rng.")
    _check_trained(name, first, task)
    _check_blank(name, mechanism, first, task)
    _check_guarantees(name, mechanism, first, task)


def check_explainer(explainer: Explainer) -> None:
    """Explain a small network's decisions, on grey and on colour images, and hold it to what `Explainer` promises."""
    name = _is_a(Explainer, explainer)
    for shape in SHAPES:
        images, target = torch.rand(5, *shape, generator=generator(1)), torch.tensor([0, 1, 0, 1, 1])
        model = _network(shape, 2, generator(0))
        original = images.clone()
        first = _explain(explainer, model, images, target)
        _hold(torch.equal(images, original), f"{name}: it changed the images it was to explain.")
        _check_maps(name, first, (5, *shape[1:]))
        again = _explain(explainer, Trained(model, nn.Identity()), images, target)
        _hold(torch.equal(first.maps, again.maps), f"{name}: one seed gives two maps; draw from rng.initial_seed().")
        alone = torch.cat([_explain(explainer, model, x[None], y[None]).maps for x, y in zip(images, target)])  # noqa: B905
        swapped = _explain(explainer, model, images.flip(0), target.flip(0)).maps.flip(0)
        _hold(
            _close(first.maps, alone) and _close(first.maps, swapped),
            f"{name}: a map depends on the images it shares a batch with, or on its place among them.",
        )
        _check_degrees(name, explainer, model, images, target)
        _check_given_back(name, explainer, model, images, target)


def check_measure(measure: Measure) -> None:
    """Measure small outcomes, and hold it to what `Measure` promises."""
    name = _is_a(Measure, measure)
    _hold(measure.level in ("training", "explanation"), f"{name}: level must be 'training' or 'explanation'.")
    baseline, candidate = _outcome(0.0), _outcome(0.3)
    before = _copies(candidate.task, candidate.trained, candidate.test_logits, candidate.released_test)
    modes = _state_of(candidate.trained.model)
    with _elsewhere(1):
        found = measure(baseline, candidate)
    after = _copies(candidate.task, candidate.trained, candidate.test_logits, candidate.released_test)
    _hold(_equal(before, after), f"{name}: it changed the outcome it measured.")
    _hold(modes == _state_of(candidate.trained.model), f"{name}: it did not give the model back as it was found.")
    _hold(isinstance(found, Measurement), f"{name}: it must return a Measurement, not {type(found).__name__}.")
    numbers = (found.low, found.value, found.high)
    _hold(
        all(map(math.isfinite, numbers)) and found.low <= found.value <= found.high,
        f"{name}: its value must be finite and lie in its interval, not {numbers}.",
    )
    with _elsewhere(2):
        again = measure(replace(baseline), replace(candidate))
    _hold(found == again, f"{name}: measured twice, it gives {found.value} and {again.value}; seed what it draws.")
    if measure.name.endswith("_loss"):
        none = measure(baseline, replace(baseline)).value
        _hold(none == 0, f"{name}: the baseline compared with itself must lose 0, not {none}.")


def small_task(shape: tuple[int, int, int] = SHAPES[0], train: int = 200, test: int = 100) -> Task:
    """Noisy images, brighter on the left or on the right: two classes that a small network learns quickly."""
    rng = np.random.default_rng(0)

    def part(name: str, n: int) -> Images:
        label = rng.integers(2, size=n)
        pixels = rng.uniform(0, 0.6, size=(n, *shape))
        half = shape[2] // 2
        pixels[label == 0, :, :, :half] += 0.3
        pixels[label == 1, :, :, half:] += 0.3
        labels = {"side": torch.from_numpy(label)}
        return Images(name, torch.from_numpy(pixels).float(), labels, {"side": ("left", "right")})

    return Task(part("train", train), part("test", test), "side", _network, Recipe(epochs=2, batch=32))


def _network(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Convolution, group normalisation, a linear layer: it provides all that a part may need."""
    layers = [nn.Conv2d(shape[0], 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * shape[1] * shape[2], classes))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=rng) - weight * (weight.ndim > 1))
    return model


def _train(mechanism: Mechanism, task: Task, seed: int) -> Trained:
    """Train where the global generators are somewhere else each time, so that leaning on them shows."""
    _train_calls = next(_PLACES)
    with _elsewhere(_train_calls):
        return mechanism.train(task, torch.Generator().manual_seed(seed))


def _explain(explainer: Explainer, model: Trained | nn.Module, images: Tensor, target: Tensor) -> Explanation:
    with _elsewhere(next(_PLACES)):
        return explainer.explain(model, images, target, torch.Generator().manual_seed(3))
