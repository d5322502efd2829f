"""No attack succeeds within a certified radius, on trained models; and the attacks are real."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from trained import MODELS, digits, trained

from counterpoise._check import InputError
from counterpoise.explainers import RobustTopK, SmoothGrad
from counterpoise.explainers._scoring import SCORINGS
from counterpoise.measures.map_attack import MapAttack, most_important, overlap
from counterpoise.training import apply, one_thread

IMAGES = 68
SETTINGS = (
    RobustTopK(noise=0.5, samples=250, k=16, beta=Fraction(1, 2)),
    RobustTopK(noise=1.0, samples=250, k=16, beta=Fraction(1, 4), scoring="sigmoid"),
    RobustTopK(noise=0.5, samples=250, k=2, beta=Fraction(1, 2)),
    RobustTopK(noise=0.3, samples=250, k=1, beta=1),
)
BOTH_NORMS = SETTINGS[2]
"""Also certified and attacked in linf: from the same samples, as another norm is another reading of them."""
REACH = {"l2": (0.2, 2.0), "linf": (0.025, 0.3)}


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def smoothed(explainer: RobustTopK, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Tensor:
    """The map once more, for all images at a time and without a certificate: noise, gradient, rank, mean."""
    count = explainer.samples
    noise = float(explainer.noise) * torch.randn((count, *images.shape), generator=rng(seed))
    model.eval()
    noisy = (images + noise).flatten(0, 1).requires_grad_(True)
    score = model(noisy).gather(1, target.repeat(count)[:, None]).sum()
    size = torch.autograd.grad(score, noisy)[0].abs().sum(1).flatten(1)
    scores = torch.from_numpy(SCORINGS[explainer.scoring](explainer.k, size.shape[1]))
    ranked = torch.empty_like(size, dtype=torch.float64)
    ranked.scatter_(1, size.argsort(dim=1, descending=True, stable=True), scores.expand(size.shape))
    return ranked.view(count, len(images), *images.shape[2:]).mean(0)


def smallest_success(
    explainer: RobustTopK,
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    maps: Tensor,
    norm: Literal["l2", "linf"] = "l2",
) -> Tensor:
    """How far the nearest successful attack is from each image; infinite where none succeeds.

    Success: of the reported top k less than beta is in the top k of the attacked image's map, with fresh noise.
    """
    nearest = torch.full((len(images),), math.inf)
    reported = most_important(maps, explainer.k)
    for radius in REACH[norm]:
        attack = MapAttack(radius, norm=norm, steps=4, restarts=1, noise=float(explainer.noise), draws=2)
        moved = attack(model, images, target, reported, rng(2))
        assert torch.equal(apply(model, moved).argmax(1), target)
        again = smoothed(explainer, model, moved, target, 3)
        off = (moved - images).flatten(1)
        distance = off.norm(dim=1) if norm == "l2" else off.abs().amax(1)
        success = overlap(maps, again, explainer.k) < float(explainer.share)
        nearest = torch.where(success, torch.minimum(nearest, distance), nearest)
    return nearest


def test_no_attack_succeeds_within_a_certified_radius() -> None:
    pairs = 0
    certified, succeeded = Counter[str](), Counter[str]()
    with one_thread():
        for name in MODELS:
            model = trained(name)
            images, target = digits(model, IMAGES)
            for explainer in SETTINGS:
                found = explainer.explain(model, images, target, rng(1))
                assert found.certificates is not None
                l2 = torch.tensor([c.radius for c in found.certificates if c is not None])
                of_norm: dict[Literal["l2", "linf"], Tensor] = {"l2": l2}
                if explainer is BOTH_NORMS:
                    of_norm["linf"] = l2 / math.sqrt(images[0].numel())
                    other = replace(explainer, norm="linf").explain(model, images[:1], target[:1], rng(1)).certificates
                    assert other is not None
                    assert other[0] is not None
                    assert other[0].radius == pytest.approx(float(of_norm["linf"][0]))
                for norm, radii in of_norm.items():
                    nearest = smallest_success(explainer, model, images, target, found.maps, norm)
                    assert bool((radii <= nearest).all()), (name, explainer, norm)
                    pairs += len(images)
                    certified[norm] += int((radii > 0).sum())
                    succeeded[norm] += int(nearest.isfinite().sum())
    assert pairs >= 1000
    assert certified["l2"] > 400
    assert succeeded["l2"] > 100
    assert certified["linf"] > 100
    assert succeeded["linf"] > 20


def test_the_map_with_which_attacks_are_judged_is_the_explainers() -> None:
    """Two estimates of one map, from different noise and by different code, name nearly the same pixels."""
    with one_thread():
        model = trained("relu-cnn")
        images, target = digits(model, 20)
        for explainer in (replace(SETTINGS[0], samples=2000), replace(SETTINGS[1], samples=2000)):
            one = explainer.explain(model, images, target, rng(1)).maps
            two = smoothed(explainer, model, images, target, 3)
            assert float((one - two).abs().max()) < 0.1 * float(one.max())
            assert float(overlap(one, two, 16).mean()) > 0.93


def test_plain_saliency_falls_where_the_smoothed_map_is_certified() -> None:
    with one_thread():
        model = trained("small-cnn")
        images, target = digits(model, 40)
        found = RobustTopK(noise=1.0, samples=1000, k=2, beta=0.5).explain(model, images, target, rng(1))
        assert found.certificates is not None
        radii = torch.tensor([c.radius for c in found.certificates if c is not None])
        plain = SmoothGrad(noise=0).explain(model, images, target, rng(1)).maps
        moved = MapAttack(0.3, steps=20, restarts=3)(model, images, target, most_important(plain, 2), rng(2))
        after = SmoothGrad(noise=0).explain(model, moved, target, rng(1)).maps
    assert float((moved - images).flatten(1).norm(dim=1).max()) <= 0.3 + 1e-5
    fallen = (overlap(plain, after, 2) < 0.5) & (radii > 0.3)
    assert int((radii > 0.3).sum()) >= 10
    assert int(fallen.sum()) >= 5


def test_a_planted_unsound_certificate_is_caught() -> None:
    """The same check fails for radii ten times too large: it can fail."""
    with one_thread():
        model = trained("mlp")
        images, target = digits(model, 40)
        explainer = RobustTopK(noise=0.3, samples=250, k=1, beta=1)
        found = explainer.explain(model, images, target, rng(1))
        assert found.certificates is not None
        radii = torch.tensor([c.radius for c in found.certificates if c is not None])
        nearest = smallest_success(explainer, model, images, target, found.maps)
    assert bool((radii <= nearest).all())
    assert bool((10 * radii > nearest).any())


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_an_attack_stays_in_its_ball_and_keeps_the_label_and_the_model(norm: str) -> None:
    model = trained("relu-cnn").train()
    for weight in model.parameters():
        weight.grad = None
    images, target = digits(model, 12)
    maps = SmoothGrad(noise=0).explain(model, images, target, rng(1)).maps
    attack = MapAttack(0.1, norm=norm, steps=5, noise=0.2, draws=2)  # type: ignore[arg-type]
    moved = attack(model, images, target, most_important(maps, 8), rng(2))
    off = (moved - images).flatten(1)
    size = off.norm(dim=1) if norm == "l2" else off.abs().amax(1)
    assert float(size.max()) <= 0.1 + 1e-5
    assert float(size.max()) > 0.05
    assert float(moved.min()) >= 0
    assert float(moved.max()) <= 1
    assert torch.equal(apply(model, moved).argmax(1), target)
    assert model.training
    assert all(weight.requires_grad and weight.grad is None for weight in model.parameters())
    model.eval()


def test_the_twin_has_the_slope_that_a_relu_network_lacks() -> None:
    """With ReLUs as they are the attack has no gradient to follow, and does no better than chance."""
    model = trained("relu-cnn")
    images, target = digits(model, 40)
    maps = SmoothGrad(noise=0).explain(model, images, target, rng(1)).maps
    kept = []
    for sharpness in (10.0, 1e6):
        attack = MapAttack(0.6, steps=12, restarts=1, sharpness=sharpness)
        moved = attack(model, images, target, most_important(maps, 16), rng(2))
        after = SmoothGrad(noise=0).explain(model, moved, target, rng(1)).maps
        kept.append(float(overlap(maps, after, 16).mean()))
    assert kept[0] < kept[1] - 0.05


def test_wrong_attacks_are_told_in_a_sentence() -> None:
    with pytest.raises(InputError, match="radius=0 must be a number above 0"):
        MapAttack(0)
    with pytest.raises(InputError, match="norm='l1' must be one of 'l2', 'linf'"):
        MapAttack(0.1, norm="l1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="steps=0 must be a whole number"):
        MapAttack(0.1, steps=0)


def test_overlap_counts_the_shared_top_and_ties_follow_reading_order() -> None:
    one = torch.tensor([[[4.0, 3.0], [2.0, 1.0]]])
    assert overlap(one, one.flip(1), 2).tolist() == [0]
    assert overlap(one, torch.zeros(1, 2, 2), 2).tolist() == [1]
    assert overlap(one, torch.tensor([[[4.0, 1.0], [3.0, 2.0]]]), 2).tolist() == [0.5]
