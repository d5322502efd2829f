"""Property suites for parts of your own: `check_mechanism`, `check_explainer`, `check_measure`.

Each makes its own small task, takes a second or two, and raises an AssertionError whose sentence says which
promise of `counterpoise.interface` is broken. Call them from your tests: `check_explainer(Edges())`.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import torch
from torch import Tensor, nn

from counterpoise import _testbed as bed
from counterpoise._testbed import hold, small_task
from counterpoise.grid import text
from counterpoise.interface import (
    Explainer,
    Explanation,
    Measure,
    Mechanism,
    Planned,
    SharesDraws,
    Task,
    Trained,
)
from counterpoise.record import Guarantee, Measurement
from counterpoise.training import apply, generator

__all__ = ["check_explainer", "check_measure", "check_mechanism", "small_task"]


def check_mechanism(mechanism: Mechanism, task: Task | None = None) -> None:
    """Train it a few times, on a small task where none is given, and hold it to what `Mechanism` promises."""
    name = bed.named(Mechanism, mechanism)
    task = small_task() if task is None else task
    degree = getattr(mechanism, mechanism.kind.name, None)
    hold(isinstance(degree, Decimal), f"{name}: its field {mechanism.kind.name!r} must hold the degree as a Decimal")
    before = bed.copies(task)
    first = bed.train(mechanism, task, 1)
    hold(bed.same(before, bed.copies(task)), f"{name}: training changed the task's images or labels in place")
    found = bed.difference(first, bed.train(mechanism, task, 1))
    hold(not found, f"{name}: two trainings with one seed differ in {found}; draw every random number from rng")
    mirrored = replace(task, test=replace(task.test, pixels=1 - task.test.pixels))
    found = bed.difference(first, bed.train(mechanism, mirrored, 1))
    hold(not found, f"{name}: {found} depends on the test images; train on task.train alone")
    found = bed.difference(first, bed.train(mechanism, task, 2))
    hold(bool(found), f"{name}: another seed gives the same weights; draw them, and all noise, from rng")
    _check_trained(name, first, task)
    _check_blank(name, mechanism, first, task)
    _check_guarantees(name, mechanism, first, task)


def check_explainer(explainer: Explainer) -> None:
    """Explain a small network's decisions on grey and on colour images, and hold it to what `Explainer` promises."""
    name = bed.named(Explainer, explainer)
    hold(hasattr(explainer, explainer.degree_field), f"{name}: it has no field {explainer.degree_field!r} (its degree)")
    for shape in bed.SHAPES:
        images, target = torch.rand(5, *shape, generator=generator(1)), torch.tensor([0, 1, 0, 1, 1])
        model = bed.network(shape, 2, generator(0))
        original = images.clone()
        first = bed.explain(explainer, model, images, target)
        hold(torch.equal(images, original), f"{name}: it changed the images it was to explain")
        _check_maps(name, first, (5, *shape[1:]))
        again = bed.explain(explainer, Trained(model, nn.Identity()), images, target)
        hold(torch.equal(first.maps, again.maps), f"{name}: one seed gives two maps; use rng.initial_seed()")
        alone = [bed.explain(explainer, model, images[i : i + 1], target[i : i + 1]).maps for i in range(5)]
        turned = bed.explain(explainer, model, images.flip(0), target.flip(0)).maps.flip(0)
        hold(
            bed.close(first.maps, torch.cat(alone)) and bed.close(first.maps, turned),
            f"{name}: a map depends on the images it shares a batch with, or on its place among them",
        )
        _check_degrees(name, explainer, model, images, target)
        _check_given_back(name, explainer, images, target)


def check_measure(measure: Measure) -> None:
    """Measure small outcomes, and hold it to what `Measure` promises."""
    name = bed.named(Measure, measure)
    hold(measure.level in ("training", "explanation"), f"{name}: level must be 'training' or 'explanation'")
    baseline, candidate = bed.outcomes()
    before, state = bed.copies(candidate), bed.state(candidate.trained.model)
    with bed.elsewhere():
        found = measure(baseline, candidate)
    hold(bed.same(before, bed.copies(candidate)), f"{name}: it changed the outcome it measured")
    hold(state == bed.state(candidate.trained.model), f"{name}: the model was not given back as it was found")
    hold(isinstance(found, Measurement), f"{name}: it must return a Measurement, not {type(found).__name__}")
    numbers = (found.low, found.value, found.high)
    hold(all(map(math.isfinite, numbers)), f"{name}: low, value and high must be finite, not {numbers}")
    with bed.elsewhere():
        again = measure(replace(baseline), replace(candidate))
    hold(found == again, f"{name}: measured twice, it gives {found.value} and {again.value}; seed what it draws")
    if measure.name.endswith("_loss"):
        none = measure(baseline, replace(baseline)).value
        hold(none == 0, f"{name}: the baseline compared with itself must lose 0, not {none}")


def _check_trained(name: str, trained: Trained, task: Task) -> None:
    pixels = torch.cat([task.test.pixels[:20], torch.zeros(1, *task.test.shape), torch.ones(1, *task.test.shape)])
    original = pixels.clone()
    released = apply(trained.release, pixels)
    hold(torch.equal(pixels, original), f"{name}: release changed its input in place")
    hold(
        released.shape == pixels.shape and released.dtype == pixels.dtype,
        f"{name}: release must keep shape and type, not turn {list(pixels.shape)} {pixels.dtype}"
        f" into {list(released.shape)} {released.dtype}",
    )
    inside = bool(((released >= 0) & (released <= 1)).all())
    hold(inside, f"{name}: released pixels must lie in [0, 1]")
    logits = apply(trained.model, released)
    shape = (len(pixels), task.classes)
    hold(
        logits.shape == shape and bool(logits.isfinite().all()),
        f"{name}: the model must give finite logits of shape {list(shape)} on released images",
    )


def _check_blank(name: str, mechanism: Mechanism, trained: Trained, task: Task) -> None:
    blank = mechanism.blank(bed.without_pixels(task))
    pixels = task.test.pixels
    for part in ("model", "release"):
        new, old = getattr(blank, part), getattr(trained, part)
        shapes = [{key: value.shape for key, value in module.state_dict().items()} for module in (new, old)]
        hold(shapes[0] == shapes[1], f"{name}: blank's {part} has other weights than train's, so it cannot load them")
        new.load_state_dict(old.state_dict())
        outputs = [apply(old, pixels), apply(old, pixels), apply(new, pixels)]
        # A release may be random; then there is nothing to compare.
        same = torch.equal(outputs[0], outputs[2]) or not torch.equal(outputs[0], outputs[1])
        hold(same, f"{name}: blank's {part} with train's weights gives other outputs; keep all it learns in its state")


def _check_guarantees(name: str, mechanism: Mechanism, trained: Trained, task: Task) -> None:
    proved = trained.guarantees
    fine = isinstance(proved, tuple) and all(isinstance(item, Guarantee) for item in proved)
    hold(fine, f"{name}: guarantees must be a tuple of Guarantee objects")
    if isinstance(mechanism, Planned):
        planned = mechanism.guarantees(bed.without_pixels(task))
        hold(planned == proved, f"{name}: guarantees() plans what train() does not prove, or looks at pixels")
    kind = mechanism.kind
    bare = bed.at(mechanism, kind.name, Decimal(0)) if kind.more_private == "up" and kind.low == 0 else None
    if bare is not None:
        claimed = bed.train(bare, task, 1).guarantees
        hold(not claimed, f"{name}: it claims a guarantee at {kind.name}=0; prove nothing there")


def _check_maps(name: str, explanation: Explanation, shape: tuple[int, ...]) -> None:
    maps = explanation.maps
    hold(
        maps.shape == shape and maps.dtype == torch.float32,
        f"{name}: maps must be float32 {list(shape)}, not {maps.dtype} {list(maps.shape)}",
    )
    hold(bool(maps.isfinite().all()), f"{name}: maps must be finite")
    errors = explanation.stderr
    if errors is not None:
        hold(
            errors.shape == shape and bool((errors >= 0).all()),
            f"{name}: stderr must be {list(shape)} and nowhere negative",
        )


def _check_degrees(name: str, explainer: Explainer, model: nn.Module, images: Tensor, target: Tensor) -> None:
    if not isinstance(explainer, SharesDraws):
        return
    low, high = explainer.kind.low, explainer.kind.high
    degrees = [low, (low + high) / 2 if high is not None else low + 1]
    together = explainer.explain_degrees(degrees, model, images, target, torch.Generator().manual_seed(3))
    for degree, found in zip(degrees, together, strict=True):
        one = bed.at(explainer, explainer.degree_field, degree)
        hold(
            one is None or bed.close(bed.explain(one, model, images, target).maps, found.maps),
            f"{name}: explain_degrees gives another map than explain at {explainer.degree_field}={text(degree)}",
        )


def _check_given_back(name: str, explainer: Explainer, images: Tensor, target: Tensor) -> None:
    channels, height, width = images.shape[1:]
    model = bed.network((channels, height, width), 2, generator(0))
    layers = list(model.modules())
    layers[1].eval()
    next(layers[1].parameters()).requires_grad_(False)
    state, weights = bed.state(model), bed.copies(model)
    bed.explain(explainer, model, images, target)
    given = state == bed.state(model) and bed.same(weights, bed.copies(model))
    hold(given, f"{name}: the model was not given back as it was found (modes, gradients, hooks, weights)")
    broken = model.register_forward_hook(bed.fail)
    state = bed.state(model)
    raised = True
    with suppress(bed.ModelError):
        bed.explain(explainer, model, images, target)
        raised = False
    hold(raised, f"{name}: it hid an error of the model")
    hold(state == bed.state(model), f"{name}: after an error, the model was not given back as it was found")
    broken.remove()
