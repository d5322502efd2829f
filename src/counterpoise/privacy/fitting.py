"""Train by a plan: the one loop in which private data meets a model."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from counterpoise import training
from counterpoise._check import InputError
from counterpoise.interface import Progress, Recipe
from counterpoise.privacy import noise
from counterpoise.privacy.clipping import clipped_gradient, cross_entropies
from counterpoise.privacy.plan import Plan
from counterpoise.privacy.recording import Loss


def fit(
    model: nn.Module,
    pixels: Tensor,
    labels: Tensor,
    plan: Plan,
    recipe: Recipe,
    rng: torch.Generator,
    *,
    loss: Loss = cross_entropies,
    progress: Progress = lambda done: None,
    checkpoint: Path | None = None,
    every: int = 100,
) -> None:
    """Train in place by the plan; of the recipe only the optimiser and its rates are used.

    Both generators go into the checkpoint, and every draw is made in its order, so a killed and resumed training
    ends in the same bits.
    """
    if len(pixels) != plan.sampling.n:
        raise InputError(f"the plan is for n={plan.sampling.n} images, but {len(pixels)} are given; make it for these.")
    optimiser = training.make_optimiser(model, recipe)
    # Drawn, not derived: two trainings that share a generator must not share their noise.
    sampler_rng, noise_rng = (torch.Generator().manual_seed(_drawn_seed(rng)) for _ in range(2))
    weights = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def step(index: int) -> None:
        batch = plan.sampling.draw(index, sampler_rng)
        clipped = clipped_gradient(model, pixels[batch], labels[batch], plan.clip, loss=loss)
        for name, weight in weights.items():
            total = clipped.gradients[name]
            if plan.noise.multiplier:
                total = total + noise.draw(plan.noise, plan.clip.bound, total, noise_rng)
            weight.grad = total / plan.expected_batch
        optimiser.step()

    model.train()
    state: training.State = {"model": model, "optimiser": optimiser, "sampler_rng": sampler_rng, "noise_rng": noise_rng}
    training.fit(step, plan.steps, state, progress=progress, checkpoint=checkpoint, every=every)
    model.eval()


def _drawn_seed(rng: torch.Generator) -> int:
    return int(torch.randint(2**63 - 1, (), generator=rng))
