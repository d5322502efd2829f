"""The gradient of the class score at the image: the simplest maps there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from counterpoise.explainers._borrowed import input_gradient
from counterpoise.explainers._single import Single
from counterpoise.interface import Explanation


@dataclass(frozen=True)
class Saliency(Single):
    """map = sum over channels of |d S_target / d pixel|.

    Simonyan et al. 2013, who take the largest channel where we take the sum, so that SmoothGrad at noise 0 is this
    map. S is the logit, before softmax.
    """

    name: ClassVar[str] = "saliency"

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        return Explanation(input_gradient(model, images, target).abs().sum(1))


@dataclass(frozen=True)
class GradientTimesInput(Single):
    """map = sum over channels of pixel * d S_target / d pixel.

    Shrikumar et al. 2016. It keeps its sign: what speaks against the class is negative. Of a piecewise linear network
    without biases it adds up to the score. A black pixel gets 0 whatever the model makes of it.
    """

    name: ClassVar[str] = "gradient-x-input"

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        return Explanation((images * input_gradient(model, images, target)).sum(1))
