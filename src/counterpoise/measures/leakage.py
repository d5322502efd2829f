"""Who was in the training? What an attacker was seen to tell, and what no attacker can.

The measured advantage is of one simple attacker and thus a lower bound on what leaks; the proved bound is an
upper one. They are never merged: the truth lies between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import bootstrap
from counterpoise.record import Guarantee, Measurement

SEED = 0


@dataclass(frozen=True)
class MembershipAdvantage:
    """TPR - FPR of the attacker who says "was trained on" where the loss is at most a threshold.

    Yeom et al. 2018. Members: training images; others: as many test images, so both groups have one size. The
    threshold is the best one on one half of both groups and is scored on the other half, and the other way round:
    an attacker cannot be lucky. Unit: difference of two rates, in [-1, 1]; around 0 where nothing is told. Lower is
    better. Interval: bootstrap over images, thresholds kept. It is measured against this attacker: a lower bound.
    """

    name: ClassVar[str] = "membership_advantage"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "difference of two rates"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Said of members minus said of others, pair by pair."""
        return bootstrap(candidate.once(membership_hits))


@dataclass(frozen=True)
class MembershipPrivacy:
    """1 - max(0, membership_advantage): what the loss-threshold attacker does not get.

    Unit: share, in [0, 1]. Higher is better. Interval: the advantage's. An upper bound: a better attacker gets more.
    """

    name: ClassVar[str] = "membership_privacy"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """1 minus the advantage, where there is one."""
        advantage = MembershipAdvantage()(baseline, candidate)
        value, low, high = (1 - max(0.0, x) for x in (advantage.value, advantage.high, advantage.low))
        return Measurement(value, low, high, advantage.n, advantage.over)


@dataclass(frozen=True)
class AdvantageBound:
    """(e^epsilon - 1 + 2 delta) / (e^epsilon + 1): the most any TPR - FPR can be; 1 if nothing is proved.

    Humphries et al. 2023, from Kairouz et al. 2015. Unit: difference of two rates, in [0, 1]. Lower is better. Exact.
    """

    name: ClassVar[str] = "advantage_bound"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "difference of two rates"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The smallest bound of the proved guarantees."""
        return Measurement.exact(min(map(advantage_bound, candidate.trained.guarantees), default=1.0))


@dataclass(frozen=True)
class BoundedPrivacy:
    """1 - advantage_bound: what no attacker can get. Unit: share, in [0, 1]. Higher is better. Exact."""

    name: ClassVar[str] = "bounded_privacy"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """1 minus the smallest bound."""
        return Measurement.exact(1 - AdvantageBound()(baseline, candidate).value)


def advantage_bound(guarantee: Guarantee) -> float:
    """The guarantee's bound on TPR - FPR, written with e^-epsilon so that a large epsilon cannot overflow."""
    shrunk = math.exp(-guarantee.epsilon)
    return min(1.0, (1 - shrunk + 2 * guarantee.delta * shrunk) / (1 + shrunk))


def membership_hits(outcome: Outcome) -> NDArray[np.float64]:
    """For each pair of a member and another: 1 if only the member is called one, -1 if only the other, else 0."""
    task = outcome.task
    rng = np.random.default_rng(SEED)
    size = min(len(task.train), len(task.test))
    members, others = (
        rng.permutation(_losses(logits, images.labels[task.target]))[:size]
        for logits, images in ((outcome.train_logits, task.train), (outcome.test_logits, task.test))
    )
    halves = (slice(0, size // 2), slice(size // 2, size))
    said = np.zeros(size)
    for fitted, scored in (halves, halves[::-1]):
        threshold = best_threshold(members[fitted], others[fitted])
        said[scored] = (members[scored] <= threshold).astype(np.float64) - (others[scored] <= threshold)
    return said


def best_threshold(members: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """The loss at or below which saying "member" gains most; -inf (say nothing) where nothing gains."""
    losses = np.unique(np.concatenate([members, others]))
    told = np.searchsorted(np.sort(members), losses, side="right") / max(1, len(members))
    wrongly = np.searchsorted(np.sort(others), losses, side="right") / max(1, len(others))
    gain = told - wrongly
    return float(losses[gain.argmax()]) if len(gain) and gain.max() > 0 else -math.inf


def _losses(logits: Tensor, labels: Tensor) -> NDArray[np.float64]:
    return nn.functional.cross_entropy(logits.double(), labels, reduction="none").numpy()
