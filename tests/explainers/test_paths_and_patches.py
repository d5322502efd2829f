"""Gradients, integrated gradients, occlusion, RISE, class models: closed forms, naive twins, and parity with captum."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from captum import attr
from quadratic import PIXELS, SIDE, Quadratic, rng
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers import (
    RISE,
    ClassModel,
    GradientTimesInput,
    IntegratedGradients,
    Occlusion,
    Saliency,
    SmoothGrad,
    ViaCaptum,
)


class Formula(nn.Module):
    """Logit 0 is a function of the pixels, [n, pixels]."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        return self.function(images.flatten(1))[:, None]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Softplus(), nn.Flatten(), nn.Linear(4 * 48, 3)
    ).double()


def some(n: int) -> tuple[Tensor, Tensor]:
    return torch.rand(n, 2, 8, 6, generator=rng(7)).double(), torch.randint(3, (n,), generator=rng(8))


def one(kind: Any, function: Callable[[Tensor], Tensor], *pixels: float) -> list[float]:
    """The map of one image, two pixels beside each other or two channels of one pixel."""
    images = torch.tensor(pixels, dtype=torch.float64).view(1, 1, 1, -1)
    found: list[float] = kind.explain(Formula(function), images, torch.tensor([0]), rng()).maps.flatten().tolist()
    return found


def test_integrated_gradients_have_the_published_values() -> None:
    explainer = IntegratedGradients(steps=2)
    assert one(explainer, lambda x: 5 * x[:, 0] + x[:, 1], 4, 5) == pytest.approx([20, 5])
    assert one(explainer, lambda x: 2 * x[:, 0] ** 2 + x[:, 1] ** 2, 3, 3) == pytest.approx([18, 9])
    assert one(explainer, lambda x: 3 * x[:, 0] ** 2 * x[:, 1], 3, 3) == pytest.approx([54, 27])
    images = torch.tensor([4.0, 5.0]).double().view(1, 2, 1, 1)
    published: list[tuple[Callable[[Tensor], Tensor], float]] = [(lambda x: 5 * x[:, 0], 22), (lambda x: x[:, 1], 8)]
    for function, truth in published:  # a baseline of one number a channel
        explainer = IntegratedGradients(baseline=(-0.4, -3))
        found = explainer.explain(Formula(function), images, torch.tensor([0]), rng())
        assert float(found.maps) == pytest.approx(truth)


def test_integrated_gradients_of_the_quadratic_model() -> None:
    """The gradient is linear on the way, so its mean is that of the ends."""
    model, x = Quadratic(), torch.rand(5, 1, SIDE, SIDE, generator=rng(2)).double()
    asked = torch.ones(5, dtype=torch.int64)
    for steps, baseline in itertools.product((1, 3), (0.0, 0.7)):
        found = IntegratedGradients(steps=steps, baseline=baseline).explain(model, x, asked, rng())
        ends = (model.gradient(x) + model.gradient(torch.full_like(x, baseline))) / 2
        torch.testing.assert_close(found.maps.flatten(1), ((x.flatten(1) - baseline) * ends).float())


@pytest.mark.parametrize(
    ("ours", "theirs", "more"),
    [
        (Saliency(), "Saliency", {}),
        (GradientTimesInput(), "InputXGradient", {}),
        (
            IntegratedGradients(steps=9, baseline=0.3),
            "IntegratedGradients",
            {"n_steps": 9, "baselines": 0.3},
        ),
        (
            Occlusion(patch=3, stride=2, fill=0.2),
            "Occlusion",
            {"sliding_window_shapes": (2, 3, 3), "strides": (2, 2, 2), "baselines": 0.2},
        ),
    ],
    ids=lambda part: str(getattr(part, "name", "")),
)
def test_agrees_with_captum(ours: Any, theirs: str, more: dict[str, Any]) -> None:
    model, (images, target) = network(), some(4)
    found = ours.explain(model, images, target, rng()).maps
    direct = getattr(attr, theirs)(model).attribute(images.clone().requires_grad_(), target=target, **more)
    if theirs == "Occlusion":
        direct = direct.mean(1, keepdim=True)  # captum gives the patch's drop to each channel
    torch.testing.assert_close(found, direct.detach().sum(1).float(), rtol=1e-5, atol=1e-7)
    if theirs != "Occlusion":
        through = ViaCaptum(theirs, options=more).explain(model, images, target, rng()).maps
        torch.testing.assert_close(through, found, rtol=1e-5, atol=1e-7)


def test_saliency_is_smoothgrad_without_noise() -> None:
    model, (images, target) = network(), some(3)
    smooth = SmoothGrad(noise=0).explain(model, images, target, rng()).maps
    torch.testing.assert_close(Saliency().explain(model, images, target, rng()).maps, smooth)


def test_occlusion_of_a_linear_model_is_what_the_patches_hold() -> None:
    weights = torch.arange(12.0, dtype=torch.float64)
    images = torch.rand(3, 1, 3, 4, generator=rng(1)).double()
    lost = (weights * (images.flatten(1) - 0.5)).view(3, 3, 4)
    model, asked = Formula(lambda x: x @ weights), torch.zeros(3, dtype=torch.int64)
    one_pixel = Occlusion(patch=1, stride=1).explain(model, images, asked, rng()).maps
    torch.testing.assert_close(one_pixel, lost.float())
    naive = torch.zeros(3, 3, 4, dtype=torch.float64)
    for row, column in itertools.product(range(3), range(4)):
        patches = [(top, left) for top in (0, 1) for left in (0, 1, 2)]
        over = [(t, le) for t, le in patches if t <= row < t + 2 and le <= column < le + 2]
        naive[:, row, column] = sum(lost[:, t : t + 2, le : le + 2].sum((1, 2)) for t, le in over) / len(over)
    by_patch = Occlusion(patch=2, stride=1).explain(model, images, asked, rng()).maps
    torch.testing.assert_close(by_patch, naive.float())


class Shown(nn.Module):
    """The probability of class 1 is a tenth plus weights times pixels: no other pixel matters."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.zeros(64, dtype=torch.float64)
        self.weights[[9, 10, 45]] = torch.tensor([0.3, 0.2, 0.25], dtype=torch.float64)

    def forward(self, images: Tensor) -> Tensor:
        share = 0.1 + images.flatten(1) @ self.weights
        return torch.stack([torch.log(1 - share), torch.log(share)], dim=1)


def naive_masks(count: int, cells: int, keep: float, side: int) -> Tensor:
    """One at a time, by a matrix of tent weights instead of a library's resizing."""
    torch.manual_seed(11)
    cell = -(-side // cells)
    centres = (torch.arange(cells + 1) + 0.5) * cell
    places = (torch.arange((cells + 1) * cell) + 0.5).clamp(float(centres[0]), float(centres[-1]))
    tent = (1 - (places[:, None] - centres[None]).abs() / cell).clamp(min=0)
    found = []
    for _ in range(count):
        grid = (torch.rand(cells + 1, cells + 1) < keep).float()
        top, left = (int(torch.randint(cell, ())) for _ in range(2))
        found.append((tent @ grid @ tent.T)[top : top + side, left : left + side])
    return torch.stack(found)


def test_rise_has_the_mean_and_error_of_its_definition() -> None:
    images = torch.rand(40, 1, 8, 8, generator=rng(1)).double()
    asked = torch.ones(40, dtype=torch.int64)
    explainer = RISE(samples=400, cells=3, keep=0.4)
    found = explainer.explain(Shown(), images, asked, rng())
    assert found.stderr is not None
    masks = naive_masks(8000, 3, 0.4, 8).double()
    share = 0.1 + (masks.flatten(1)[:, None] * images.flatten(1)[None]) @ Shown().weights
    truth = torch.einsum("mi,mhw->ihw", share, masks) / len(masks) / 0.4
    own = truth / len(masks) ** 0.5  # of the twin's own mean, roughly
    z = (found.maps.double() - truth) / (found.stderr.double().square() + own.square()).sqrt()
    assert float(z.abs().max()) < 5.5
    assert 0.8 < float(z.square().mean()) < 1.3
    biased = (found.maps.double() * 0.4 / 0.5 - truth) / found.stderr.double()
    assert float(biased.square().mean()) > 2


def test_class_model_of_the_quadratic_model_is_its_maximum() -> None:
    """S - omega d'd is highest where (2 omega I - A) d = A grey + b; a small b stays within doubles."""
    model, omega = Quadratic(b=0.3), 4.0
    a = model.a.detach()
    slope = model.gradient(torch.full((1, PIXELS), 0.5, dtype=torch.float64))[0]
    truth = torch.linalg.solve(2 * omega * torch.eye(PIXELS, dtype=torch.float64) - a, slope)
    images = torch.rand(2, 1, SIDE, SIDE, generator=rng(1)).double()
    maps = ClassModel(omega=omega).explain(model, images, torch.tensor([1, 0]), rng()).maps
    torch.testing.assert_close(maps[0].flatten(), truth.abs().float(), rtol=1e-3, atol=5e-5)
    assert float(maps[1].abs().max()) == 0  # the other class's score is the same everywhere
    picture = ClassModel(omega=omega).picture(model.float(), (1, SIDE, SIDE), 1)
    torch.testing.assert_close(picture.flatten(), 0.5 + truth.float(), rtol=1e-3, atol=1e-4)


def test_captum_in_captum_and_its_layers() -> None:
    model, (images, target) = network().float(), some(2)
    images = images.float()
    tunnel = ViaCaptum("NoiseTunnel(Saliency)", options={"nt_samples": 400, "stdevs": 0.2, "abs": False})
    smooth = SmoothGrad(noise=0.2, samples=400).explain(model, images, target, rng())
    found = tunnel.explain(model, images, target, rng())
    assert float(torch.corrcoef(torch.stack([found.maps.flatten(), smooth.maps.flatten()]))[0, 1]) < 1
    assert torch.equal(found.maps, tunnel.explain(model, images, target, rng()).maps)
    assert not torch.equal(found.maps, tunnel.explain(model, images, target, rng(9)).maps)
    layer = ViaCaptum("LayerGradCam", layer="2").explain(model, images, target, rng()).maps
    assert layer.shape == (2, 8, 6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ViaCaptum("Salience"), "captum.attr has no attribution 'Salience'"),
        (lambda: ViaCaptum("os.system"), r"must be a captum class, as 'DeepLift' or 'NoiseTunnel\(Saliency\)'"),
        (lambda: ViaCaptum("LayerActivation", layer="nowhere"), "layer='nowhere' is not a part of the model"),
        (lambda: Occlusion(patch=2, stride=3), "stride=3 must be at most patch=2"),
        (lambda: Occlusion(patch=7), "patch=7 must fit into the images of 6 x 8 pixels"),
        (lambda: Occlusion(fill=(0.1, 0.2, 0.3)), "must be one finite number, or one for each of the 2 channels"),
        (lambda: IntegratedGradients(steps=0), "steps=0 must be a whole number, 1 or above"),
        (lambda: RISE(keep=1.0), "keep=1.0 must be a number strictly between 0 and 1"),
        (lambda: ClassModel(omega=0), "omega=0 must be a number above 0"),
    ],
)
def test_wrong_settings_are_told_in_a_sentence(make: Callable[[], Any], sentence: str) -> None:
    images, target = some(2)
    with pytest.raises(InputError, match=sentence):
        make().explain(network(), images, target, rng())


def test_without_captum_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "captum.attr", None)
    images, target = some(2)
    with pytest.raises(InputError, match=r"needs the captum library: pip install 'counterpoise\[captum\]'"):
        ViaCaptum().explain(network(), images, target, rng())
