"""The certificate's arithmetic against an optimiser, brute force, quadrature and simulation. No model, no image."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import ndtri

from counterpoise.explainers import _bounds
from counterpoise.explainers._bounds import (
    crossed,
    divergence,
    gaussian_groups,
    gaussian_published,
    gaussian_renyi,
    laplace_divergence,
    laplace_groups,
    laplace_renyi,
    leaving,
    published_divergence,
)

Vector = NDArray[np.float64]
COUNTER_EXAMPLE = np.array([0.4, 0.2, 0.2, 0.05, 0.05, 0.05, 0.03, 0.02])
"""With k = k0 = 2. Found by the optimiser below; the form in print certifies too much here."""


def swapped_minimum(p: Vector, inside: tuple[int, ...], outside: tuple[int, ...], order: float) -> float:
    """By SLSQP, the least ln(sum q^order p^(1-order)) / (order (order-1)) over all q that rank `outside` as high.

    For orders above 1 that is D_order(q || p) / order. No pooling, no threshold: the constraints as they are stated.
    """
    n = len(p)

    def value(q: Vector) -> float:
        return math.log(float(np.sum(q**order * p ** (1 - order)))) / (order * (order - 1))

    def slope(q: Vector) -> Vector:
        terms = q ** (order - 1) * p ** (1 - order)
        found: Vector = terms / float(np.sum(q * terms)) / (order - 1)
        return found

    rows = []
    for i, j in itertools.product(inside, outside):
        row = np.zeros(n)
        row[i], row[j] = -1, 1
        rows.append(row)
    above = np.array(rows)
    start = p.copy()
    start[[*inside, *outside]] = p[[*inside, *outside]].mean()
    found = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        bounds=[(1e-9, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: np.ones(n)},
            {"type": "ineq", "fun": lambda q: above @ q, "jac": lambda q: above},
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    q = np.clip(found.x, 1e-9, 1)
    assert (above @ q).min() > -1e-7
    return value(q / q.sum())


def true_minimum(p: Vector, k: int, k0: int, order: float) -> float:
    """Over every choice of k0 of the top k and k0 of the rest: that the worst one is known is not taken for granted."""
    choices = itertools.product(itertools.combinations(range(k), k0), itertools.combinations(range(k, len(p)), k0))
    return min(swapped_minimum(p, inside, outside, order) for inside, outside in choices)


def random_scores(rng: np.random.Generator) -> tuple[Vector, int, int]:
    n = int(rng.integers(3, 9))
    k = int(rng.integers(1, n - 1))
    p = np.maximum(np.sort(rng.dirichlet(np.full(n, rng.choice([0.5, 1.0, 3.0]))))[::-1], 1e-4)
    betas = [b for b in (Fraction(i, 10) for i in range(1, 11)) if leaving(k, b) <= n - k]
    return p / p.sum(), k, leaving(k, betas[int(rng.integers(len(betas)))])


def test_it_is_the_true_minimum_and_the_form_in_print_is_not() -> None:
    rng = np.random.default_rng(8)
    unsound = 0
    for _ in range(150):
        p, k, k0 = random_scores(rng)
        order = float(rng.choice([-3, -1, 0.3, 0.7, 1.5, 2, 4, 8]))
        inside, outside = p[k - k0 : k], p[k : k + k0]
        truth = true_minimum(p, k, k0, order)
        ours = float(divergence(inside, outside, np.array([order]))[0]) / order
        assert ours == pytest.approx(truth, abs=1e-5)
        if order > 1:
            printed = float(published_divergence(inside, outside, np.array([order]))[0]) / order
            assert k0 > 1 or printed == pytest.approx(ours, abs=1e-9)
            unsound += printed > truth + 1e-4
    assert unsound >= 5


@pytest.mark.parametrize(
    ("order", "printed", "true"), [(1.5, 0.3179, 0.2971), (2.0, 0.4427, 0.3897), (8.0, 0.9319, 0.6434)]
)
def test_the_counter_example(order: float, printed: float, true: float) -> None:
    inside, outside = COUNTER_EXAMPLE[:2], COUNTER_EXAMPLE[2:4]
    orders = np.array([order])
    assert float(published_divergence(inside, outside, orders)[0]) == pytest.approx(printed, abs=6e-5)
    assert float(divergence(inside, outside, orders)[0]) == pytest.approx(true, abs=6e-5)
    assert order * true_minimum(COUNTER_EXAMPLE, 2, 2, order) == pytest.approx(true, abs=6e-5)
    assert gaussian_published(inside, outside) > gaussian_renyi(inside, outside)


def test_k0_is_exact_where_floats_are_not() -> None:
    assert leaving(10, Fraction("0.8")) == 3
    assert math.floor((1 - 0.8) * 10) + 1 == 2
    assert leaving(4, Fraction(1)) == 1
    assert leaving(4, Fraction(1, 100)) == 4
    for k, tenth in itertools.product(range(1, 30), range(1, 11)):
        beta = Fraction(tenth, 10)
        k0 = leaving(k, beta)
        assert Fraction(k - k0, k) < beta <= Fraction(k - k0 + 1, k)


@pytest.mark.parametrize("reach", [gaussian_renyi, laplace_renyi, "groups", "laplace groups"])
def test_bounds_may_stand_in_for_scores(reach: object) -> None:
    """Lower inside and higher outside never certify more, in any mixture."""
    scores = np.full(4, 0.25)
    by_name = {
        "groups": lambda i, j: gaussian_groups(i, j, scores),
        "laplace groups": lambda i, j: laplace_groups(i, j, scores),
    }
    of = by_name[reach] if isinstance(reach, str) else reach
    assert callable(of)
    rng = np.random.default_rng(2)
    for _ in range(100):
        p = np.sort(rng.dirichlet(np.ones(10)))[::-1]
        inside, outside = p[1:4], p[4:7]
        weaker = of(inside * rng.uniform(0.5, 1, 3), outside * rng.uniform(1, 2, 3))
        assert weaker <= of(inside, outside) + 1e-9


def test_more_have_to_leave_farther_away() -> None:
    rng = np.random.default_rng(3)
    p, scores = np.sort(rng.dirichlet(np.ones(20)))[::-1], np.full(8, 0.125)
    ways = (gaussian_renyi, laplace_renyi, lambda i, j: gaussian_groups(np.minimum(i, 0.125), j, scores))
    for reach in ways:
        radii = [reach(p[8 - k0 : 8], p[8 : 8 + k0]) for k0 in range(1, 9)]
        assert radii == sorted(radii)
        assert radii[0] < radii[-1]


def test_one_pair_has_its_closed_forms() -> None:
    inside, outside = np.array([0.12]), np.array([0.03])
    order = 1 + 1e-6
    nearly = math.sqrt(2 / order * float(divergence(inside, outside, np.array([order]))[0]))
    assert nearly == pytest.approx(math.sqrt(-2 * math.log(1 - (0.12**0.5 - 0.03**0.5) ** 2)), rel=1e-5)
    a = 3.0
    pooled = (0.5 * (0.12 ** (1 - a) + 0.03 ** (1 - a))) ** (1 / (1 - a))
    assert float(divergence(inside, outside, np.array([a]))[0]) == pytest.approx(-math.log(0.85 + 2 * pooled))
    assert gaussian_groups(inside, outside, np.array([0.25])) == pytest.approx((ndtri(0.48) - ndtri(0.12)) / 2)


def test_all_orders_certify_at_least_what_orders_above_one_do() -> None:
    rng = np.random.default_rng(4)
    gains = []
    for _ in range(30):
        p = np.sort(rng.dirichlet(np.ones(12)))[::-1]
        inside, outside = p[1:4], p[4:7]
        above = math.sqrt((2 / _bounds.ABOVE_ONE * divergence(inside, outside, _bounds.ABOVE_ONE)).max())
        gains.append(gaussian_renyi(inside, outside) / above)
    assert min(gains) > 1 - 1e-6
    assert max(gains) > 1.005


def test_nothing_is_certified_where_outside_has_caught_up() -> None:
    for inside, outside in (([0.1, 0.1], [0.1, 0.2]), ([0.05], [0.2]), ([0.0], [0.0])):
        assert crossed(np.array(inside), np.array(outside))
        for reach in (gaussian_renyi, gaussian_published, laplace_renyi):
            assert reach(np.array(inside), np.array(outside)) == 0
        scores = np.full(4, 0.25)
        assert gaussian_groups(np.array(inside), np.array(outside), scores) == 0
        assert laplace_groups(np.array(inside), np.array(outside), scores) == 0


def test_scores_of_nought_outside_do_no_harm() -> None:
    inside, outside = np.array([0.2, 0.1]), np.array([0.0, 0.0])
    for reach in (gaussian_renyi, laplace_renyi):
        assert 0 < reach(inside, outside) < math.inf
    assert gaussian_renyi(inside, outside) >= gaussian_renyi(inside, np.array([1e-9, 1e-9])) - 1e-9


@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
@pytest.mark.parametrize("distance", [0.3, 2.0])
def test_the_laplace_divergence_equals_quadrature(order: float, distance: float) -> None:
    def integrand(x: float) -> float:
        return 0.5 * math.exp(-order * abs(x - distance) - (1 - order) * abs(x))

    whole = sum(quad(integrand, *part)[0] for part in ((-60, 0), (0, distance), (distance, 60 + distance)))
    assert float(laplace_divergence(np.array([distance]), np.array([order]))[0]) == pytest.approx(
        math.log(whole) / (order - 1), rel=1e-7
    )


def test_certified_shifts_leave_the_top_where_the_smoothed_map_is_known() -> None:
    """One unit a direction: unit j's map is x_j, so its chance to be the largest is known by simulation."""
    rng = np.random.default_rng(5)
    centre = np.array([1.2, 0.3, 0.0, -0.2])
    noise = rng.standard_normal((200_000, 4))
    chance = np.bincount((centre + noise).argmax(1), minlength=4) / len(noise)
    assert chance.argmax() == 0
    rest = np.sort(chance[1:])[::-1]
    certified = max(
        gaussian_renyi(chance[:1], rest[:1]), gaussian_groups(chance[:1], rest[:1], np.array([1.0, 0, 0, 0]))
    )
    assert certified > 0.3
    directions = [*rng.standard_normal((40, 4)), np.array([-1.0, 1.0, 0, 0])]
    for direction in directions:
        moved = centre + certified * direction / np.linalg.norm(direction)
        after = np.bincount((moved + noise).argmax(1), minlength=4)
        assert after.argmax() == 0
    # And it is not empty: the way straight to the runner-up does change the top, some way farther.
    beyond = centre + 0.65 * np.array([-1.0, 1.0, 0, 0])
    assert np.bincount((beyond + noise).argmax(1), minlength=4).argmax() == 1


def test_one_coordinate_is_the_worst_direction_for_laplace_noise() -> None:
    orders = np.array([2.0])
    whole = float(laplace_divergence(np.array([1.0]), orders)[0])
    for parts in ((0.5, 0.5), (0.9, 0.1), (0.25, 0.25, 0.5)):
        assert sum(float(laplace_divergence(np.array([part]), orders)[0]) for part in parts) < whole
