"""The numbers that the page carries: the same evidence as `decision.json`, column by column, so that it stays small."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from counterpoise.report.evidence import Evidence, plain_number
from counterpoise.report.quantities import describe
from counterpoise.tradeoff import MODES, Panel, masks

Json = dict[str, Any]


def embedded(evidence: Evidence) -> Json:
    """What `engine.js` decides over, and the charts draw."""
    decision = evidence.decision
    names = dict.fromkeys(str(n) for panel in decision.panels.values() for n in panel.table if "." not in str(n))
    return {
        "study": evidence.results.study,
        "policy": decision.policy,
        "mode": decision.mode,
        "quorum": decision.quorum,
        "modesAvailable": list(evidence.modes),
        "modes": {
            name: {
                "privacy": mode.privacy,
                "explanation": mode.explanation,
                "utility_loss": mode.utility_loss,
                "comparable": mode.comparable,
            }
            for name, mode in MODES.items()
        },
        "degreeNames": sorted(masks.degree_names(evidence.results)),
        "parties": [
            {"name": party.name, "mechanisms": list(party.mechanisms), "requires": list(party.requires)}
            for party in decision.parties
        ],
        "quantities": describe(names),
        "mechanisms": [_mechanism(evidence, name, panel) for name, panel in decision.panels.items()],
    }


def _mechanism(evidence: Evidence, name: str, panel: Panel) -> Json:
    table = panel.table
    quantities = [str(quantity) for quantity in table if "." not in str(quantity)]
    return {
        "name": name,
        "degree": str(table.attrs["degree"]),
        "morePrivate": str(table.attrs["more_private"]),
        "degrees": [str(degree) for degree in table["privacy"].values],
        "levels": [str(level) for level in table["explainability"].values],
        "quantities": {quantity: _column(table, quantity) for quantity in quantities},
        "scores": {
            mode: {part: _numbers(found.scores[part].values) for part in ("value", "low", "high")}
            for mode in evidence.modes
            if (found := evidence.panels(mode).get(name)) is not None
        },
    }


def _column(table: xr.Dataset, quantity: str) -> Json:
    """Values and interval; once a degree where they do not depend on the explainability degree."""
    value = table[quantity].values
    low = table.get(f"{quantity}.low", table[quantity]).values
    high = table.get(f"{quantity}.high", table[quantity]).values
    per_degree = all(
        np.array_equal(a, np.broadcast_to(a[..., :1], a.shape), equal_nan=True) for a in (value, low, high)
    )
    if per_degree:
        value, low, high = value[..., 0], low[..., 0], high[..., 0]
    return {
        "by": "degree" if per_degree else "cell",
        "value": _numbers(value),
        "low": _numbers(low, digits=6),
        "high": _numbers(high, digits=6),
    }


def _numbers(values: np.ndarray, digits: int = 17) -> list[float | str | None]:
    return [plain_number(float(f"{value:.{digits}g}")) for value in values.ravel().tolist()]
