"""Per-example norms and clipped sums against Opacus, on the layers it supports."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from naive import assert_same
from torch import nn

from counterpoise.models.tanh_cnn import tanh_cnn
from counterpoise.privacy import clipped_gradient


def sequence() -> nn.Module:
    return nn.Sequential(nn.Embedding(11, 6), nn.LayerNorm(6), nn.Linear(6, 4), nn.Flatten(), nn.Linear(20, 10))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GroupNorm(4, 8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=4),
        nn.InstanceNorm2d(8, affine=True), nn.Flatten(2), nn.Conv1d(8, 5, 4, padding=1), nn.Flatten(),
        nn.Linear(75, 10),
    )  # fmt: skip


def house() -> nn.Module:
    return tanh_cnn((1, 28, 28), 10, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("make", "shape"),
    [(sequence, (5,)), (images, (3, 12, 12)), (house, (1, 28, 28))],
    ids=["sequence", "images", "house"],
)
def test_norms_and_sums(make: Any, shape: tuple[int, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus import GradSampleModule
    torch.manual_seed(0)
    model, targets = make(), torch.arange(6)
    batch = torch.randint(11, (6, *shape)) if make is sequence else torch.rand(6, *shape)
    ours = clipped_gradient(model, batch, targets, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GradSampleModule(model, loss_reduction="sum")
        torch.autograd.backward(nn.functional.cross_entropy(theirs(batch), targets, reduction="sum"))
    each: dict[str, Any] = {name: getattr(p, "grad_sample") for name, p in model.named_parameters()}  # noqa: B009
    norms = torch.cat([g.flatten(1) for g in each.values()], 1).norm(dim=1)
    torch.testing.assert_close(ours.norms, norms, rtol=1e-4, atol=1e-6)
    weights = (0.5 / norms).clamp_max(1)
    assert_same(ours.gradients, {name: torch.tensordot(weights, g, 1).double() for name, g in each.items()})
