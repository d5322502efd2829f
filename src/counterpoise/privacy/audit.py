"""Whether a training step does what its plan says, judged by what it gives away.

The mistakes that have cost private trainings their privacy leave traces in the numbers a step releases: a sum that is
not clipped, noise divided once too often, half the sensitivity, shuffled batches under a Poisson account, noise drawn
twice from one seed. Each check looks for one trace and raises `AuditError` under its name. All are statistical with
a false alarm in a million runs, and need no private image.

    audit_step(plan, lambda images, targets, seed: my_step(...), my_sampler, images, targets)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from counterpoise.privacy.plan import Plan

Step = Callable[[Tensor, Tensor, int], dict[str, Tensor]]
"""`step(images, targets, seed)` gives what the step hands to the optimiser: (clipped sum + noise) / expected batch."""

Draw = Callable[[int], Tensor]
"""`draw(index)` gives the indices of the images of one step."""

_ALARM = 1e-6


class AuditError(AssertionError):
    """A step gives away more than its plan says; the text begins with the name of the check."""


def audit_step(plan: Plan, step: Step, draw: Draw, images: Tensor, targets: Tensor) -> None:
    """Every check. A few images are enough; each should have a gradient far above the clip."""
    check_sensitivity(plan, step, images, targets)
    check_noise(plan, step, images[:0], targets[:0])
    check_freshness(plan, step, images[:0], targets[:0])
    check_sampling(plan, draw)


def check_sensitivity(plan: Plan, step: Step, images: Tensor, targets: Tensor) -> None:
    """Under one seed, to leave an image out moves the released sum by at most the clip."""
    whole = _flat(step(images, targets, 0))
    for i in range(len(images)):
        rest = torch.arange(len(images)) != i
        moved = (whole - _flat(step(images[rest], targets[rest], 0))) * plan.expected_batch
        distance = float(torch.linalg.vector_norm(moved.double(), plan.clip.norm))
        if distance > plan.clip.bound * 1.001:
            raise AuditError(
                f"sensitivity: one image moves the sum by {distance:.4g}, but the clip is {plan.clip.bound:g};"
                " clip every image's own gradient, and divide by the expected batch, not by the realised one."
            )


def check_noise(plan: Plan, step: Step, images: Tensor, targets: Tensor) -> None:
    """An empty batch releases noise alone, of the plan's law and scale (Kolmogorov and Smirnov's test)."""
    from scipy import stats

    drawn = [_flat(step(images, targets, seed)) for seed in range(_repeats(_flat(step(images, targets, 0)).numel()))]
    sample = torch.cat(drawn).double().numpy() * plan.expected_batch
    scale = plan.noise.multiplier * plan.clip.bound
    law = stats.norm if plan.noise.kind == "gaussian" else stats.laplace
    if stats.kstest(sample, law(scale=max(scale, 1e-300)).cdf).pvalue < _ALARM:
        spread = float(np.std(sample)) / (1 if plan.noise.kind == "gaussian" else math.sqrt(2))
        raise AuditError(
            f"noise: an empty batch released numbers of scale {spread:.4g}, but the plan's noise has {scale:.4g};"
            f" add {plan.noise.kind} noise of multiplier * clip to the sum, before it is divided."
        )


def check_freshness(plan: Plan, step: Step, images: Tensor, targets: Tensor) -> None:
    """Two steps' noises are independent: their correlation is that of chance."""
    count = _repeats(_flat(step(images, targets, 0)).numel())
    first, second = (
        torch.cat([_flat(step(images, targets, offset + 2 * i)) for i in range(count)]).double() for offset in (0, 1)
    )
    limit = 5 / math.sqrt(len(first))
    if first.numel() and abs(float(torch.corrcoef(torch.stack((first, second)))[0, 1])) > limit:
        raise AuditError("freshness: two steps had the same noise, so their difference has none; draw it anew.")


def check_sampling(plan: Plan, draw: Draw, draws: int = 1000) -> None:
    """Poisson batches vary as coins do; those of a shuffle all have one size."""
    if plan.sampling.name != "poisson":
        return
    sizes = np.array([len(draw(index)) for index in range(draws)], dtype=float)
    n, rate = plan.sampling.n, plan.sampling.rate
    mean, variance = n * rate, n * rate * (1 - rate)
    off_mean = abs(sizes.mean() - mean) > 5 * math.sqrt(variance / draws) + 1e-9
    off_variance = abs(sizes.var() - variance) > 6 * variance * math.sqrt(2 / draws + 1 / (draws * max(variance, 1e-9)))
    if off_mean or off_variance:
        raise AuditError(
            f"sampling: batches have {sizes.mean():.4g} images with variance {sizes.var():.4g}, but Poisson sampling"
            f" has {mean:.4g} with {variance:.4g}; draw batches from the plan, or account for the ones you draw."
        )


def _flat(released: dict[str, Tensor]) -> Tensor:
    return torch.cat([value.flatten() for value in released.values()])


def _repeats(numbers: int) -> int:
    """How many releases make enough numbers for a test to tell 2/3 of a scale from 1."""
    return max(2, math.ceil(4000 / max(1, numbers)))
