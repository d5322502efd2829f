from __future__ import annotations

import pytest
import torch
from measured import explaining, images, outcome

from counterpoise._check import InputError
from counterpoise.measures import ExplainabilityGain, Stability
from counterpoise.record import Measurement

PIXELS = torch.rand(4, 1, 3, 3)
TEST = images(PIXELS)
MAPS = torch.rand(4, 3, 3) + 0.1
LOSS = {"utility_loss": Measurement(0.055, 0.04, 0.08, 100, "images")}


def test_the_paper_s_gain_at_its_golden_point() -> None:
    """PG = .658 and U = .055 give the quoted T = .32 at sigma 0 and .78 at sigma 1, within .02."""
    gains = []
    for degree in ("0", "1"):
        made = outcome(TEST, measured=LOSS, explaining=explaining(PIXELS, MAPS, degree=degree))
        gains.append(ExplainabilityGain()(made, made).value)
    assert gains == [0, pytest.approx(0.945)]
    assert (0.658 + gains[0]) / 2.055 == pytest.approx(0.32, abs=0.02)
    assert (0.658 + gains[1]) / 2.055 == pytest.approx(0.78, abs=0.02)


def test_the_interval_is_that_of_the_loss_turned_round() -> None:
    made = outcome(TEST, measured=LOSS, explaining=explaining(PIXELS, MAPS, degree="0.5"))
    found = ExplainabilityGain()(made, made)
    assert [found.low, found.high] == pytest.approx([0.46, 0.48])
    assert (found.n, found.over) == (100, "images")


def test_fewer_samples_than_the_most_gain_less() -> None:
    made = outcome(TEST, measured=LOSS, explaining=explaining(PIXELS, MAPS, degree="1", samples=25))
    assert ExplainabilityGain(n_max=50)(made, made).value == pytest.approx(0.945 / 2)
    assert ExplainabilityGain(n_max=25)(made, made).value == pytest.approx(0.945)
    with pytest.raises(InputError, match="n_max=20 must be at least the 25 samples"):
        ExplainabilityGain(n_max=20)(made, made)
    with pytest.raises(InputError, match="n_max=0 must be a whole number, 1 or above"):
        ExplainabilityGain(n_max=0)


def test_it_says_what_it_misses() -> None:
    with pytest.raises(InputError, match="explainability_gain needs explanations"):
        ExplainabilityGain()(outcome(TEST), outcome(TEST))
    bare = outcome(TEST, explaining=explaining(PIXELS, MAPS))
    with pytest.raises(InputError, match="needs 'utility_loss' to be measured before it"):
        ExplainabilityGain()(bare, bare)


@pytest.mark.parametrize(
    ("near", "cosine"),
    [(MAPS, 1), (7 * MAPS, 1), (-MAPS, -1), (torch.zeros_like(MAPS), 0)],
    ids=["same", "scaled", "opposite", "blank"],
)
def test_stability_is_the_mean_cosine(near: torch.Tensor, cosine: float) -> None:
    made = outcome(TEST, explaining=explaining(PIXELS, MAPS, near=near))
    assert Stability()(made, made).value == pytest.approx(cosine)


def test_blank_maps_are_counted_as_0() -> None:
    half = MAPS.clone()
    half[:2] = 0
    made = outcome(TEST, explaining=explaining(PIXELS, half, near=MAPS))
    truth = float(torch.nn.functional.cosine_similarity(half.flatten(1), MAPS.flatten(1)).mean())
    found = Stability()(made, made)
    assert found.value == pytest.approx(truth)
    assert found.value == pytest.approx(0.5)
    assert found.n == 4
    with pytest.raises(InputError, match="stability needs explanations"):
        Stability()(outcome(TEST), outcome(TEST))
