"""Class activation maps against closed forms, another library, and networks that trip others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers import GradCAM
from counterpoise.testing import check_explainer


def rng(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(n: int, channels: int = 1, side: int = 8) -> tuple[Tensor, Tensor]:
    return torch.rand(n, channels, side, side, generator=rng(7)), torch.randint(3, (n,), generator=rng(8))


class Pooled(nn.Module):
    """A convolution, then global average pooling and one linear layer, where Grad-CAM is CAM."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, stride=2, padding=1), nn.Softplus())
        self.head = nn.Linear(6, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(images).mean((2, 3)))
        return logits


def test_it_keeps_an_explainers_promises() -> None:
    check_explainer(GradCAM())


def test_on_a_pooled_network_it_is_the_class_activation_map() -> None:
    model, (images, target) = Pooled(), some(4)
    features = model.features(images).detach()
    cam = torch.einsum("nk,nkhw->nhw", model.head.weight.detach()[target], features).relu() / 16
    truth = nn.functional.interpolate(cam[:, None], (8, 8), mode="bilinear")[:, 0]
    assert float(truth.max()) > 0.01
    torch.testing.assert_close(GradCAM().explain(model, images, target, rng()).maps, truth)
    wrong = GradCAM(layer="features.0").explain(model, images, target, rng()).maps
    assert not torch.allclose(wrong, truth, rtol=0.1)


def test_wrong_layers_are_told_in_a_sentence() -> None:
    model, (images, target) = Pooled(), some(2)
    with pytest.raises(InputError, match=r"layer='features.l' is not a part of the model; did you mean 'features.1'\?"):
        GradCAM(layer="features.l").explain(model, images, target, rng())
    with pytest.raises(InputError, match="layer='head' gives no feature map"):
        GradCAM(layer="head").explain(model, images, target, rng())
    dense = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(InputError, match="no convolution whose output has more than one position; use SmoothGrad"):
        GradCAM().explain(dense, images, target, rng())
