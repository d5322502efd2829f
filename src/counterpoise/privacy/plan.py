"""The plan of a private training: the one place that sampler, accountant, noise and denominator come from.

    plan = Plan(Gaussian(1.1), Poisson(n=60_000, batch=250), steps=3600, delta=1e-5)
    plan.guarantee().epsilon                      # what it proves
    plan.calibrate(epsilon=1.0)                   # the same plan with just enough noise
    plan.calibrate_attack(0.05, 0.01)             # no attacker finds 5 % of members at 1 % false alarms

A private step is (sum of clipped gradients + noise) / expected batch. The denominator is the expected batch, a
number of the plan: the realised batch size depends on who is in the data, and to divide by it would tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import get_args

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.privacy import accounting
from counterpoise.privacy.accounting import Accountant, Adjacency
from counterpoise.privacy.clipping import Clip, Flat
from counterpoise.privacy.noise import Noise
from counterpoise.privacy.sampling import Sampling
from counterpoise.record import Guarantee, Release


@dataclass(frozen=True)
class Plan:
    """How a model is trained privately. A wrong plan cannot be made: the error says what is wrong with it.

    `secure` noise comes from the operating system and cannot be repeated; else it comes from the training's seed.
    """

    noise: Noise
    sampling: Sampling
    steps: int
    delta: float
    clip: Clip = field(default_factory=Flat)
    adjacency: Adjacency = "add-remove"
    accountant: Accountant = "pld"
    secure: bool = False

    def __post_init__(self) -> None:
        parts = {"noise": (self.noise, Noise), "sampling": (self.sampling, Sampling), "clip": (self.clip, Clip)}
        for name, (part, kinds) in parts.items():
            if not isinstance(part, kinds):
                known = ", ".join(kind.__name__ for kind in get_args(kinds))
                raise InputError(f"{name}={part!r} must be one of {known}.")
        if not isinstance(self.secure, bool):
            raise InputError(f"secure={self.secure!r} must be True or False.")
        _check.at_least(1, steps=self.steps)
        _check.in_range(0, 1, delta=self.delta)
        if self.delta >= 1 / self.sampling.n:
            raise InputError(
                f"delta={self.delta:g} must be below 1/{self.sampling.n}:"
                " at 1/n, giving one image away whole is allowed."
            )
        if self.delta == 0 and self.noise.kind == "gaussian":
            raise InputError("delta=0 cannot be had with Gaussian noise; take a delta far below 1/n, such as 1e-5.")
        if self.noise.norm != self.clip.norm:
            raise InputError(
                f"{self.noise.kind} noise hides gradients clipped in the L{self.noise.norm} norm, not"
                f" L{self.clip.norm}: an L2 ball of clip {self.clip.bound:g} is up to sqrt(number of weights) times"
                f" wider in L1; set the clip's norm to {self.noise.norm}."
                if self.noise.kind == "laplace"
                else f"gaussian noise is accounted for gradients clipped in the L2 norm; set the clip's norm to 2,"
                f" not {self.clip.norm}."
            )
        accounting.check_covered([self.release], self.accountant, self.adjacency)

    @property
    def expected_batch(self) -> int:
        """What the noisy sum is divided by."""
        return self.sampling.batch

    @property
    def release(self) -> Release:
        """The plan as the ledger keeps it."""
        return Release(
            self.noise.kind, float(self.noise.multiplier), self.sampling.rate, self.steps, self.sampling.name
        )

    def spent(self, accountant: Accountant | None = None) -> accounting.Spent:
        """The epsilon at the plan's delta and the accountant that proves it; infinite without noise."""
        return accounting.spend([self.release], self.delta, accountant or self.accountant, self.adjacency)

    def guarantee(self) -> Guarantee | None:
        """What training by this plan proves about each image, or None: without noise nothing is proved."""
        epsilon, accountant = self.spent()
        if math.isinf(epsilon):
            return None
        return Guarantee(
            "dp", epsilon, self.delta, adjacency=self.adjacency, accountant=accountant, releases=(self.release,)
        )

    def with_noise(self, multiplier: float) -> Plan:
        """The same plan with another amount of noise."""
        return replace(self, noise=replace(self.noise, multiplier=multiplier))

    def calibrate(self, epsilon: float, delta: float | None = None) -> Plan:
        """The same plan with the least noise that keeps epsilon, to four digits and never below."""
        _check.positive(epsilon=epsilon)
        plan = self if delta is None else replace(self, delta=delta)
        return plan._least_noise(lambda multiplier: plan.with_noise(multiplier).spent().epsilon, epsilon)

    def calibrate_attack(self, true_positive_rate: float, false_positive_rate: float) -> Plan:
        """The same plan with the least noise under which no membership attacker does better than this.

        The bound holds for every attack on the trained model, also one that knows all other images.
        """
        _check.inside(0, 1, true_positive_rate=true_positive_rate, false_positive_rate=false_positive_rate)
        if true_positive_rate <= false_positive_rate:
            raise InputError(
                f"true_positive_rate={true_positive_rate:g} must be above"
                f" false_positive_rate={false_positive_rate:g}: guessing at random reaches that."
            )

        def bound(multiplier: float) -> float:
            return self.with_noise(multiplier).attack_bound(false_positive_rate)

        return self._least_noise(bound, true_positive_rate)

    def attack_bound(self, false_positive_rate: float) -> float:
        """The most members any attack can find at this false-positive rate, as a share."""
        return accounting.true_positive_bound([self.release], false_positive_rate, self.adjacency)

    def _least_noise(self, cost: Callable[[float], float], goal: float) -> Plan:
        """The root of log cost - log goal over the logarithm of the multiplier, where both are nearly straight."""
        from scipy.optimize import brentq

        def excess(exponent: float) -> float:
            return math.log(min(max(cost(math.exp(exponent)), 1e-12), 1e12) / goal)

        low, high = math.log(0.3), math.log(0.6)
        while excess(high) > 0:
            low, high = high, high + math.log(2)
            if high > math.log(1e6):
                raise InputError("No amount of noise reaches this goal in so many steps; ask for less, or train less.")
        while low > math.log(1e-3) and excess(low) <= 0:
            low, high = low - math.log(2), low
        root = float(brentq(excess, low, high, xtol=2e-5)) if excess(low) > 0 else low
        while excess(root) > 0:  # the root is met from either side; the goal is not
            root += 2e-5
        return self.with_noise(math.exp(root))
