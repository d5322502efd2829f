"""What the source's formulas could not see: each beside what the study measured on the same trainings."""

from counterpoise.report.evidence import Evidence
from counterpoise.report.unseen.attack import attack
from counterpoise.report.unseen.losses import control, losses
from counterpoise.report.unseen.orders import orders
from counterpoise.report.unseen.parts import Part
from counterpoise.report.unseen.smoothing import smoothing
from counterpoise.report.unseen.steadiness import steadiness

__all__ = ["Part", "unseen"]

PARTS = (smoothing, control, losses, attack, orders, steadiness)


def unseen(evidence: Evidence) -> tuple[Part, ...]:
    """The parts for which the records hold the numbers; the others are left out."""
    return tuple(part for make in PARTS if (part := make(evidence)) is not None)
