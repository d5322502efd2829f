"""What the deck's training reveals, epoch by epoch, by three accountants: PLD, Rényi, classic strong composition."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from counterpoise.privacy import account

QUOTED = (0.35, 0.5)
"""The epsilons that the deck states."""


@dataclass(frozen=True)
class Spending:
    """The epsilons after so many epochs, at one delta."""

    epochs: int
    pld: float
    rdp: float
    strong: float


def spending(n: int, batch: int, noise: float, delta: float, epochs: Sequence[int]) -> list[Spending]:
    """One line for each number of epochs."""
    return [_after(count, n, batch, noise, delta) for count in epochs]


@functools.cache  # the tables are laid out more than once
def _after(epochs: int, n: int, batch: int, noise: float, delta: float) -> Spending:
    steps = max(1, round(epochs * n / batch))
    rate = batch / n
    pld, rdp = (
        account(noise=noise, sample_rate=rate, steps=steps, delta=delta, accountant=accountant)
        for accountant in ("pld", "rdp")
    )
    return Spending(epochs, pld, rdp, strong_composition(noise, rate, steps, delta))


def last_epoch_within(goal: float, n: int, batch: int, noise: float, delta: float, accountant: str) -> int:
    """The most whole epochs whose epsilon is at most `goal`; 0 where one is too many already."""
    column = "pld" if accountant == "pld" else "rdp"
    count = 0
    while getattr(spending(n, batch, noise, delta, [count + 1])[0], column) <= goal:
        count += 1
    return count


def strong_composition(noise: float, rate: float, steps: int, delta: float) -> float:
    """Dwork, Rothblum and Vadhan 2010 over sampled Gaussian steps: how it was done before moments were followed.

    A step is (e, d)-private with the exact d(e) of the Gaussian mechanism (Balle and Wang 2018), sampling makes that
    (ln(1 + rate (exp(e) - 1)), rate d), and T steps cost e sqrt(2 T ln(1/d')) + T e (exp(e) - 1) at T d + d'. The best
    split of delta on a grid is taken, so that the method is not blamed for a poor choice.
    """
    best = math.inf
    for split in (0.1, 0.3, 0.5, 0.7, 0.9):
        for each in np.geomspace(0.01, 60, 400):
            if steps * rate * _gaussian_delta(noise, float(each)) > (1 - split) * delta:
                continue
            sampled = math.log1p(rate * math.expm1(each))
            total = sampled * math.sqrt(2 * steps * math.log(1 / (split * delta)))
            best = min(best, total + steps * sampled * math.expm1(sampled))
            break  # larger steps only cost more
    return best


def _gaussian_delta(noise: float, epsilon: float) -> float:
    """The exact delta of one Gaussian step of sensitivity 1."""
    half, far = 1 / (2 * noise), epsilon * noise
    return float(ndtr(half - far) - math.exp(min(epsilon, 700)) * ndtr(-half - far))
