"""What explanation-level measures ask of an outcome."""

from __future__ import annotations

import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.interface import Again, Explaining, Outcome


def explained(outcome: Outcome, asking: str) -> Explaining:
    """The outcome's explanations, or a sentence on who misses them."""
    if outcome.explaining is None:
        raise InputError(f"{asking} needs explanations: measure it at an explainability degree, not after training.")
    return outcome.explaining


def explain_again(outcome: Outcome, asking: str) -> Again:
    """What makes more maps for these images and classes."""
    again = explained(outcome, asking).again
    if again is None:
        raise InputError(f"{asking} needs more maps than are given: set `again` of the outcome's explaining.")
    return again


def right_by_both(baseline: Outcome, candidate: Outcome) -> Tensor:
    """Which explained images both models classify rightly, bool [n]; all, where it is not known which they are.

    An unsure model's scores move by themselves, so maps of two models are compared where both are right.
    """
    explaining = explained(candidate, "a comparison")
    if explaining.chosen is None:
        return torch.ones(len(explaining.images), dtype=torch.bool)
    task = candidate.task
    truth = task.test.labels[task.target][explaining.chosen]
    right = [outcome.test_logits[explaining.chosen].argmax(1) == truth for outcome in (baseline, candidate)]
    return right[0] & right[1]
