"""A private linear head on fixed features, clipped in closed form.

The gradient of one image's cross-entropy is the outer product (softmax - one-hot) x features, so its L2 norm is the
product of two norms, and the clipped sum is one matrix product: a private step costs what an ordinary one does.
Sampler, clip, noise, denominator and number of steps come from the plan, so epsilon cannot differ from the training.
"""

from __future__ import annotations

import torch
from torch import Tensor

from counterpoise._check import InputError, in_range, positive
from counterpoise.interface import Progress
from counterpoise.privacy import Plan, noise

CHUNK = 128
"""Images at a time: they are copied to one place that stays in the processor's cache, which is four times as fast."""


def clipped_sum(weights: Tensor, features: Tensor, labels: Tensor, batch: Tensor, plan: Plan) -> Tensor:
    """The sum of the clipped gradients of the images at the indices `batch`, [classes, size]."""
    total = torch.zeros_like(weights)
    place = features.new_empty(CHUNK, features.shape[1])
    for chosen in torch.split(batch, CHUNK):
        some = torch.index_select(features, 0, chosen, out=place[: len(chosen)])
        errors = torch.softmax(weights @ some.T, 0)
        errors[labels[chosen], torch.arange(len(chosen))] -= 1
        norms = errors.norm(dim=0) * some.norm(dim=1)
        total.addmm_(errors * plan.clip.weights(norms), some)
    return total


def fit_linear(
    features: Tensor,
    labels: Tensor,
    classes: int,
    plan: Plan,
    rng: torch.Generator,
    *,
    step: float,
    average: float = 0.0,
    progress: Progress = lambda done: None,
) -> Tensor:
    """Weights [classes, size] after plain gradient steps from 0.

    With `average` a running mean of the weights is returned, which keeps that share of itself in each step and is
    freed of its start at 0 (Adam's correction). It looks at no image, so it costs no privacy.
    """
    if len(features) != plan.sampling.n:
        raise InputError(
            f"the plan is for n={plan.sampling.n} images, but {len(features)} are given; make it for these."
        )
    if plan.clip.norm != 2 or plan.clip.by_layer:
        raise InputError("a linear head is clipped as a whole and in the L2 norm; give the plan a Flat clip of norm 2.")
    positive(step=step)
    in_range(0, 0.9999, average=average)
    sampler_rng, noise_rng = (
        torch.Generator().manual_seed(int(torch.randint(2**63 - 1, (), generator=rng))) for _ in range(2)
    )
    weights = features.new_zeros(classes, features.shape[1])
    mean = torch.zeros_like(weights)
    for index in range(plan.steps):
        batch = plan.sampling.draw(index, None if plan.secure else sampler_rng)
        total = clipped_sum(weights, features, labels, batch, plan)
        hidden = noise.hide({"weights": total}, plan.noise, plan.clip.bound, None if plan.secure else noise_rng)
        weights -= step * hidden["weights"] / plan.expected_batch
        mean.mul_(average).add_(weights, alpha=1 - average)
        progress((index + 1) / plan.steps)
    return mean / (1 - average**plan.steps)


def accuracy(weights: Tensor, features: Tensor, labels: Tensor) -> float:
    """The share of images whose highest score is their class's."""
    right = [(part @ weights.T).argmax(1) for part in torch.split(features, 4096)]
    return float((torch.cat(right) == labels).float().mean())
