"""Two maps of one image: closed values, independent implementations, and which images count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from measured import Pick, explaining, images, outcome, rng
from scipy.stats import spearmanr
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Explanation, Outcome
from counterpoise.measures import MapCosine, MapSpearman, MapSSIM, Stability, TopKOverlap
from counterpoise.measures.agreement import cosine, spearman, ssim, top_k_overlap

FIRST, SECOND = torch.rand(5, 6, 7, generator=rng(0)), torch.rand(5, 6, 7, generator=rng(1))
ALL = (TopKOverlap, MapCosine, MapSpearman, MapSSIM)


@pytest.mark.parametrize("alike", [top_k_overlap, cosine, spearman, ssim])
def test_a_map_is_like_itself_at_any_scale_and_others_are_less_so(alike) -> None:  # type: ignore[no-untyped-def]
    assert alike(FIRST, 7 * FIRST).tolist() == pytest.approx([1] * 5)
    assert torch.allclose(alike(FIRST, SECOND), alike(SECOND, FIRST))
    assert float(alike(FIRST, SECOND).max()) < 0.95


def test_the_top_pixels_shared() -> None:
    """Of ten pixels each map's top three: 7, 8, 9 and 0, 8, 9 share two."""
    first = torch.arange(10.0).view(1, 2, 5)
    second = torch.tensor([99.0, 1, 2, 3, 4, 5, 6, 7, 98, 97]).view(1, 2, 5)
    assert float(top_k_overlap(first, second, 0.3)) == pytest.approx(2 / 3)
    assert float(top_k_overlap(first, -first, 0.3)) == 0
    assert float(top_k_overlap(first, second, 0.01)) == 0  # one pixel at least
    rows = torch.rand(4000, 10, 10, generator=rng(2)), torch.rand(4000, 10, 10, generator=rng(3))
    assert float(top_k_overlap(*rows).mean()) == pytest.approx(0.1, abs=0.01)  # unrelated maps


def test_ties_are_broken_by_one_rule_for_both() -> None:
    flat = torch.ones(1, 4, 4)
    assert float(top_k_overlap(flat, 5 * flat)) == 1


def test_ranks_agree_with_scipy_also_with_ties() -> None:
    rough = (SECOND * 4).round()
    expected = [spearmanr(a.flatten(), b.flatten()).statistic for a, b in zip(FIRST, rough, strict=True)]
    np.testing.assert_allclose(spearman(FIRST, rough).numpy(), expected, atol=1e-12)
    assert float(spearman(FIRST, -FIRST).max()) == pytest.approx(-1)
    assert spearman(FIRST, torch.ones_like(FIRST)).tolist() == [0] * 5


def test_ssim_is_not_what_cosine_is() -> None:
    """A map moved by one pixel keeps its values and loses its structure."""
    lines = torch.zeros(1, 12, 12)
    lines[:, ::2] = 1
    assert float(ssim(lines, lines.roll(1, 1))) < -0.5
    assert float(ssim(lines, lines + 0.001)) > 0.99


class Constant(nn.Module):
    """Says class 0 of everything."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.tensor([1.0, 0.0]).expand(len(pixels), 2)


PIXELS = torch.rand(5, 1, 6, 7, generator=rng(4))


def pair(labels: list[int], maps: Tensor = FIRST, theirs: Tensor = SECOND) -> tuple[Outcome, Outcome]:
    """A candidate with these maps, and a baseline that is explained by `theirs`."""
    test = images(PIXELS, torch.tensor(labels))
    baseline = outcome(test, model=Constant())

    def again(model: nn.Module, pixels: Tensor, purpose: str) -> Explanation:
        assert model is baseline.trained.model
        assert pixels is PIXELS
        return Explanation(theirs)

    asked = explaining(PIXELS, maps, near=maps, chosen=torch.arange(5), again=again)
    return baseline, outcome(test, model=Constant(), explaining=asked)


@pytest.mark.parametrize("kind", ALL)
def test_the_private_map_is_compared_with_the_baseline_s_where_both_are_right(kind) -> None:  # type: ignore[no-untyped-def]
    baseline, candidate = pair([0, 0, 1, 0, 1])
    alike = {TopKOverlap: top_k_overlap, MapCosine: cosine, MapSpearman: spearman, MapSSIM: ssim}[kind]
    found = kind()(baseline, candidate)
    assert found.n == 3
    assert found.value == pytest.approx(float(alike(FIRST, SECOND)[[0, 1, 3]].mean()))
    assert kind(only_right=False)(baseline, candidate).n == 5
    nobody = pair([1] * 5)
    assert kind()(*nobody).n == 0
    assert kind()(*nobody).high == 1
    assert kind(other="nearby")(baseline, candidate).value == pytest.approx(1)
    assert kind(other="nearby").name == f"{kind.name}_nearby"


def test_blank_maps_are_not_scored_though_stability_counts_them() -> None:
    blank = FIRST.clone()
    blank[:2] = 0
    baseline, candidate = pair([0] * 5, maps=blank)
    assert MapCosine()(baseline, candidate).n == 3
    assert MapCosine(other="nearby")(baseline, candidate).value == pytest.approx(1)
    assert Stability()(baseline, candidate).value == pytest.approx(0.6)


def test_the_baseline_is_explained_once() -> None:
    calls = []
    baseline, candidate = pair([0] * 5)
    assert candidate.explaining is not None

    def counted(model: nn.Module, pixels: Tensor, purpose: str) -> Explanation:
        calls.append(purpose)
        return Explanation(SECOND)

    candidate = replace(candidate, explaining=replace(candidate.explaining, again=counted))
    for kind in ALL:
        kind()(baseline, candidate)
    assert calls == ["baseline"]


def test_mistakes() -> None:
    with pytest.raises(InputError, match=r"k=0 must be a number strictly between 0 and 1"):
        TopKOverlap(k=0)
    with pytest.raises(InputError, match="other='floor' must be one of 'baseline', 'nearby'"):
        MapCosine(other="floor")  # type: ignore[arg-type]
    made = outcome(images(PIXELS), model=Pick(), explaining=explaining(PIXELS, FIRST))
    with pytest.raises(InputError, match="map_cosine needs more maps than are given: set `again`"):
        MapCosine()(made, made)
