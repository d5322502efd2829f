"""From bounds on every unit's score to a certificate, and back from a radius to the share that is certain to stay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from counterpoise._check import InputError
from counterpoise.explainers import _bounds
from counterpoise.explainers._bounds import Vector
from counterpoise.explainers._confidence import Bounds
from counterpoise.explainers._scoring import top
from counterpoise.record import Certificate

Bound = Literal["best", "renyi", "neyman-pearson", "published"]
Distribution = Literal["gaussian", "laplace"]
Norm = Literal["l1", "l2", "linf"]
Which = Literal["renyi", "neyman-pearson", "published"]


@dataclass(frozen=True)
class Claim:
    """What is to be certified: the smoothing, the scores of the ranks, and which bound may be used.

    `stretch` turns the noise's own norm into the claimed one: 1 / sqrt(pixel values) from l2 to linf.
    """

    scores: Vector
    noise: float
    distribution: Distribution = "gaussian"
    bound: Bound = "best"
    norm: Norm = "l2"
    stretch: float = 1.0

    def __post_init__(self) -> None:
        if (self.norm == "l1") != (self.distribution == "laplace"):
            raise InputError(
                f"norm={self.norm!r} cannot be had with {self.distribution} noise: Gaussian noise certifies 'l2' and"
                " 'linf', Laplace noise 'l1'."
            )
        if self.bound == "published" and self.distribution == "laplace":
            raise InputError("bound='published' is kept for Gaussian noise only; take 'best', which is sound.")

    def radius(self, bounds: Bounds, chosen: NDArray[np.int64], leaving: int) -> tuple[float, Which]:
        """The largest radius any allowed bound gives while fewer than `leaving` of the chosen can be replaced."""
        rest = np.ones(len(bounds.low), dtype=bool)
        rest[chosen] = False
        inside = np.sort(bounds.low[chosen])[:leaving]
        outside = np.sort(bounds.high[rest])[::-1][:leaving]
        found = [(self.stretch * self.noise * reach(inside, outside), which) for which, reach in self._reaches()]
        return max(found, key=lambda pair: pair[0])

    def _reaches(self) -> list[tuple[Which, Callable[[Vector, Vector], float]]]:
        gaussian = self.distribution == "gaussian"
        if self.bound == "published":
            return [("published", _bounds.gaussian_published)]
        by_groups = _bounds.gaussian_groups if gaussian else _bounds.laplace_groups
        found: list[tuple[Which, Callable[[Vector, Vector], float]]] = []
        if self.bound in ("best", "neyman-pearson"):
            found.append(("neyman-pearson", lambda inside, outside: by_groups(inside, outside, self.scores)))
        if self.bound in ("best", "renyi"):
            found.append(("renyi", _bounds.gaussian_renyi if gaussian else _bounds.laplace_renyi))
        return found

    def overlap(self, bounds: Bounds, chosen: NDArray[np.int64], radius: float) -> Fraction:
        """The largest share of the chosen that is certain to stay while the image moves less than `radius`.

        The more that have to leave, the farther the image has to move; so the least number whose radius is large enough
        is found by halving.
        """
        k = len(chosen)
        most = min(k, len(bounds.low) - k)
        low, high = 1, most + 1
        while low < high:
            middle = (low + high) // 2
            enough = self.radius(bounds, chosen, middle)[0] >= radius
            low, high = (low, middle) if enough else (middle + 1, high)
        # When none is certain, those still stay for which there is no room outside.
        return Fraction(k - low + 1, k)


def certify(
    claim: Claim, mean: Vector, bounds: Bounds, *, k: int, beta: Fraction, confidence: float, samples: int
) -> Certificate:
    """The certificate of the top k of `mean`."""
    chosen = top(mean, k)
    radius, which = claim.radius(bounds, chosen, _bounds.leaving(k, beta))
    return Certificate(
        radius=radius if math.isfinite(radius) else math.inf,
        norm=claim.norm,
        k=k,
        beta=beta,
        confidence=confidence,
        samples=samples,
        noise=claim.noise,
        distribution=claim.distribution,
        bound=which,
        abstained=radius == 0,
        top=tuple(int(unit) for unit in chosen),
        low=tuple(bounds.low.tolist()),
        high=tuple(bounds.high.tolist()),
    )
