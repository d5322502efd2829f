"""DP-SGD as the rooms see it: the protocols, the guarantee, and a training that learns."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.interface import Images, Mechanism, Planned, Recipe, Task
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.privacy import account
from counterpoise.training import apply


def stripes(n: int, seed: int) -> Images:
    """Two classes anybody can tell apart: bright left or bright right, with noise."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 2
    pixels = 0.4 * torch.rand(n, 1, 8, 8, generator=rng)
    pixels[labels == 0, :, :, :4] += 0.5
    pixels[labels == 1, :, :, 4:] += 0.5
    return Images("stripes", pixels, {"side": labels}, {"side": ("left", "right")})


def linear(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    layer = nn.Linear(shape[0] * shape[1] * shape[2], classes)
    with torch.no_grad():
        layer.weight.normal_(0, 0.01, generator=rng)
        layer.bias.zero_()
    return nn.Sequential(nn.Flatten(), layer)


TASK = Task(stripes(200, 0), stripes(100, 1), "side", linear, Recipe(epochs=10, batch=40, learning_rate=1.0))


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def test_it_is_a_planned_mechanism() -> None:
    mechanism = DPSGD(Decimal(1))
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, Planned)
    assert mechanism.blank(TASK).model[1].weight.shape == (2, 64)  # type: ignore[index]


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_it_learns_and_proves_what_it_planned(distribution: str) -> None:
    mechanism = DPSGD(Decimal(1), distribution=distribution)  # type: ignore[arg-type]
    trained = mechanism.train(TASK, rng())
    right = apply(trained.model, TASK.test.pixels).argmax(1) == TASK.test.labels["side"]
    assert right.float().mean() > 0.9
    assert trained.guarantees == mechanism.guarantees(TASK)
    (guarantee,) = trained.guarantees
    expected = account(noise=1, sample_rate=0.2, steps=50, delta=1e-5, kind=distribution)  # type: ignore[arg-type]
    assert guarantee.epsilon == expected


@pytest.mark.parametrize("clipping", ["automatic", "per-layer"])
def test_other_clipping_learns_under_the_same_guarantee(clipping: str) -> None:
    mechanism = DPSGD(Decimal(1), clipping=clipping)  # type: ignore[arg-type]
    trained = mechanism.train(TASK, rng())
    right = apply(trained.model, TASK.test.pixels).argmax(1) == TASK.test.labels["side"]
    assert right.float().mean() > 0.9
    assert trained.guarantees == DPSGD(Decimal(1)).guarantees(TASK)


def test_secure_noise_is_recorded_and_not_repeated() -> None:
    one, two = (DPSGD(Decimal(1), secure=True).train(TASK, rng()) for _ in range(2))
    assert one.facts["secure_noise"] == 1
    assert DPSGD(Decimal(1)).train(TASK, rng()).facts["secure_noise"] == 0
    assert not torch.equal(one.model.state_dict()["1.weight"], two.model.state_dict()["1.weight"])


def test_batch_normalisation_is_refused_before_training() -> None:
    def mixing(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
        return nn.Sequential(nn.BatchNorm2d(1), linear(shape, classes, rng))

    with pytest.raises(InputError, match=r"0 \(BatchNorm2d\): lets one image change what another's output is"):
        DPSGD(Decimal(1)).train(replace(TASK, make_model=mixing), rng())


def test_same_seed_same_weights_other_seed_others() -> None:
    one, same, other = (
        DPSGD(Decimal(1)).train(TASK, torch.Generator().manual_seed(seed)).model.state_dict() for seed in (3, 3, 4)
    )
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one["1.weight"], other["1.weight"])


def test_two_trainings_on_one_generator_do_not_share_their_noise() -> None:
    shared = rng()
    first = DPSGD(Decimal(1)).train(TASK, shared).model.state_dict()
    second = DPSGD(Decimal(1)).train(TASK, shared).model.state_dict()
    assert not torch.equal(first["1.weight"], second["1.weight"])


def test_no_noise_proves_nothing() -> None:
    assert DPSGD(Decimal(0)).train(TASK, rng()).guarantees == ()


def test_wrong_settings_are_one_sentence() -> None:
    with pytest.raises(InputError, match=r"noise=-1 must be at least 0\."):
        DPSGD(Decimal(-1))
    with pytest.raises(InputError, match="distribution='cauchy' must be one of"):
        DPSGD(Decimal(1), distribution="cauchy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="clip=0 must be a number above 0"):
        DPSGD(Decimal(1), clip=0)
