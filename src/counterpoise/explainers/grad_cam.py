"""Class activation maps: where the feature maps of a layer speak for the class, at the layer's resolution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise.explainers._layers import activation_and_gradient, check_layer, find_layer
from counterpoise.explainers._single import Single
from counterpoise.interface import Explanation


@dataclass(frozen=True)
class _ClassActivation(Single):
    """map = ReLU(sum_k w_k A^k), enlarged to the image (bilinear): A^k are the layer's feature maps, g^k = dS/dA^k.

    S is the logit of the asked class, before softmax. `layer` is a name in `model.named_modules()`; without one
    it is the last layer that still has more than one position, the automatic choice. Where a layer is used several
    times, its last use counts. Maps are not stretched to [0, 1]: a map that is 0 everywhere says that nothing
    in the layer speaks for the class, and stretching would hide how much does.
    """

    layer: str | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"spatial"})

    def check_model(self, model: nn.Module, shape: tuple[int, int, int]) -> None:
        """Raise unless the layer is there and gives a feature map: a study finds out before it trains."""
        check_layer(model, shape, self.layer)

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        place = find_layer(model, images, self.layer)
        coarse = torch.relu(self._combine(*activation_and_gradient(model, place, images, target)))
        fine = nn.functional.interpolate(coarse[:, None], images.shape[2:], mode="bilinear", align_corners=False)
        return Explanation(fine[:, 0])

    @abstractmethod
    def _combine(self, activation: Tensor, gradient: Tensor) -> Tensor:
        """sum_k w_k A^k, [n, h, w], from [n, k, h, w] both."""


def _weighted(weights: Tensor, activation: Tensor) -> Tensor:
    """One weight a feature map, the same at all its positions."""
    return torch.einsum("nk,nkhw->nhw", weights, activation)


@dataclass(frozen=True)
class GradCAM(_ClassActivation):
    """Grad-CAM: w_k = mean over positions of g^k.

    Selvaraju et al., ICCV 2017. On a network that ends in global average pooling and one linear layer it is the
    class activation map of Zhou et al. 2016, divided by the number of positions.
    """

    name: ClassVar[str] = "grad-cam"

    def _combine(self, activation: Tensor, gradient: Tensor) -> Tensor:
        return _weighted(gradient.mean((2, 3)), activation)


@dataclass(frozen=True)
class GradCAMPlusPlus(_ClassActivation):
    """Grad-CAM++: w_k = sum over positions of a^k ReLU(g^k), a^k = (g^k)^2 / (2 (g^k)^2 + (g^k)^3 sum A^k).

    Chattopadhay et al., WACV 2018, whose score is exp(S): its derivatives are powers of g times exp(S), which
    scales the whole map and is left out, as it overflows. Where g or the denominator is 0, so is a.
    """

    name: ClassVar[str] = "grad-cam++"

    def _combine(self, activation: Tensor, gradient: Tensor) -> Tensor:
        # (g^k)^2 cancels, which also saves small gradients from underflow.
        denominator = 2 + gradient * activation.sum((2, 3), keepdim=True)
        share = torch.where((gradient != 0) & (denominator != 0), 1 / denominator, 0)
        return _weighted((share * torch.relu(gradient)).sum((2, 3)), activation)


@dataclass(frozen=True)
class LayerCAM(_ClassActivation):
    """LayerCAM: the weight of each position is ReLU(g^k) there.

    Jiang et al., IEEE TIP 2021. Meant for earlier layers too, which are finer.
    """

    name: ClassVar[str] = "layer-cam"

    def _combine(self, activation: Tensor, gradient: Tensor) -> Tensor:
        return (torch.relu(gradient) * activation).sum(1)


@dataclass(frozen=True)
class HiResCAM(_ClassActivation):
    """HiResCAM: the weight of each position is g^k there.

    Draelos and Carin 2020. On a network that ends in linear layers the sum of the map, before ReLU, is the score
    without its bias: what Grad-CAM shows need not be what the model used, this is.
    """

    name: ClassVar[str] = "hires-cam"

    def _combine(self, activation: Tensor, gradient: Tensor) -> Tensor:
        return (gradient * activation).sum(1)
