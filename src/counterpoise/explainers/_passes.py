"""How many images go through a network at a time, and in which memory layout: what makes gradients fast.

Decided from the network alone and not by a clock, so that a run repeats to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from counterpoise.explainers._borrowed import input_gradient
from counterpoise.training import channels_last

FAST = 3 * 2**20
"""Activation values in one pass. Fewer, and the cost of calling every layer shows; more, and they leave the caches."""
ENOUGH = 32
"""Rows that share one reading of a large network's weights, although its activations leave the caches."""
MOST = 2**26
"""Activation values that are never exceeded by more than one row: a quarter of a gigabyte."""


@dataclass(frozen=True)
class Passes:
    """`rows` images at a time, brought into layout by `arrange`."""

    rows: int
    arrange: Callable[[Tensor], Tensor]

    @classmethod
    def through(cls, model: nn.Module, images: Tensor, target: Tensor) -> Passes:
        """Look at one image's way through the model.

        Channels beside each other make convolutions and pooling up to twice as fast on a processor. A model that asks
        for a `view` of its maps cannot have that, and keeps the usual layout.
        """
        one, label = images[:1], target[:1]
        try:
            values, arrange = _activations(model, channels_last(one), label), channels_last
        except RuntimeError:  # torch's word for a view that does not exist
            values, arrange = _activations(model, one, label), _as_it_is
        return cls(max(1, FAST // values, min(ENOUGH, MOST // values)), arrange)

    def counts(self, samples: int) -> list[int]:
        """The samples in even parts of at most `rows`."""
        parts = -(-samples // self.rows)
        return [samples // parts + (index < samples % parts) for index in range(parts)]


def _as_it_is(images: Tensor) -> Tensor:
    return images


def _activations(model: nn.Module, image: Tensor, label: Tensor) -> int:
    """How many values the model's layers hold of one image; runs it forwards and backwards."""
    values = image.numel()

    def count(module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal values
        values += output.numel() if isinstance(output, Tensor) else 0

    handles = [m.register_forward_hook(count) for m in model.modules() if not any(True for _ in m.children())]
    try:
        input_gradient(model, image, label)
    finally:
        for handle in handles:
            handle.remove()
    return values


class NoisyGradients:
    """Gradients at x + level * z, for a block of images and one class each."""

    def __init__(self, model: nn.Module, passes: Passes, images: Tensor, target: Tensor) -> None:
        self._model, self._passes, self.images, self.target = model, passes, images, target

    def at(self, level: float, draws: Tensor, chosen: Tensor | None = None) -> Tensor:
        """[n, samples, channels, height, width], for all images or the chosen ones; `draws` has that shape too."""
        images, target = self.images, self.target
        if chosen is not None:
            images, target = images[chosen], target[chosen]
        noisy = torch.add(images[:, None], draws, alpha=level).flatten(0, 1)
        classes = target.repeat_interleave(draws.shape[1])
        rows = zip(torch.split(noisy, self._passes.rows), torch.split(classes, self._passes.rows), strict=True)
        gradients = [input_gradient(self._model, self._passes.arrange(x), y) for x, y in rows]
        whole = gradients[0] if len(gradients) == 1 else torch.cat(gradients)
        return whole.view(draws.shape)

    def still(self) -> Tensor:
        """The gradients at the images themselves, as one sample."""
        return input_gradient(self._model, self._passes.arrange(self.images), self.target)[:, None]
