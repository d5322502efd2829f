"""Class activation maps against closed forms, another library, and wrong requests."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchcam import methods

from counterpoise._check import InputError
from counterpoise.explainers import GradCAM, GradCAMPlusPlus, HiResCAM, LayerCAM
from counterpoise.models.alexnet import alexnet
from counterpoise.models.resnet import resnet18
from counterpoise.models.vgg import vgg16

ALL = [GradCAM, GradCAMPlusPlus, LayerCAM, HiResCAM]


def rng(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(n: int, channels: int = 1, side: int = 8) -> tuple[Tensor, Tensor]:
    return torch.rand(n, channels, side, side, generator=rng(7)).double(), torch.randint(3, (n,), generator=rng(8))


class Pooled(nn.Module):
    """A convolution, then global average pooling and one linear layer, where Grad-CAM is CAM."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.Softplus())
        self.head = nn.Linear(6, 3)
        self.double()

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(images).mean((2, 3)))
        return logits


class Deep(nn.Module):
    """Two convolutions and two dense layers: nothing is known of its maps but by another library."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one = nn.Conv2d(1, 5, 3, padding=1)
        self.norm = nn.GroupNorm(1, 5)
        self.two = nn.Conv2d(5, 6, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(96, 9)
        self.fc2 = nn.Linear(9, 3)
        self.double()

    def forward(self, images: Tensor) -> Tensor:
        x = self.two(torch.tanh(self.norm(self.one(images))))
        logits: Tensor = self.fc2(torch.tanh(self.fc1(x.flatten(1))))
        return logits


def enlarged(coarse: Tensor) -> Tensor:
    return nn.functional.interpolate(coarse[:, None], (8, 8), mode="bilinear")[:, 0].float()


@pytest.mark.parametrize("kind", [GradCAM, HiResCAM])
def test_on_a_pooled_network_it_is_the_class_activation_map(kind: type[Any]) -> None:
    model, (images, target) = Pooled(), some(4)
    features = model.features(images).detach()
    cam = torch.einsum("nk,nkhw->nhw", model.head.weight.detach()[target], features).relu() / 16
    truth = enlarged(cam)
    assert float(truth.max()) > 0.01
    torch.testing.assert_close(kind().explain(model, images, target, rng()).maps, truth)
    wrong = kind(layer="features.0").explain(model, images, target, rng()).maps
    assert not torch.allclose(wrong, truth, rtol=0.1)


def test_layer_cam_leaves_out_what_speaks_against_the_class() -> None:
    model, (images, target) = Pooled(), some(4)
    features = model.features(images).detach()
    weights = model.head.weight.detach()[target].relu()
    truth = enlarged(torch.einsum("nk,nkhw->nhw", weights, features) / 16)
    torch.testing.assert_close(LayerCAM().explain(model, images, target, rng()).maps, truth)


@pytest.mark.parametrize(("kind", "theirs"), [(GradCAM, methods.GradCAM), (LayerCAM, methods.LayerCAM)])
@pytest.mark.parametrize("layer", ["one", "two"])
def test_agrees_with_torch_cam(kind: type[Any], theirs: type[Any], layer: str) -> None:
    model, (images, target) = Deep(), some(5)
    with theirs(model, target_layer=layer, input_shape=(1, 8, 8)) as other:
        coarse = other(target.tolist(), model(images), normalized=False)[0]
    torch.testing.assert_close(kind(layer=layer).explain(model, images, target, rng()).maps, enlarged(coarse.relu()))


@pytest.mark.parametrize("divided", [True, False])
def test_grad_cam_plus_plus_is_its_published_formula(divided: bool) -> None:
    """Position by position. torch-cam's weights lack the division, which it does on a copy; that is told apart."""
    model, (images, target) = Deep(), some(3)
    outputs: list[Tensor] = []
    handle = model.two.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    score: Tensor = model(images).gather(1, target[:, None]).sum()
    handle.remove()
    (gradient,) = torch.autograd.grad(score, outputs)
    a, g = outputs[0].detach(), gradient
    coarse = torch.zeros(3, 4, 4, dtype=torch.float64)
    for n, k in itertools.product(range(3), range(6)):
        weight = 0.0
        for i, j in itertools.product(range(4), range(4)):
            d = float(g[n, k, i, j])
            share = d**2 / (2 * d**2 + float(a[n, k].sum()) * d**3) if divided else d**2
            weight += share * max(d, 0)
        coarse[n] += weight * a[n, k]
    found = GradCAMPlusPlus().explain(model, images, target, rng()).maps
    with methods.GradCAMpp(model, target_layer="two", input_shape=(1, 8, 8)) as other:
        theirs = enlarged(other(target.tolist(), model(images), normalized=False)[0].relu())
    torch.testing.assert_close(found if divided else theirs, enlarged(coarse.relu()))
    assert not torch.allclose(found, theirs)


def test_the_sum_of_hires_cam_before_relu_is_the_score_without_its_bias() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Softplus(), nn.Flatten(), nn.Linear(256, 3)).double()
    images, target = some(4)
    head = model[3]
    assert isinstance(head, nn.Linear)
    with torch.no_grad():
        head.weight.abs_()  # so that ReLU takes nothing away
        score = (model(images) - head.bias).gather(1, target[:, None])[:, 0]
    maps = HiResCAM().explain(model, images, target, rng()).maps
    torch.testing.assert_close(maps.double().sum((1, 2)), score, rtol=1e-5, atol=0)


@pytest.mark.parametrize("kind", ALL)
def test_maps_are_not_stretched_and_blank_ones_stay_blank(kind: type[Any]) -> None:
    model, (images, target) = Pooled(), some(3)
    with torch.no_grad():
        model.head.weight.copy_(-model.head.weight.abs())
    assert float(kind().explain(model, images, target, rng()).maps.abs().max()) == 0
    with torch.no_grad():
        model.head.weight.abs_()
    assert 0 < float(kind().explain(model, images, target, rng()).maps.max()) != 1


@pytest.mark.parametrize(
    ("make", "layer"),
    [(resnet18, "layer4"), (vgg16, "features.29"), (alexnet, "features.11")],
    ids=lambda p: str(p)[:20],
)
def test_the_automatic_layer_is_the_last_with_more_than_one_position(layer: str, make: Any) -> None:
    model = make((3, 32, 32), 3, rng())
    images, target = torch.rand(1, 3, 32, 32, generator=rng()), torch.tensor([1])
    chosen = GradCAM().explain(model, images, target, rng()).maps
    named = GradCAM(layer=layer).explain(model, images, target, rng()).maps
    assert torch.equal(chosen, named)
    assert torch.equal(
        chosen, GradCAM(layer=layer, explainability=Decimal(1)).explain(model, images, target, rng()).maps
    )


def test_a_network_that_was_rebuilt_is_looked_at_again() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    images, target = torch.rand(2, 1, 8, 8), torch.tensor([0, 1])
    first = GradCAM().explain(model, images, target, rng()).maps
    torch.testing.assert_close(first, GradCAM(layer="1").explain(model, images, target, rng()).maps)
    model.insert(2, nn.Conv2d(4, 4, 3))
    second = GradCAM().explain(model, images, target, rng()).maps
    torch.testing.assert_close(second, GradCAM(layer="2").explain(model, images, target, rng()).maps)


def test_wrong_layers_and_degrees_are_told_in_a_sentence() -> None:
    model, (images, target) = Pooled(), some(2)
    names = r"\(to choose from: features\.0, features\.1, features\)"
    with pytest.raises(
        InputError, match=rf"'features.l' is not a part of the model; did you mean 'features.1' {names}\?$"
    ):
        GradCAM(layer="features.l").explain(model, images, target, rng())
    with pytest.raises(
        InputError, match=r"'head' gives no feature map; choose from: features\.0, features\.1, features\.$"
    ):
        GradCAM(layer="head").explain(model, images, target, rng())
    deep = (
        nn.Sequential(*(nn.Conv2d(1, 1, 1) for _ in range(20))).append(nn.Flatten()).append(nn.Linear(64, 3)).double()
    )
    with pytest.raises(InputError, match=r"choose from: 8, 9, 10, .*, 18, 19, and 8 before these\.$"):
        GradCAM(layer="conv").explain(deep, images, target, rng())
    dense = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).double()
    with pytest.raises(InputError, match=r"no convolution whose output has more than one .*; use SmoothGrad"):
        GradCAM().explain(dense, images, target, rng())
    with pytest.raises(InputError, match=r"explainability=0\.5 must be at least 1 and at most 1"):
        GradCAM(explainability=Decimal("0.5"))


class Deaf(Pooled):
    """Does not use the second branch."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Conv2d(1, 2, 3).double()

    def forward(self, images: Tensor) -> Tensor:
        self.unused(images)
        return super().forward(images)


def test_a_layer_without_influence_is_told() -> None:
    images, target = some(2)
    with pytest.raises(InputError, match="layer='unused' has no influence on the class score"):
        GradCAM(layer="unused").explain(Deaf(), images, target, rng())
