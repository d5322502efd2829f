"""The published sizes and the published names of weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from counterpoise._check import InputError
from counterpoise.models.alexnet import AlexNet, alexnet
from counterpoise.models.resnet import NORMS, ResNet, resnet18
from counterpoise.models.vgg import VGG, vgg16


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def published() -> tuple[ResNet, VGG]:
    """Without weights, which would fill half a gigabyte."""
    with torch.device("meta"):
        return ResNet((3, 224, 224), 1000, (2, 2, 2, 2), NORMS["batch"]), VGG((3, 224, 224), 1000, "none")


def test_published_sizes(published: tuple[ResNet, VGG]) -> None:
    sizes = [sum(p.numel() for p in model.parameters()) for model in published]
    assert sizes == [11_689_512, 138_357_544]


def test_published_names(published: tuple[ResNet, VGG]) -> None:
    residual, deep = (model.state_dict() for model in published)
    assert len(residual) == 122
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.1.conv2.weight",
        "layer2.0.downsample.1.bias",
        "fc.bias",
    } <= set(residual)
    assert residual["conv1.weight"].shape == (64, 3, 7, 7)
    assert len(deep) == 32
    assert {"features.0.weight", "features.28.bias", "classifier.0.weight", "classifier.6.bias"} <= set(deep)


def test_alexnet_is_the_published_one_or_the_small_one_of_about_2_million() -> None:
    with torch.device("meta"):
        published = AlexNet((3, 224, 224), 1000, "none", "published")
        small = AlexNet((3, 224, 224), 5, "none", "linear")
    assert sum(p.numel() for p in published.parameters()) == 61_100_840
    assert sum(p.numel() for p in small.parameters()) == 2_469_696 + 5 * 257
    assert {"features.0.weight", "features.10.bias", "classifier.1.weight", "classifier.6.bias"} <= set(
        published.state_dict()
    )
    assert published.state_dict()["features.0.weight"].shape == (64, 3, 11, 11)


@pytest.mark.parametrize("make", [alexnet, vgg16, resnet18])
def test_the_normalisation_can_be_chosen(make: Any) -> None:
    kinds = {norm: {type(m) for m in make((3, 32, 32), 2, rng(), norm=norm).modules()} for norm in ("group", "batch")}
    assert torch.nn.GroupNorm in kinds["group"] - kinds["batch"]
    assert torch.nn.BatchNorm2d in kinds["batch"] - kinds["group"]


@pytest.mark.parametrize("side", [32, 63, 64, 100])
def test_sizes_of_images_for_alexnet(side: int) -> None:
    assert alexnet((1, side, side), 7, rng()).eval()(torch.rand(2, 1, side, side)).shape == (2, 7)


@pytest.mark.parametrize(("make", "side"), [(resnet18, 32), (resnet18, 48), (resnet18, 64), (vgg16, 32), (vgg16, 48)])
def test_sizes_of_images(make: Any, side: int) -> None:
    kwargs = {"blocks": (1, 1, 1, 1)} if make is resnet18 else {}
    assert make((3, side, side), 7, rng(), **kwargs).eval()(torch.rand(2, 3, side, side)).shape == (2, 7)


def test_wrong_choices_are_one_sentence() -> None:
    with pytest.raises(InputError, match="norm='layer' must be one of 'batch', 'group'"):
        resnet18((3, 32, 32), 10, rng(), norm="layer")
    with pytest.raises(InputError, match="resnet18 needs images of at least 16 x 16 pixels"):
        resnet18((3, 8, 8), 10, rng())
    with pytest.raises(InputError, match="head='big' must be one of 'linear', 'published'"):
        alexnet((3, 32, 32), 10, rng(), head="big")
    with pytest.raises(InputError, match="alexnet needs images of at least 32 x 32 pixels"):
        alexnet((3, 31, 32), 10, rng())
    with pytest.raises(InputError, match="norm='layer' must be one of"):
        vgg16((3, 32, 32), 10, rng(), norm="layer")
    with pytest.raises(InputError, match="vgg16 needs images of at least 32 x 32 pixels"):
        vgg16((3, 16, 16), 10, rng())
