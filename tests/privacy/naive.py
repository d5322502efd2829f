"""The truth that clipping is compared with: one example at a time, by autograd, in double precision."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from counterpoise.privacy.recording import Loss, cross_entropies


def per_example(model: nn.Module, images: Tensor, targets: Tensor, loss: Loss = cross_entropies) -> dict[str, Tensor]:
    """Every example's gradient, [n, *shape] by parameter name."""
    model = copy.deepcopy(model).double()
    images = images.double() if images.is_floating_point() else images
    rows: dict[str, list[Tensor]] = {name: [] for name, p in model.named_parameters() if p.requires_grad}
    for image, target in zip(images, targets, strict=True):
        model.zero_grad()
        torch.autograd.backward(loss(model(image[None]), target[None]).sum())
        for name, p in model.named_parameters():
            if p.requires_grad:
                rows[name].append(torch.zeros_like(p) if p.grad is None else p.grad.clone())
    return {name: torch.stack(each) for name, each in rows.items()}


def clipped(each: dict[str, Tensor], clip: float, norm: int = 2) -> tuple[dict[str, Tensor], Tensor]:
    """The sum of clipped gradients and the norms, by definition."""
    flat = torch.cat([gradients.flatten(1) for gradients in each.values()], 1)
    norms = torch.linalg.vector_norm(flat, norm, 1)
    weights = (clip / norms.clamp_min(1e-300)).clamp_max(1)
    return {name: torch.tensordot(weights, gradients, 1) for name, gradients in each.items()}, norms


def assert_same(got: dict[str, Tensor], want: dict[str, Tensor]) -> None:
    """Equal up to single precision of the largest value."""
    assert got.keys() == want.keys()
    for name in want:
        scale = float(want[name].abs().max())
        torch.testing.assert_close(got[name].double(), want[name], rtol=0, atol=2e-4 * scale + 1e-6, msg=name)
