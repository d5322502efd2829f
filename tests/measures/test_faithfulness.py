from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from measured import explaining, images, outcome, rng
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Explanation, Outcome
from counterpoise.measures import (
    Deletion,
    ExplanationQuality,
    Faithfulness,
    Insertion,
    RandomDeletion,
    RandomInsertion,
    _occlusion,
)
from counterpoise.measures._occlusion import map_areas, random_areas, step_counts


class Weighted(nn.Module):
    """Says class 0 with a probability of sum(weights * |pixel - mean pixel|): 0 where only the fill is left."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights, self.asked = weights, 0

    def forward(self, pixels: Tensor) -> Tensor:
        self.asked += len(pixels)
        share = (self.weights * (pixels.flatten(1) - 0.5).abs() * 2).sum(1).double().clamp(1e-300, 1 - 1e-16)
        return torch.stack([share.log(), (1 - share).log()], dim=1)


FOUR = torch.tensor([0.4, 0.3, 0.2, 0.1])
BLACK_AND_WHITE = torch.tensor([1.0, 0, 0, 1]).view(1, 1, 2, 2)  # its mean colour is 0.5


def four(maps: Tensor) -> Outcome:
    pixels = BLACK_AND_WHITE.expand(len(maps), -1, -1, -1)
    return outcome(images(pixels), model=Weighted(FOUR), explaining=explaining(pixels, maps))


def linear(side: int = 8, n: int = 30) -> tuple[Outcome, Tensor]:
    """An outcome whose model weighs every pixel differently, and the true weights as maps."""
    weights = torch.rand(side * side, generator=rng(1)) ** 3
    pixels = (torch.rand(n, 1, side, side, generator=rng(2)).argsort(2).argsort(2) >= side // 2).float()
    maps = weights.view(1, side, side).expand(n, -1, -1).contiguous()
    model = Weighted(weights / weights.sum())
    return outcome(images(pixels), model=model, explaining=explaining(pixels, maps)), maps


def given_maps(made: Outcome, maps: Tensor) -> Outcome:
    assert made.explaining is not None
    return replace(made, explaining=explaining(made.explaining.images, maps))


def test_areas_of_the_four_pixel_model() -> None:
    """Taken 0.4, 0.3, 0.2, 0.1 away: 1, .6, .3, .1, 0 at quarters, an area of .375 by trapezoids."""
    right = four(FOUR.view(1, 2, 2))
    assert Deletion()(right, right).value == pytest.approx(0.375, abs=1e-6)
    assert Insertion()(right, right).value == pytest.approx(0.625, abs=1e-6)
    assert Faithfulness()(right, right).value == pytest.approx(0.25, abs=1e-6)
    wrong = four(-FOUR.view(1, 2, 2))
    assert Deletion()(wrong, wrong).value == pytest.approx(0.625, abs=1e-6)
    assert Faithfulness()(wrong, wrong).value == pytest.approx(-0.25, abs=1e-6)


def test_as_means_of_the_curve_they_are_the_familiar_04_and_06() -> None:
    made = four(FOUR.view(1, 2, 2))
    assert made.explaining is not None
    deletion, insertion = _occlusion._curves(
        made.trained.model, BLACK_AND_WHITE, torch.arange(4).view(1, 1, 2, 2), made.explaining.target, torch.arange(5)
    )
    assert deletion.mean() == pytest.approx(0.4, abs=1e-6)
    assert insertion.mean() == pytest.approx(0.6, abs=1e-6)


class ReadsOnePixel(nn.Module):
    """Sure of class 0 where this pixel is as white as it was, of class 1 where it shows the fill: a step, exactly."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def forward(self, pixels: Tensor) -> Tensor:
        seen = 4000 * (pixels.flatten(1)[:, self.place] - 0.75)  # 1000 or -1000: a softmax of exactly 1 or 0
        return torch.stack([seen, -seen], dim=1)


def one_pixel(rank: int, side: int = 20, place: int = 7) -> Outcome:
    """The map that calls so many pixels more important than the only one that counts; the image is half white."""
    pixels = (torch.arange(side * side) % 2).float().view(1, 1, side, side)
    others = [pixel for pixel in torch.randperm(side * side, generator=rng(3)).tolist() if pixel != place]
    order = torch.tensor([*others[:rank], place, *others[rank:]])
    maps = torch.empty(side * side).scatter(0, order, torch.arange(side * side, 0, -1).float())
    return outcome(images(pixels), model=ReadsOnePixel(place), explaining=explaining(pixels, maps.view(1, side, side)))


@pytest.mark.parametrize("steps", [20, 40, 80, 400])
def test_the_perfect_model_has_deletion_0_and_insertion_1_but_for_half_a_step(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The curve falls within the first step, of which the trapezoid keeps half: 1 / (2 steps), and 0 in the limit."""
    monkeypatch.setattr(_occlusion, "STEPS", steps)
    perfect = one_pixel(rank=0)
    assert Deletion()(perfect, perfect).value == pytest.approx(1 / (2 * steps), abs=1e-12)
    assert Insertion()(perfect, perfect).value == pytest.approx(1 - 1 / (2 * steps), abs=1e-12)
    assert Faithfulness()(perfect, perfect).value == pytest.approx(1 - 1 / steps, abs=1e-12)
    step = 400 // steps
    for rank in (step, 200, 399):  # found in a later step: worse by every step that it is late, and no better than that
        late = one_pixel(rank)
        assert Deletion()(late, late).value == pytest.approx((rank // step + 0.5) / steps, abs=1e-12)
        assert Insertion()(late, late).value == pytest.approx(1 - (rank // step + 0.5) / steps, abs=1e-12)


def test_a_wrong_map_of_the_perfect_model_reaches_neither_and_the_reverse_reaches_the_opposite() -> None:
    perfect, reverse = one_pixel(rank=0), one_pixel(rank=399)
    assert perfect.explaining is not None
    blank = given_maps(perfect, torch.zeros_like(perfect.explaining.explanation.maps))
    for made in (blank, one_pixel(rank=100), one_pixel(rank=300)):
        assert 0.025 < Deletion()(made, made).value < 0.975
        assert 0.025 < Insertion()(made, made).value < 0.975
    assert Deletion()(reverse, reverse).value == pytest.approx(0.975, abs=1e-12)
    assert Insertion()(reverse, reverse).value == pytest.approx(0.025, abs=1e-12)


def test_the_true_map_beats_the_random_floor_which_beats_the_reverse() -> None:
    made, maps = linear()
    reverse = given_maps(made, -maps)
    assert Deletion()(made, made).high < RandomDeletion()(made, made).low
    assert Insertion()(made, made).low > RandomInsertion()(made, made).high
    assert Faithfulness()(made, made).low > 0
    assert Faithfulness()(reverse, reverse).high < 0
    assert RandomDeletion()(made, made) == RandomDeletion()(reverse, reverse)


def test_a_blank_map_is_worth_what_a_random_one_is() -> None:
    made, maps = linear()
    blank = given_maps(made, torch.zeros_like(maps))
    assert Deletion()(blank, blank) == RandomDeletion()(blank, blank)
    assert Insertion()(blank, blank) == RandomInsertion()(blank, blank)


def test_giving_in_an_order_is_taking_in_its_reverse() -> None:
    made, maps = linear(side=5)
    forth, back = map_areas(made), map_areas(given_maps(made, -maps))
    np.testing.assert_allclose(forth.insertion, back.deletion, atol=1e-12)
    np.testing.assert_allclose(forth.deletion, back.insertion, atol=1e-12)


def test_the_floor_of_faithfulness_is_0() -> None:
    made, _ = linear(n=400)
    areas = random_areas(made)
    difference = areas.insertion - areas.deletion
    assert abs(difference.mean()) < 4 * difference.std() / 20
    np.testing.assert_allclose(areas.deletion.mean(), 0.5, atol=0.01)  # taking at random takes evenly


@settings(max_examples=40, deadline=None)
@given(pixels=st.integers(1, 3000))
def test_steps_start_with_none_end_with_all_and_are_few_and_symmetric(pixels: int) -> None:
    counts = step_counts(pixels)
    assert (int(counts[0]), int(counts[-1])) == (0, pixels)
    assert len(counts) <= 22
    assert bool((counts.diff() > 0).all())
    assert torch.equal(counts, pixels - counts.flip(0))
    assert pixels < 20 or int(counts.diff().max()) <= -(-pixels // 20) + 1


def test_work_is_shared_chunked_and_leaves_the_model_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = linear()
    model = made.trained.model
    assert isinstance(model, Weighted)
    model.asked = 0
    deletion = Deletion()(made, made)
    asked = model.asked
    assert asked == 30 * (2 * 21 - 2) + 1  # and one blank image, to find the layout
    Insertion()(made, made)
    Faithfulness()(made, made)
    ExplanationQuality()(made, made)
    assert model.asked == asked
    monkeypatch.setattr(_occlusion, "CHUNK_VALUES", 1)
    again = replace(made)
    assert Deletion()(again, again) == deletion


def test_quality_is_the_product_and_needs_both() -> None:
    made, maps = linear()
    assert made.explaining is not None
    pixels = made.explaining.images
    same = ExplanationQuality()(made, made)
    assert same.value == pytest.approx(Faithfulness()(made, made).value)  # its cosine is 1
    unstable = replace(made, explaining=explaining(pixels, maps, near=-maps))
    assert ExplanationQuality()(unstable, unstable).value == 0
    misled = given_maps(made, -maps)
    assert ExplanationQuality()(misled, misled).value == 0
    tilted = replace(made, explaining=explaining(pixels, maps, near=torch.ones_like(maps)))
    cosine = float(nn.functional.cosine_similarity(maps.flatten(1), torch.ones(30, 64)).mean())
    assert ExplanationQuality()(tilted, tilted).value == pytest.approx(same.value * cosine, rel=1e-5)
    assert 0 <= same.low <= same.high <= 1


def test_without_explanations_they_say_so() -> None:
    plain = outcome(images(BLACK_AND_WHITE))
    with pytest.raises(InputError, match="deletion and insertion needs explanations: measure it at"):
        Deletion()(plain, plain)


def test_the_floor_is_computed_once_for_all_maps_of_the_same_images() -> None:
    made, maps = linear()
    assert made.explaining is not None
    assert isinstance(made.trained.model, Weighted)
    floor = RandomDeletion()(made, made)
    asked = made.trained.model.asked
    other = replace(made, explaining=replace(made.explaining, explanation=Explanation(maps.flip(0))))
    assert RandomDeletion()(other, other) == floor
    assert made.trained.model.asked == asked
    moved = replace(made, explaining=replace(made.explaining, images=made.explaining.images * 0.5))
    assert RandomDeletion()(moved, moved) != floor
