"""The degree of an explainer that has none to tune."""

from __future__ import annotations

from decimal import Decimal

from counterpoise.grid import DegreeKind

SINGLE = DegreeKind("explainability", "up", Decimal(1), Decimal(1))
"""One point of the explainability axis, its top: such an explainer is used, or it is not."""
