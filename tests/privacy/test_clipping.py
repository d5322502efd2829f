"""Clipping as a whole: models that share, reuse, hide and freeze; the rules of clipping; microbatches; Opacus."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from naive import assert_same, clipped, per_example
from torch import Tensor, nn
from torch.nn import functional

from counterpoise._check import InputError
from counterpoise.models.resnet import resnet18
from counterpoise.models.small_cnn import small_cnn
from counterpoise.privacy import Automatic, Flat, PerLayer, clipped_gradient
from counterpoise.privacy.clipping import Clip
from counterpoise.privacy.recording import cross_entropies


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(inplace=True), nn.Conv2d(8, 6, 3, stride=2),
        nn.Tanh(), nn.Flatten(2), nn.Linear(25, 9), nn.LayerNorm(9), nn.Flatten(), nn.Linear(54, 10),
    )  # fmt: skip


IMAGES, TARGETS = torch.rand(6, 3, 12, 12, generator=torch.Generator().manual_seed(1)), torch.arange(6)


def check(model: nn.Module, images: Tensor = IMAGES, clip: float = 0.5, norm: Any = 2) -> None:
    want, norms = clipped(per_example(model, images, TARGETS[: len(images)]), clip, norm)
    got = clipped_gradient(model, images, TARGETS[: len(images)], clip, norm)
    torch.testing.assert_close(got.norms.double(), norms, rtol=2e-4, atol=1e-6)
    assert_same(got.gradients, want)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("clip", [1e-3, 0.5, 1e6])
def test_a_network_with_an_activation_in_place(clip: float, norm: int) -> None:
    check(network(), clip=clip, norm=norm)


def test_networks_of_the_house() -> None:
    rng = torch.Generator().manual_seed(0)
    check(small_cnn((3, 12, 12), 10, rng))
    check(resnet18((3, 16, 16), 10, rng, blocks=(1, 1)), torch.rand(3, 3, 16, 16))


class Reused(nn.Module):
    """One layer used three times, a weight tied to another layer, and one used past its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 6)
        self.tied = nn.Linear(6, 6)
        self.tied.weight = self.body.weight
        self.table = nn.Linear(6, 10, bias=False)
        self.scale = nn.Parameter(torch.ones(1, 6))
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(torch.tanh(self.body(x)))
        x = self.tied(torch.tanh(x * self.scale)) + self.body(x)
        return self.table(x) + functional.linear(x, self.table.weight)  # type: ignore[no-any-return]


def test_reused_tied_bare_and_unused_parameters() -> None:
    torch.manual_seed(0)
    for shape in ((6, 6), (6, 6)):
        check(Reused(), torch.randn(shape))


def test_frozen_layers_have_no_gradient_and_cost_none() -> None:
    model = network()
    for name in ("0.weight", "0.bias", "3.bias"):
        model.get_parameter(name).requires_grad_(False)
    got = clipped_gradient(model, IMAGES, TARGETS)
    assert "0.weight" not in got.gradients
    assert "3.bias" not in got.gradients
    check(model)


class Sequence(nn.Module):
    """Attention and a recurrent layer: parameters no rule knows, and no batching rule for one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, 1, 8))
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.recur = nn.GRU(8, 5, batch_first=True)
        self.head = nn.Linear(5, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1)
        x = self.attend(x, x, x, need_weights=False)[0]
        return self.head(self.recur(x)[0][:, -1])  # type: ignore[no-any-return]


def test_attention_and_recurrence_fall_back() -> None:
    torch.manual_seed(0)
    check(Sequence(), torch.randn(4, 3, 8))


class TimeFirst(nn.Module):
    """The batch is the second dimension inside."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 5)
        self.head = nn.Linear(5, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.inner(x.transpose(0, 1)).mean(0))  # type: ignore[no-any-return]


def test_a_batch_in_another_dimension_falls_back() -> None:
    torch.manual_seed(0)
    check(TimeFirst(), torch.randn(4, 3, 4))
    check(TimeFirst(), torch.randn(3, 3, 4))  # a sequence as long as the batch


def test_dropout_keeps_the_bound() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(432, 10))
    got = clipped_gradient(model, IMAGES, TARGETS, 0.1)
    assert (got.norms > 0.1).all()
    assert torch.cat([g.flatten() for g in got.gradients.values()]).norm() <= 0.1 * 6 * (1 + 1e-5)


@pytest.mark.parametrize("norm", [1, 2])
def test_no_example_adds_more_than_the_bound(norm: Any) -> None:
    for clip in (Flat(0.3, norm), Automatic(0.3, norm=norm), PerLayer(0.3, norm)):
        for i in range(len(IMAGES)):
            got = clipped_gradient(network(), 100 * IMAGES[i : i + 1], TARGETS[i : i + 1], clip)
            size = torch.linalg.vector_norm(torch.cat([g.flatten() for g in got.gradients.values()]).double(), norm)
            assert 0.1 < size <= 0.3 * (1 + 1e-5)


def test_automatic_clipping_by_definition() -> None:
    each = per_example(network(), IMAGES, TARGETS)
    norms = torch.cat([g.flatten(1) for g in each.values()], 1).norm(dim=1)
    got = clipped_gradient(network(), IMAGES, TARGETS, Automatic(2.0, stability=0.1))
    assert_same(got.gradients, {name: torch.tensordot(2 / (norms + 0.1), g, 1) for name, g in each.items()})


def test_per_layer_clipping_by_definition() -> None:
    each = per_example(network(), IMAGES, TARGETS)
    want: dict[str, Tensor] = {}
    for layer in ("0", "1", "3", "6", "7", "9"):
        own = {name: g for name, g in each.items() if name.startswith(f"{layer}.")}
        want.update(clipped(own, 0.5 / 6**0.5)[0])
    assert_same(clipped_gradient(network(), IMAGES, TARGETS, PerLayer(0.5)).gradients, want)


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6, 100])
def test_microbatches_change_nothing(size: int) -> None:
    whole = clipped_gradient(network(), IMAGES, TARGETS, 0.5)
    parts = clipped_gradient(network(), IMAGES, TARGETS, 0.5, microbatch=size)
    torch.testing.assert_close(parts.norms, whole.norms, rtol=1e-5, atol=1e-6)
    assert_same(parts.gradients, {name: g.double() for name, g in whole.gradients.items()})


def test_an_empty_batch_adds_nothing() -> None:
    got = clipped_gradient(network(), IMAGES[:0], TARGETS[:0])
    assert got.norms.shape == (0,)
    assert got.gradients.keys() == dict(network().named_parameters()).keys()
    assert not any(g.any() for g in got.gradients.values())


def test_the_model_is_given_back_as_it_was() -> None:
    model = network()
    before = copy.deepcopy(model.state_dict())
    clipped_gradient(model, IMAGES, TARGETS)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_a_loss_that_averages_over_the_batch_is_refused() -> None:
    with pytest.raises(InputError, match=r'must give one value an example.*reduction="none"'):
        clipped_gradient(network(), IMAGES, TARGETS, loss=functional.cross_entropy)


def test_wrong_clips_are_one_sentence() -> None:
    with pytest.raises(InputError, match="clip=nan must be a number above 0"):
        clipped_gradient(network(), IMAGES, TARGETS, float("nan"))
    with pytest.raises(InputError, match="norm='3' must be one of '1', '2'"):
        Flat(1.0, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stability=0 must be a number above 0"):
        Automatic(stability=0)
    with pytest.raises(InputError, match=f"images and targets must pair up, but there are {len(IMAGES)} and 1"):
        clipped_gradient(network(), IMAGES, TARGETS[:1])


def test_without_clipping_the_sum_is_the_batchs_gradient() -> None:
    model = network()
    cross_entropies(model(IMAGES), TARGETS).sum().backward()  # type: ignore[no-untyped-call]
    want = {name: p.grad.double() for name, p in model.named_parameters() if p.grad is not None}
    assert_same(clipped_gradient(model, IMAGES, TARGETS, 1e9).gradients, want)


def test_nothing_is_left_in_memory() -> None:
    """A hook that holds its graph is a ring no collector sees: 30 such batches would leave half a gigabyte."""

    def resident() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

    images, targets = torch.rand(128, 3, 32, 32), torch.zeros(128, dtype=torch.long)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Tanh(), nn.Flatten(), nn.Linear(14400, 10))
    for _ in range(3):
        clipped_gradient(model, images, targets)
    before = resident()
    for _ in range(30):
        clipped_gradient(model, images, targets)
    assert resident() - before < 150


@pytest.mark.parametrize("clip", [Flat(0.5), Flat(0.5, 1), Automatic(0.5), PerLayer(0.5)])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_an_example_without_a_finite_gradient_adds_nothing(clip: Clip, poison: float) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.ReLU(), nn.Linear(4, 3))
    images, targets = torch.rand(6, 1, 3, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    others = torch.tensor([0, 1, 3, 4, 5])
    images[2] = poison
    found = clipped_gradient(model, images, targets, clip)
    expected = clipped_gradient(model, images[others], targets[others], clip)
    for name, gradient in found.gradients.items():
        torch.testing.assert_close(gradient, expected.gradients[name])
    torch.testing.assert_close(found.norms[others], expected.norms)
    assert not found.norms[2].isfinite()
    nothing = clipped_gradient(model, torch.full((2, 1, 3, 3), math.nan), targets[:2], clip)
    assert not any(gradient.any() for gradient in nothing.gradients.values())
