"""Utility losses as the source papers define them, and what a user loses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import bootstrap
from counterpoise.measures._pixels import histogram_differences, moved
from counterpoise.record import Measurement


def hits(outcome: Outcome, logits: Tensor) -> NDArray[np.float64]:
    """1 for each test image whose target class gets the highest logit, else 0."""
    right = logits.argmax(1) == outcome.task.test.labels[outcome.task.target]
    return right.double().numpy()


@dataclass(frozen=True)
class Accuracy:
    """Acc(D', candidate) = share of the released test images that the candidate classifies rightly.

    Unit: share of images. Higher is better. Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "accuracy"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the hits."""
        return bootstrap(hits(candidate, candidate.test_logits))


@dataclass(frozen=True)
class AccuracyLoss:
    """U_DP = Acc(D, baseline) - Acc(D, candidate), both models on the same unfiltered test images D.

    Abbasi et al. 2025. Unit: share of images. Lower is better, and below 0 the private model is the better one:
    the sign is kept. Interval: bootstrap over test images, paired.
    """

    name: ClassVar[str] = "accuracy_loss"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Hits of the baseline minus hits of the candidate, image by image."""
        return bootstrap(hits(baseline, baseline.raw_test_logits) - hits(candidate, candidate.raw_test_logits))


@dataclass(frozen=True)
class TaskLoss:
    """Acc(D, baseline) - Acc(D', candidate): what a user loses who sends D' = release(D) to the candidate.

    Beside it, `accuracy_loss` gives the candidate's model the unfiltered images: far apart, the model has learnt
    the filter's traces. Unit: share of images. Lower is better; may be negative. Interval: bootstrap over test
    images, paired.
    """

    name: ClassVar[str] = "task_loss"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Hits of the baseline on D minus hits of the candidate on D', image by image."""
        return bootstrap(hits(baseline, baseline.raw_test_logits) - hits(candidate, candidate.test_logits))


@dataclass(frozen=True)
class PooledEMD:
    """U_Auto = EMD(D, D'): the work to turn the pooled 256-level histogram of D into that of D' = release(D).

    Abbasi et al. 2025. Ground distance |i - j| / 255. Unit: share of the grey range, in [0, 1]. Lower is better.
    Interval: bootstrap over test images. It cannot see where pixels are: shuffling them, within an image or
    across images, costs 0. Look at `ssim` and `task_loss` beside it.
    """

    name: ClassVar[str] = "pooled_emd"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of the grey range"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Distance of the mean histograms."""
        return bootstrap(candidate.once(histogram_differences), moved)


@dataclass(frozen=True)
class NoLoss:
    """U = 0: the baseline compared with itself. Unit: none. Lower is better. Exact."""

    name: ClassVar[str] = "no_loss"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Always 0."""
        return Measurement.exact(0.0)
