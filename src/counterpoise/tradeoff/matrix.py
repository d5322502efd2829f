"""Records to labelled arrays: one data set a mechanism, with dimensions (party, privacy, explainability).

`privacy` runs over the mechanism's degrees and `explainability` over the explainer's, both as exact decimals in
increasing order. Every quantity q has its mean over seeds as variable `q`, and its interval as `q.low`, `q.high`.
A cell that was not measured (refused, or not trained yet) is NaN, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from counterpoise._check import InputError
from counterpoise.grid import text
from counterpoise.record import Measurement, Record, Results
from counterpoise.tradeoff.modes import Mode

DIMS = ("party", "privacy", "explainability")


def over_seeds(measurements: Sequence[Measurement]) -> Measurement:
    """One measurement from several seeds: the mean, with a 95 % Student interval from three seeds on.

    Below three seeds a deviation cannot be estimated, so the interval is the hull of the single ones.
    """
    values = np.array([m.value for m in measurements])
    if len(values) == 1:
        return measurements[0]
    with np.errstate(invalid="ignore"):
        mean, spread = float(values.mean()), float(values.std(ddof=1)) if np.isfinite(values).all() else math.nan
    if len(values) < 3 or math.isnan(spread):
        low, high = min(m.low for m in measurements), max(m.high for m in measurements)
    else:
        half = float(stdtrit(len(values) - 1, 0.975)) * spread / math.sqrt(len(values))
        low, high = mean - half, mean + half
    return Measurement(mean, min(low, mean), max(high, mean), len(values), "seeds")


def build(results: Results, mechanism: str) -> xr.Dataset:
    """The measured matrix of one mechanism."""
    records = [record for record in results if record.mechanism == mechanism]
    if not records:
        raise InputError(f"mechanism={mechanism!r} has no record; there are {', '.join(results.mechanisms) or 'none'}.")
    parties = [party.name for party in results.parties]
    degrees = sorted({record.degree for record in records})
    levels = sorted({cell.degree for record in records for cell in record.explained})
    shape = (len(parties), len(degrees), len(levels))
    arrays: dict[str, np.ndarray] = {}

    def put(quantity: str, where: tuple[int, int, int | slice], measurement: Measurement) -> None:
        for suffix, value in (("", measurement.value), (".low", measurement.low), (".high", measurement.high)):
            arrays.setdefault(quantity + suffix, np.full(shape, np.nan))[where] = value

    for (party, degree), group in _groups(records).items():
        if party not in parties:
            raise InputError(f"record {group[0].digest}: party {party!r} is not in the study.")
        row = (parties.index(party), degrees.index(degree))
        put("epsilon", (*row, slice(None)), Measurement.exact(max(record.epsilon for record in group)))
        for quantity in group[0].measurements:
            put(quantity, (*row, slice(None)), over_seeds([r.measurements[quantity] for r in group]))
        for level in levels:
            cells = [cell for record in group for cell in record.explained if cell.degree == level]
            for quantity in cells[0].measurements if cells else ():
                column = (*row, levels.index(level))
                put(quantity, column, over_seeds([cell.measurements[quantity] for cell in cells]))
    kind = records[0].kind
    return xr.Dataset(
        {name: (DIMS, values) for name, values in arrays.items()},
        coords={
            "party": parties,
            "privacy": [text(degree) for degree in degrees],
            "explainability": [text(level) for level in levels],
        },
        attrs={"mechanism": mechanism, "degree": kind.name, "more_private": kind.more_private},
    )


def _groups(records: Iterable[Record]) -> dict[tuple[str, Decimal], list[Record]]:
    """Records of one party and degree, over seeds; refused ones left out."""
    groups: dict[tuple[str, Decimal], list[Record]] = {}
    for record in records:
        if not record.refusal:
            groups.setdefault((record.party, record.degree), []).append(record)
    return groups


def decimals(table: xr.Dataset, dimension: str) -> list[Decimal]:
    """The exact degrees along 'privacy' or 'explainability'."""
    return [Decimal(str(label)) for label in table[dimension].values]


def score(table: xr.Dataset, mode: Mode) -> xr.Dataset:
    """The trade-off T = (privacy + explanation) / (2 + utility loss), higher is better, no unit.

    Reference: Abbasi, Mori and Saracino 2025 (their two trade-off equations, which have one form). T grows with both
    gains, and falls with the loss while the gains are not negative; the interval takes the worst and best corner of
    the three intervals, so it covers at least what they cover.
    """

    def trade(privacy: xr.DataArray, explanation: xr.DataArray, loss: xr.DataArray) -> xr.DataArray:
        return (privacy + explanation) / (2 + loss)

    for quantity in (mode.privacy, mode.explanation, mode.utility_loss):
        if quantity not in table:
            mechanism = table.attrs["mechanism"]
            raise InputError(f"mode={mode.name!r} needs the measurement {quantity!r}, which {mechanism!r} has not.")
    corners = [
        trade(table[mode.privacy + p], table[mode.explanation + p], table[mode.utility_loss + u])
        for p in (".low", ".high")
        for u in (".low", ".high")
    ]
    stacked = xr.concat(corners, dim="corner")
    return xr.Dataset(
        {
            "value": trade(table[mode.privacy], table[mode.explanation], table[mode.utility_loss]),
            "low": stacked.min("corner", skipna=False),
            "high": stacked.max("corner", skipna=False),
        },
        attrs={**table.attrs, "mode": mode.name},
    )
