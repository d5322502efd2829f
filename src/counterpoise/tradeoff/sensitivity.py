"""How the score moves along each axis of the matrix (finite differences)."""

from __future__ import annotations

from itertools import pairwise

import xarray as xr

from counterpoise.tradeoff.matrix import decimals


def slopes(scores: xr.DataArray) -> xr.Dataset:
    """dT per unit of degree, `along_privacy` and `along_explainability`, between neighbouring cells.

    Each slope stands at the lower of its two cells; the last cell of an axis has none (NaN). An axis with a single
    degree has no slope at all.
    """
    found = {}
    for axis in ("privacy", "explainability"):
        degrees = [float(degree) for degree in decimals(scores.to_dataset(name="score"), axis)]
        steps = xr.DataArray(
            [after - before for before, after in pairwise(degrees)] + [float("nan")],
            dims=[axis],
            coords={axis: scores[axis]},
        )
        found[f"along_{axis}"] = (scores.shift({axis: -1}) - scores) / steps
    return xr.Dataset(found)
