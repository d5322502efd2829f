"""SmoothGrad-squared, VarGrad and the adaptive stop: exact laws of the quadratic model by z-tests, and parity."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import torch
from captum.attr import NoiseTunnel, Saliency
from quadratic import PIXELS, SIDE, Quadratic, rng
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.explainers import SmoothGrad, SmoothGradSquared, VarGrad
from counterpoise.explainers._moments import Moments
from counterpoise.explainers._noise import ImageNoise
from counterpoise.interface import Explanation

IMAGES, NOISE = 1200, 0.3


def explained(kind: type[Any], b: float = 9.0, **options: Any) -> tuple[Quadratic, Tensor, Explanation]:
    model = Quadratic(b)
    x = torch.rand(IMAGES, 1, SIDE, SIDE, generator=rng(5)).double()
    asked = torch.ones(IMAGES, dtype=torch.int64)
    return model, x, kind(**{"noise": NOISE, "samples": 40, **options}).explain(model, x, asked, rng())


def z_scores(found: Explanation, truth: Tensor, variance: Tensor) -> Tensor:
    """Of each pixel's mean over the images, whose maps are independent and have this known variance."""
    off = (found.maps.double().flatten(1) - truth).mean(0)
    return off / (variance.mean(0) / IMAGES).sqrt()


def squared_law() -> tuple[Tensor, Tensor]:
    """Of g = m + s z, E g^2 = m^2 + s^2 and Var g^2 = 4 m^2 s^2 + 2 s^4. A large s shows a wrong one soon."""
    model, x, found = explained(SmoothGradSquared, b=0, noise=1, samples=10)
    mean, s2 = model.gradient(x), _variances(model, 1).expand(IMAGES, PIXELS)
    law = (4 * mean.square() * s2 + 2 * s2.square()) / 10
    assert found.stderr is not None
    return z_scores(found, mean.square() + s2, law), found.stderr.double().flatten(1).square().mean(0) / law.mean(0)


def variance_law() -> tuple[Tensor, Tensor]:
    """The unbiased variance of n normal draws has mean s^2 and variance 2 s^4 / (n - 1)."""
    model, _, found = explained(VarGrad)
    s2 = _variances(model, NOISE).expand(IMAGES, PIXELS)
    law = 2 * s2.square() / 39
    assert found.stderr is not None
    return z_scores(found, s2, law), found.stderr.double().flatten(1).square().mean(0) / law.mean(0)


def _variances(model: Quadratic, noise: float) -> Tensor:
    a = model.a.detach()
    return noise**2 * (a @ a).diagonal()[None]


LAWS = {"squared": squared_law, "variance": variance_law}


@pytest.mark.parametrize("law", LAWS)
def test_the_law_of_the_quadratic_model_holds(law: str) -> None:
    z, errors = LAWS[law]()
    assert float(z.abs().max()) < 4.4
    assert float((errors - 1).abs().max()) < 0.15  # estimates, VarGrad's slightly small


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda z: 1.5 * z,
        lambda z: torch.cat([z[:, :-1], 0 * z[:, -1:]], dim=1),
        lambda z: z * torch.rand(len(z), 1, 1, 1, 1, generator=rng(1)).add(0.5),
    ],
    ids=["half as wide again", "one sample without noise", "tied to the image"],
)
def test_a_nearby_wrong_noise_is_told(
    law: str, spoil: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ImageNoise.take
    monkeypatch.setattr(ImageNoise, "take", lambda self, samples: spoil(right(self, samples)))
    z, _ = LAWS[law]()
    assert float(z.abs().max()) > 4.4


def test_the_biased_variance_would_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Moments.variance
    monkeypatch.setattr(Moments, "variance", lambda self: right(self) * (self.count - 1) / self.count)
    z, _ = variance_law()
    assert float(z.abs().max()) > 4.4


@pytest.mark.parametrize(("kind", "theirs"), [(SmoothGradSquared, "smoothgrad_sq"), (VarGrad, "vargrad")])
def test_agrees_with_captum(kind: type[Any], theirs: str) -> None:
    model, samples = Quadratic(), 4000
    x = torch.rand(2, 1, SIDE, SIDE, generator=rng(5)).double()
    ours = kind(noise=NOISE, samples=samples).explain(model, x, torch.ones(2, dtype=torch.int64), rng())
    torch.manual_seed(4)
    other = NoiseTunnel(Saliency(model)).attribute(
        x.clone(), nt_type=theirs, nt_samples=samples, stdevs=NOISE, target=1, abs=False
    )
    assert ours.stderr is not None
    off = (ours.maps - other.detach()[:, 0].float()).abs() / ours.stderr
    assert float(off.max()) < 6


def test_moments_are_the_samples_own_also_in_parts_and_merged() -> None:
    samples = torch.randn(3, 17, 2, 2, generator=rng(1), dtype=torch.float64) + 1e4
    moments = Moments(4)
    moments.add(samples[:, :5])
    half = Moments(4, moments.pilot)
    half.add(samples[:, 5:9])
    half.add(samples[:, 9:])
    both = moments.merged(half).of(torch.tensor([False, True, True]))
    assert both.count == 17
    torch.testing.assert_close(both.mean(), samples[1:].mean(1))
    torch.testing.assert_close(both.variance(), samples[1:].var(1))
    centred = samples[1:] - samples[1:].mean(1, keepdim=True)
    truth = ((centred**4).mean(1) - 14 / 16 * samples[1:].var(1) ** 2) / 17
    torch.testing.assert_close(both.error_of_variance(), truth.sqrt())


def test_without_noise_the_squared_map_is_the_gradients_square_and_the_variance_is_nothing() -> None:
    model, x, squared = explained(SmoothGradSquared, noise=0)
    torch.testing.assert_close(squared.maps.flatten(1), model.gradient(x).square().float())
    assert float(explained(VarGrad, noise=0)[2].maps.abs().max()) == 0
    with pytest.raises(InputError, match="samples=1 must be a whole number, 2 or above"):
        VarGrad(samples=1)


def test_draws_go_on_until_the_top_is_stable_and_not_longer() -> None:
    model = Quadratic()
    x = torch.rand(30, 1, SIDE, SIDE, generator=rng(5)).double()
    asked = torch.ones(30, dtype=torch.int64)
    free = SmoothGrad(noise=NOISE, samples=512, stable_top=0.34, agreement=1)
    found = free.explain(model, x, asked, rng())
    assert found.drawn is not None
    assert found.samples == 512
    assert set(found.drawn.tolist()) <= {16, 32, 64, 128, 256, 512}
    assert len(set(found.drawn.tolist())) > 2
    for image, count in enumerate(found.drawn.tolist()):
        one = SmoothGrad(noise=NOISE, samples=count).explain(model, x[[image]], asked[:1], rng())
        torch.testing.assert_close(found.maps[[image]], one.maps, rtol=1e-5, atol=1e-6)
        if count < 512:  # its halves agree, and would not have agreed a doubling earlier
            assert _halves_agree(model, x[image], count)
        if count > 16:
            assert not _halves_agree(model, x[image], count // 2)
    alone = free.explain(model, x[3:4], asked[:1], rng())
    assert alone.drawn is not None
    assert int(alone.drawn) == int(found.drawn[3])
    sure = SmoothGrad(noise=0.001, samples=512, stable_top=0.34).explain(model, x, asked, rng())
    assert sure.drawn is not None
    assert float(sure.drawn.double().mean()) < 40


def _halves_agree(model: Quadratic, image: Tensor, count: int) -> bool:
    draws = ImageNoise(image[None], 3).take(count)[0].flatten(1).double()
    gradients = (model.gradient(image[None]) + NOISE * draws @ model.a.detach()).view(2, count // 2, PIXELS).mean(1)
    one, two = (set(half.abs().topk(3).indices.tolist()) for half in gradients)
    return one == two


def test_degrees_together_stop_where_each_alone_would() -> None:
    model = Quadratic()
    x = torch.rand(5, 1, SIDE, SIDE, generator=rng(5)).double()
    asked = torch.ones(5, dtype=torch.int64)
    degrees = [Decimal("0"), Decimal("0.1"), Decimal("0.5")]
    together = SmoothGrad(samples=100, stable_top=0.3).explain_degrees(degrees, model, x, asked, rng())
    for degree, found in zip(degrees, together, strict=True):
        alone = SmoothGrad(degree, 100, 0.3).explain(model, x, asked, rng())
        torch.testing.assert_close(found.maps, alone.maps)
        assert degree == 0 or torch.equal(*(e.drawn for e in (found, alone) if e.drawn is not None))


def test_wrong_stops_are_told_and_progress_is_heard() -> None:
    with pytest.raises(InputError, match="stable_top=0 must be a number strictly between 0 and 1"):
        SmoothGrad(stable_top=0)
    with pytest.raises(InputError, match=r"agreement=2 must be a number in \[0, 1\]"):
        SmoothGrad(agreement=2)
    heard: list[float] = []
    x = torch.rand(40, 1, SIDE, SIDE, generator=rng(5)).double()
    asked = torch.ones(40, dtype=torch.int64)
    SmoothGrad(samples=200_000 // 40).explain(Quadratic(), x, asked, rng(), progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1
    assert math.isclose(heard[0], 1 / len(heard))
