"""Privacy gains as the source papers define them, one for each kind of mechanism.

They are not comparable with each other: 1 / epsilon has no upper end and is about the training images, the
code share ends at 1 and proves nothing. Compare mechanisms by the measures in `leakage`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from counterpoise.interface import Level, Outcome
from counterpoise.record import Measurement


@dataclass(frozen=True)
class InverseEpsilon:
    """PG = 1 / epsilon, of the strongest proved guarantee; 0 where nothing is proved.

    Abbasi et al. 2025. Unit: 1 / nat. Higher is better. Exact: epsilon is computed, not estimated.
    """

    name: ClassVar[str] = "inverse_epsilon"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "1/nat"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """1 over the smallest epsilon."""
        epsilon = min((g.epsilon for g in candidate.trained.guarantees), default=math.inf)
        return Measurement.exact(1 / epsilon if epsilon > 0 else math.inf)


@dataclass(frozen=True)
class CodeShare:
    """PG = 1 - C / I(D): the share of an image's values that its code leaves out; C / I(D) is the degree itself.

    Abbasi et al. 2025. Unit: share of the image's size. Higher is better. Exact. It counts numbers, not
    information: a small code can still tell who is in the picture.
    """

    name: ClassVar[str] = "code_share"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of the image size"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """1 minus the candidate's code ratio."""
        return Measurement.exact(float(1 - candidate.degree))


@dataclass(frozen=True)
class NoGain:
    """PG = 0: nothing is protected, as with plain training. Unit: none. Higher is better. Exact."""

    name: ClassVar[str] = "no_gain"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Always 0."""
        return Measurement.exact(0.0)
