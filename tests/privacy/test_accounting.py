"""Golden values, the two accountants against each other and against closed forms, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from counterpoise._check import InputError
from counterpoise.privacy import account, compose, rdp, spend
from counterpoise.privacy.accounting import true_positive_bound
from counterpoise.record import Release

MNIST: dict[str, Any] = {"sample_rate": 250 / 60_000, "steps": 3600, "delta": 1e-5}


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """Balle and Wang 2018, the exact epsilon of one unsampled Gaussian release."""

    def excess(epsilon: float) -> float:
        a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
        return float(norm.cdf(a) - math.exp(epsilon) * norm.cdf(b)) - delta

    return float(brentq(excess, 0, 500))


@pytest.mark.parametrize(("noise", "epsilon"), [(1.0, 1.54), (2.0, 0.52)])
def test_golden_rdp_of_the_paper_setting(noise: float, epsilon: float) -> None:
    assert account(noise=noise, **MNIST, accountant="rdp") == pytest.approx(epsilon, abs=0.005)


@pytest.mark.parametrize(("epochs", "epsilon"), [(1, 0.78), (10, 1.19), (50, 2.58)])
def test_golden_rdp_of_the_second_setting(epochs: int, epsilon: float) -> None:
    measured = account(noise=1.1, sample_rate=250 / 50_000, steps=200 * epochs, delta=1e-5, accountant="rdp")
    assert measured == pytest.approx(epsilon, abs=0.005)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "epsilon"),
    [(1.3, 240 / 60_000, 3750, 0.834), (2.15, 2048 / 60_000, 1172, 2.390), (10, 4096 / 50_000, 875, 0.903)],
)
def test_golden_pld(noise: float, rate: float, steps: int, epsilon: float) -> None:
    assert account(noise=noise, sample_rate=rate, steps=steps, delta=1e-5) == pytest.approx(epsilon, abs=0.001)


def test_pld_is_exact_where_a_closed_form_exists() -> None:
    for sigma in (0.5, 1.0, 4.0):
        spent = spend([Release("gaussian", sigma * 5, 1.0, 25, "full")], 1e-5)
        assert spent.accountant == "pld"
        assert gaussian_epsilon(sigma, 1e-5) <= spent.epsilon <= gaussian_epsilon(sigma, 1e-5) * 1.002


def test_replacing_an_image_costs_what_half_the_noise_costs_when_unsampled() -> None:
    replaced = compose([Release("gaussian", 4.0, 1.0, 25, "full")], 1e-5, adjacency="replace-one")
    assert replaced == pytest.approx(compose([Release("gaussian", 2.0, 1.0, 25, "full")], 1e-5), rel=1e-3)
    assert compose([Release("gaussian", 1.0, 0.01, 100)], 1e-5, adjacency="replace-one") > compose(
        [Release("gaussian", 1.0, 0.01, 100)], 1e-5
    )


def test_laplace_composes_by_its_distribution_and_never_above_the_sum() -> None:
    few = Release("laplace", 2.0, 1.0, 1, "full")
    pure = spend([few], 0.0)
    assert pure.epsilon == pytest.approx(0.5)
    assert pure.accountant == "basic"
    many = Release("laplace", 2.0, 0.01, 1000)
    assert compose([many], 1e-5) < 0.5 * 1000 * math.log1p(0.01 * math.expm1(0.5))


def test_accountants_agree_in_order_and_noise_always_helps() -> None:
    grid = [0.3 + 0.2 * i for i in range(9)]
    pld = [account(noise=noise, **MNIST) for noise in grid]
    moments = [account(noise=noise, **MNIST, accountant="rdp") for noise in grid]
    assert all(a < b for a, b in zip(pld, moments, strict=True))
    assert pld == sorted(pld, reverse=True)
    assert moments == sorted(moments, reverse=True)


def test_no_noise_is_infinite_and_tiny_noise_is_answered() -> None:
    assert account(noise=0, **MNIST) == math.inf
    assert account(noise=0, **MNIST, accountant="rdp") == math.inf
    for noise in (1e-9, 1e-3, 0.02, 0.1):
        epsilon, accountant = spend([Release("gaussian", noise, 250 / 60_000, 3600)], 1e-5)
        assert epsilon > 1000
        assert accountant == ("pld" if noise == 0.1 else "rdp")


def test_a_delta_below_the_resolution_falls_back_to_moments() -> None:
    assert spend([Release("gaussian", 1.0, 0.004, 3600)], 1e-30).accountant == "rdp"


def test_a_sweep_costs_more_than_its_best_and_less_than_the_sum() -> None:
    sweep = [Release("gaussian", i / 10, 250 / 60_000, 3600) for i in range(10, 21)]
    alone = [compose([one], 1e-5) for one in sweep]
    together = compose(sweep, 1e-5)
    assert max(alone) < together < sum(alone)
    assert compose(sweep, 1e-5, "rdp") == pytest.approx(3.2, abs=0.1)
    assert compose([Release("gaussian", 0, 0.1, 1), *sweep], 1e-5) == math.inf


def test_order_and_splitting_of_releases_change_nothing() -> None:
    a, b = Release("gaussian", 1.0, 0.01, 100), Release("gaussian", 2.0, 0.02, 50)
    halves = [Release("gaussian", 1.0, 0.01, 50)] * 2
    assert compose([a, b], 1e-5) == compose([b, *halves], 1e-5)
    assert compose([], 1e-5) == 0


def test_shuffled_batches_count_whole_passes() -> None:
    shuffled = Release("gaussian", 5.0, 1 / 10, 41, "shuffle")  # four passes and one batch
    full = Release("gaussian", 5.0, 1.0, 5, "full")
    assert compose([shuffled], 1e-5, adjacency="replace-one") == compose([full], 1e-5, adjacency="replace-one")
    poisson = compose([Release("gaussian", 5.0, 1 / 10, 41)], 1e-5, adjacency="replace-one")
    assert compose([shuffled], 1e-5, adjacency="replace-one") > 1.5 * poisson


def test_own_moments_equal_the_librarys() -> None:
    import dp_accounting
    from dp_accounting import rdp as library

    whole = np.array([2.0, 3, 5, 8, 16, 32, 64])
    for noise in (0.5, 1.0, 3.0):
        for rate in (1e-3, 0.05, 0.5, 1.0):
            theirs = library.RdpAccountant(whole)
            theirs.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)), 1)
            np.testing.assert_allclose(rdp.curve(noise, rate, whole), theirs.rdp, rtol=1e-6, atol=1e-11)


def test_tiny_noise_is_bounded_from_above() -> None:
    """Too many points to sum: Jensen's bound answers, which an unsampled release bounds in turn."""
    bounded = rdp.curve(0.01, 0.01, np.array([64.0]))[0]
    assert 0.99 * 64 / (2 * 0.01**2) < bounded < 64 / (2 * 0.01**2)


def test_attack_bound_of_one_gaussian_release() -> None:
    """The best test of N(0, s) against N(1, s) finds Phi(Phi^-1(rate) + 1/s)."""
    for rate in (0.001, 0.01, 0.3):
        exact = float(norm.cdf(norm.ppf(rate) + 1 / 2.0))
        bound = true_positive_bound([Release("gaussian", 2.0, 1.0, 1, "full")], rate)
        assert exact <= bound <= exact * 1.02
    assert true_positive_bound([Release("gaussian", 0, 1.0, 1)], 0.01) == 1
    assert true_positive_bound([], 0.01) == 0.01


@pytest.mark.parametrize(
    ("release", "accountant", "adjacency", "message"),
    [
        (Release("gaussian", 1, 1.5, 10), "pld", "add-remove", "sample_rate=1.5 must be above 0 and at most 1"),
        (Release("gaussian", 1, math.nan, 10), "pld", "add-remove", "sample_rate=nan must be a number above 0"),
        # Never epsilon 0 for what nobody can account for.
        (Release("cauchy", 1, 0.5, 10), "pld", "add-remove", "kind='cauchy' must be one of 'gaussian', 'laplace'"),  # type: ignore[arg-type]
        (Release("gaussian", 1, 0.5, 10, "cyclic"), "pld", "add-remove", "sampling='cyclic' must be one of"),  # type: ignore[arg-type]
        (Release("gaussian", math.nan, 0.5, 10), "pld", "add-remove", "noise=nan must be a number, 0 or above"),
        (Release("gaussian", 1, 0.5, 10, "shuffle"), "pld", "add-remove", "shuffled batches have no privacy proof"),
        (Release("gaussian", 1, 0.5, 10, "full"), "pld", "add-remove", "must be 1 where every step uses all"),
        (Release("laplace", 1, 0.5, 10), "rdp", "add-remove", "Laplace noise is accounted by"),
        (Release("laplace", 1, 0.5, 10), "pld", "replace-one", "Laplace noise is accounted by"),
        (Release("gaussian", 1, 0.5, 10), "rdp", "replace-one", "covers sampled batches under add-remove only"),
    ],
)
def test_refusals(release: Release, accountant: str, adjacency: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compose([release], 1e-5, accountant, adjacency)  # type: ignore[arg-type]
