"""The noise that hides one image by itself, before it leaves its owner: local differential privacy.

Neighbours are any two images, pixel for pixel anything in [0, 1]; so the sensitivity is the diameter of all images, and
the noise is large. The analytic calibration is exact: no less Gaussian noise keeps (epsilon, delta).
"""

from __future__ import annotations

import math

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.privacy.noise import Gaussian, Laplace

MOST = 1e9
"""The largest epsilon that is calibrated. It promises nothing any more, and beyond it rounding would decide."""


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """The least delta of Gaussian noise, its standard deviation in units of the L2 sensitivity.

    Phi(1/2m - epsilon m) - e^epsilon Phi(-1/2m - epsilon m). Balle and Wang, "Improving the Gaussian mechanism for
    differential privacy", ICML 2018, theorem 8; the second term by logarithms, because e^epsilon may overflow.
    """
    from scipy.special import log_ndtr, ndtr

    half, shift = 0.5 / multiplier, epsilon * multiplier
    return max(0.0, float(ndtr(half - shift)) - math.exp(min(0.0, epsilon + float(log_ndtr(-half - shift)))))


def least_gaussian(epsilon: float, delta: float) -> Gaussian:
    """The least Gaussian noise that keeps (epsilon, delta), to nine digits and never below."""
    from scipy.optimize import brentq

    _check.positive(epsilon=epsilon)
    if epsilon > MOST:
        raise InputError(
            f"epsilon={epsilon:g} must be at most {MOST:g} for Gaussian noise: so much is no protection; train 'plain'."
        )
    if not 0 < delta < 1:
        raise InputError(f"delta={delta:g} must be above 0 and below 1 for Gaussian noise; Laplace noise needs none.")

    def excess(exponent: float) -> float:
        return gaussian_delta(epsilon, math.exp(exponent)) - delta

    low, high = math.log(1e-6), 0.0
    while excess(high) > 0:
        high += 1
    root = float(brentq(excess, low, high, xtol=1e-10))
    while excess(root) > 0:  # the root is met from either side; the goal is not
        root += 1e-9
    return Gaussian(math.exp(root))


def least_laplace(epsilon: float) -> Laplace:
    """Laplace noise of scale 1 / epsilon in units of the L1 sensitivity: pure epsilon. Dwork et al., TCC 2006."""
    _check.positive(epsilon=epsilon)
    return Laplace(1 / epsilon)
