"""Temperature scaling: posteriors cost no more than guessing, and a right scale is found again."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from counterpoise.measures._calibration import calibrated


def scored(right: float, sureness: float, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Scores of somebody who is right so often, and always equally sure."""
    rng = torch.Generator().manual_seed(seed)
    classes = torch.randint(2, (n,), generator=rng)
    said = torch.where(torch.rand(n, generator=rng) < right, classes, 1 - classes)
    return sureness * nn.functional.one_hot(said, 2).float(), classes


def nats(log_posterior: Tensor, classes: Tensor) -> float:
    return math.log(2) - float(nn.functional.nll_loss(log_posterior, classes))


@pytest.mark.parametrize("right", [0.5, 0.6, 0.9])
def test_who_is_too_sure_tells_less_than_nothing_before_and_what_it_knows_after(right: float) -> None:
    choosing, asked = scored(right, 30.0, 1000, 0), scored(right, 30.0, 4000, 1)
    known = math.log(2) + right * math.log(right) + (1 - right) * math.log(1 - right)
    assert nats(asked[0].log_softmax(1), asked[1]) < -1
    assert nats(calibrated(*choosing)(asked[0]), asked[1]) == pytest.approx(known, abs=0.02)


def test_who_is_not_sure_enough_is_made_surer_and_who_is_right_stays() -> None:
    asked = scored(0.9, 1.0, 4000, 1)
    shy = calibrated(*scored(0.9, 0.01, 4000, 0))
    assert nats(shy(0.01 * asked[0]), asked[1]) == pytest.approx(0.368, abs=0.02)
    exact = math.log(9)
    apt = calibrated(*scored(0.9, exact, 4000, 0))(exact * asked[0])
    assert float(apt.exp().amax(1).mean()) == pytest.approx(0.9, abs=0.01)


def test_a_surprise_is_never_infinitely_costly() -> None:
    choosing = scored(1.0, 5.0, 200, 0)
    posterior = calibrated(*choosing)(torch.tensor([[1e6, 0.0]]))
    assert posterior.exp().sum() == pytest.approx(1)
    assert float(posterior.min()) == pytest.approx(math.log(1 / 404), abs=0.01)


def test_scores_of_nothing_become_guesses() -> None:
    flat = calibrated(torch.zeros(50, 3), torch.arange(50) % 3)(torch.zeros(4, 3))
    assert flat.exp().numpy() == pytest.approx(1 / 3)
