"""Rényi accounting of the Poisson-sampled Gaussian mechanism, by quadrature: a second opinion, numpy only.

The Rényi divergence of order a between the mechanism's outputs on neighbouring data is log A / (a - 1) with

    A = E[(1 - q + q exp((2x - 1) / (2 s^2)))^a],  x ~ N(0, s^2)

(Mironov, Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian mechanism", 2019, where this
direction is shown to be the larger one). The usual way is a binomial series for whole orders and a second,
alternating one for the others; here one trapezoid sum serves every order, so that an error in one of the two
implementations cannot hide in the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterpoise.record import Release

Vector = NDArray[np.float64]

ORDERS: Vector = np.concatenate(
    (np.arange(1.1, 11.0, 0.1), np.arange(11, 64, dtype=float), 2.0 ** np.arange(6, 11, 0.25))
)

_ROUNDING = 1e-12  # more than the sum's rounding error, so that the curve is never below the truth


def curve(noise: float, sample_rate: float, orders: Vector = ORDERS) -> Vector:
    """The Rényi divergence of one step at every order, in nats."""
    if noise < 1e-6:  # as good as none, and its square would underflow
        return np.full(len(orders), math.inf)
    if sample_rate == 1:
        return orders / (2 * noise**2)
    return np.array([_log_moment(noise, sample_rate, order) / (order - 1) for order in orders])


def _log_moment(noise: float, rate: float, order: float) -> float:
    """log A by the trapezoid rule, whose error falls exponentially here: the integrand is analytic in a strip.

    The strip's half-width is pi s^2 (a zero of 1 - q + q e^t lies there), and the mass lies between 0 and the order.
    Where that takes too many points (tiny noise at a large order) Jensen's bound 1 - q + q E[e^(at)] stands in.
    """
    step = min(noise, 2 * noise**2) / 8
    low, high = -12 * noise, order + 12 * noise
    if (high - low) / step > 200_000:
        return float(np.logaddexp(math.log1p(-rate), math.log(rate) + order * (order - 1) / (2 * noise**2)))
    x = np.linspace(low, high, int((high - low) / step) + 2)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * noise**2))
    log_terms = order * ratio - x**2 / (2 * noise**2)
    top = float(log_terms.max())
    total = float(np.exp(log_terms - top).sum()) * float(x[1] - x[0])
    return top + math.log(total) - math.log(noise * math.sqrt(2 * math.pi)) + _ROUNDING


def epsilon(releases: Sequence[Release], delta: float, orders: Vector = ORDERS) -> float:
    """The epsilon of Gaussian releases together, at the best order (Canonne, Kamath and Steinke 2020, prop. 12)."""
    total = np.zeros(len(orders))
    for release in releases:
        total += release.steps * curve(release.noise, release.sample_rate, orders)
    bounds = total + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(0.0, float(bounds.min()))
