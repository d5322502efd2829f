"""Bounds that hold for all units' true scores at once, and at every look, with a stated confidence.

A look is a number of samples at which the bounds are computed and the sampling may stop. Stopping at the first look
that pleases would invalidate bounds made for one look; so the chance of error is dealt out beforehand, and look number
i (from 0) may use 1 / ((i + 1) (i + 2)) of it. These shares sum to 1 over all looks, so the bounds of all looks
hold together, whatever makes the sampling stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """Lower and upper bounds of each unit's true score."""

    low: Vector
    high: Vector


def looks(first: int, most: int) -> list[int]:
    """The sample counts at which to look: `first`, doubled each time, and `most` as the last."""
    found = []
    at = first
    while at < most:
        found.append(at)
        at *= 2
    return [*found, most]


def share(look: int, planned: int) -> float:
    """The part of the error that look number `look` may use; all of it where only one look is planned."""
    return 1.0 if planned == 1 else 1 / ((look + 1) * (look + 2))


def binomial(counts: Vector, samples: int, height: float, error: float) -> Bounds:
    """Clopper and Pearson for scores that are 0 or `height`: exact, each side of each unit at error / (2 units)."""
    each = error / (2 * len(counts))
    with np.errstate(invalid="ignore"):
        low = np.where(counts == 0, 0.0, betaincinv(np.maximum(counts, 1), samples - counts + 1, each))
        high = np.where(counts == samples, 1.0, betaincinv(counts + 1, np.maximum(samples - counts, 1), 1 - each))
    return Bounds(height * low, height * high)


def bounded(mean: Vector, variance: Vector, samples: int, lowest: float, highest: float, error: float) -> Bounds:
    """For any scores in [lowest, highest]: Hoeffding, or empirical Bernstein where it is tighter.

    Each has half of the error. Bernstein as in Maurer and Pontil 2009, with the unbiased variance: for scores that
    seldom vary it falls like 1 / samples.
    """
    width = highest - lowest
    each = error / 2 / (2 * len(mean))
    far = np.full(len(mean), width * math.sqrt(math.log(1 / each) / (2 * samples)))
    if samples > 1:
        logs = math.log(2 / each)
        near = np.sqrt(2 * variance * logs / samples) + 7 * width * logs / (3 * (samples - 1))
        far = np.minimum(far, near)
    return Bounds(np.clip(mean - far, lowest, highest), np.clip(mean + far, lowest, highest))
