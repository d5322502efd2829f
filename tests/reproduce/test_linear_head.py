"""The closed form against one image at a time and against the privacy engine, which knows nothing of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Recipe
from counterpoise.privacy import Flat, Gaussian, Laplace, Plan, Poisson, fit
from counterpoise.reproduce._linear_head import accuracy, clipped_sum, fit_linear
from counterpoise.training import generator


def data(n: int = 50, size: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = generator(seed, "data")
    return torch.randn(n, size, generator=rng), torch.randint(4, (n,), generator=rng)


PLAN = Plan(Gaussian(0.8), Poisson(50, 20), steps=7, delta=1e-5, clip=Flat(0.3))


@given(n=st.sampled_from([0, 1, 5, 9, 200]), size=st.integers(1, 8), bound=st.floats(0.01, 3), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_clipped_sum_is_that_of_one_image_at_a_time(n: int, size: int, bound: float, seed: int) -> None:
    features, labels = data(n, size, seed)
    weights = torch.randn(4, size, generator=generator(seed, "weights"))
    some = torch.randperm(n, generator=generator(seed))[: n - n // 3]
    naive = torch.zeros(4, size)
    for feature, label in zip(features[some], labels[some], strict=True):
        free = weights.clone().requires_grad_()
        nn.functional.cross_entropy((free @ feature)[None], label[None]).backward()  # type: ignore[no-untyped-call]
        assert free.grad is not None
        naive += free.grad * min(1, bound / float(free.grad.norm()))
    ours = clipped_sum(weights, features, labels, some, replace(PLAN, clip=Flat(bound)))
    assert torch.allclose(ours, naive, atol=1e-5)


def test_training_is_the_engine_s_own() -> None:
    features, labels = data()
    head = nn.Linear(6, 4, bias=False)
    nn.init.zeros_(head.weight)
    fit(head, features, labels, PLAN, Recipe(learning_rate=2.0), generator(5))
    ours = fit_linear(features, labels, 4, PLAN, generator(5), step=2.0)
    assert torch.allclose(ours, head.weight, atol=1e-5)
    for wrong in (replace(PLAN, noise=Gaussian(0.9)), replace(PLAN, clip=Flat(0.2)), replace(PLAN, steps=6)):
        assert not torch.allclose(fit_linear(features, labels, 4, wrong, generator(5), step=2.0), ours, atol=1e-3)


def test_noise_is_of_the_plan_s_size_over_the_expected_batch() -> None:
    features, labels = torch.zeros(50, 4000), torch.zeros(50, dtype=torch.long)
    plan = replace(PLAN, steps=1)
    moved = fit_linear(features, labels, 2, plan, generator(1), step=1.0)
    assert float(moved.std()) == pytest.approx(0.8 * 0.3 / 20, rel=0.05)


def test_the_average_is_a_running_mean_freed_of_its_start() -> None:
    features, labels = data()
    path = [fit_linear(features, labels, 4, replace(PLAN, steps=s), generator(2), step=1.0) for s in range(1, 8)]
    shares = [0.6 ** (7 - s) for s in range(1, 8)]
    expected = torch.stack([share * weights for share, weights in zip(shares, path, strict=True)]).sum(0) / sum(shares)
    averaged = fit_linear(features, labels, 4, PLAN, generator(2), step=1.0, average=0.6)
    assert torch.allclose(averaged, expected, atol=1e-5)


def test_seeds_decide_and_secure_noise_does_not_repeat() -> None:
    features, labels = data()

    def weights(plan: Plan, seed: int) -> Tensor:
        return fit_linear(features, labels, 4, plan, generator(seed), step=1.0)

    assert torch.equal(weights(PLAN, 1), weights(PLAN, 1))
    assert not torch.equal(weights(PLAN, 1), weights(PLAN, 2))
    secure = replace(PLAN, secure=True)
    assert not torch.equal(weights(secure, 1), weights(secure, 1))


def test_accuracy_counts_the_highest_score() -> None:
    assert accuracy(torch.eye(3), torch.eye(3), torch.tensor([0, 1, 0])) == pytest.approx(2 / 3)


def test_a_plan_for_other_images_or_another_clip_is_refused() -> None:
    features, labels = data()
    with pytest.raises(InputError, match=r"^the plan is for n=50 images, but 49 are given; make it for these\.$"):
        fit_linear(features[:49], labels[:49], 4, PLAN, generator(0), step=1.0)
    laplace = replace(PLAN, noise=Laplace(1.0), clip=Flat(1.0, 1))
    with pytest.raises(InputError, match=r"^a linear head is clipped as a whole and in the L2 norm"):
        fit_linear(features, labels, 4, laplace, generator(0), step=1.0)
    for step in (0.0, math.nan):
        with pytest.raises(InputError, match=r"^step=.* must be a number above 0\.$"):
            fit_linear(features, labels, 4, PLAN, generator(0), step=step)
    with pytest.raises(InputError, match=r"^average=1 must be a number in \[0, 0\.9999\]\.$"):
        fit_linear(features, labels, 4, PLAN, generator(0), step=1.0, average=1)
