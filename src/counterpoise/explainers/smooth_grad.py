"""SmoothGrad: the gradient of the class score, averaged over noisy copies of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.explainers._borrowed import borrowed, check_request, input_gradient
from counterpoise.explainers._noise import ImageNoise
from counterpoise.grid import DegreeKind
from counterpoise.interface import Explanation, Trained

CHUNK_VALUES = 2**17
"""Pixel values in one forward and backward pass: memory stays the same however many samples are asked for."""


@dataclass(frozen=True)
class SmoothGrad:
    """map = sum over channels of |mean over samples of d S_target(x + noise * z) / d pixel|, z ~ N(0, I).

    Smilkov et al. 2017. S is the logit, before softmax. `noise` is a standard deviation in the [0, 1] pixel
    space, the same for every image; noisy pixels are not clamped. At noise 0 the map is the plain gradient's.

    The absolute value comes after the mean, which estimates the gradient of the smoothed score: a mean of
    absolute values would grow with the noise of the gradient itself. Channels are summed as absolute values,
    so that opposite signs in two colours cannot cancel: it is how far the score moves, to first order, when
    the pixel's channels move together by one unit, each in its worse direction.

    The images explained are the ones the protected model sees: the caller has already sent them through
    `trained.release`, and the noise comes after it. `stderr` is the Monte-Carlo standard error of the map: exact
    for one channel, and for more channels the sum of the channels' errors, which is an upper bound.

    Same image, seed and model: same draws, in any batch and at any chunk size. The maps agree to about 1e-6 of
    their size, not bit for bit, because convolutions may round differently in another batch.
    """

    noise: Decimal | float = Decimal("0.15")
    samples: int = 25

    name: ClassVar[str] = "smoothgrad"
    kind: ClassVar[DegreeKind] = DegreeKind("explainability", "up", Decimal(0), Decimal(1))
    degree_field: ClassVar[str] = "noise"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        _check.in_range(0, 1, noise=self.noise)
        _check.at_least(1, samples=self.samples)

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        """The map of each image for its target class."""
        (explanation,) = self.explain_degrees([Decimal(str(self.noise))], trained, images, target, rng)
        return explanation

    def explain_degrees(
        self,
        degrees: Sequence[Decimal],
        trained: Trained | nn.Module,
        images: Tensor,
        target: Tensor,
        rng: torch.Generator,
    ) -> list[Explanation]:
        """One explanation a noise level, all from the same draws z: x + level * z."""
        check_request(images, target)
        for degree in degrees:
            _check.in_range(0, 1, noise=degree)
        levels = torch.tensor([float(degree) for degree in degrees], dtype=images.dtype, device=images.device)
        # Whole streams of one block of images at a time: what is kept grows with the block, not with the samples.
        block = max(1, CHUNK_VALUES // images[0].numel())
        with borrowed(trained) as model:
            parts = [
                self._block(model, levels, x, y, rng.initial_seed())
                for x, y in zip(torch.split(images, block), torch.split(target, block), strict=True)
            ]
        maps, errors = (torch.cat(tensors, dim=1) for tensors in zip(*parts, strict=True))
        return [
            Explanation(m, None if self.samples == 1 and degree > 0 else e, self.samples)
            for degree, m, e in zip(degrees, maps, errors, strict=True)
        ]

    def _block(
        self, model: nn.Module, levels: Tensor, images: Tensor, target: Tensor, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Maps and standard errors of a block of images, both float32 [levels, n, height, width]."""
        mean = torch.zeros(len(levels), *images.shape, dtype=torch.float64, device=images.device)
        squares = torch.zeros_like(mean)
        still, noisy = levels == 0, levels > 0
        if still.any():
            mean[still] = input_gradient(model, images, target).double()
        if noisy.any():
            mean[noisy], squares[noisy] = self._moments(model, levels[noisy], images, target, seed)
        errors = (squares / max(1, self.samples - 1) / self.samples).sqrt()
        return mean.abs().sum(2).float(), errors.sum(2).float()

    def _moments(
        self, model: nn.Module, levels: Tensor, images: Tensor, target: Tensor, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Mean and summed squared deviation of the noisy gradients, [levels, n, channels, height, width].

        Chunks of samples are merged by Chan's formula: in one pass, and without the cancellation of
        E[g^2] - E[g]^2, which can turn negative.
        """
        noise = ImageNoise(images, seed)
        mean = torch.zeros(len(levels), *images.shape, dtype=torch.float64, device=images.device)
        squares = torch.zeros_like(mean)
        at_once = max(1, CHUNK_VALUES // (images.numel() * len(levels)))
        done = 0
        while done < self.samples:
            count = min(at_once, self.samples - done)
            gradients = _noisy_gradients(model, levels, images, target, noise.take(count))
            chunk_mean = gradients.mean(2)
            shift = chunk_mean - mean
            squares += (gradients - chunk_mean.unsqueeze(2)).square().sum(2)
            squares += shift.square() * (done * count / (done + count))
            mean += shift * (count / (done + count))
            done += count
        return mean, squares


def _noisy_gradients(model: nn.Module, levels: Tensor, images: Tensor, target: Tensor, draws: Tensor) -> Tensor:
    """Gradients float64 [levels, n, samples, channels, height, width] at x + level * draw."""
    noisy = images[:, None] + levels.view(-1, 1, 1, 1, 1, 1) * draws
    count = noisy.shape[:3].numel()
    classes = target[:, None].expand(noisy.shape[:3]).reshape(count)
    per_pass = max(1, CHUNK_VALUES // images[0].numel())
    gradients = [
        input_gradient(model, x, y)
        for x, y in zip(torch.split(noisy.flatten(0, 2), per_pass), torch.split(classes, per_pass), strict=True)
    ]
    return torch.cat(gradients).view(noisy.shape).double()
