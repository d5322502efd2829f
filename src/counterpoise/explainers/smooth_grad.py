"""SmoothGrad and its relatives: the gradient of the class score at noisy copies of the image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.explainers._borrowed import borrowed, check_request
from counterpoise.explainers._gradients import NoisyGradients
from counterpoise.explainers._moments import Moments
from counterpoise.explainers._noise import ImageNoise
from counterpoise.explainers._probe import Probe, even, probe
from counterpoise.explainers._stable import until_stable
from counterpoise.grid import DegreeKind
from counterpoise.interface import Explanation, Progress, Trained


@dataclass(frozen=True)
class _Noisy(ABC):
    """A map made of d S_target(x + noise * z) / d pixel for `samples` draws of z ~ N(0, I).

    S is the logit, before softmax. `noise` is a standard deviation in the [0, 1] pixel space, the same for every
    image; noisy pixels are not clamped. The images explained are the ones the protected model sees: the caller has
    already sent them through `trained.release`, and the noise comes after it.

    `stderr` is the Monte-Carlo standard error of the map. Same image, seed and model: same draws, in any batch and at
    any chunk size. The maps agree to about 1e-6 of their size, not bit for bit, because convolutions may round
    differently in another batch.

    With `stable_top`, a share of the pixels such as 0.1, an image's draws double, up to `samples`, until two halves of
    them agree on the share `agreement` of that many most important pixels: until another sample would say the same.
    """

    noise: Decimal | float = Decimal("0.15")
    samples: int = 25
    stable_top: float | None = None
    agreement: float = 0.9

    kind: ClassVar[DegreeKind] = DegreeKind("explainability", "up", Decimal(0), Decimal(1))
    degree_field: ClassVar[str] = "noise"
    needs: ClassVar[frozenset[str]] = frozenset()
    order: ClassVar[int] = 2
    """The highest power whose sum the map and its error need."""

    def __post_init__(self) -> None:
        _check.in_range(0, 1, noise=self.noise)
        _check.at_least(1, samples=self.samples)
        _check.in_range(0, 1, agreement=self.agreement)
        if self.stable_top is not None:
            _check.inside(0, 1, stable_top=self.stable_top)

    def explain(
        self,
        trained: Trained | nn.Module,
        images: Tensor,
        target: Tensor,
        rng: torch.Generator,
        *,
        progress: Progress = lambda done: None,
    ) -> Explanation:
        """The map of each image for its target class; `progress` hears the share that is done."""
        degree = Decimal(str(self.noise))
        (explanation,) = self.explain_degrees([degree], trained, images, target, rng, progress=progress)
        return explanation

    def explain_degrees(
        self,
        degrees: Sequence[Decimal],
        trained: Trained | nn.Module,
        images: Tensor,
        target: Tensor,
        rng: torch.Generator,
        *,
        progress: Progress = lambda done: None,
    ) -> list[Explanation]:
        """One explanation a noise level, all from the same draws z: x + level * z."""
        check_request(images, target)
        for degree in degrees:
            _check.in_range(0, 1, noise=degree)
        parts: list[list[Explanation]] = []
        done = 0
        with borrowed(trained) as model:
            probed = probe(model, images)
            probed.check(target)
            blocks = even(len(images), max(1, probed.rows // probed.counts(self.samples)[0]))
            for x, y in zip(torch.split(images, blocks), torch.split(target, blocks), strict=True):
                gradients = NoisyGradients(model, probed, x, y)
                parts.append(self._block(gradients, probed, degrees, rng.initial_seed()))
                done += len(x)
                progress(done / len(images))
        return [_joined(level) for level in zip(*parts, strict=True)]

    def _block(
        self, gradients: NoisyGradients, probed: Probe, degrees: Sequence[Decimal], seed: int
    ) -> list[Explanation]:
        """The explanations of a block of images, one a level."""
        still = self._moments()
        if 0 in degrees:
            still.add(self._quantity(gradients.still()))
        noisy = [degree for degree in degrees if degree > 0]
        if self.stable_top is None:
            found = self._all_samples(gradients, probed, noisy, seed)
        else:
            found = {degree: self._enough_samples(gradients, probed, degree, seed) for degree in noisy}
        certain = [Explanation(*self._maps(still), self.samples)] if 0 in degrees else []
        return [found[degree] if degree > 0 else certain[0] for degree in degrees]

    def _all_samples(
        self, gradients: NoisyGradients, probed: Probe, degrees: Sequence[Decimal], seed: int
    ) -> dict[Decimal, Explanation]:
        moments = {degree: self._moments() for degree in degrees}
        noise = ImageNoise(gradients.images, seed)
        for count in probed.counts(self.samples) if moments else []:
            draws = noise.take(count)
            for degree, so_far in moments.items():
                so_far.add(self._quantity(gradients.at(float(degree), draws)))
        return {degree: self._explanation(so_far) for degree, so_far in moments.items()}

    def _enough_samples(self, gradients: NoisyGradients, probed: Probe, degree: Decimal, seed: int) -> Explanation:
        noise = ImageNoise(gradients.images, seed)

        def draw(count: int, chosen: Tensor, so_far: Moments) -> None:
            for part in probed.counts(count):
                so_far.add(self._quantity(gradients.at(float(degree), noise.take(part, chosen), chosen)))

        assert self.stable_top is not None
        return until_stable(
            draw, self._moments, self._maps, len(gradients.images), self.samples, self.stable_top, self.agreement
        )

    def _moments(self) -> Moments:
        return Moments(self.order)

    def _explanation(self, moments: Moments) -> Explanation:
        maps, errors = self._maps(moments)
        return Explanation(maps, None if self.samples == 1 else errors, self.samples)

    def _quantity(self, gradients: Tensor) -> Tensor:
        """What is averaged, [n, samples, channels or 1, height, width], from the gradients."""
        return gradients

    @abstractmethod
    def _maps(self, moments: Moments) -> tuple[Tensor, Tensor]:
        """Maps and standard errors, float32 [n, height, width]."""


@dataclass(frozen=True)
class SmoothGrad(_Noisy):
    """map = sum over channels of |mean over samples of d S_target(x + noise * z) / d pixel|, z ~ N(0, I).

    Smilkov et al. 2017. At noise 0 the map is the plain gradient's.

    The absolute value comes after the mean, which estimates the gradient of the smoothed score: a mean of
    absolute values would grow with the noise of the gradient itself. Channels are summed as absolute values,
    so that opposite signs in two colours cannot cancel: it is how far the score moves, to first order, when
    the pixel's channels move together by one unit, each in its worse direction. `stderr` is exact for one channel;
    for more it is the sum of the channels' errors, which is an upper bound.
    """

    name: ClassVar[str] = "smoothgrad"

    def _maps(self, moments: Moments) -> tuple[Tensor, Tensor]:
        return moments.mean().abs().sum(1).float(), moments.error_of_mean().sum(1).float()


@dataclass(frozen=True)
class SmoothGradSquared(_Noisy):
    """map = mean over samples of the sum over channels of (d S_target(x + noise * z) / d pixel)^2, z ~ N(0, I).

    Hooker et al., NeurIPS 2019. It is SmoothGrad's square plus the gradient's variance, so it grows with the noise
    where the model is curved. `stderr` is exact.
    """

    name: ClassVar[str] = "smoothgrad-squared"

    def _quantity(self, gradients: Tensor) -> Tensor:
        return gradients.square().sum(2, keepdim=True)

    def _maps(self, moments: Moments) -> tuple[Tensor, Tensor]:
        return moments.mean()[:, 0].float(), moments.error_of_mean()[:, 0].float()


@dataclass(frozen=True)
class VarGrad(_Noisy):
    """map = sum over channels of the variance over samples of d S_target(x + noise * z) / d pixel, z ~ N(0, I).

    Adebayo et al. 2018; unbiased (divided by samples - 1). Where the score is linear in a pixel it is 0, however
    important the pixel. `stderr` comes from the fourth moment; for more than one channel it is an upper bound, and
    with few samples too small itself.
    """

    name: ClassVar[str] = "vargrad"
    order: ClassVar[int] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.at_least(2, samples=self.samples)

    def _maps(self, moments: Moments) -> tuple[Tensor, Tensor]:
        return moments.variance().sum(1).float(), moments.error_of_variance().sum(1).float()


def _joined(parts: Sequence[Explanation]) -> Explanation:
    """Consecutive blocks as one."""
    errors = [part.stderr for part in parts if part.stderr is not None]
    drawn = [part.drawn for part in parts if part.drawn is not None]
    return Explanation(
        torch.cat([part.maps for part in parts]),
        torch.cat(errors) if errors else None,
        parts[0].samples,
        torch.cat(drawn) if drawn else None,
    )
