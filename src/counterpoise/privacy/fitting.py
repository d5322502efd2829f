"""Train by a plan: the one loop in which private data meets a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from counterpoise import training
from counterpoise._check import InputError
from counterpoise.interface import Progress, Recipe
from counterpoise.privacy import noise
from counterpoise.privacy.clipping import MICROBATCH, clipped_gradient
from counterpoise.privacy.isolation import check_isolation
from counterpoise.privacy.plan import Plan
from counterpoise.privacy.recording import Loss, cross_entropies


@dataclass(frozen=True)
class Schedule:
    """How a fit goes about it; nothing here changes what is proved.

    `microbatch` bounds the memory. The checkpoint holds generator states: keep it as secret as the images.
    """

    progress: Progress = field(default=lambda done: None)
    checkpoint: Path | None = None
    every: int = 100
    microbatch: int = MICROBATCH


def fit(
    model: nn.Module,
    pixels: Tensor,
    labels: Tensor,
    plan: Plan,
    recipe: Recipe,
    rng: torch.Generator,
    *,
    loss: Loss = cross_entropies,
    schedule: Schedule | None = None,
) -> None:
    """Train in place by the plan; of the recipe only the optimiser and its rates are used.

    Both generators go into the checkpoint, and every draw is made in its order, so a killed and resumed training
    ends in the same bits (unless the plan's noise is secure, which by design nobody can repeat).
    """
    if len(pixels) != plan.sampling.n:
        raise InputError(f"the plan is for n={plan.sampling.n} images, but {len(pixels)} are given; make it for these.")
    schedule = schedule or Schedule()
    # Drawn, not derived: two trainings that share a generator must not share their noise.
    sampler_rng, noise_rng, probe_rng = (torch.Generator().manual_seed(_drawn_seed(rng)) for _ in range(3))
    model.train()
    arrange = _probe(model, pixels, labels, loss, probe_rng)
    optimiser = training.make_optimiser(model, recipe)
    weights = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def step(index: int) -> None:
        batch = plan.sampling.draw(index, None if plan.secure else sampler_rng)
        optimiser.zero_grad()
        images, targets = arrange(pixels[batch]), labels[batch]
        released = private_gradient(model, images, targets, plan, noise_rng, loss=loss, microbatch=schedule.microbatch)
        for name, weight in weights.items():
            weight.grad = released[name]
        optimiser.step()

    state: training.State = {"model": model, "optimiser": optimiser, "sampler": sampler_rng, "noise": noise_rng}
    training.fit(
        step, plan.steps, state, progress=schedule.progress, checkpoint=schedule.checkpoint, every=schedule.every
    )
    model.eval()


def private_gradient(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    plan: Plan,
    rng: torch.Generator,
    *,
    loss: Loss = cross_entropies,
    microbatch: int = MICROBATCH,
) -> dict[str, Tensor]:
    """All that a step may know of its batch: (sum of clipped gradients + noise) / expected batch."""
    clipped = clipped_gradient(model, images, targets, plan.clip, loss=loss, microbatch=microbatch)
    hidden = noise.hide(clipped.gradients, plan.noise, plan.clip.bound, None if plan.secure else rng)
    return {name: value.div_(plan.expected_batch) for name, value in hidden.items()}


def _probe(
    model: nn.Module, pixels: Tensor, labels: Tensor, loss: Loss, rng: torch.Generator
) -> Callable[[Tensor], Tensor]:
    """Refuse a model that mixes examples, and find the memory layout it runs in; on random images, not on private ones.

    A model that asks for a `view` of its maps cannot have channels beside each other, and keeps the usual layout.
    """
    if not pixels.is_floating_point():  # codes of words, which noise is none of
        probe = pixels.new_zeros((3, *pixels.shape[1:]))
        check_isolation(model, probe, labels.new_zeros((3, *labels.shape[1:])), loss)
        return lambda images: images
    images = torch.rand((3, *pixels.shape[1:]), generator=rng)
    targets = labels.new_zeros((3, *labels.shape[1:]))
    check_isolation(model, images, targets, loss)
    if pixels.ndim != 4:
        return lambda images: images
    try:
        check_isolation(model, training.channels_last(images), targets, loss)
    except RuntimeError:  # torch's word for a view that does not exist
        return lambda images: images
    return training.channels_last


def _drawn_seed(rng: torch.Generator) -> int:
    return int(torch.randint(2**63 - 1, (), generator=rng))
