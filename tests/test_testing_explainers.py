"""`check_explainer` passes what is sound, and catches each broken promise with its own sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from counterpoise.explainers import SmoothGrad
from counterpoise.grid import DegreeKind
from counterpoise.interface import Explanation, Trained
from counterpoise.testing import check_explainer


@pytest.mark.parametrize("explainer", [SmoothGrad(), SmoothGrad(noise=0), SmoothGrad(noise=Decimal(1), samples=2)])
def test_smooth_grad_is_sound(explainer: SmoothGrad) -> None:
    check_explainer(explainer)


class Edges:
    """A sound explainer of a third party: nothing inherited. `spoil` breaks one promise."""

    name: ClassVar[str] = "edges"
    kind: ClassVar[DegreeKind] = DegreeKind("sharpness", "up")
    degree_field: ClassVar[str] = "sharpness"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, spoil: Callable[[nn.Module, Tensor, Tensor], Tensor] = lambda model, images, maps: maps) -> None:
        self.sharpness, self.spoil = Decimal(1), spoil

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        model = trained.model if isinstance(trained, Trained) else trained
        modes = [module.training for module in model.modules()]
        model.eval()
        try:
            with torch.no_grad():
                said = model(images).softmax(1).gather(1, target[:, None])
        finally:
            for module, mode in zip(model.modules(), modes, strict=True):
                module.training = mode
        maps = images.diff(dim=3, prepend=images[..., :1]).abs().sum(1) * said[:, :, None]
        return Explanation(self.spoil(model, images, maps))


def left_in_training(model: nn.Module, images: Tensor, maps: Tensor) -> Tensor:
    model.train()
    return maps


def left_with_gradients(model: nn.Module, images: Tensor, maps: Tensor) -> Tensor:
    model(images).sum().backward()
    return maps


def left_with_a_hook(model: nn.Module, images: Tensor, maps: Tensor) -> Tensor:
    model.register_forward_pre_hook(lambda module, inputs: None)
    return maps


def left_frozen(model: nn.Module, images: Tensor, maps: Tensor) -> Tensor:
    model.requires_grad_(False)
    return maps


def left_with_other_weights(model: nn.Module, images: Tensor, maps: Tensor) -> Tensor:
    with torch.no_grad():
        next(model.parameters()).mul_(1.0001)
    return maps


def images_changed(model: nn.Module, images: Tensor, maps: Tensor) -> Tensor:
    images.mul_(0.5)
    return maps


FOUND = "was not given back as it was found"
EXPLAINERS: dict[str, tuple[Callable[[nn.Module, Tensor, Tensor], Tensor], str]] = {
    "images changed": (images_changed, "changed the images"),
    "wrong shape": (lambda model, images, maps: maps[:, 1:], r"float32 \[5, 8, 8\], not torch.float32 \[5, 7, 8\]"),
    "wrong precision": (lambda model, images, maps: maps.double(), "maps must be float32"),
    "not finite": (lambda model, images, maps: maps / 0, "maps must be finite"),
    "global generator": (lambda model, images, maps: maps + torch.rand(maps.shape), "one seed gives two maps"),
    "scaled by the batch": (lambda model, images, maps: maps / maps.max(), "a map depends on the images it shares"),
    "noise by position": (
        lambda model, images, maps: maps + torch.arange(len(maps))[:, None, None].float(), "or on its place among them"
    ),
    "left in training": (left_in_training, FOUND),
    "left with gradients": (left_with_gradients, FOUND),
    "left with a hook": (left_with_a_hook, FOUND),
    "left frozen": (left_frozen, FOUND),
    "left with other weights": (left_with_other_weights, "one seed gives two maps|" + FOUND),
}  # fmt: skip


def test_an_explainer_of_a_third_party_is_sound() -> None:
    check_explainer(Edges())


@pytest.mark.parametrize("broken", EXPLAINERS)
def test_a_broken_explainer_is_caught(broken: str) -> None:
    spoil, sentence = EXPLAINERS[broken]
    with pytest.raises(AssertionError, match=f"edges: .*({sentence})"):
        check_explainer(Edges(spoil))


class LeavesEvaluationMode(Edges):
    """Puts the modes back only where nothing went wrong."""

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        model = trained.model if isinstance(trained, Trained) else trained
        modes = [module.training for module in model.modules()]
        model.eval()
        model(images)
        for module, mode in zip(model.modules(), modes, strict=True):
            module.training = mode
        return super().explain(trained, images, target, rng)


class HidesErrors(Edges):
    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        try:
            return super().explain(trained, images, target, rng)
        except RuntimeError:
            return Explanation(images.sum(1))


@dataclass(frozen=True)
class ForgetsTheDegree(SmoothGrad):
    def explain_degrees(self, degrees: Any, *request: Any, **more: Any) -> list[Explanation]:
        return [self.explain(*request)] * len(degrees)

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator, **more: Any
    ) -> Explanation:
        (found,) = super().explain_degrees([Decimal(str(self.noise))], trained, images, target, rng)
        return found


def test_an_explainer_that_fails_badly_is_caught() -> None:
    with pytest.raises(AssertionError, match=f"after an error, the model {FOUND}"):
        check_explainer(LeavesEvaluationMode())
    with pytest.raises(AssertionError, match="hid an error of the model"):
        check_explainer(HidesErrors())


def test_degrees_at_once_must_equal_degrees_one_by_one() -> None:
    with pytest.raises(AssertionError, match="explain_degrees gives another map than explain at noise=0"):
        check_explainer(ForgetsTheDegree())
