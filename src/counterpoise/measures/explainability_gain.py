"""The paper's explainability gain. It is a formula of the settings: no map is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.interface import Level, Outcome
from counterpoise.measures._explained import explained
from counterpoise.record import Measurement


@dataclass(frozen=True)
class ExplainabilityGain:
    """EG = sigma * (n / n_max) * (1 - U).

    Abbasi et al. 2025. sigma: noise level of SmoothGrad in [0, 1]; n: its samples; n_max: the most samples
    considered, n itself where None; U: the candidate's `utility_loss`, already measured. Unit: none. Higher is
    better. The interval is U's, carried through. It grows with sigma whatever the maps show: see
    `explanation_quality` for its measured twin.
    """

    n_max: int | None = None

    name: ClassVar[str] = "explainability_gain"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.n_max is not None:
            _check.at_least(1, n_max=self.n_max)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The formula at the candidate's degree, samples and utility loss."""
        explaining = explained(candidate, self.name)
        if "utility_loss" not in candidate.measured:
            raise InputError(f"{self.name} needs 'utility_loss' to be measured before it.")
        loss = candidate.measured["utility_loss"]
        scale = float(explaining.degree) * self._share(explaining.explanation.samples)
        value, low, high = (scale * (1 - u) for u in (loss.value, loss.high, loss.low))
        return Measurement(value, low, high, loss.n, loss.over)

    def _share(self, samples: int | None) -> float:
        if self.n_max is None or samples is None:
            return 1.0
        if samples > self.n_max:
            raise InputError(f"n_max={self.n_max!r} must be at least the {samples} samples of the explanation.")
        return samples / self.n_max
