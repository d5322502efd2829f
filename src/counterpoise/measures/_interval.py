"""95 % bootstrap intervals for anything that is a function of means over images.

Every measure here is one: a mean of per-image values, a distance between mean histograms, a product of two means.
Images are drawn again with replacement, all columns of an image together, so paired comparisons stay paired.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoise._check import InputError
from counterpoise.record import Measurement

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]

RESAMPLES = 1000
HALVES = 100
SEED = 20_250
CHUNK = 2**21
"""Redrawn images held in memory at a time."""
KEPT = 2**25
"""Numbers of draws worth keeping, a byte each."""


def bootstrap(values: ArrayLike, statistic: Statistic | None = None, *, over: str = "images") -> Measurement:
    """`statistic` of the columns' means over the rows, with the middle 95 % of its redrawn values.

    `values` is [n] or [n, columns]; `statistic` maps means [..., columns] to [...] and is the first column's
    mean where none is given. The draws are seeded: the same values give the same interval. An interval of
    width 0 says that all images agree, not that others would.
    """
    table = np.asarray(values, dtype=np.float64)
    n = len(table)
    if n == 0:
        raise ValueError(f"no {over} to measure")
    table = table.reshape(n, -1)
    lost = n - int(np.isfinite(table).all(axis=1).sum())
    if lost:
        raise InputError(
            f"{lost} of {n} {over} have no finite value: the model's output is not finite, so its training went astray;"
            " lower learning_rate."
        )
    of_means: Statistic = statistic if statistic is not None else lambda means: means[..., 0]
    value = float(of_means(table.mean(axis=0)))
    redrawn = of_means(_redrawn_means(table))
    low, high = np.quantile(redrawn, (0.025, 0.975))
    return Measurement(value, min(float(low), value), max(float(high), value), n, over)


def bootstrap_scored(
    values: ArrayLike,
    scored: NDArray[np.bool_] | slice,
    statistic: Statistic | None = None,
    *,
    unknown: tuple[float, float, float],
) -> Measurement:
    """As `bootstrap`, over the scored images alone.

    Where none is scored nothing is known: `unknown` is the value, low and high to say so with, and n is 0.
    """
    table = np.asarray(values, dtype=np.float64)[scored]
    value, low, high = unknown
    return bootstrap(table, statistic) if len(table) else Measurement(value, low, high, 0, "images")


def half_samples(value: float, again: Callable[[NDArray[np.int64]], float], n: int) -> Measurement:
    """For what repeated images would bias: `again(indices)` on HALVES random halves of n images, none drawn twice.

    Politis, Romano and Wolf, "Subsampling", 1999. A half differs from the whole as the whole does from the truth, in
    spread (variance 1 / (n / 2) - 1 / n = 1 / n) and in a bias of order 1 / n. So the interval is the value less that
    bias, 1.96 standard deviations of the halves to both sides, and it is widened to hold the value itself.
    """
    rng = np.random.default_rng(SEED)
    found = np.array([again(np.sort(rng.permutation(n)[: n // 2])) for _ in range(HALVES)])
    middle, reach = value - (found.mean() - value), 1.96 * found.std(ddof=1)
    return Measurement(value, min(float(middle - reach), value), max(float(middle + reach), value), n, "images")


def _redrawn_means(table: Values) -> Values:
    """Means of RESAMPLES redrawn tables, [RESAMPLES, columns]: how often each row is drawn, times the rows."""
    n = len(table)
    all_times = _drawn_times(n) if n * RESAMPLES <= KEPT else _times(n)
    return np.concatenate([times @ table / n for times in all_times])


@functools.lru_cache(maxsize=4)
def _drawn_times(n: int) -> tuple[NDArray[np.uint8], ...]:
    """The draws of n rows, kept: every measure of a run draws the same, and drawing costs more than the means."""
    return tuple(_times(n))


def _times(n: int) -> Iterator[NDArray[np.uint8]]:
    """How often each of n rows is drawn, [some of RESAMPLES, n] at a time; 255 times and more never happens."""
    rng = np.random.default_rng(SEED)
    at_once = max(1, CHUNK // n)
    for start in range(0, RESAMPLES, at_once):
        count = min(at_once, RESAMPLES - start)
        drawn = rng.integers(n, size=(count, n)) + np.arange(count)[:, None] * n
        yield np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.uint8)
