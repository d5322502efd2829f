"""How far an image may move before k0 of its k most important units can be replaced: the certificate's arithmetic.

Everything here is a function of two lists: `inside`, the k0 smallest scores of the reported top k, and `outside`, the
k0 largest of the rest. Every bound grows with each number inside and falls with each number outside, so that lower
bounds on the first and upper bounds on the second can stand in for the true scores. docs/robust-explanations.md
derives all of it. numpy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Vector = NDArray[np.float64]

TINY = 1e-300
ORDERS: Vector = np.concatenate((-np.geomspace(60, 0.05, 30), np.geomspace(0.05, 60, 50)))
"""Rényi orders at which the bound is evaluated first. Any order is sound; more of them only tighten the bound."""
ABOVE_ONE: Vector = 1 + np.geomspace(1e-3, 100, 60)
"""The orders of the published bound, and of Laplace noise."""


def leaving(k: int, beta: Fraction) -> int:
    """k0: how many of the top k have to leave before less than the share beta is left. Exact: (1 - .8) * 10 is 2."""
    return k - math.ceil(beta * k) + 1


def threshold(inside: Vector, outside: Vector, orders: Vector, steps: int = 70) -> tuple[Vector, Vector]:
    """The pooled value t, one for each order, from below and from above, in logarithms.

    t solves sum over A of (1 - (t/p)^(order-1)) = 0, where A are the inside scores above t and the outside scores
    below it: t is the power mean of exponent 1 - order over A, and A is those whom pooling moves. Divided by
    order - 1 the sum falls in t, so bisection finds it.
    """
    up, down = (np.log(np.maximum(scores, TINY)) for scores in (inside, outside))
    power = (orders - 1)[:, None]
    low = np.full(len(orders), min(up.min(), down.min()))
    high = np.full(len(orders), max(up.max(), down.max()))
    for _ in range(steps):
        middle = (low + high) / 2
        rising = np.maximum(up - middle[:, None], 0)
        falling = np.minimum(down - middle[:, None], 0)
        surplus = _gap(rising, power).sum(1) + _gap(falling, power).sum(1)
        low, high = np.where(surplus > 0, middle, low), np.where(surplus > 0, high, middle)
    return low, high


def _gap(distance: Vector, power: Vector) -> Vector:
    """(1 - exp(-power * distance)) / power, which is the distance itself where the power is 0."""
    safe: Vector = np.where(np.abs(power) < 1e-9, 1.0, power)
    with np.errstate(over="ignore"):
        found: Vector = np.where(np.abs(power) < 1e-9, distance, -np.expm1(-safe * distance) / safe)
    return found


def pooled_mass(inside: Vector, outside: Vector, log_t: Vector) -> Vector:
    """R = 1 - sum over A of p + |A| t: what is left of the scores' sum when A is pooled at t."""
    t = np.exp(log_t)[:, None]
    mass: Vector = 1 - np.maximum(inside - t, 0).sum(1) + np.maximum(t - outside, 0).sum(1)
    return mass


def divergence(inside: Vector, outside: Vector, orders: Vector) -> Vector:
    """The least Rényi divergence from the scores to any scores in which `outside` has caught up with `inside`.

    -ln R for orders above 0, which is the Rényi divergence D_order(q || p); for orders below 0 it is -ln R as well,
    which is order / (1 - order) times D_(1 - order)(p || q). Rounded towards the certificate's safe side.
    """
    low, high = threshold(inside, outside, orders)
    mass = np.where(orders > 0, pooled_mass(inside, outside, high), pooled_mass(inside, outside, low))
    with np.errstate(divide="ignore"):
        found: Vector = -np.log(np.maximum(mass, 0))
    return found


def published_divergence(inside: Vector, outside: Vector, orders: Vector) -> Vector:
    """The form in print, which pools all 2 k0 scores. UNSOUND for k0 > 1: it can exceed the true minimum."""
    scores = np.log(np.maximum(np.concatenate((inside, outside)), TINY))
    exponents = (1 - orders)[:, None]
    scaled = exponents * scores
    top = scaled.max(1, keepdims=True)
    log_t = ((top + np.log(np.exp(scaled - top).mean(1, keepdims=True))) / exponents)[:, 0]
    mass = 1 - np.exp(scores).sum() + len(scores) * np.exp(log_t)
    with np.errstate(divide="ignore"):
        found: Vector = -np.log(np.maximum(mass, 0))
    return found


def gaussian_renyi(inside: Vector, outside: Vector) -> float:
    """The l2 radius in units of sigma: sqrt(sup over orders a of (2/a) (-ln R_a)).

    Moving the image by L makes the divergence of order a at most a L^2 / (2 sigma^2).
    """
    if crossed(inside, outside):
        return 0.0

    def squared(orders: Vector) -> Vector:
        return np.maximum(2 / orders * divergence(inside, outside, orders), 0)

    return math.sqrt(_highest(squared, ORDERS))


def gaussian_published(inside: Vector, outside: Vector) -> float:
    """The radius of the form in print. UNSOUND for k0 > 1; kept to compare with."""
    if crossed(inside, outside):
        return 0.0
    return math.sqrt(
        _highest(lambda orders: np.maximum(2 / orders * published_divergence(inside, outside, orders), 0), ABOVE_ONE)
    )


def laplace_renyi(inside: Vector, outside: Vector) -> float:
    """The l1 radius in units of the Laplace scale: the largest whose divergence is below the least violating one."""
    if crossed(inside, outside):
        return 0.0
    return _highest(lambda orders: _laplace_distance(divergence(inside, outside, orders), orders), ABOVE_ONE)


def laplace_divergence(distance: Vector, orders: Vector) -> Vector:
    """D_order between Laplace(0, 1) and Laplace(distance, 1); the worst case over an l1 ball is one coordinate."""
    a = orders
    first = np.log(a / (2 * a - 1)) + (a - 1) * distance
    second = np.log((a - 1) / (2 * a - 1)) - a * distance
    found: Vector = np.logaddexp(first, second) / (a - 1)
    return found


def _laplace_distance(budget: Vector, orders: Vector) -> Vector:
    low = np.zeros(len(orders))
    high = np.minimum(budget, 1e6) + np.log((2 * orders - 1) / orders) / (orders - 1)
    for _ in range(60):
        middle = (low + high) / 2
        fits = laplace_divergence(middle, orders) <= budget
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def groups(inside: Vector, outside: Vector, scores: Vector) -> tuple[Vector, Vector]:
    """For s = 1 … k0: the mean hold of the s largest of `inside` and of the s smallest of `outside`, each in [0, 1].

    s units hold at most the s highest scores together, so a group's score over v_1 + … + v_s is a probability.
    """
    most = np.cumsum(scores[: len(inside)])
    holds = np.cumsum(np.sort(inside)[::-1]) / most, np.cumsum(np.sort(outside)) / most
    return np.clip(holds[0], 0, 1), np.clip(holds[1], 0, 1)


def gaussian_groups(inside: Vector, outside: Vector, scores: Vector) -> float:
    """The l2 radius in units of sigma by Neyman and Pearson: half the largest gap between groups, in probits.

    The group of all k0 is one certificate, the group of 1 is that of Levine, Singla and Feizi; the best one counts.
    """
    held, taken = groups(inside, outside, scores)
    with np.errstate(invalid="ignore"):
        gaps = ndtri(held) - ndtri(taken)
    return max(0.0, float(np.nan_to_num(gaps, nan=0.0, posinf=np.inf, neginf=-np.inf).max()) / 2)


def laplace_groups(inside: Vector, outside: Vector, scores: Vector) -> float:
    """The l1 radius in units of the Laplace scale: odds move by at most exp(radius), whichever group is looked at."""
    held, taken = groups(inside, outside, scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.stack(
            [
                (np.log(held) - np.log(taken)) / 2,
                (np.log1p(-taken) - np.log1p(-held)) / 2,
                -np.log1p(np.minimum(taken - held, 0)),
            ]
        )
    return max(0.0, float(np.nan_to_num(ratios, nan=0.0, posinf=np.inf, neginf=-np.inf).max()))


def crossed(inside: Vector, outside: Vector) -> bool:
    """Whether the outside has caught up already: then nothing is certified."""
    return bool(inside.max() <= outside.min())


def _highest(value: Callable[[Vector], Vector], grid: Vector) -> float:
    """The largest value on the grid, and on a finer one around the place where it is."""
    best = int(np.argmax(found := value(grid)))
    beside = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    finer = np.linspace(*beside, 33)
    return float(max(found[best], value(finer[np.abs(finer) > 1e-3]).max()))
