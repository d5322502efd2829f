"""Informations of discrete variables whose joint distribution is known: exact, in nats.

A joint distribution is an array with one axis a variable, in the order the arguments name them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr, xlogy

from counterpoise._check import InputError, in_range

Values = NDArray[np.float64]
ROUNDING = 1e-9


def entropy(distribution: Values) -> float:
    """H = - sum p ln p, of all axes together."""
    return float(-xlogy(distribution, distribution).sum())


def divergence(first: Values, second: Values) -> Values:
    """KL(first || second) = sum over the last axis of first ln (first / second); infinite where only `second` is 0."""
    found: Values = rel_entr(first, second).sum(-1)
    return found


def information(joint: Values) -> float:
    """I(X; Y) of a joint [x, y]."""
    return entropy(joint.sum(1)) + entropy(joint.sum(0)) - entropy(joint)


def conditional_information(joint: Values) -> float:
    """I(X; Y | Z) of a joint [x, y, z]."""
    return entropy(joint.sum(1)) + entropy(joint.sum(0)) - entropy(joint) - entropy(joint.sum((0, 1)))


def leak_and_loss(joint: Values, channel: Values) -> tuple[float, float]:
    """A = I(S; Q) and B = I(U; X | Q) of a channel [x, q] and a joint [u, s, x]; Q sees X alone.

    A filter is to make both small: A is what its output tells of the secret, B what it lost of the utility.
    """
    secret, useful = joint.sum(0), joint.sum(1)
    return information(secret @ channel), conditional_information(useful[:, :, None] * channel[None])


def least_sum(joint: Values) -> float:
    """K = I(U; S) - I(U; S | X) of a joint [u, s, x]: A + B is at least so much for every channel.

    Because I(U;X|Q) = I(U;X) - I(U;Q), and I(U;Q) <= I(S;Q) + I(U;Q|S) <= I(S;Q) + I(U;X|S). Where K is below 0 it
    says nothing. So (1 - alpha) B^2 + alpha A^2 is at least alpha (1 - alpha) K^2, which is its least on A + B = K.
    That both A and B have floors of their own (alpha K, say) does not follow, and is not true.
    """
    return information(joint.sum(2)) - conditional_information(joint)


def largest_sum(joint: Values) -> float:
    """I(X; U, S) of a joint [u, s, x]: A + B is at most so much, for I(X;U,S) = I(Q;U,S) + I(X;U,S|Q)."""
    return information(joint.reshape(-1, joint.shape[2]))


def seen(joint: Values) -> Values:
    """The joint [u, s, x] in which X is the pair (U, S) itself: images without any noise."""
    return np.diag(joint.ravel()).reshape(*joint.shape, -1)


def synthetic(k: float, rho: float = 0.5, beta: float = 0.5) -> Values:
    """p(u, s) of the synthetic case: P(1,1) = k rho beta, P(0,1) = (1 - k rho) beta, P(1,0) = (1 - k beta) rho.

    P(U=1) = rho and P(S=1) = beta for every k. At k = 1 both are independent; with rho = beta = 1/2 they exclude
    each other at k = 0 and are equal at k = 2.
    """
    in_range(0, 1, rho=rho, beta=beta)
    both, only_s, only_u = k * rho * beta, (1 - k * rho) * beta, (1 - k * beta) * rho
    joint = np.array([[1 - both - only_s - only_u, only_s], [only_u, both]])
    if not math.isfinite(k) or joint.min() < -ROUNDING:
        raise InputError(f"k={k!r} with rho={rho!r} and beta={beta!r} gives a negative probability: choose another k.")
    found: Values = joint.clip(0)
    return found
