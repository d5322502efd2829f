"""Gradients at noisy copies of images, at the speed of the plain gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise.explainers._borrowed import input_gradient
from counterpoise.explainers._probe import Probe


class NoisyGradients:
    """Gradients at x + level * z, for a block of images and one class each."""

    def __init__(self, model: nn.Module, probe: Probe, images: Tensor, target: Tensor) -> None:
        self._model, self._probe, self.images, self.target = model, probe, images, target

    def at(self, level: float, draws: Tensor, chosen: Tensor | None = None) -> Tensor:
        """[n, samples, channels, height, width], for all images or the chosen ones; `draws` has that shape too."""
        images, target = self.images, self.target
        if chosen is not None:
            images, target = images[chosen], target[chosen]
        noisy = torch.add(images[:, None], draws, alpha=level).flatten(0, 1)
        classes = target.repeat_interleave(draws.shape[1])
        rows = zip(torch.split(noisy, self._probe.rows), torch.split(classes, self._probe.rows), strict=True)
        gradients = [input_gradient(self._model, self._probe.arrange(x), y) for x, y in rows]
        whole = gradients[0] if len(gradients) == 1 else torch.cat(gradients)
        return whole.view(draws.shape)

    def still(self) -> Tensor:
        """The gradients at the images themselves, as one sample."""
        return input_gradient(self._model, self._probe.arrange(self.images), self.target)[:, None]
