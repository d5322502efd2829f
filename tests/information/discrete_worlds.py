"""Random discrete worlds: labels U and S, images X, and a filter that sees X alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from counterpoise.information.discrete import Values


def worlds(count: int) -> Iterator[tuple[Values, Values]]:
    """Joints [u, s, x] and channels [x, q] of many sizes, from nearly even to nearly deterministic."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        u, s = rng.integers(2, 4, size=2)
        x, q = rng.integers(2, 6, size=2)
        joint = rng.dirichlet(np.full(u * s * x, rng.choice([0.1, 0.3, 1.0]))).reshape(u, s, x)
        yield joint, rng.dirichlet(np.full(q, rng.choice([0.1, 0.3, 1.0])), size=x)
