"""The Pareto front: cells that no other cell beats on privacy, explanation and utility at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def front(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Booleans: which rows of `points` [n, axes] (higher is better on every axis) are not dominated.

    A row is dominated when another one is at least as good on all axes and better on one. Rows with NaN are never
    on the front and dominate nothing.
    """
    usable = np.asarray(~np.isnan(points).any(axis=1), dtype=np.bool_)
    on_front = usable.copy()
    for index in np.flatnonzero(usable):
        others = points[usable]
        no_worse = (others >= points[index]).all(axis=1)
        better = (others > points[index]).any(axis=1)
        on_front[index] = not (no_worse & better).any()
    return on_front
