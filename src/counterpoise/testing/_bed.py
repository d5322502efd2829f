"""What the property suites of `counterpoise.testing` stand on: a small task, outcomes, and ways to compare.

It stands alone, so that a suite needs no mechanism, model or explainer but the one it checks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise.grid import DegreeKind
from counterpoise.interface import Explainer, Explaining, Explanation, Images, Mechanism, Outcome, Recipe, Task, Trained
from counterpoise.record import Guarantee, Measurement
from counterpoise.training import apply, fit_classifier, generator

SHAPES = ((1, 8, 8), (3, 8, 6))
TOLERANCE = 1e-4
"""Of the largest value of a map: a convolution may round differently in another batch."""


def hold(promise: bool, broken: str) -> None:
    """Raise with this sentence unless the promise holds."""
    if not promise:
        raise AssertionError(f"{broken}.")


def named(protocol: type, part: Any) -> str:
    """The part's name, if it has all that its kind of part must have."""
    missing = [
        attribute
        for attribute in sorted({*vars(protocol), *protocol.__annotations__})
        if not attribute.startswith("_") and not hasattr(part, attribute)
    ]
    missing += [] if callable(part) or "__call__" not in vars(protocol) else ["__call__"]
    hold(not missing, f"{type(part).__name__} is no {protocol.__name__}: it lacks {', '.join(missing)}")
    name: str = part.name
    return name


def small_task(shape: tuple[int, int, int] = SHAPES[0], train: int = 200, test: int = 100) -> Task:
    """Noisy images, brighter on the left or on the right: two classes that a small network learns quickly."""
    rng = np.random.default_rng(0)

    def part(name: str, n: int) -> Images:
        side = rng.integers(2, size=n)
        pixels = rng.uniform(0, 0.6, size=(n, *shape))
        half = shape[2] // 2
        pixels[side == 0, :, :, :half] += 0.3
        pixels[side == 1, :, :, half:] += 0.3
        # A second label, told by nothing, for parts that hide one.
        labels = {"side": torch.from_numpy(side), "tag": torch.arange(n) % 3}
        classes = {"side": ("left", "right"), "tag": ("a", "b", "c")}
        left = torch.arange(shape[2]) < half
        brighter = torch.where(labels["side"][:, None, None] == 0, left, ~left).expand(n, *shape[1:])
        return Images(name, torch.from_numpy(pixels).float(), labels, classes, brighter)

    return Task(part("train", train), part("test", test), "side", network, Recipe(epochs=2, batch=32), hidden="tag")


@dataclass(frozen=True)
class Plain:
    """A baseline of the suite's own, so that no room is needed."""

    name: ClassVar[str] = "plain"
    kind: ClassVar[DegreeKind] = DegreeKind("protection", "up")
    needs: ClassVar[frozenset[str]] = frozenset()
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "no_loss"
    protection: Decimal = Decimal(0)

    def blank(self, task: Task) -> Trained:
        return Trained(task.new_model(torch.Generator()), nn.Identity())

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        model = task.new_model(rng)
        fit_classifier(model, task.train.pixels, task.train.labels[task.target], task.recipe, rng.initial_seed())
        return Trained(model, nn.Identity())


def outcomes() -> tuple[Outcome, Outcome]:
    """A plain baseline, and a candidate behind a blur that claims an epsilon of 1."""
    task, plain = small_task(), Plain()
    blur, proved = nn.AvgPool2d(3, 1, 1), (Guarantee("dp", 1.0, 1e-5),)
    first = plain.train(task, generator(0))
    second = replace(plain.train(task, generator(1)), release=blur, guarantees=proved)
    return _outcome(plain, first, task, Decimal(0)), _outcome(plain, second, task, Decimal("0.3"))


def _outcome(mechanism: Mechanism, trained: Trained, task: Task, degree: Decimal) -> Outcome:
    train, test = apply(trained.release, task.train.pixels), apply(trained.release, task.test.pixels)
    logits = apply(trained.model, test)
    images, target = test[:12], logits[:12].argmax(1)
    nearby = (images + 0.02 * torch.randn(images.shape, generator=generator(2))).clamp(0, 1)
    maps = [Explanation(_saliency(trained.model, x, target), samples=25) for x in (images, nearby)]
    return Outcome(
        task,
        mechanism,
        degree,
        trained,
        released_train=train,
        released_test=test,
        train_logits=apply(trained.model, train),
        test_logits=logits,
        raw_test_logits=apply(trained.model, task.test.pixels),
        seed=0,
        measured={"utility_loss": Measurement(0.1, 0.05, 0.15, 100, "images")},
        explaining=Explaining(
            Decimal("0.5"),
            images,
            target,
            maps[0],
            nearby,
            maps[1],
            chosen=torch.arange(len(images)),
            again=lambda model, pixels, purpose: Explanation(_saliency(model, pixels, target), samples=25),
        ),
    )


def _saliency(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    pixels = images.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(model(pixels).gather(1, target[:, None]).sum(), pixels)
    return gradient.abs().sum(1)


def network(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """A convolution, group normalisation, a linear layer: it provides all that a part may need."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (), generator=rng)))
        layers = [nn.Conv2d(shape[0], 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(4 * shape[1] * shape[2], classes))


_PLACES = itertools.count(1)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Put the global generators somewhere new, so that a part which leans on them shows; then put them back."""
    kept, place = np.random.get_state(), next(_PLACES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(place)
        np.random.seed(place)
        try:
            yield
        finally:
            np.random.set_state(kept)


def train(mechanism: Mechanism, task: Task, seed: int) -> Trained:
    """Train from this seed."""
    with elsewhere():
        return mechanism.train(task, torch.Generator().manual_seed(seed))


def explain(explainer: Explainer, model: Trained | nn.Module, images: Tensor, target: Tensor) -> Explanation:
    """Explain from one fixed seed."""
    with elsewhere():
        return explainer.explain(model, images, target, torch.Generator().manual_seed(3))


def at(part: Any, field: str, degree: Decimal) -> Any:
    """The part at another degree; None where it is no dataclass and cannot be copied."""
    return replace(part, **{field: degree}) if is_dataclass(part) and not isinstance(part, type) else None


def copies(part: Task | Trained | Outcome | nn.Module) -> dict[str, Tensor]:
    """Every tensor in it by name, cloned."""
    found: dict[str, Tensor] = {}
    if isinstance(part, Outcome):
        found |= copies(part.task) | copies(part.trained)
        found |= {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}
        found |= {f"explaining {name}": x for name, x in vars(part.explaining).items() if isinstance(x, Tensor)}
    elif isinstance(part, Task):
        for images in (part.train, part.test):
            found |= {f"{images.name} pixels": images.pixels}
            found |= {f"{images.name} {label}": values for label, values in images.labels.items()}
    elif isinstance(part, Trained):
        for name, module in (("model", part.model), ("release", part.release)):
            found |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
    else:
        found = dict(part.state_dict())
    return {name: value.detach().clone() for name, value in found.items()}


def difference(one: Trained, two: Trained) -> str:
    """The first weight in which they differ, or nothing."""
    first, second = copies(one), copies(two)
    if first.keys() != second.keys():
        return "the names of its weights"
    return next((name for name, value in first.items() if not _equal(value, second[name])), "")


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    """The same tensors under the same names, bit for bit."""
    return one.keys() == two.keys() and all(_equal(value, two[name]) for name, value in one.items())


def _equal(one: Tensor, two: Tensor) -> bool:
    """Bit for bit, where NaN equals NaN: that something is not finite has a sentence of its own."""
    return one.shape == two.shape and bool(((one == two) | (one.isnan() & two.isnan())).all())


def close(one: Tensor, two: Tensor) -> bool:
    """Equal but for rounding."""
    return one.shape == two.shape and bool((one - two).abs().max() <= TOLERANCE * one.abs().max())


def state(model: nn.Module) -> list[object]:
    """All that a borrower may leave behind besides weights: modes, what is trained, gradients, hooks."""
    found: list[object] = []
    for module in model.modules():
        found.append((module.training, len(module._forward_hooks), len(module._forward_pre_hooks)))
        found.append(len(module._backward_hooks))
    for weight in model.parameters():
        found.append((weight.requires_grad, None if weight.grad is None else weight.grad.tolist()))
    return found


def without_pixels(task: Task) -> Task:
    """The same sizes and labels, all images black: what may be known before training."""
    black = [replace(part, pixels=torch.zeros_like(part.pixels)) for part in (task.train, task.test)]
    return replace(task, train=black[0], test=black[1])


class ModelError(RuntimeError):
    """What the suite's own model raises."""


def fail(errors: list[ModelError]) -> None:
    """Raise an error, and keep it, so that it shows where somebody hid it."""
    errors.append(ModelError())
    raise errors[-1]
