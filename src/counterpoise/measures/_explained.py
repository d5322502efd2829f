"""What explanation-level measures ask of an outcome."""

from __future__ import annotations

from counterpoise._check import InputError
from counterpoise.interface import Explaining, Outcome


def explained(outcome: Outcome, asking: str) -> Explaining:
    """The outcome's explanations, or a sentence on who misses them."""
    if outcome.explaining is None:
        raise InputError(f"{asking} needs explanations: measure it at an explainability degree, not after training.")
    return outcome.explaining
