"""What a filter of the synthetic case tells and loses, by integration: no trained network has a say in it."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor

from counterpoise.information.discrete import Values, entropy
from counterpoise.reproduce._bertran_filters import UNIT, Mixing
from counterpoise.training import generator

SPREAD = 0.05
CHUNK = 500
Interval = tuple[float, float, float]
"""Value, low, high."""


def rows_of(u: Tensor, s: Tensor, rng: torch.Generator) -> Tensor:
    """X ~ N((U, S), SPREAD^2 I), centred and in units of the filters' noise, [n, 2]."""
    return UNIT * (torch.stack([u, s], 1) - 0.5 + SPREAD * torch.randn(len(u), 2, generator=rng))


def draw(joint: Values, n: int, seed: int, purpose: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, and the classes of U and of S."""
    rng = generator(seed, "synthetic", purpose)
    cells = torch.multinomial(torch.from_numpy(joint.ravel()), n, replacement=True, generator=rng)
    u, s = cells // 2, cells % 2
    return rows_of(u, s, rng), u, s


def judged(filter: Mixing, joint: Values, outer: int, inner: int, seed: int) -> dict[str, Interval]:
    """A = I(S;Q), B = I(U;X|Q) and A + B, in nats.

    p(q|u,s) is a mean of Gaussians around the centres of `inner` drawn rows; A is H(S) less the mean entropy of S in
    the posteriors of `outer` other outputs, and B the mean entropy of U, since H(U|X) is below 1e-20 here. Intervals:
    1.96 standard errors, and to both sides what half as many centres change: too few centres make outputs look as if
    they told more.
    """
    rows, _, _ = draw(joint, outer, seed, "outer")
    noise = torch.randn(filter.noise_shape(rows), generator=generator(seed, "noise"))
    with torch.no_grad():
        outputs = filter.run(rows, noise).double()
    rng = generator(seed, "inner")
    densities = torch.zeros(2, outer, 4, dtype=torch.float64)
    for cell in range(4):
        if joint.ravel()[cell] > 0:
            u, s = torch.full((inner,), cell // 2), torch.full((inner,), cell % 2)
            chance = torch.randn(inner, filter.inner, generator=rng)
            with torch.no_grad():
                centres = filter.centres(rows_of(u, s, rng), chance).double()
            for start in range(0, outer, CHUNK):
                here = slice(start, start + CHUNK)
                kernels = (-torch.cdist(outputs[here], centres).square() / 2).exp()
                densities[0, here, cell], densities[1, here, cell] = kernels.mean(1), kernels[:, ::2].mean(1)
    weighed = densities.numpy() * joint.ravel()
    (leaks, losses), (rough_leaks, rough_losses) = (_entropies(joint, table) for table in weighed)
    return {
        "leak": _interval(leaks, rough_leaks),
        "loss": _interval(losses, rough_losses),
        "sum": _interval(leaks + losses, rough_leaks + rough_losses),
    }


def _entropies(joint: Values, weighed: Values) -> tuple[Values, Values]:
    """H(S) - H(S|q) and H(U|q), output by output."""
    total = weighed.sum(1, keepdims=True)
    posterior = np.where(total > 0, weighed / np.where(total > 0, total, 1), joint.ravel()).reshape(-1, 2, 2)
    return entropy(joint.sum(0)) - entr(posterior.sum(1)).sum(1), entr(posterior.sum(2)).sum(1)


def _interval(values: Values, rough: Values) -> Interval:
    mean = float(values.mean())
    reach = 1.96 * float(values.std()) / math.sqrt(len(values)) + abs(float(rough.mean()) - mean)
    return mean, mean - reach, mean + reach
