"""What a release tells of the hidden label, and what it takes from the target: measured, by those who tried.

Attackers learn from released images after the release is final: see `attackers`. All numbers are lower bounds on what
leaks, and hold against these attackers; nothing is proved. All are taken on request only, for they train networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import beta
from torch import Tensor

from counterpoise._check import inside
from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import Values, bootstrap
from counterpoise.measures.attackers import attacks, strongest, surest
from counterpoise.record import Measurement

HIDDEN: frozenset[str] = frozenset({"hidden"})


@dataclass(frozen=True)
class SecretAdvantage:
    """(acc - 1/C) / (1 - 1/C) of the strongest attacker on released test images, as many of each of the C classes.

    Linear, kNN, MLP, the study's network fresh, the same trained on raw images, and where a release was trained against
    an adversary, that and its continuation. The strongest on images kept aside and on one half of the test images is
    asked about the other half, so trying several flatters none. Unit: share above chance. Lower is better; around 0
    where nothing is told. Interval: bootstrap over test images. A lower bound: other attackers may tell more.
    """

    name: ClassVar[str] = "secret_advantage"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The strongest attacker's."""
        return strongest(attacks(baseline, candidate)).reading.leak


@dataclass(frozen=True)
class SecretPrivacy:
    """1 - max(0, secret_advantage): what the strongest attacker does not get.

    Unit: share, in [0, 1]. Higher is better. Interval: the advantage's. An upper bound: a better attacker gets more.
    """

    name: ClassVar[str] = "secret_privacy"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """1 minus the advantage, where there is one."""
        found = SecretAdvantage()(baseline, candidate)
        value, low, high = (1 - max(0.0, x) for x in (found.value, found.high, found.low))
        return Measurement(value, low, high, found.n, found.over)


@dataclass(frozen=True)
class InformationLeak:
    """ln C - cross-entropy of the best calibrated attacker: the nats about the secret that it can use.

    Xu et al. 2020, "A theory of usable information". Classes are balanced, so ln C is H(S). In expectation at most
    I(S; Q), and around 0 where nothing is told; it may come out slightly below, and is not cut off there. The attacker
    with the least cross-entropy on other images is asked. Unit: nats. Lower is better. Interval: bootstrap over test
    images.
    """

    name: ClassVar[str] = "information_leak"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "nats"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The surest attacker's."""
        return surest(attacks(baseline, candidate)).information


@dataclass(frozen=True)
class SecretChance:
    """p-value of "released images tell nothing": how often permuted test classes are met as well by the strongest.

    The strongest on images kept aside alone: the test images must not choose. 999 permutations, so .001 at least.
    Unit: probability. Higher is better (small: the secret is told). Exact, given the permutations: a p-value needs no
    interval.
    """

    name: ClassVar[str] = "secret_p_value"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Of the strongest attacker."""
        found = attacks(baseline, candidate).values()
        return Measurement.exact(max(found, key=lambda attack: attack.reading.chosen_by).reading.p_value)


@dataclass(frozen=True)
class FixedGap:
    """Advantage of the strongest attacker trained on released images minus that of one trained on raw images.

    By so much would a test with yesterday's attacker flatter the release. The latter is the study's network, so where
    nothing is filtered this is what other readers tell beyond it: compare with the baseline's. Unit: share above
    chance. Lower is better. Interval: bootstrap over test images, paired.
    """

    name: ClassVar[str] = "fixed_gap"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Hits of both on the same images."""
        found = attacks(baseline, candidate)
        fresh, fixed = strongest(found, fresh=True).reading, found["fixed"].reading
        hits = [(reading.answers == reading.classes).astype(np.float64) for reading in (fresh, fixed)]
        chance = 1 / fresh.count

        def gained(means: Values) -> Values:
            return means[..., 0] / (1 - chance)

        return bootstrap(hits[0] - hits[1], gained)


@dataclass(frozen=True)
class SecretMoved:
    """Share of test images q whose posterior on the secret is more than b from guessing: TV(p(s|q), 1/C) > b.

    By the surest calibrated attacker, image by image: how many are told on, where a mean could hide a few. A filter is
    (delta, b)-private if at most delta of them are (Bertran et al.). Unit: share of images. Lower is better. Interval:
    Clopper and Pearson's, so its upper end bounds the share among all images, as this attacker sees them.
    """

    name: ClassVar[str] = "secret_moved"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    b: float = 0.1

    def __post_init__(self) -> None:
        inside(0, 1, b=self.b)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """How many images move it."""
        return _share(surest(attacks(baseline, candidate)).moves > self.b)


@dataclass(frozen=True)
class UtilityMoved:
    """Share of test images whose posterior on the target moves by more than b: TV(p(u|x), p(u|q)) > b.

    Both as the candidate's model says, of the raw and of the released image. A filter is (delta, b)-transparent if at
    most delta of them move (Bertran et al.). Unit: share of images. Lower is better. Interval: Clopper and Pearson's,
    so its upper end bounds the share among all images.
    """

    name: ClassVar[str] = "utility_moved"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False
    b: float = 0.1

    def __post_init__(self) -> None:
        inside(0, 1, b=self.b)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """How many images move it."""
        raw, released = (x.double().softmax(1) for x in (candidate.raw_test_logits, candidate.test_logits))
        return _share((raw - released).abs().sum(1) / 2 > self.b)


def _share(moved: Tensor) -> Measurement:
    """A share of images with its exact binomial interval."""
    n, k = len(moved), int(moved.sum())
    low = 0.0 if k == 0 else float(beta.ppf(0.025, k, n - k + 1))
    high = 1.0 if k == n else float(beta.ppf(0.975, k + 1, n - k))
    return Measurement(k / n, low, high, n, "images")
