"""SmoothGrad's noise against closed forms, and against the nearby wrong noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from quadratic import PIXELS, SIDE, Quadratic, rng
from scipy.stats import chi2, kstest, norm
from torch import Tensor, nn

from counterpoise.explainers import SmoothGrad
from counterpoise.explainers._noise import ImageNoise


class Probit(nn.Module):
    """One logit, Phi(w'x / s)."""

    def __init__(self, s: float) -> None:
        super().__init__()
        self.s = s
        self.w = nn.Parameter(torch.linspace(-1, 1, PIXELS, dtype=torch.float64))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = torch.special.ndtr(images.flatten(1) @ self.w / self.s)[:, None]
        return logits


def follows_the_law(explainer: SmoothGrad, images: int = 1500) -> bool:
    """Mean and variance of the quadratic model's noisy gradients, both at a one in ten thousand error rate.

    The gradient at x + sigma z is Ax + b + sigma A z: so A^-1 (map - Ax - b) sqrt(n) / sigma is standard normal,
    and a pixel's variance is sigma^2 (A A)_ii.
    """
    model, sigma, n = Quadratic(), float(explainer.noise), explainer.samples
    x = torch.rand(images, 1, SIDE, SIDE, generator=rng(5), dtype=torch.float32).double()
    got = explainer.explain(model, x, torch.ones(images, dtype=torch.int64), rng())
    assert got.stderr is not None
    a = model.a.detach()
    off = got.maps.double().flatten(1) - (x.flatten(1) @ a + model.b.detach())
    z = torch.linalg.solve(a, off.T).T * math.sqrt(n) / sigma
    low, high = chi2.ppf([5e-5, 1 - 5e-5], z.numel()) / z.numel()
    mean_holds = low < float(z.square().mean()) < high and abs(float(z.mean())) < norm.isf(5e-5) / math.sqrt(z.numel())
    variance = got.stderr.double().flatten(1).square() * n / (sigma**2 * (a @ a).diagonal())
    spread = math.sqrt(2 / (n - 1) / images)  # of one pixel's variance, averaged over the images
    variance_holds = float((variance.mean(0) - 1).abs().max()) < 4.4 * spread
    return mean_holds and variance_holds


def test_mean_and_variance_are_those_of_the_quadratic_model() -> None:
    assert follows_the_law(SmoothGrad(noise=0.3, samples=25))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda z: 1.5 * z,
        lambda z: torch.cat([z[:, :-1], 0 * z[:, -1:]], dim=1),
        lambda z: z + 0.1,
        lambda z: z * torch.rand(len(z), 1, 1, 1, 1, generator=rng(1)).add(0.5),
    ],
    ids=["half as wide again", "one sample without noise", "off centre", "tied to the image"],
)
def test_a_nearby_wrong_noise_is_told(spoil: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    right = ImageNoise.take
    monkeypatch.setattr(ImageNoise, "take", lambda self, samples: spoil(right(self, samples)))
    assert not follows_the_law(SmoothGrad(noise=0.3, samples=25))


def test_probit_model_has_the_smoothed_gradient() -> None:
    model, s, sigma = Probit(0.4), 0.4, 0.3
    x = torch.rand(50, 1, SIDE, SIDE, generator=rng(2), dtype=torch.float64)
    got = SmoothGrad(noise=sigma, samples=2000).explain(model, x, torch.zeros(50, dtype=torch.int64), rng())
    w = model.w.detach()
    width = math.sqrt(s**2 + sigma**2 * float(w.square().sum()))
    truth = (w * torch.from_numpy(norm.pdf((x.flatten(1) @ w / width).numpy()))[:, None] / width).abs()
    assert got.stderr is not None
    off = got.maps.double().flatten(1) - truth
    assert float((off.abs() - 5 * got.stderr.double().flatten(1)).max()) < 1e-6
    pointed = w / s * torch.from_numpy(norm.pdf((x.flatten(1) @ w / s).numpy()))[:, None]  # without smoothing
    assert float((pointed.abs() - truth).abs().max()) > 0.1


def test_draws_belong_to_the_image_and_the_seed() -> None:
    images = torch.rand(3, 1, 8, 8, generator=rng(1))
    draws = ImageNoise(images, 5).take(9)
    parts = ImageNoise(images.flip(0), 5)
    assert torch.equal(torch.cat([parts.take(4), parts.take(5)], dim=1).flip(0), draws)
    assert torch.equal(ImageNoise(images.double(), 5).take(9).float(), draws)
    assert not torch.equal(ImageNoise(images, 6).take(9), draws)
    assert len({float(image[0, 0, 0, 0]) for image in draws}) == 3


def test_draws_are_standard_normal() -> None:
    draws = ImageNoise(torch.rand(20, 1, 8, 8, generator=rng(1)), 5).take(20).flatten().numpy()
    assert kstest(draws, "norm").pvalue > 1e-3
    assert kstest(draws.clip(-1.5, 1.5), "norm").pvalue < 1e-3
    assert kstest(1.05 * draws, "norm").pvalue < 1e-3
