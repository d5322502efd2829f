"""Class-model visualisation: the image that a model takes for a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.explainers._borrowed import borrowed
from counterpoise.explainers._single import Single
from counterpoise.interface import Explanation, Trained

GREY = 0.5


@dataclass(frozen=True)
class ClassModel(Single):
    """The class's image is argmax over d of S_class(grey + d) - omega ||d||^2; map = sum over its channels of |d|.

    Simonyan et al. 2013, section 2. S is the logit. The search starts at mid-grey and takes at most `steps` steps of
    L-BFGS, which needs no learning rate; on a network the maximum it finds need not be the highest. The map is
    the same for every image of a class: it shows the class, not the image, and is what an image's map can be
    compared with. Pixels are not kept in [0, 1]; a larger omega keeps them nearer to grey.
    """

    omega: float = 0.1
    steps: int = 50

    name: ClassVar[str] = "class-model"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.positive(omega=self.omega)
        _check.at_least(1, steps=self.steps)

    def picture(self, trained: Trained | nn.Module, shape: tuple[int, int, int], label: int) -> Tensor:
        """The class's image, [channels, height, width]."""
        with borrowed(trained) as model:
            return GREY + self._moved(model, torch.zeros(1, *shape), label)

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        blank = torch.zeros_like(images[:1], memory_format=torch.contiguous_format)
        maps = {label: self._moved(model, blank, label).abs().sum(0) for label in set(target.tolist())}
        return Explanation(torch.stack([maps[label] for label in target.tolist()]))

    def _moved(self, model: nn.Module, blank: Tensor, label: int) -> Tensor:
        """The best d, one class at a time: a search that shared its steps would mix the classes."""
        d = blank.clone().requires_grad_(True)
        search = torch.optim.LBFGS([d], max_iter=self.steps, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            with torch.enable_grad():
                value: Tensor = self.omega * d.square().sum() - model(GREY + d)[0, label]
            d.grad = torch.autograd.grad(value, d)[0].contiguous()
            return value

        search.step(loss)  # type: ignore[no-untyped-call]
        return d.detach()[0]
