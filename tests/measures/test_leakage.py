from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from measured import images, outcome, rng
from scipy.stats import norm
from torch import nn

from counterpoise.interface import Images, Recipe
from counterpoise.measures import AdvantageBound, BoundedPrivacy, MembershipAdvantage, MembershipPrivacy
from counterpoise.measures.leakage import best_threshold
from counterpoise.record import Guarantee, Measurement
from counterpoise.training import fit_classifier


def noise_images(n: int, seed: int) -> Images:
    """Random labels: all that can be learnt is who was there."""
    return images(torch.rand(n, 1, 6, 6, generator=rng(seed)), torch.randint(2, (n,), generator=rng(seed + 1)))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 64), nn.Tanh(), nn.Linear(64, 2))


def test_the_attack_succeeds_on_an_overfit_model_and_not_on_a_fresh_one() -> None:
    train, test = noise_images(200, 1), noise_images(300, 5)
    fresh = outcome(test, train=train, model=network())
    found = MembershipAdvantage()(fresh, fresh)
    assert found.low <= 0 <= found.high
    assert abs(found.value) < 0.15
    assert found.n == 200
    model = network()
    fit_classifier(model, train.pixels, train.labels["y"], Recipe(150, 20, 0.01, optimiser="adam"), 0)
    overfit = outcome(test, train=train, model=model)
    found = MembershipAdvantage()(fresh, overfit)
    assert found.value > 0.4
    assert found.low > 0.3
    privacy = MembershipPrivacy()(fresh, overfit)
    assert privacy == Measurement(1 - found.value, 1 - found.high, 1 - found.low, 200, "images")


def with_losses(members: np.ndarray, others: np.ndarray) -> Measurement:
    """The advantage where the images' losses are these."""
    train, test = noise_images(len(members), 1), noise_images(len(others), 2)
    made = outcome(test, train=train)

    def logits(losses: np.ndarray, part: Images) -> torch.Tensor:
        odds = -torch.from_numpy(np.expm1(losses)).log()  # of the right class against the other
        sign = 1.0 - 2.0 * part.labels["y"].double()
        return torch.stack([sign * odds, torch.zeros(len(part))], dim=1)

    made = replace(made, train_logits=logits(members, train), test_logits=logits(others, test))
    return MembershipAdvantage()(made, made)


def test_the_advantage_is_the_gap_of_two_normal_laws() -> None:
    draw = np.random.default_rng(0)
    members, others = np.abs(draw.normal(5, 1, 4000)), np.abs(draw.normal(6.5, 1, 3000))
    truth = 2 * norm.cdf(0.75) - 1
    found = with_losses(members, others)
    assert found.value == pytest.approx(truth, abs=0.03)
    assert found.low < truth < found.high
    assert found.n == 3000


def test_a_lucky_threshold_gains_nothing_on_the_other_half() -> None:
    """The same law for members and others: chosen and scored on the same images, the gain would be above 0."""
    draw = np.random.default_rng(1)
    found, lucky = [], []
    for _ in range(60):
        members, others = draw.exponential(1, 40), draw.exponential(1, 40)
        found.append(with_losses(members, others).value)
        threshold = best_threshold(members, others)
        lucky.append((members <= threshold).mean() - (others <= threshold).mean())
    assert abs(np.mean(found)) < 3 * np.std(found) / math.sqrt(60) + 1e-9
    assert np.mean(lucky) > 0.1


def test_the_best_threshold_is_the_best_of_all() -> None:
    draw = np.random.default_rng(2)
    for _ in range(20):
        members, others = draw.normal(0, 1, 15).round(1), draw.normal(0.5, 1, 12).round(1)
        gains = {t: (members <= t).mean() - (others <= t).mean() for t in [*members, *others, -math.inf]}
        assert gains[best_threshold(members, others)] == pytest.approx(max(gains.values()))
    assert best_threshold(np.array([2.0]), np.array([1.0])) == -math.inf
    assert best_threshold(np.array([]), np.array([])) == -math.inf


@pytest.mark.parametrize(
    ("epsilon", "delta", "bound"),
    [(0, 0, 0), (math.log(3), 0, 0.5), (1, 1e-5, (math.e - 1 + 2e-5) / (math.e + 1)), (0, 0.1, 0.1), (1000, 0, 1)],
)
def test_the_bound_of_a_guarantee(epsilon: float, delta: float, bound: float) -> None:
    test = images(torch.rand(4, 1, 2, 2))
    candidate = outcome(test, guarantees=(Guarantee("dp", epsilon, delta),))
    assert AdvantageBound()(candidate, candidate).value == pytest.approx(bound)
    assert BoundedPrivacy()(candidate, candidate).value == pytest.approx(1 - bound)


def test_the_bound_is_tight_for_randomised_response() -> None:
    """Randomised response with epsilon = ln 3 tells the truth 3 times of 4: TPR - FPR = 3/4 - 1/4."""
    test = images(torch.rand(4, 1, 2, 2))
    candidate = outcome(test, guarantees=(Guarantee("dp", math.log(3), 0),))
    assert AdvantageBound()(candidate, candidate).value == pytest.approx(3 / 4 - 1 / 4)


def test_without_a_guarantee_nothing_is_bounded() -> None:
    plain = outcome(images(torch.rand(4, 1, 2, 2)))
    assert AdvantageBound()(plain, plain) == Measurement.exact(1)
    assert BoundedPrivacy()(plain, plain) == Measurement.exact(0)
    proved = outcome(plain.task.test, guarantees=(Guarantee("dp", 5, 0), Guarantee("dp", 1, 0)))
    assert AdvantageBound()(plain, proved).value == pytest.approx(math.tanh(0.5))
