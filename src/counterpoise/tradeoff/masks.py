"""Which cells a party allows. A mask, not the number 0, says 'impossible': a trade-off of 0 is a real score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np
import xarray as xr

from counterpoise._check import InputError
from counterpoise.record import Party, Results
from counterpoise.tradeoff.matrix import decimals
from counterpoise.tradeoff.modes import Mode
from counterpoise.tradeoff.requirements import Bound, Extreme, Requirement, parse

Cells = xr.DataArray
"""Booleans or numbers over (privacy, explainability) of one party."""


def degree_names(results: Results) -> frozenset[str]:
    """The names of all degrees in the study: each binds only the mechanisms that have it."""
    return frozenset(record.kind.name for record in results)


def observed(quantity: str, table: xr.Dataset, party: str, mode: Mode) -> xr.DataArray:
    """The cells' values of a quantity: decimals (exact) for a degree, floats for a measurement."""
    if quantity in (table.attrs["degree"], "explainability"):
        dimension = "explainability" if quantity == "explainability" else "privacy"
        values = np.array(decimals(table, dimension), dtype=object)
        column = xr.DataArray(values, dims=[dimension], coords={dimension: table[dimension]})
        return column.broadcast_like(table["epsilon"].sel(party=party, drop=True))
    return table[mode.resolve(quantity)].sel(party=party, drop=True)


def holds(requirement: Requirement, table: xr.Dataset, party: Party, mode: Mode, degrees: Iterable[str]) -> Cells:
    """Where one requirement is met. A quantity that was not measured in a cell is not met there.

    A mechanism without the required degree does not meet it, unless the party lists the mechanism: a party that
    names `mechanisms = ["dp-sgd", "autoencoder"]` bounds each by its own degree.
    """
    everywhere = xr.ones_like(table["epsilon"].sel(party=party.name, drop=True), dtype=bool)
    quantity = requirement.quantity
    own = {"explainability", str(table.attrs["degree"])}
    if quantity in degrees and quantity not in own:
        return everywhere.copy(data=np.full(everywhere.shape, bool(party.mechanisms)))
    known = own | {str(name) for name in table}
    if mode.resolve(quantity) not in known:
        names = ", ".join(sorted(name for name in known if "." not in name))
        raise InputError(f"party {party.name!r}: '{requirement}' requires the unknown {quantity!r}; known: {names}.")
    values = observed(quantity, table, party.name, mode)
    if isinstance(requirement, Bound):
        # Cell by cell: a cell that was not measured is NaN, which numpy would warn about when it compares.
        met = np.array([requirement.holds(value) for value in values.values.flat], dtype=bool).reshape(values.shape)
    else:
        met = _extreme(requirement, values.values)
    return everywhere.copy(data=met)


def _extreme(requirement: Extreme, values: np.ndarray) -> np.ndarray:
    present = [v for v in values.ravel() if isinstance(v, Decimal) or not np.isnan(v)]
    if not present:
        return np.zeros(values.shape, dtype=bool)
    best = max(present) if requirement.way == "maximum" else min(present)
    return np.asarray(values == best, dtype=bool)


def possible(
    table: xr.Dataset, scores: xr.Dataset, parties: Sequence[Party], mode: Mode, degrees: Iterable[str]
) -> xr.DataArray:
    """Booleans over (party, privacy, explainability): measured, and allowed by the party's requirements."""
    measured = scores["value"].notnull()
    masks = []
    for party in parties:
        mask = measured.sel(party=party.name, drop=True)
        if party.mechanisms and table.attrs["mechanism"] not in party.mechanisms:
            mask = xr.zeros_like(mask)
        for words in party.requires:
            mask = mask & holds(parse(words), table, party, mode, degrees)
        masks.append(mask)
    return xr.concat(masks, dim=measured["party"]).transpose(*measured.dims)
