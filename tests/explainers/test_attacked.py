"""No attack succeeds within a certified radius, on trained models; and the attacks are real."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn
from trained import MODELS, digits, trained

from counterpoise._check import InputError
from counterpoise.explainers import RobustTopK, SmoothGrad
from counterpoise.measures.map_attack import MapAttack, most_important, overlap
from counterpoise.training import apply, one_thread

IMAGES = 85
SETTINGS = (
    RobustTopK(noise=0.5, samples=250, k=16, beta=Fraction(1, 2)),
    RobustTopK(noise=1.0, samples=250, k=16, beta=Fraction(1, 4), scoring="sigmoid"),
    RobustTopK(noise=0.5, samples=250, k=2, beta=Fraction(1, 2)),
    RobustTopK(noise=0.3, samples=250, k=1, beta=1),
)


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def smallest_success(explainer: RobustTopK, model: nn.Module, images: Tensor, target: Tensor, maps: Tensor) -> Tensor:
    """How far the nearest successful attack is from each image; infinite where none succeeds.

    Success: of the reported top k less than beta is in the top k of the attacked image's map, with fresh noise.
    """
    nearest = torch.full((len(images),), math.inf)
    reported = most_important(maps, explainer.k)
    for radius in (0.15, 0.6, 2.0):
        attack = MapAttack(radius, steps=6, restarts=1, noise=float(explainer.noise), draws=3)
        moved = attack(model, images, target, reported, rng(2))
        assert torch.equal(apply(model, moved).argmax(1), target)
        again = explainer.explain(model, moved, target, rng(3)).maps
        distance = (moved - images).flatten(1).norm(dim=1)
        success = overlap(maps, again, explainer.k) < float(explainer.share)
        nearest = torch.where(success, torch.minimum(nearest, distance), nearest)
    return nearest


def test_no_attack_succeeds_within_a_certified_radius() -> None:
    pairs = certified = succeeded = 0
    with one_thread():
        for name in MODELS:
            model = trained(name)
            images, target = digits(model, IMAGES)
            for explainer in SETTINGS:
                found = explainer.explain(model, images, target, rng(1))
                assert found.certificates is not None
                radii = torch.tensor([c.radius for c in found.certificates if c is not None])
                nearest = smallest_success(explainer, model, images, target, found.maps)
                assert bool((radii <= nearest).all()), (name, explainer)
                pairs += len(images)
                certified += int((radii > 0).sum())
                succeeded += int(nearest.isfinite().sum())
    assert pairs >= 1000
    assert certified > 400
    assert succeeded > 100


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
