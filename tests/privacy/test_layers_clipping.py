"""Every layer's rule against one example at a time, on shapes drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import assert_same, clipped, per_example
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.privacy import clipped_gradient
from counterpoise.privacy.layers import Kept, rule_for
from counterpoise.privacy.layers.convolution import Gram, Native, Patches, cheapest, written
from counterpoise.privacy.layers.per_example import Outer
from counterpoise.privacy.layers.replay import replay_rule

FEW = settings(max_examples=25, deadline=None)
sizes = st.integers(1, 5)
norms = st.sampled_from([1, 2])


def summed(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss for outputs of any shape, in which every output has its own weight."""
    flat = outputs.flatten(1)
    weights = torch.sin(1 + 1.7 * torch.arange(flat.shape[1], dtype=flat.dtype))
    return (flat.square() * weights + flat * weights.roll(1) + flat).sum(1) * (1 + targets)


def check(model: nn.Module, images: Tensor, norm: Any = 2, clip: float = 0.7) -> None:
    targets = torch.arange(len(images)) % 3
    want, want_norms = clipped(per_example(model, images, targets, summed), clip, norm)
    got = clipped_gradient(model, images, targets, clip, norm, loss=summed)
    torch.testing.assert_close(got.norms.double(), want_norms, rtol=3e-4, atol=1e-5)
    assert_same(got.gradients, want)


@FEW
@given(n=sizes, wide=sizes, out=sizes, positions=st.integers(0, 6), bias=st.booleans(), norm=norms)
def test_linear(n: int, wide: int, out: int, positions: int, bias: bool, norm: int) -> None:
    torch.manual_seed(n)
    shape = (n, positions, wide) if positions else (n, wide)
    check(nn.Linear(wide, out, bias), torch.randn(shape), norm)


def test_linear_on_images_of_vectors() -> None:
    check(nn.Linear(4, 3), torch.randn(3, 2, 5, 4))


@FEW
@given(
    data=st.data(),
    n=sizes,
    groups=st.integers(1, 3),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    norm=norms,
)
def test_conv2d(data: st.DataObject, n: int, groups: int, kernel: tuple[int, int], norm: int) -> None:
    draw = data.draw
    stride, dilation = draw(st.tuples(sizes, sizes)), draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    padding = draw(st.one_of(st.just("valid"), st.tuples(st.integers(0, 2), st.integers(0, 2))))
    mode: Any = draw(st.sampled_from(["zeros", "reflect", "circular", "replicate"]))
    ins, outs = groups * draw(st.integers(1, 4)), groups * draw(st.integers(1, 4))
    torch.manual_seed(n)
    layer = nn.Conv2d(ins, outs, kernel, stride, padding, dilation, groups, draw(st.booleans()), mode)
    images = torch.randn(n, ins, draw(st.integers(8, 11)), draw(st.integers(8, 11)))
    if draw(st.booleans()):
        images = images.contiguous(memory_format=torch.channels_last)
    check(layer, images, norm)


@FEW
@given(n=sizes, groups=st.integers(1, 2), kernel=st.integers(1, 4), stride=st.integers(1, 3), norm=norms)
def test_conv1d(n: int, groups: int, kernel: int, stride: int, norm: int) -> None:
    torch.manual_seed(n)
    check(nn.Conv1d(2 * groups, 3 * groups, kernel, stride, 1, 1, groups), torch.randn(n, 2 * groups, 12), norm)
    check(nn.Conv1d(2 * groups, 3 * groups, kernel, padding="same", dilation=2), torch.randn(n, 2 * groups, 9), norm)


@pytest.mark.parametrize("form", [written, Native.of, Gram])
@pytest.mark.parametrize(("stride", "dilation", "padding"), [((1, 1), (1, 1), (1, 1)), ((2, 1), (1, 2), (0, 2))])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_each_form_of_a_convolution(
    form: Callable[[Patches], Any],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int],
    layout: Any,
) -> None:
    layer = nn.Conv2d(5, 4, 3, stride, padding, dilation, bias=False)
    images = torch.randn(3, 5, 9, 8).contiguous(memory_format=layout)
    signals = torch.randn_like(layer(images))
    patches = Patches(images, signals, layer.weight.detach(), stride, dilation, padding, 1)
    each = []
    for i in range(3):
        (layer(images[i : i + 1]) * signals[i : i + 1]).sum().backward()
        assert layer.weight.grad is not None
        each.append(layer.weight.grad.clone())
        layer.weight.grad = None
    want, weights = torch.stack(each), torch.tensor([0.5, -1.0, 2.0])
    got = form(patches)
    torch.testing.assert_close(got.each(), want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got.total(weights), torch.tensordot(weights, want, 1), rtol=1e-4, atol=1e-4)
    for norm in (1, 2):
        powers = want.flatten(1).abs().pow(norm).sum(1)
        torch.testing.assert_close(got.powers(norm), powers, rtol=1e-4, atol=1e-4)


def test_the_form_follows_the_shape() -> None:
    def form(channels: int, out: int, side: int, norm: Any = 2) -> str:
        images = torch.empty(1, channels, side, side)
        weight = torch.empty(out, channels, 3, 3)
        patches = Patches(images, torch.zeros(1, out, side, side), weight, (1, 1), (1, 1), (1, 1), 1)
        return type(cheapest(patches, norm)).__name__

    assert form(1, 16, 28) == "Kept"
    assert form(64, 64, 32) == "Native"
    assert form(512, 512, 4) == "Gram"
    assert form(64, 64, 4, norm=1) != "Gram"


@FEW
@given(n=sizes, groups=st.integers(1, 3), per_group=st.integers(2, 3), rank=st.integers(0, 2), norm=norms)
def test_group_norm(n: int, groups: int, per_group: int, rank: int, norm: int) -> None:
    torch.manual_seed(n)
    layer = nn.GroupNorm(groups, groups * per_group)
    nn.init.normal_(layer.weight)
    check(layer, 2 + 3 * torch.randn(n, groups * per_group, *[4, 5][:rank]), norm)


@FEW
@given(n=sizes, shape=st.lists(st.integers(2, 4), min_size=1, max_size=2), positions=st.integers(0, 3), norm=norms)
def test_layer_norm(n: int, shape: list[int], positions: int, norm: int) -> None:
    torch.manual_seed(n)
    layer = nn.LayerNorm(shape, bias=bool(positions % 2))
    check(layer, 1 + torch.randn(n, *[positions] * (positions > 0), *shape), norm)


@pytest.mark.parametrize(
    ("kind", "shape"), [(nn.InstanceNorm1d, (3, 7)), (nn.InstanceNorm2d, (3, 4, 5)), (nn.InstanceNorm3d, (3, 2, 3, 4))]
)
def test_instance_norm(kind: Any, shape: tuple[int, ...]) -> None:
    check(kind(3, affine=True), torch.randn(4, *shape))


@FEW
@given(n=sizes, positions=st.integers(1, 6), wide=sizes, padding=st.sampled_from([None, 1]), norm=norms)
def test_embedding(n: int, positions: int, wide: int, padding: int | None, norm: int) -> None:
    torch.manual_seed(positions)
    check(nn.Embedding(7, wide, padding), torch.randint(7, (n, positions)), norm)


@pytest.mark.parametrize("layer", [nn.Embedding(5, 2, max_norm=1.0), nn.Embedding(5, 2, scale_grad_by_freq=True)])
def test_embeddings_that_mix_examples_are_refused(layer: nn.Embedding) -> None:
    with pytest.raises(InputError, match="lets one example change another's gradient"):
        clipped_gradient(layer, torch.randint(5, (3, 4)), torch.zeros(3), loss=summed)


def test_averages_of_private_images_are_refused() -> None:
    layer = nn.InstanceNorm2d(2, affine=True, track_running_stats=True)
    with pytest.raises(InputError, match="track_running_stats=False"):
        clipped_gradient(layer, torch.randn(3, 2, 4, 4), torch.zeros(3), loss=summed)


class Doubled(nn.Linear):
    """Looks like a linear layer and is none."""

    def forward(self, inputs: Tensor) -> Tensor:
        return 2 * super().forward(inputs).square()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.PReLU(3), (3, 4)),
        (nn.ConvTranspose2d(3, 2, 3), (3, 4, 4)),
        (nn.Conv3d(2, 3, 2), (2, 4, 4, 3)),
        (Doubled(3, 2), (3,)),
        (nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), (3,)),
    ],
)
@pytest.mark.parametrize("norm", [1, 2])
def test_any_other_layer_is_run_again_for_each_example(layer: nn.Module, shape: tuple[int, ...], norm: int) -> None:
    assert rule_for(layer) is replay_rule
    check(layer, torch.randn(4, *shape), norm)


def test_forms_of_a_linear_layer_agree() -> None:
    inputs, signals = torch.randn(3, 6, 4), torch.randn(3, 6, 5)
    product, kept = Outer(inputs, signals), Kept(Outer(inputs, signals).each())
    weights = torch.tensor([1.0, 0.5, -1.0])
    for norm in (1, 2):
        torch.testing.assert_close(product.powers(norm), kept.powers(norm), rtol=1e-4, atol=0)
    torch.testing.assert_close(product.total(weights), kept.total(weights))


def test_norms_are_never_too_small_where_positions_cancel() -> None:
    """Two positions that almost cancel: single precision may lose all that is left, and must not lose the bound."""
    torch.manual_seed(0)
    for scale in (1e-2, 1e-3, 1e-4, 1e-5):
        inputs = torch.randn(50, 1, 40).expand(-1, 2, -1).contiguous()
        signals = torch.randn(50, 1, 30)
        signals = torch.cat((signals, -signals + scale * torch.randn(50, 1, 30)), 1)
        exact = torch.bmm(signals.double().transpose(1, 2), inputs.double()).flatten(1).square().sum(1)
        assert (Outer(inputs, signals).powers(2).double() >= exact).all()
