"""Comparing models: on which images, image by image, and how much of a difference is the seed's.

Two things move a number: which images it was taken on, and which random draws the training made (first weights,
batches, and for private training the noise, which is one draw of many). They are told apart: `over_images` and
`over_seeds`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import norm, spearmanr
from scipy.stats import t as student
from torch import Tensor

from counterpoise.measures._interval import bootstrap
from counterpoise.record import Measurement


def right_by_all(logits: Sequence[Tensor], labels: Tensor) -> Tensor:
    """The places of the images that every model classifies rightly: the only ones on which maps are compared."""
    right = torch.ones(len(labels), dtype=torch.bool)
    for of_one in logits:
        right &= of_one.argmax(1) == labels
    return right.nonzero().flatten()


def paired_difference(first: ArrayLike, second: ArrayLike) -> Measurement:
    """Mean of first - second, image by image, with a bootstrap over the images: both saw the same ones."""
    one, two = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if one.shape != two.shape:
        raise ValueError(f"{one.shape} and {two.shape} values cannot be paired: they are not of the same images")
    return bootstrap(one - two)


class Spread(NamedTuple):
    """A mean with its deviation over seeds (of the seeds' means) and over images (of the images' means), apart."""

    mean: Measurement
    over_seeds: float
    over_images: float


def spread(values: ArrayLike) -> Spread:
    """Of [seeds, images], NaN where an image is not scored (its map is blank, say).

    The mean's interval is Student's over the seeds; with one seed, a bootstrap over images.
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    scored = ~np.isnan(table)
    table = table[scored.any(1)][:, scored.any(0)]
    if not table.size:
        raise ValueError("no image is scored for any seed")
    by_seed, by_image = np.nanmean(table, axis=1), np.nanmean(table, axis=0)
    over_images = float(by_image.std(ddof=1)) if len(by_image) > 1 else math.nan
    if len(by_seed) == 1:
        return Spread(bootstrap(by_image), math.nan, over_images)
    value, deviation = float(by_seed.mean()), float(by_seed.std(ddof=1))
    half = float(student.ppf(0.975, len(by_seed) - 1)) * deviation / math.sqrt(len(by_seed))
    return Spread(Measurement(value, value - half, value + half, len(by_seed), "seeds"), deviation, over_images)


class Trend(NamedTuple):
    """The mean over seeds of Spearman's rank correlation, with its 95 % interval."""

    value: float
    low: float
    high: float
    seeds: int


def trend(settings: ArrayLike, values: ArrayLike) -> Trend:
    """Rank correlation of a setting [settings] with values [seeds, settings], one correlation a seed.

    Every seed is one repetition of the whole sweep, so the interval is Student's over the seeds' correlations, cut to
    [-1, 1]; and never narrower than that of unrelated values, whose correlations deviate by 1 / sqrt(settings - 1): a
    few seeds that agree by chance do not decide. One seed shows no interval: it is all of [-1, 1].
    """
    x, table = np.asarray(settings, dtype=np.float64), np.atleast_2d(np.asarray(values, dtype=np.float64))
    found = [0.0 if np.ptp(row) == 0 or np.ptp(x) == 0 else float(spearmanr(x, row).statistic) for row in table]
    value = float(np.mean(found))
    if len(found) == 1 or len(x) < 2:
        return Trend(value, -1.0, 1.0, len(found))
    half = float(student.ppf(0.975, len(found) - 1)) * float(np.std(found, ddof=1)) / math.sqrt(len(found))
    half = max(half, float(norm.ppf(0.975)) / math.sqrt((len(x) - 1) * len(found)))
    return Trend(value, max(-1.0, value - half), min(1.0, value + half), len(found))
