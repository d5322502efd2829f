"""Class activation maps: where the feature maps of a layer speak for the class, at the layer's resolution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise.explainers._borrowed import borrowed, check_request
from counterpoise.explainers._layers import activation_and_gradient, find_layer
from counterpoise.explainers._single import SINGLE
from counterpoise.grid import DegreeKind
from counterpoise.interface import Explanation, Trained

CHUNK_VALUES = 2**20
"""Pixel values in one pass: memory stays the same however many images there are."""


@dataclass(frozen=True)
class _ClassActivation(ABC):
    """map = ReLU(sum_k w_k A^k), enlarged to the image (bilinear): A^k are the layer's feature maps, g^k = dS/dA^k.

    S is the logit of the asked class, before softmax. `layer` is a name in `model.named_modules()`; without one
    it is the last layer that still has more than one position, the automatic choice. Where a layer is used several
    times, its last use counts. Maps are not stretched to [0, 1]: a map that is 0 everywhere says that nothing
    in the layer speaks for the class, and stretching would hide how much does.
    """

    layer: str | None = None
    explainability: Decimal = Decimal(1)

    kind: ClassVar[DegreeKind] = SINGLE
    degree_field: ClassVar[str] = SINGLE.name
    needs: ClassVar[frozenset[str]] = frozenset({"spatial"})

    def __post_init__(self) -> None:
        self.kind.check(self.explainability)

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        """The map of each image for its target class; nothing is drawn from `rng`."""
        check_request(images, target)
        chunk = max(1, CHUNK_VALUES // images[0].numel())
        with borrowed(trained) as model:
            place = find_layer(model, images, self.layer)
            maps = [
                self._combine(*activation_and_gradient(model, place, x, y))
                for x, y in zip(torch.split(images, chunk), torch.split(target, chunk), strict=True)
            ]
        coarse = torch.relu(torch.cat(maps))[:, None]
        fine = nn.functional.interpolate(coarse, images.shape[2:], mode="bilinear", align_corners=False)
        return Explanation(fine[:, 0].float())

    @abstractmethod
    def _combine(self, activation: Tensor, gradient: Tensor) -> Tensor:
        """sum_k w_k A^k, [n, h, w], from [n, k, h, w] both."""


def _weighted(weights: Tensor, activation: Tensor) -> Tensor:
    """The same weight at every position of a feature map."""
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
