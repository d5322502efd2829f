from __future__ import annotations

import math

import pytest
import torch
from measured import images, outcome

from counterpoise.measures import CodeShare, InverseEpsilon, NoGain
from counterpoise.record import Guarantee, Measurement

TEST = images(torch.rand(4, 1, 2, 2))


def dp(epsilon: float) -> Guarantee:
    return Guarantee("dp", epsilon, 1e-5)


@pytest.mark.parametrize(("epsilons", "gain"), [((), 0), ((0.5,), 2), ((math.inf,), 0), ((4.0, 0.25), 4)])
def test_inverse_epsilon_is_of_the_strongest_guarantee(epsilons: tuple[float, ...], gain: float) -> None:
    candidate = outcome(TEST, guarantees=tuple(map(dp, epsilons)))
    assert InverseEpsilon()(outcome(TEST), candidate) == Measurement.exact(gain)


def test_the_paper_s_gain_at_noise_1() -> None:
    assert InverseEpsilon()(outcome(TEST), outcome(TEST, guarantees=(dp(1.52),))).value == pytest.approx(
        0.658, abs=1e-3
    )


@pytest.mark.parametrize(("ratio", "gain"), [("1", 0), ("0.55", 0.45), ("0.0035", 0.9965)])
def test_code_share_is_what_the_code_leaves_out(ratio: str, gain: float) -> None:
    assert CodeShare()(outcome(TEST), outcome(TEST, degree=ratio)) == Measurement.exact(gain)


def test_plain_training_gains_nothing() -> None:
    assert NoGain()(outcome(TEST), outcome(TEST, guarantees=(dp(1),))) == Measurement.exact(0)
