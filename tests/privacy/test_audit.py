"""The engine passes its own audit, and every planted bug is caught by the check that bears its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Recipe
from counterpoise.models.small_cnn import small_cnn
from counterpoise.privacy import (
    AuditError,
    Flat,
    Gaussian,
    Laplace,
    Plan,
    Poisson,
    Shuffled,
    audit_step,
    clipped_gradient,
    fit,
    private_gradient,
)
from counterpoise.privacy.audit import Draw, Step, check_freshness, check_noise, check_sensitivity
from counterpoise.privacy.noise import hide

PLAN = Plan(Gaussian(1.0), Poisson(200, 20), steps=10, delta=1e-5, clip=Flat(0.1))
MODEL = small_cnn((1, 8, 8), 10, torch.Generator().manual_seed(0))
IMAGES, TARGETS = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(4)


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def own_step(plan: Plan) -> Step:
    return lambda images, targets, seed: private_gradient(MODEL, images, targets, plan, rng(seed))


def own_draw(plan: Plan) -> Draw:
    state = rng(0)
    return lambda index: plan.sampling.draw(index, None if plan.secure else state)


@pytest.mark.parametrize(
    "plan", [PLAN, replace(PLAN, secure=True), replace(PLAN, noise=Laplace(1.0), clip=Flat(1.0, 1))]
)
def test_the_engine_passes(plan: Plan) -> None:
    if plan.secure:  # no seed repeats this noise, so the clip is looked at without it
        quiet = replace(plan.with_noise(1e-9), secure=False)
        audit_parts(quiet, own_step(quiet), ["check_sensitivity"])
        audit_parts(plan, own_step(plan), ["check_noise", "check_freshness"])
    else:
        audit_step(plan, own_step(plan), own_draw(plan), IMAGES, TARGETS)


def audit_parts(plan: Plan, step: Step, names: list[str]) -> None:
    checks = {"check_sensitivity": check_sensitivity, "check_noise": check_noise, "check_freshness": check_freshness}
    for name in names:
        images = IMAGES if name == "check_sensitivity" else IMAGES[:0]
        checks[name](plan, step, images, TARGETS[: len(images)])


def total(images: Tensor, targets: Tensor, clip: float) -> dict[str, Tensor]:
    return clipped_gradient(MODEL, images, targets, clip).gradients


def divided(released: dict[str, Tensor], by: float) -> dict[str, Tensor]:
    return {name: value / by for name, value in released.items()}


def no_clip(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    return divided(hide(total(images, targets, 1e9), PLAN.noise, 0.1, rng(seed)), 20)


def clips_the_mean(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    """The batch's gradient clipped as a whole, and then scaled up: one image may turn it around."""
    whole = total(images, targets, 1e9)
    norm = torch.cat([value.flatten() for value in whole.values()]).norm()
    return divided(
        hide({k: v * 0.1 * len(images) / (norm + 1e-9) for k, v in whole.items()}, PLAN.noise, 0.1, rng(seed)), 20
    )


def divides_by_the_realised_batch(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    return divided(hide(total(images, targets, 0.1), PLAN.noise, 0.1, rng(seed)), max(1, len(images)))


def noise_divided_by_the_batch(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    return divided(hide(total(images, targets, 0.1), Gaussian(1 / 20), 0.1, rng(seed)), 20)


def sensitivity_halved(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    return divided(hide(total(images, targets, 0.1), PLAN.noise, 0.05, rng(seed)), 20)


def laplace_for_gaussian(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    return divided(hide(total(images, targets, 0.1), Laplace(0.7071), 0.1, rng(seed)), 20)


def reused_noise_seed(images: Tensor, targets: Tensor, seed: int) -> dict[str, Tensor]:
    return divided(hide(total(images, targets, 0.1), PLAN.noise, 0.1, rng(0)), 20)


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        (no_clip, "sensitivity: one image moves the sum by"),
        (clips_the_mean, "sensitivity: one image moves the sum by"),
        (divides_by_the_realised_batch, "sensitivity: one image moves the sum by"),
        (noise_divided_by_the_batch, r"noise: an empty batch released numbers of scale 0\.00[45]"),
        (sensitivity_halved, r"noise: an empty batch released numbers of scale 0\.0(49|5)"),
        (laplace_for_gaussian, "noise: an empty batch released"),
        (reused_noise_seed, "freshness: two steps had the same noise"),
    ],
)
def test_planted_bugs_of_the_step(bug: Step, check: str) -> None:
    with pytest.raises(AuditError, match=check):
        audit_step(PLAN, bug, own_draw(PLAN), IMAGES, TARGETS)


def shuffled(index: int) -> Tensor:
    return Shuffled(200, 20).draw(index, rng(0))


def wrong_rate(index: int) -> Tensor:
    return Poisson(200, 21).draw(0, rng(index))


@pytest.mark.parametrize("draw", [shuffled, wrong_rate])
def test_planted_bugs_of_the_sampler(draw: Callable[[int], Tensor]) -> None:
    with pytest.raises(AuditError, match="sampling: batches have"):
        audit_step(PLAN, own_step(PLAN), draw, IMAGES, TARGETS)


def test_batch_norm_smuggled_in() -> None:
    class Smuggled(nn.BatchNorm2d):
        pass

    model = nn.Sequential(nn.Conv2d(1, 4, 3), Smuggled(4), nn.Flatten(), nn.Linear(144, 10))
    with pytest.raises(InputError, match=r"1 \(Smuggled\): lets one image change"):
        fit(model, torch.rand(200, 1, 8, 8), torch.arange(200) % 10, PLAN, Recipe(), rng(0))
