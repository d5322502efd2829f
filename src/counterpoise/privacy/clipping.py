"""Per-example gradients, each scaled down to a norm of at most `clip`, and their sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from counterpoise import _check

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Flat:
    """Each example's whole gradient is scaled to a norm of at most `bound`."""

    bound: float = 1.0
    norm: Literal[1, 2] = 2

    def __post_init__(self) -> None:
        _check.positive(clip=self.bound)


Clip = Flat


@dataclass(frozen=True)
class ClippedGradient:
    """The sum over a batch of clipped per-example gradients, by parameter name, and the norms before clipping."""

    gradients: dict[str, Tensor]
    norms: Tensor


def clipped_gradient(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    clip: float | Clip = 1.0,
    norm: Literal[1, 2] = 2,
    loss: Loss = nn.functional.cross_entropy,
) -> ClippedGradient:
    """The sum of the examples' gradients, each clipped, and their norms."""
    rule = clip if isinstance(clip, Flat) else Flat(clip, norm)
    weights = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not len(images):
        return ClippedGradient({name: torch.zeros_like(p) for name, p in weights.items()}, torch.zeros(0))

    def example_loss(free: dict[str, Tensor], image: Tensor, target: Tensor) -> Tensor:
        return loss(functional_call(model, free, (image[None],)), target[None])

    free = {name: p.detach() for name, p in weights.items()}
    each = vmap(grad(example_loss), in_dims=(None, 0, 0), randomness="different")(free, images, targets)
    norms = torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(g.flatten(1), rule.norm, 1) for g in each.values()]), rule.norm, 0
    )
    factors = (rule.bound / norms.clamp_min(1e-30)).clamp_max(1)
    return ClippedGradient({name: torch.tensordot(factors, g, 1) for name, g in each.items()}, norms)
