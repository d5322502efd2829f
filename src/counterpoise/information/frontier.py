"""The best that any filter can do: the least loss of utility at every leak of the secret, by linear programming.

The images are X = (U, S) without noise, so H(U | X) = 0. A filter Q splits the prior p(u, s) into posteriors w that
average to it, and both its leak and its loss are averages over posteriors:

    A = I(S; Q)     = sum_q p(q) (H(S) - H(w_q of S))
    B = I(U; X | Q) = sum_q p(q) H(w_q of U)

So over a fixed set of posteriors the least B at each A is a linear program in p(q), and its optimum is global.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.special import entr

from counterpoise._check import InputError, at_least, in_range
from counterpoise.information.discrete import ROUNDING, Values

MOST = 200_000
"""Posteriors above which the program is refused: it would take minutes."""


@dataclass(frozen=True)
class Point:
    """A filter's leak A, its loss B, and (1 - alpha) B^2 + alpha A^2."""

    leak: float
    loss: float
    objective: float


@dataclass(frozen=True)
class Frontier:
    """Filters with the least loss at growing leaks: `leak` and `loss`, nats. Between two, a coin tossed in the open.

    Every point is a filter's, so the curve lies on or above the true one, and an optimum along it is an upper bound.
    The true one, moved to the right by `slack`, lies on or above this one: that is how far a grid can be off.
    """

    leak: Values
    loss: Values
    slack: float

    def at(self, leak: float) -> float:
        """The least loss at this leak; beyond the last point, its loss."""
        return float(np.interp(leak, self.leak, self.loss))

    def best(self, alpha: float) -> Point:
        """The least (1 - alpha) B^2 + alpha A^2 along the curve."""
        in_range(0, 1, alpha=alpha)
        starts, moves = np.stack([self.leak, self.loss], 1), np.diff([self.leak, self.loss]).T
        weights = np.array([alpha, 1 - alpha])
        # On the segment start + t move the objective is a parabola in t.
        steep = (moves**2 @ weights).clip(1e-300)
        along = (-(starts[:-1] * moves) @ weights / steep).clip(0, 1)
        candidates = np.concatenate([starts[:-1] + along[:, None] * moves, starts])
        values = candidates**2 @ weights
        found = int(values.argmin())
        return Point(float(candidates[found, 0]), float(candidates[found, 1]), float(values[found]))


def frontier(joint: Values, grid: int = 60, points: int = 41) -> Frontier:
    """The curve for p(u, s), over all posteriors whose probabilities are multiples of 1 / grid, and the prior itself.

    Any posterior w is an average of grid posteriors around it (Freudenthal's triangulation of the partial sums). To
    tell which one it was never loses utility, and tells at most |S| / (e grid) of the secret, because each P(S = s)
    stays between neighbours of the grid and -t ln t bends by at most 1 / (e grid) there. That is `slack`. Posteriors
    that hold a cycle of cells are left out: mass moved around it changes no marginal, so each is an average of two
    that have fewer cells.
    """
    at_least(1, grid=grid)
    at_least(2, points=points)
    prior = _checked(joint)
    posteriors = np.concatenate([prior.reshape(1, -1), _posteriors(prior.shape, grid)])
    tables = posteriors.reshape(-1, *prior.shape)
    told = entr(prior.sum(0)).sum() - entr(tables.sum(1)).sum(1)
    lost = entr(tables.sum(2)).sum(1)
    averages = csr_array(posteriors.T)

    def least(cost: Values, bounded: Values | None = None, bound: float = 0.0) -> Values:
        limit = {} if bounded is None else {"A_ub": csr_array(bounded[None]), "b_ub": [bound]}
        found = linprog(cost, A_eq=averages, b_eq=prior.ravel(), bounds=(0, None), method="highs", **limit)
        weights: Values = found.x
        return weights

    # The most that need be told: the least leak that still loses nothing.
    free = max(0.0, float(told @ least(told, lost, ROUNDING)))
    filters = [least(lost, told, bound) for bound in np.linspace(0, free, points)]
    leaks, losses = (np.array([values @ weights for weights in filters]) for values in (told, lost))
    return Frontier(leaks.clip(0), np.minimum.accumulate(losses.clip(0)), prior.shape[1] / (math.e * grid))


def best(joint: Values, alpha: float, grid: int = 60) -> Point:
    """The least (1 - alpha) B^2 + alpha A^2 of any filter: an upper bound, by as much as the grid is coarse.

    For `synthetic(.4)` and alpha = .3 the grids 40, 60 and 100 give .00941, .00938 and .00937; descent finds .00937.
    """
    return frontier(joint, grid).best(alpha)


def _checked(joint: Values) -> Values:
    if joint.ndim != 2 or joint.min() < 0 or abs(joint.sum() - 1) > ROUNDING:
        raise InputError(f"joint must be a table [u, s] of probabilities that add up to 1, not {joint.tolist()}.")
    return joint


def _posteriors(shape: tuple[int, ...], grid: int) -> Values:
    """Posteriors on the grid of the simplex whose cells (u, s) hold no cycle, as rows."""
    found = [np.empty((0, math.prod(shape)))]
    edges = list(itertools.product(range(shape[0]), range(shape[1])))
    for size in range(1, sum(shape)):
        inner = math.comb(grid - 1, size - 1)
        for cells in itertools.combinations(range(len(edges)), size):
            if not _forest([edges[cell] for cell in cells]):
                continue
            if sum(map(len, found)) + inner > MOST:
                raise InputError(f"grid={grid} makes more than {MOST:,} posteriors of {shape}: choose a smaller grid.")
            rows = np.zeros((inner, len(edges)))
            rows[:, cells] = _compositions(grid, size) / grid
            found.append(rows)
    return np.concatenate(found)


def _compositions(total: int, parts: int) -> Values:
    """All ways to write a whole number as an ordered sum of so many positive ones, as rows."""
    bars = np.array(list(itertools.combinations(range(1, total), parts - 1)), dtype=np.float64)
    bars = bars.reshape(math.comb(total - 1, parts - 1), parts - 1)
    return np.diff(bars, axis=1, prepend=0, append=total)


def _forest(cells: list[tuple[int, int]]) -> bool:
    """Whether cells, as edges between rows and columns, hold no cycle."""
    root: dict[tuple[str, int], tuple[str, int]] = {}

    def find(node: tuple[str, int]) -> tuple[str, int]:
        while node in root:
            node = root[node]
        return node

    for row, column in cells:
        one, other = find(("row", row)), find(("column", column))
        if one == other:
            return False
        root[one] = other
    return True
