"""Everything that lets one image change another's gradient is found by trying, and named."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from counterpoise._check import InputError
from counterpoise.models.resnet import resnet18
from counterpoise.models.small_cnn import small_cnn
from counterpoise.privacy import check_isolation, clipped_gradient, convert

RNG = torch.Generator().manual_seed(0)
IMAGES, TARGETS = torch.rand(4, 3, 16, 16, generator=RNG), torch.arange(4)


class Renamed(nn.BatchNorm2d):
    """A list of forbidden types would not find it."""


class Functional(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return functional.batch_norm(x, None, None, training=True)


class Centred(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0)


def model(mixer: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        mixer,
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32, 10),
    )


@pytest.mark.parametrize("mixer", [nn.BatchNorm2d(8), Renamed(8), Functional(), Centred()])
def test_layers_that_mix_are_named_with_advice(mixer: nn.Module) -> None:
    with pytest.raises(InputError, match=rf"1 \({type(mixer).__name__}\): lets one image change.*convert\(model\)"):
        check_isolation(model(mixer), IMAGES, TARGETS)


@pytest.mark.parametrize("kind", [nn.Identity(), nn.GroupNorm(2, 8), nn.InstanceNorm2d(8), nn.LayerNorm([8, 16, 16])])
def test_layers_that_do_not_mix_pass(kind: nn.Module) -> None:
    network = model(kind)
    check_isolation(network.train(), IMAGES, TARGETS)
    check_isolation(network.eval(), IMAGES, TARGETS)


def test_networks_of_the_house_pass_and_are_left_alone() -> None:
    network = resnet18((3, 16, 16), 10, RNG, blocks=(1, 1))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    check_isolation(network, IMAGES, TARGETS)
    check_isolation(small_cnn((3, 16, 16), 10, RNG), IMAGES, TARGETS)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    with pytest.raises(InputError, match=r"bn1 \(BatchNorm2d\)"):
        check_isolation(resnet18((3, 16, 16), 10, RNG, blocks=(1, 1), norm="batch"), IMAGES, TARGETS)


def test_a_loss_that_compares_examples_is_named() -> None:
    def contrastive(outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs @ outputs.T, torch.arange(len(outputs)), reduction="none")

    with pytest.raises(InputError, match="loss: compares examples with each other"):
        check_isolation(model(nn.Identity()), IMAGES, TARGETS, contrastive)


def test_statistics_of_the_images_are_named() -> None:
    with pytest.raises(InputError, match=r"1\.running_mean: keeps statistics of the images"):
        check_isolation(model(nn.InstanceNorm2d(8, track_running_stats=True)), IMAGES, TARGETS)
    with pytest.raises(InputError, match="a probe of 1 cannot show"):
        check_isolation(model(nn.Identity()), IMAGES[:1], TARGETS[:1])


@pytest.mark.parametrize(
    "mixer",
    [nn.BatchNorm2d(8), Renamed(8), nn.BatchNorm2d(8, affine=False), nn.InstanceNorm2d(8, track_running_stats=True)],
)
def test_converted_models_pass_and_train(mixer: Any) -> None:
    original = model(mixer)
    converted = convert(original)
    check_isolation(converted, IMAGES, TARGETS)
    clipped_gradient(converted, IMAGES, TARGETS)
    assert type(original.get_submodule("1")) is type(mixer)


def test_clipping_by_itself_refuses_batch_norm_that_learns() -> None:
    network = model(nn.BatchNorm2d(8))
    with pytest.raises(InputError, match=r"1 \(BatchNorm2d\): mixes the images of a batch"):
        clipped_gradient(network, IMAGES, TARGETS)
    assert clipped_gradient(network.eval(), IMAGES, TARGETS).norms.shape == (4,)


def test_converted_vectors_keep_their_information() -> None:
    network = nn.Sequential(nn.Linear(3, 32), nn.BatchNorm1d(32))
    outputs = convert(network)(torch.rand(5, 3))
    assert outputs.std(0).min() > 0.01
    assert isinstance(convert(nn.BatchNorm2d(6)), nn.GroupNorm)
    assert convert(nn.BatchNorm2d(6)).num_groups == 2
