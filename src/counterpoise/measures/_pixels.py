"""Pixels as histograms of 256 grey levels, and the earth mover's distance between two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from counterpoise.interface import Outcome

LEVELS = 256


def histograms(images: Tensor) -> NDArray[np.float64]:
    """Each image's shares of the 256 grey levels, all channels pooled: [n, 256], rows sum to 1."""
    levels = (images.detach().clamp(0, 1) * (LEVELS - 1)).round().long().flatten(1).numpy()
    n, pixels = levels.shape
    counted = np.bincount((levels + np.arange(n)[:, None] * LEVELS).ravel(), minlength=n * LEVELS)
    shares: NDArray[np.float64] = counted.reshape(n, LEVELS) / pixels
    return shares


def moved(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Earth mover's distance of histograms with these differences [..., 256], with ground distance |i - j| / 255.

    On a line, the work is the area between the two cumulative histograms.
    """
    area: NDArray[np.float64] = np.abs(np.cumsum(differences, axis=-1)).sum(axis=-1)
    return area / (LEVELS - 1)


def histogram_differences(outcome: Outcome) -> NDArray[np.float64]:
    """Histograms of the released test images minus those of the originals, [n, 256]."""
    return histograms(outcome.released_test) - histograms(outcome.task.test.pixels)
