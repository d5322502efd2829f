"""An attack on explanations: move the image a little, keep the predicted class, and empty the map's top k.

The attack of Ghorbani, Abid and Zou (AAAI 2019), in the ball of Levine, Singla and Feizi (2019): gradient steps that
lower the share of the saliency which lies on the clean map's top k. The gradient of a ReLU network's gradient is 0
almost everywhere, so the steps follow a twin in which every ReLU is a softplus; the label is checked on the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from counterpoise import _check
from counterpoise.training import apply

_RELUS = (torch.relu, torch.relu_, nn.functional.relu, nn.functional.relu_, Tensor.relu, Tensor.relu_)


class _Softened(TorchFunctionMode):
    """Inside, every ReLU is a softplus: almost the same map, with a second derivative. No weight is copied."""

    def __init__(self, sharpness: float) -> None:
        super().__init__()
        self._sharpness = sharpness

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _RELUS:
            return nn.functional.softplus(args[0], beta=self._sharpness)
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class MapAttack:
    """How far and how hard to attack. With `noise` it is adaptive: it follows the mean over `draws` noisy copies.

    `radius` is in [0, 1] pixels, in the norm `norm`. Each restart begins at a random point of the ball.
    """

    radius: float
    norm: Literal["l2", "linf"] = "l2"
    steps: int = 12
    restarts: int = 2
    noise: float = 0.0
    draws: int = 8
    sharpness: float = 10.0

    def __post_init__(self) -> None:
        _check.positive(radius=self.radius, sharpness=self.sharpness)
        _check.one_of(("l2", "linf"), norm=self.norm)
        _check.at_least(1, steps=self.steps, restarts=self.restarts, draws=self.draws)
        _check.not_negative(noise=self.noise)

    def __call__(
        self, model: nn.Module, images: Tensor, target: Tensor, important: Tensor, rng: torch.Generator
    ) -> Tensor:
        """The moved images [n, c, h, w]. `important` [n, h, w] is true on the pixels to push out of the top.

        Of all iterates that keep the model's prediction, the one with the least saliency on the important pixels is
        given; the image itself where none keeps it. The model is given back as it was found.
        """
        modes = [(module, module.training) for module in model.modules()]
        wanted = [(weight, weight.requires_grad) for weight in model.parameters()]
        try:
            model.eval()
            for weight, _ in wanted:
                weight.requires_grad_(False)
            return self._search(model, images.detach(), target, important, rng)
        finally:
            for weight, requires_grad in wanted:
                weight.requires_grad_(requires_grad)
            for module, mode in modes:
                module.training = mode

    def _search(
        self, model: nn.Module, images: Tensor, target: Tensor, important: Tensor, rng: torch.Generator
    ) -> Tensor:
        label = apply(model, images).argmax(1)
        best, least = images.clone(), torch.full((len(images),), torch.inf)
        for restart in range(self.restarts):
            start = torch.randn(images.shape, generator=rng)
            moved = self._back(images, images + (0.1 if restart == 0 else 1.0) * self.radius * self._direction(start))
            # The same noise at every step of a restart: the loss then falls because the image moves, not by luck.
            noise = self.noise * torch.randn((self.draws if self.noise else 1, *images.shape), generator=rng)
            for index in range(self.steps + 1):
                loss, gradient = self._slope(model, moved, noise, target, important)
                better = (loss < least) & (apply(model, moved).argmax(1) == label)
                best[better], least[better] = moved[better], loss[better]
                pace = self.radius * (1.0 if index < self.steps / 2 else 0.3)
                moved = self._back(images, moved - pace * self._direction(gradient))
        return best

    def _slope(
        self, model: nn.Module, moved: Tensor, noise: Tensor, target: Tensor, important: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The share of the twin's saliency on the important pixels, each image's, and its gradient."""
        loss, gradient = torch.zeros(len(moved)), torch.zeros_like(moved)
        for draw in noise:
            with torch.enable_grad(), _Softened(self.sharpness):
                pixels = moved.clone().requires_grad_(True)
                score = model(pixels + draw).gather(1, target[:, None]).sum()
                (saliency,) = torch.autograd.grad(score, pixels, create_graph=True)
                size = saliency.abs().sum(1)
                share = (size * important).sum((1, 2)) / size.sum((1, 2)).clamp(min=1e-20)
                if share.requires_grad:  # a linear model's saliency is the same everywhere: there is no slope
                    gradient += torch.autograd.grad(share.sum(), pixels)[0]
            loss += share.detach()
        return loss / len(noise), gradient

    def _direction(self, gradient: Tensor) -> Tensor:
        if self.norm == "linf":
            return gradient.sign()
        return nn.functional.normalize(gradient.flatten(1), dim=1, eps=1e-20).view(gradient.shape)

    def _back(self, images: Tensor, moved: Tensor) -> Tensor:
        """Into the ball, then into [0, 1], which only brings a point nearer to an image that lies there."""
        off = moved - images
        if self.norm == "linf":
            off = off.clamp(-self.radius, self.radius)
        else:
            length = off.flatten(1).norm(dim=1).clamp(min=1e-20)
            off = off * (self.radius / length).clamp(max=1).view(-1, 1, 1, 1)
        return torch.clamp(images + off, 0, 1)


def most_important(maps: Tensor, k: int) -> Tensor:
    """True on the k largest values of each map [n, h, w]; of equal values the first in reading order counts."""
    chosen = maps.flatten(1).argsort(dim=1, descending=True, stable=True)[:, :k]
    return torch.zeros_like(maps.flatten(1), dtype=torch.bool).scatter_(1, chosen, True).view(maps.shape)


def overlap(one: Tensor, two: Tensor, k: int) -> Tensor:
    """The share of the k largest values of `one` that are among the k largest of `two`, for each map."""
    both = most_important(one, k) & most_important(two, k)
    return both.flatten(1).sum(1) / k
