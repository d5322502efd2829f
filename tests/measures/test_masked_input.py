"""Average Drop and its relatives: exact on a model one can calculate, equal to three libraries where asked to be."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from measured import explaining, images, outcome, rng
from torch import Tensor, nn
from torchcam.methods import GradCAM as TheirGradCAM
from torchcam.metrics import ClassificationMetric

from counterpoise._check import InputError
from counterpoise.interface import Outcome
from counterpoise.measures import AverageDrop, BlankMaps, ConfidenceIncrease, MaskedScore, WholeScore
from counterpoise.measures._maps import FLOORS, Of, as_masks, blank, edges, floor_maps
from counterpoise.measures._masked import LIKE, drops, increases, masked_scores


class Share(nn.Module):
    """Says class 0 with a probability of the sum of the pixels."""

    def forward(self, pixels: Tensor) -> Tensor:
        share = pixels.flatten(1).double().sum(1).clamp(1e-300, 1 - 1e-12)
        return torch.stack([share.log(), (1 - share).log()], dim=1)


PIXELS = torch.tensor([0.4, 0.3, 0.2, 0.1]).view(1, 1, 2, 2)


def four(*maps: list[float], model: nn.Module | None = None) -> Outcome:
    """One image of four pixels, as often as there are maps."""
    pixels = PIXELS.expand(len(maps), -1, -1, -1)
    return outcome(
        images(pixels), model=model or Share(), explaining=explaining(pixels, torch.tensor(maps).view(-1, 2, 2))
    )


def test_the_four_pixel_model_drops_by_exactly_06() -> None:
    """Y = 1, and the map keeps the pixel of .4: O = .4, so the drop is 60 %."""
    made = four([1.0, 0, 0, 0])
    assert AverageDrop()(made, made).value == pytest.approx(60, abs=1e-4)
    assert MaskedScore()(made, made).value == pytest.approx(40, abs=1e-4)
    assert WholeScore()(made, made).value == pytest.approx(100, abs=1e-4)
    assert ConfidenceIncrease()(made, made).value == 0
    wrong = four([0.0, 0, 0, 1])
    assert AverageDrop()(wrong, wrong).value == pytest.approx(90, abs=1e-4)


def test_a_drop_is_relative_and_a_gain_is_no_drop() -> None:
    """Y = .5 in both: O = .2 loses 60 % of it, O = .9 is an increase and drops nothing."""
    assert drops(np.array([0.5, 0.5]), np.array([0.2, 0.9])).tolist() == [60, 0]
    assert increases(np.array([0.5, 0.5, 0.5]), np.array([0.2, 0.9, 0.5])).tolist() == [0, 100, 0]


def test_a_map_of_ones_wins_with_nothing_which_is_why_there_are_floors() -> None:
    made = four([3.0, 3, 3, 3])
    assert AverageDrop()(made, made).value == 0
    assert AverageDrop(of="ones")(made, made).value == 0
    names = [measure.name for measure in AverageDrop().beside]
    assert names == [*(f"average_drop_of_{of}" for of in FLOORS), "blank_maps", "whole_score"]
    assert AverageDrop(of="edges").beside == ()


def test_blank_maps_are_counted_and_not_scored() -> None:
    made = four([1.0, 0, 0, 0], [0.0, 0, 0, 0], [-1.0, -2, 0, 0], [0.0, 0, 0, 1])
    assert BlankMaps()(made, made).value == 0.5
    found = AverageDrop()(made, made)
    assert found.n == 2
    assert found.value == pytest.approx(75, abs=1e-4)
    assert AverageDrop(of="ones")(made, made).n == 2  # floors on the same images
    none = four([0.0, 0, 0, 0])
    unknown = AverageDrop()(none, none)
    assert (unknown.value, unknown.low, unknown.high, unknown.n) == (100, 0, 100, 0)
    score = MaskedScore()(none, none)
    assert (score.value, score.low, score.high, score.n) == (0, 0, 100, 0)


def test_only_images_that_both_models_classify_rightly() -> None:
    labels = torch.tensor([0, 1, 0])
    pixels = PIXELS.repeat(3, 1, 1, 1)
    pixels[2] /= 10  # the model says class 1 of this image of class 0
    maps = torch.tensor([[1.0, 0, 0, 0]] * 3).view(3, 2, 2)
    made = outcome(images(pixels, labels), model=Share(), explaining=explaining(pixels, maps, chosen=torch.arange(3)))
    assert AverageDrop()(made, made).n == 1
    assert AverageDrop(only_right=False)(made, made).n == 3
    assert WholeScore()(made, made).n == 1
    blind = replace(made, test_logits=-made.test_logits)
    assert AverageDrop()(blind, made).n == 0


def test_the_fill_is_what_shows_where_the_map_is_0() -> None:
    made = four([1.0, 0, 0, 0])
    assert MaskedScore(fill=0.1)(made, made).value == pytest.approx(70, abs=1e-4)
    with pytest.raises(InputError, match=r"^fill=1.5 must be a number in \[0, 1\]\.$"):
        AverageDrop(fill=1.5)
    with pytest.raises(InputError, match="of='corner' must be one of 'centre', 'edges', 'map', 'ones', 'random'"):
        AverageDrop(of="corner")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="match='captum' must be one of"):
        AverageDrop(match="captum")  # type: ignore[arg-type]


def test_masks_are_spread_over_0_to_1_without_their_negative_values() -> None:
    maps = torch.tensor([[-1.0, 0, 1, 3], [2, 2, 2, 2], [0, 0, 0, 0], [1, 2, 3, 5]]).view(4, 2, 2)
    spread = as_masks(maps).flatten(1)
    assert spread[0].tolist() == pytest.approx([0, 0, 1 / 3, 1])
    assert spread[1].tolist() == [1, 1, 1, 1]
    assert spread[2].tolist() == [0, 0, 0, 0]
    assert spread[3].tolist() == [0, 0.25, 0.5, 1]
    assert blank(maps).tolist() == [False, False, True, False]


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(0.001, 1000), order=st.permutations(range(6)))
def test_neither_the_map_s_scale_nor_the_batch_nor_its_order_matters(scale: float, order: list[int]) -> None:
    pixels, maps = torch.rand(6, 1, 4, 4, generator=rng(1)) / 16, torch.randn(6, 4, 4, generator=rng(2))
    zeros = torch.zeros(6, dtype=torch.int64)
    masked = masked_scores(Share(), pixels, zeros, maps)[1]
    _, again = masked_scores(Share(), pixels[order], zeros, scale * maps[order])
    np.testing.assert_allclose(again, masked[order], rtol=1e-4)
    alone = [masked_scores(Share(), x[None], zeros[:1], m[None])[1][0] for x, m in zip(pixels, maps, strict=True)]
    np.testing.assert_allclose(alone, masked, rtol=1e-6)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).double().eval()


def test_it_agrees_with_torch_cam_in_double_precision() -> None:
    """On their extractor's maps, enlarged as they do it; where theirs are NaN, they are not scored."""
    model, pixels = network(), torch.rand(12, 3, 8, 8, generator=rng(3), dtype=torch.float64)
    target = model(pixels).argmax(1)
    with TheirGradCAM(model, "4") as extractor:
        metric = ClassificationMetric(extractor, partial(torch.softmax, dim=-1))
        metric.update(pixels)
        (coarse,) = extractor(target.tolist(), model(pixels).softmax(1))  # the metric explains what it scores
    theirs = metric.summary()
    kept = ~coarse.flatten(1).isnan().any(1)
    fine = nn.functional.interpolate(coarse[:, None], (8, 8), mode="bilinear", align_corners=False)[:, 0]
    like = LIKE["torch-cam"]
    whole, masked = masked_scores(model, pixels[kept], target[kept], fine[kept], like)
    assert drops(whole, masked, like).mean() == pytest.approx(theirs["avg_drop"], rel=1e-9)
    assert increases(whole, masked, like).mean() == theirs["conf_increase"]
    ours = masked_scores(model, pixels[kept], target[kept], fine[kept])[1]
    assert not np.allclose(ours, masked)  # spread again after enlarging: another number


def test_what_grad_cam_and_xplique_would_say() -> None:
    """Written out: the logits' difference on the map as given; the probabilities' relative drop on |map|, spread."""
    model, pixels = network(), torch.rand(5, 3, 8, 8, generator=rng(4), dtype=torch.float64)
    maps = torch.randn(5, 8, 8, generator=rng(5), dtype=torch.float64)
    target = torch.tensor([0, 1, 2, 3, 0])

    def logit(x: Tensor) -> Tensor:
        found: Tensor = model(x)
        return found.gather(1, target[:, None])[:, 0]

    def said(x: Tensor) -> Tensor:
        found: Tensor = model(x)
        return found.softmax(1).gather(1, target[:, None])[:, 0]

    like = LIKE["grad-cam"]
    whole, masked = masked_scores(model, pixels, target, maps, like)
    expected = (logit(pixels) - logit(pixels * maps[:, None])).clamp(min=0)
    np.testing.assert_allclose(drops(whole, masked, like), expected.detach().numpy(), atol=1e-12)
    size = maps.abs()
    low, high = size.amin((1, 2), keepdim=True), size.amax((1, 2), keepdim=True)
    left = said(pixels * ((size - low) / (high - low))[:, None])
    expected = (said(pixels) - left).clamp(min=0) / (said(pixels) + 1e-8)
    like = LIKE["xplique"]
    np.testing.assert_allclose(
        drops(*masked_scores(model, pixels, target, maps, like), like), expected.detach().numpy(), atol=1e-12
    )


def test_a_library_s_number_has_its_own_name_and_unit() -> None:
    made = four([1.0, 0, 0, 0])
    theirs = AverageDrop(match="torch-cam")
    assert (theirs.name, theirs.unit) == ("average_drop_as_torch_cam", "share")
    assert theirs(made, made).value == pytest.approx(0.6, abs=1e-6)
    assert AverageDrop(match="grad-cam").unit == "logit"
    assert AverageDrop(of="edges", match="xplique").name == "average_drop_of_edges_as_xplique"
    assert AverageDrop.name == "average_drop"


@pytest.mark.parametrize("of", get_args(Of)[1:])
def test_floors_have_not_looked_at_the_model(of: Of) -> None:
    pixels = torch.rand(4, 3, 9, 6, generator=rng(6))
    maps = floor_maps(of, pixels)
    assert maps.shape == (4, 9, 6)
    assert bool(((maps >= 0) & (maps <= 1)).all())
    assert torch.equal(maps, floor_maps(of, pixels))


def test_edges_are_where_the_image_changes_and_the_hill_is_in_the_middle() -> None:
    step = torch.zeros(1, 1, 6, 6)
    step[..., 3:] = 1
    found = edges(step)[0]
    assert set(found[:, 2:4].flatten().tolist()) == {4.0}
    assert float(found[:, [0, 1, 4, 5]].max()) == 0
    hill = floor_maps("centre", torch.zeros(1, 1, 9, 9))[0]
    assert int(hill.argmax()) == 40
    assert torch.allclose(hill, hill.flip(0))
    assert torch.allclose(hill, hill.T)
