"""A plan is consistent by construction, and a wrong one cannot be made."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from counterpoise._check import InputError
from counterpoise.privacy import Flat, FullBatch, Gaussian, Laplace, Plan, Poisson, Shuffled, account

PLAN = Plan(Gaussian(1.0), Poisson(60_000, 250), steps=3600, delta=1e-5)


def test_guarantee_carries_what_is_needed_to_compose_it() -> None:
    guarantee = PLAN.guarantee()
    assert guarantee is not None
    assert guarantee.epsilon == account(noise=1.0, sample_rate=250 / 60_000, steps=3600, delta=1e-5)
    assert guarantee.releases == (PLAN.release,)
    assert (guarantee.accountant, guarantee.adjacency, guarantee.delta) == ("pld", "add-remove", 1e-5)
    assert PLAN.with_noise(0).guarantee() is None
    assert math.isinf(PLAN.with_noise(0).spent().epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_calibrated_noise_is_just_enough(epsilon: float) -> None:
    plan = PLAN.calibrate(epsilon)
    assert 0.999 * epsilon < plan.spent().epsilon <= epsilon
    assert plan.with_noise(plan.noise.multiplier * 0.999).spent().epsilon > epsilon


def test_calibration_takes_delta_accountant_and_kind_of_noise_along() -> None:
    assert PLAN.calibrate(1.0, delta=1e-7).noise.multiplier > PLAN.calibrate(1.0).noise.multiplier
    moments = replace(PLAN, accountant="rdp").calibrate(1.54)
    assert moments.noise.multiplier == pytest.approx(1.0, abs=0.005)
    laplace = replace(PLAN, noise=Laplace(1.0), clip=Flat(1.0, 1)).calibrate(1.0)
    assert 0.999 < laplace.spent().epsilon <= 1


def test_calibration_from_a_tolerated_attack() -> None:
    plan = PLAN.calibrate_attack(true_positive_rate=0.03, false_positive_rate=0.01)
    assert 0.0299 < plan.attack_bound(0.01) <= 0.03
    with pytest.raises(InputError, match="guessing at random reaches that"):
        PLAN.calibrate_attack(true_positive_rate=0.01, false_positive_rate=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delta": 1 / 60_000}, "delta=1.66667e-05 must be below 1/60000"),
        ({"delta": math.nan}, r"delta=nan must be a number in \[0, 1\]"),
        ({"delta": 0}, "delta=0 cannot be had with Gaussian noise"),
        ({"noise": 1.1}, "noise=1.1 must be one of Gaussian, Laplace"),
        ({"clip": 1.0}, "clip=1.0 must be one of Flat, Automatic, PerLayer"),
        ({"sampling": 0.01}, "sampling=0.01 must be one of Poisson, FullBatch, Shuffled"),
        ({"secure": "no"}, "secure='no' must be True or False"),
        ({"steps": 0}, "steps=0 must be a whole number, 1 or above"),
        ({"adjacency": "swap"}, "adjacency='swap' must be one of 'add-remove', 'replace-one'"),
        ({"accountant": "gdp"}, "accountant='gdp' must be one of 'pld', 'rdp'"),
        ({"noise": Laplace(1.0)}, "laplace noise hides gradients clipped in the L1 norm, not L2"),
        ({"clip": Flat(1.0, 1)}, "gaussian noise is accounted for gradients clipped in the L2 norm"),
        ({"sampling": Shuffled(60_000, 250)}, "shuffled batches have no privacy proof under add-remove"),
    ],
)
def test_wrong_plans_say_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(PLAN, **changes)


def test_wrong_parts_say_what_is_wrong() -> None:
    with pytest.raises(InputError, match="batch=11 must be at most the 10 images there are"):
        Poisson(10, 11)
    with pytest.raises(InputError, match="clip=nan must be a number above 0"):
        Flat(math.nan)
    with pytest.raises(InputError, match="multiplier=-1 must be a number, 0 or above"):
        Gaussian(-1)


def test_shuffled_batches_are_accounted_without_any_gain() -> None:
    shuffled = Plan(Gaussian(8.0), Shuffled(1000, 100), steps=50, delta=1e-5, adjacency="replace-one")
    full = Plan(Gaussian(8.0), FullBatch(1000), steps=5, delta=1e-5, adjacency="replace-one")
    assert shuffled.spent() == full.spent()
    assert shuffled.expected_batch == 100
    assert full.expected_batch == 1000


def test_poisson_batches_vary_and_every_image_has_the_same_chance() -> None:
    sampler, rng = Poisson(500, 50), torch.Generator().manual_seed(0)
    draws = [sampler.draw(i, rng) for i in range(2000)]
    sizes = torch.tensor([float(len(d)) for d in draws])
    assert sizes.mean() == pytest.approx(50, abs=4 * math.sqrt(45 / 2000))
    assert sizes.var() == pytest.approx(45, rel=0.15)  # shuffled batches would have none
    counts = torch.bincount(torch.cat(draws), minlength=500).float()
    chi2 = float(((counts - 200) ** 2 / 180).sum())
    assert abs(chi2 - 500) < 5 * math.sqrt(1000)


def test_shuffled_batches_cover_each_pass_once() -> None:
    sampler, rng = Shuffled(25, 10), torch.Generator().manual_seed(0)
    first = torch.cat([sampler.draw(i, rng) for i in range(3)])
    second = torch.cat([sampler.draw(i, rng) for i in range(3, 6)])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(25))
    assert first.tolist() != second.tolist()
    assert (sampler.steps(2), sampler.rate) == (6, 1 / 3)
