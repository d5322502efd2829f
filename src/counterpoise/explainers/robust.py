"""Smoothed, re-scored saliency whose top k carries a certificate: no small change of the image can replace them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.explainers import _confidence
from counterpoise.explainers._borrowed import borrowed, check_request, input_gradient
from counterpoise.explainers._bounds import Vector, leaving
from counterpoise.explainers._certify import Bound, Claim, Distribution, Norm, certify
from counterpoise.explainers._confidence import Bounds
from counterpoise.explainers._noise import ImageNoise
from counterpoise.explainers._probe import probe
from counterpoise.explainers._scoring import SCORINGS, scored
from counterpoise.grid import DegreeKind
from counterpoise.interface import Explanation, Trained
from counterpoise.record import Certificate

CHUNK_VALUES = 2**18
"""Pixel values in one forward and backward pass: memory stays the same however many samples are asked for."""

STEADY = 1e-3
"""How much a map may change from look to look, as a share of its largest value: rounding does less."""

DARKER = (1.0, 0.9, 0.8)
"""What an image is multiplied by to be looked at again."""

FIRST_LOOK = 100
"""Samples before the first look at which sampling may stop."""


@dataclass(frozen=True)
class RobustTopK:
    """map = mean over noisy copies of the scored ranks of |d S_target / d pixel|, with a certificate for its top k.

    After Levine, Singla and Feizi 2019, and Liu, Chen, Liu, Xia and Gan 2022, whose bound is corrected here
    (docs/robust-explanations.md). S is the logit. Each of `samples` noisy copies x + noise * z gives a map; its units
    are ranked, and get their rank's score (`step`: 1/k for the top k; `sigmoid`: falling smoothly around k). The
    certificate says how far the image may move before the share of the reported top k that is among the top k of the
    true smoothed map of the moved image, for the same class, can fall below `beta`.

    `noise` is absolute, in [0, 1] pixels: the standard deviation of Gaussian noise (which certifies `norm` l2 or linf)
    or the scale of Laplace noise (l1). Units are pixels, their channels summed as absolute values; channel by channel
    with `channels` 'each'; blocks of `block` x `block` pixels. Equal values rank in reading order. With `enough`,
    sampling stops at the first look at which that radius is certified, with bounds that allow for looking.

    The certificate is about the input and one fixed class. It says nothing about training data.
    """

    noise: Decimal | float = Decimal("0.25")
    samples: int = 200
    k: int = 16
    beta: Decimal | Fraction | float | str = Fraction(1, 2)
    scoring: Literal["step", "sigmoid"] = "step"
    confidence: float = 0.95
    bound: Bound = "best"
    distribution: Distribution = "gaussian"
    norm: Norm | None = None
    block: int = 1
    channels: Literal["sum", "each"] = "sum"
    enough: float | None = None

    name: ClassVar[str] = "robust-topk"
    kind: ClassVar[DegreeKind] = DegreeKind("explainability", "up", Decimal("0.01"), Decimal(1))
    degree_field: ClassVar[str] = "noise"
    needs: ClassVar[frozenset[str]] = frozenset()
    certifies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_absolute(self.noise)
        _check.at_least(1, samples=self.samples, k=self.k, block=self.block)
        _check.inside(0, 1, confidence=self.confidence)
        _check.one_of(SCORINGS, scoring=self.scoring)
        _check.one_of(("best", "renyi", "neyman-pearson", "published"), bound=self.bound)
        _check.one_of(("gaussian", "laplace"), distribution=self.distribution)
        _check.one_of(("sum", "each"), channels=self.channels)
        if self.enough is not None:
            _check.positive(enough=self.enough)
        self.share  # noqa: B018 - raises where beta is none
        self._claim(np.ones(1), 1)

    @property
    def share(self) -> Fraction:
        """Beta as the fraction its decimal digits say: .8 is 4/5."""
        try:
            beta = Fraction(str(self.beta))
        except (ValueError, ZeroDivisionError):
            beta = Fraction(0)
        if not 0 < beta <= 1:
            raise InputError(f"beta={self.beta!r} must be a share above 0 and at most 1: of the top k, how many stay.")
        return beta

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        """The map of each image for its target class, and its certificate."""
        check_request(images, target)
        if float(images.min()) < 0 or float(images.max()) > 1:
            raise InputError(
                "images must lie in [0, 1]: the radius is stated there; let the model's first layer normalise them."
            )
        units = self._units(images[0].shape)
        claim = self._claim(SCORINGS[self.scoring](self.k, units), images[0].numel())
        with borrowed(trained) as model:
            probe(model, images).check(target)
            self._check_repeats(model, images[:1], target[:1])
            self._check_alone(model, images[:1], target[:1])
            # One image at a time, so that a map cannot depend on its neighbours in a batch by as much as a bit.
            found = [
                self._one(model, images[i : i + 1], target[i : i + 1], rng.initial_seed(), claim)
                for i in range(len(images))
            ]
        maps, errors, certificates = zip(*found, strict=True)
        return Explanation(
            torch.stack([self._picture(unit_map, images) for unit_map in maps]),
            None if self.samples == 1 else torch.stack([self._picture(error, images) for error in errors]),
            self.samples,
            certificates=certificates,
        )

    def check_model(self, model: nn.Module, shape: tuple[int, int, int]) -> None:
        """Raise where units and k do not fit the images, or the network is a random one: told before any training."""
        self._units(shape)
        image, target = torch.full((1, *shape), 0.5), torch.zeros(1, dtype=torch.int64)
        with borrowed(model) as lent:
            probe(lent, image)
            self._check_repeats(lent, image, target)

    def _units(self, shape: Sequence[int]) -> int:
        channels, height, width = shape
        if height % self.block or width % self.block:
            raise InputError(f"block={self.block} must divide the image of {width} x {height} pixels.")
        units = height // self.block * (width // self.block) * (channels if self.channels == "each" else 1)
        if self.k >= units:
            raise InputError(f"k={self.k} must be below the {units} units of a map: all of them can never be replaced.")
        if leaving(self.k, self.share) > units - self.k:
            raise InputError(
                f"k={self.k} of {units} units with beta={self.beta} is met by any map: two sets of {self.k} always"
                " share that many; lower k, or raise beta."
            )
        return units

    def _claim(self, scores: Vector, values: int) -> Claim:
        norm: Norm = self.norm or ("l2" if self.distribution == "gaussian" else "l1")
        _check.one_of(("l1", "l2", "linf"), norm=norm)
        stretch = 1 / math.sqrt(values) if norm == "linf" else 1.0
        return Claim(scores, float(self.noise), self.distribution, self.bound, norm, stretch)

    def unit_maps(self, model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
        """|gradient| of each image, pooled to units, [n, units] in float64. `model` is a borrowed one."""
        size = input_gradient(model, images, target).double().abs()
        if self.channels == "sum":
            size = size.sum(1, keepdim=True)
        return nn.functional.avg_pool2d(size, self.block).flatten(1)

    def _check_repeats(self, model: nn.Module, image: Tensor, target: Tensor) -> None:
        """The proof needs a map that is a function of the noisy image: the same at every look …"""
        first, again = (self.unit_maps(model, image, target) for _ in range(2))
        if bool((first - again).abs().max() > STEADY * first.max()):
            raise InputError(
                "the model gives two maps for one image: it draws random numbers (dropout that stays on, say); fix"
                " them, or the certificate is about another model at every look."
            )

    def _check_alone(self, model: nn.Module, image: Tensor, target: Tensor) -> None:
        """… and of that image alone, whether it is shown as it is or darker.

        One image can happen to lie where rounding, which is another for another batch, turns a single ReLU on or off.
        """
        if all(self._leans(model, share * image, target) for share in DARKER):
            raise InputError(
                "the model's map of an image depends on the images beside it: it has batch statistics, or a"
                " gradient so near 0 that rounding decides; take another model."
            )

    def _leans(self, model: nn.Module, image: Tensor, target: Tensor) -> bool:
        """Whether the image's map is another one where its negative stands beside it."""
        alone = self.unit_maps(model, image, target)
        beside = self.unit_maps(model, torch.cat([image, 1 - image]), target.repeat(2))[:1]
        return bool((alone - beside).abs().max() > STEADY * alone.max())

    def _one(
        self, model: nn.Module, image: Tensor, target: Tensor, seed: int, claim: Claim
    ) -> tuple[Vector, Vector, Certificate]:
        """Mean, standard error and certificate of one image's scored maps."""
        noise = ImageNoise(image, seed, self.distribution)
        planned = [self.samples] if self.enough is None else _confidence.looks(FIRST_LOOK, self.samples)
        running = _Running(claim.scores)
        for look, samples in enumerate(planned):
            self._sample(model, image, target, noise, samples - running.samples, running)
            error = (1 - self.confidence) * _confidence.share(look, len(planned))
            certificate = certify(
                claim,
                running.mean,
                self._bounds(running, error),
                k=self.k,
                beta=self.share,
                confidence=self.confidence,
                samples=samples,
            )
            if self.enough is not None and certificate.radius >= self.enough:
                break
        return running.mean, np.sqrt(running.variance / running.samples), certificate

    def _sample(
        self, model: nn.Module, image: Tensor, target: Tensor, noise: ImageNoise, count: int, running: _Running
    ) -> None:
        at_once = max(1, CHUNK_VALUES // image.numel())
        while count > 0:
            now = min(at_once, count)
            noisy = image + float(self.noise) * noise.take(now)[0]
            running.add(self.unit_maps(model, noisy, target.expand(now)))
            count -= now

    def _bounds(self, running: _Running, error: float) -> Bounds:
        scores = running.scores
        if self.scoring == "step":
            counts = np.rint(running.mean * running.samples * self.k)
            return _confidence.binomial(counts, running.samples, 1 / self.k, error)
        return _confidence.bounded(
            running.mean, running.variance, running.samples, float(scores[-1]), float(scores[0]), error
        )

    def _picture(self, values: Vector, images: Tensor) -> Tensor:
        """Unit values as [height, width]: blocks are filled, channels added."""
        height, width = images.shape[2] // self.block, images.shape[3] // self.block
        units = torch.from_numpy(values).float().view(-1, height, width).sum(0)
        return units.repeat_interleave(self.block, 0).repeat_interleave(self.block, 1).to(images.device)


def _check_absolute(noise: object) -> None:
    """One number for all images. Noise as a share of an image's range is what several SmoothGrads have by default."""
    if isinstance(noise, str) or callable(noise):
        raise InputError(
            f"noise={noise!r} must be a number of [0, 1] pixels, the same for every image: noise tied to an image's"
            " range moves with the attack, and then nothing is proved."
        )
    _check.positive(noise=noise)


class _Running:
    """Mean and variance of scored maps in one pass, in memory that does not grow (Chan's merging)."""

    def __init__(self, scores: Vector) -> None:
        self.scores = scores
        self.samples = 0
        self.mean: Vector = np.zeros(len(scores))
        self._squares: Vector = np.zeros(len(scores))

    @property
    def variance(self) -> Vector:
        """Unbiased; 0 for one sample."""
        return self._squares / max(1, self.samples - 1)

    def add(self, maps: Tensor) -> None:
        """Rank and score these maps [count, units]."""
        found = scored(maps, torch.from_numpy(self.scores)).numpy()
        count, mean = len(found), found.mean(0)
        shift, total = mean - self.mean, self.samples + len(found)
        self._squares += np.square(found - mean).sum(0) + np.square(shift) * (self.samples * count / total)
        self.mean = self.mean + shift * (count / total)
        self.samples = total


def certified_overlap(explainer: RobustTopK, image: Tensor, certificate: Certificate, radius: float) -> Fraction:
    """The inverse: the share of the certificate's top k that stays while the image moves less than `radius`.

    It holds with the certificate's confidence for all radii together: they are read off the same bounds.
    """
    _check.positive(radius=radius)
    bounds = Bounds(np.array(certificate.low), np.array(certificate.high))
    claim = replace(
        explainer._claim(SCORINGS[explainer.scoring](certificate.k, len(certificate.low)), image.numel()),
        noise=certificate.noise,
    )
    return claim.overlap(bounds, np.array(certificate.top), radius)
