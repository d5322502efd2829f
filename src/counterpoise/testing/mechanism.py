"""What every mechanism promises."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import torch

from counterpoise.interface import Mechanism, Planned, Task, Trained
from counterpoise.record import Guarantee
from counterpoise.testing import _bed as bed
from counterpoise.testing._bed import hold, small_task
from counterpoise.training import apply


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


def _check_trained(name: str, trained: Trained, task: Task) -> None:
    pixels = torch.cat([task.test.pixels[:20], torch.zeros(1, *task.test.shape), torch.ones(1, *task.test.shape)])
    original = pixels.clone()
    with torch.no_grad():
        trained.release.eval()(pixels)
    released = apply(trained.release, original)
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
