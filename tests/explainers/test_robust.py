"""RobustTopK: what it returns, what it refuses, and that it is what the derivation is about."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers import BUILTIN, RobustTopK, certified_overlap, robust
from counterpoise.explainers._noise import ImageNoise
from counterpoise.interface import Explainer, Trained
from counterpoise.record import Certificate
from counterpoise.testing import check_explainer


def rng(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(channels: int = 1, side: int = 8) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 3, padding=1), nn.Tanh(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(6 * side * side, 3)
    )


def some(n: int = 2, channels: int = 1, side: int = 8) -> tuple[Tensor, Tensor]:
    return torch.rand(n, channels, side, side, generator=rng(7)), torch.randint(3, (n,), generator=rng(8))


class Peaked(nn.Module):
    """A network whose gradient is large on the first pixels: its certificates are comfortable."""

    def forward(self, images: Tensor) -> Tensor:
        weights = torch.linspace(9, 0, images[0].numel()).exp()
        scores = (images.flatten(1) * weights + 0.02 * weights * torch.sin(20 * images.flatten(1))).sum(1)
        return torch.stack([scores, -scores, 0 * scores], 1)


def certificates(explainer: RobustTopK, model: nn.Module, images: Tensor, target: Tensor) -> list[Certificate]:
    found = explainer.explain(model, images, target, rng()).certificates
    assert found is not None
    return [certificate for certificate in found if certificate is not None]


@pytest.mark.parametrize(
    "explainer",
    [
        RobustTopK(samples=40),
        RobustTopK(samples=40, scoring="sigmoid", distribution="laplace", noise=0.1, channels="each"),
        RobustTopK(samples=40, block=2, k=3, norm="linf"),
    ],
)
def test_it_keeps_an_explainers_promises(explainer: RobustTopK) -> None:
    check_explainer(explainer)


def test_the_map_is_the_mean_of_scored_ranks() -> None:
    model, (images, target) = network().eval(), some()
    found = RobustTopK(noise=0.3, samples=50, k=5).explain(model, images, target, rng(9))
    for i in range(len(images)):
        noisy = images[i] + 0.3 * ImageNoise(images[i : i + 1], 9).take(50)[0]
        counts = torch.zeros(64)
        for x in noisy:
            pixels = x[None].clone().requires_grad_(True)
            model(pixels)[0, target[i]].backward()
            assert pixels.grad is not None
            counts[pixels.grad.abs().flatten().topk(5).indices] += 1
        torch.testing.assert_close(found.maps[i].flatten(), counts / 50 / 5, rtol=0, atol=1e-7)
    assert float(found.maps.sum()) == pytest.approx(2, abs=1e-5)
    assert found.stderr is not None
    shares = found.maps * 5
    torch.testing.assert_close(found.stderr, (shares * (1 - shares) / 49).sqrt() / 5, rtol=1e-4, atol=1e-7)


def test_units_are_pixels_channels_or_blocks() -> None:
    model, (images, target) = network(3), some(2, 3)
    for options, units in (({}, 64), ({"channels": "each"}, 192), ({"block": 4}, 4), ({"block": 2}, 16)):
        explainer = RobustTopK(samples=5, k=2, **options)
        found = explainer.explain(model, images, target, rng())
        assert found.maps.shape == (2, 8, 8)
        assert found.certificates is not None
        assert all(c is not None and len(c.low) == units for c in found.certificates)
    blocks = RobustTopK(samples=5, k=2, block=4).explain(model, images, target, rng()).maps
    assert torch.equal(blocks, blocks[:, ::4, ::4].repeat_interleave(4, 1).repeat_interleave(4, 2))


def test_a_certificate_says_what_it_is_about() -> None:
    images, target = some(1)
    (one,) = certificates(RobustTopK(noise=0.5, samples=300, k=8, beta=0.8), Peaked(), images, target * 0)
    assert (one.norm, one.k, one.beta, one.confidence, one.samples) == ("l2", 8, Fraction(4, 5), 0.95, 300)
    assert (one.noise, one.distribution, one.abstained, one.sound) == (0.5, "gaussian", False, True)
    assert one.top == tuple(range(8))
    assert one.radius > 0.1
    assert len(one.low) == len(one.high) == 64
    assert all(low <= high for low, high in zip(one.low, one.high, strict=True))


def test_more_samples_certify_more_and_few_abstain() -> None:
    model, (images, target) = network(), some(3)
    radii = [
        [c.radius for c in certificates(RobustTopK(samples=n, k=16, beta=0.5), model, images, target)]
        for n in (2, 200, 2000)
    ]
    assert radii[0] == [0, 0, 0]
    assert all(few <= many for few, many in zip(radii[1], radii[2], strict=True))
    (abstained, *_) = certificates(RobustTopK(samples=2), model, images, target)
    assert abstained.abstained


def test_a_radius_is_stated_in_each_norm_and_units_of_noise() -> None:
    images, target = some(1)
    explainer = RobustTopK(noise=0.5, samples=200, k=8)
    (l2,) = certificates(explainer, Peaked(), images, target * 0)
    (linf,) = certificates(replace(explainer, norm="linf"), Peaked(), images, target * 0)
    assert linf.radius == pytest.approx(l2.radius / 8)
    assert linf.norm == "linf"
    (l1,) = certificates(replace(explainer, distribution="laplace", noise=0.3), Peaked(), images, target * 0)
    assert l1.norm == "l1"
    assert l1.radius > 0


def test_the_better_bound_counts_and_is_named() -> None:
    model, (images, target) = network(), some(3)
    explainer = RobustTopK(samples=1500, k=16)
    best, renyi, pearson, printed = (
        certificates(replace(explainer, bound=bound), model, images, target)
        for bound in ("best", "renyi", "neyman-pearson", "published")
    )
    for b, r, n, p in zip(best, renyi, pearson, printed, strict=True):
        assert b.radius == max(r.radius, n.radius)
        assert b.bound == ("renyi" if r.radius > n.radius else "neyman-pearson")
        assert p.bound == "published"
        assert not p.sound
        assert b.sound


def test_the_inverse_gives_the_share_that_stays() -> None:
    images, target = some(1)
    explainer = RobustTopK(noise=0.5, samples=400, k=10)
    (one,) = certificates(explainer, Peaked(), images, target * 0)
    shares = [certified_overlap(explainer, images[0], one, radius) for radius in (0.01, 0.1, 0.3, 0.6, 1.0, 50.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.5
    assert shares[-1] == 0
    assert certified_overlap(explainer, images[0], one, one.radius) >= one.beta
    for tenths in range(1, 11):
        beta = Fraction(tenths, 10)
        (other,) = certificates(replace(explainer, beta=beta), Peaked(), images, target * 0)
        assert other.low == one.low
        if other.radius > 0:
            assert certified_overlap(explainer, images[0], one, other.radius) >= beta
            assert certified_overlap(explainer, images[0], one, other.radius * 1.001) < beta


def test_where_there_is_no_room_outside_the_rest_stays_whatever_happens() -> None:
    images, target = some(1)
    explainer = RobustTopK(samples=50, k=48, beta=0.9)
    (one,) = certificates(explainer, network(), images, target)
    assert certified_overlap(explainer, images[0], one, 1e6) == Fraction(32, 48)


def test_sampling_stops_early_where_enough_is_certified() -> None:
    images, target = some(1)
    explainer = RobustTopK(noise=0.5, samples=6400, k=8, enough=0.2)
    (one,) = certificates(explainer, Peaked(), images, target * 0)
    assert one.samples < 6400
    assert one.radius >= 0.2
    (never,) = certificates(replace(explainer, samples=400, enough=1e3), Peaked(), images, target * 0)
    (all_at_once,) = certificates(replace(explainer, samples=400, enough=None), Peaked(), images, target * 0)
    assert never.samples == 400
    # Looking was not free.
    assert never.radius < all_at_once.radius


def test_memory_does_not_grow_with_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(robust, "CHUNK_VALUES", 640)
    model, (images, target) = network(), some(3)
    model.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].numel()))
    whole = RobustTopK(samples=95).explain(model, images, target, rng())
    assert max(seen) <= 640
    monkeypatch.setattr(robust, "CHUNK_VALUES", 10**6)
    torch.testing.assert_close(RobustTopK(samples=95).explain(model, images, target, rng()).maps, whole.maps)


def test_dropout_is_off_while_it_explains() -> None:
    model, (images, target) = network().train(), some()
    found = RobustTopK(samples=20).explain(Trained(model, nn.Identity()), images, target, rng())
    assert torch.equal(found.maps, RobustTopK(samples=20).explain(model.eval(), images, target, rng()).maps)


class Restless(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.inner(nn.functional.dropout(images, 0.5, training=True))
        return result


def test_a_model_that_draws_or_mixes_is_refused() -> None:
    images, target = some()
    with pytest.raises(InputError, match=r"gives two maps for one image: it draws random numbers \(dropout that stays"):
        RobustTopK().explain(Restless(network()), images, target, rng())
    torch.manual_seed(0)
    mixing = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.Flatten(), nn.Linear(144, 3)
    )
    with pytest.raises(InputError, match="depends on the images beside it"):
        RobustTopK().explain(mixing, images, target, rng())


BAD: list[tuple[dict[str, Any], str]] = [
    ({"beta": 0}, r"beta=0 must be a share above 0 and at most 1"),
    ({"beta": 1.2}, r"beta=1.2 must be a share above 0"),
    ({"beta": "half"}, r"beta='half' must be a share"),
    ({"noise": 0}, r"noise=0 must be a number above 0"),
    ({"noise": math.nan}, r"noise=nan must be a number above 0"),
    ({"noise": "15%"}, r"noise='15%' must be a number of \[0, 1\] pixels, the same for every image: noise tied to"),
    ({"noise": lambda x: 0.1 * (x.max() - x.min())}, r"noise tied to an image's range moves with the attack"),
    ({"k": 0}, r"k=0 must be a whole number, 1 or above"),
    ({"confidence": 1}, r"confidence=1 must be a number strictly between 0 and 1"),
    ({"scoring": "ramp"}, r"scoring='ramp' must be one of 'sigmoid', 'step'"),
    ({"bound": "any"}, r"bound='any' must be one of"),
    ({"distribution": "uniform"}, r"distribution='uniform' must be one of 'gaussian', 'laplace'"),
    ({"norm": "l1"}, r"norm='l1' cannot be had with gaussian noise"),
    ({"norm": "l2", "distribution": "laplace"}, r"norm='l2' cannot be had with laplace noise"),
    ({"bound": "published", "distribution": "laplace"}, r"bound='published' is kept for Gaussian noise only"),
    ({"enough": -1}, r"enough=-1 must be a number above 0"),
]


@pytest.mark.parametrize(("options", "told"), BAD)
def test_wrong_settings_are_told_in_a_sentence(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        RobustTopK(**options)


def test_wrong_requests_are_told_in_a_sentence() -> None:
    model, (images, target) = network(), some()
    for options, told in (
        ({"k": 64}, "k=64 must be below the 64 units of a map"),
        ({"k": 60}, "k=60 of 64 units with beta=1/2 is met by any map"),
        ({"block": 3}, "block=3 must divide the image of 8 x 8 pixels"),
    ):
        with pytest.raises(InputError, match=told):
            RobustTopK(**options).explain(model, images, target, rng())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"images must lie in \[0, 1\]: the radius is stated there"):
        RobustTopK().explain(model, images * 2 - 1, target, rng())
    with pytest.raises(InputError, match="radius=0 must be a number above 0"):
        certified_overlap(RobustTopK(), images[0], certificates(RobustTopK(), model, images, target)[0], 0)


def test_one_unit_on_the_brink_is_no_reason_to_refuse_a_model() -> None:
    """What was met on an attacked image: one ReLU whose input rounding moved across 0, and with it the whole map."""

    class Brink(nn.Module):
        def __init__(self, everywhere: bool) -> None:
            super().__init__()
            self.everywhere = everywhere

        def forward(self, images: Tensor) -> Tensor:
            rounding = 1e-9 * (len(images) - 1)
            edge = images.flatten(1)[:, :1].detach() if self.everywhere else 0.5
            unit = torch.relu(images.flatten(1)[:, :1] - edge + rounding)
            return images.flatten(1)[:, :3] + unit

    images, target = torch.full((1, 1, 8, 8), 0.5), torch.tensor([1])
    explainer = RobustTopK(samples=20, k=4)
    alone, beside = (explainer.unit_maps(Brink(False), images.repeat(n, 1, 1, 1), target.repeat(n))[0] for n in (1, 2))
    assert float(alone[0]) != float(beside[0])
    assert explainer.explain(Brink(False), images, target, rng()).certificates is not None
    with pytest.raises(InputError, match="map of an image depends on the images beside it"):
        explainer.explain(Brink(True), images, target, rng())


def test_what_does_not_fit_the_network_is_told_before_any_training() -> None:
    explainer, shape = RobustTopK(k=4), (1, 8, 8)
    explainer.check_model(network(), shape)
    with pytest.raises(InputError, match="k=64 must be below the 64 units of a map"):
        RobustTopK(k=64).check_model(network(), shape)
    with pytest.raises(InputError, match="block=3 must divide the image of 8 x 8 pixels"):
        RobustTopK(k=4, block=3).check_model(network(), shape)

    class Draws(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return (images * torch.rand_like(images)).flatten(1)[:, :3]

    with pytest.raises(InputError, match="the model gives two maps for one image: it draws random numbers"):
        explainer.check_model(Draws(), shape)


def test_laplace_draws_belong_to_the_image_too() -> None:
    images = some(2)[0]
    whole = ImageNoise(images, 1, "laplace").take(4000)
    stream = ImageNoise(images, 1, "laplace")
    assert torch.equal(whole[:, :3], stream.take(3))
    assert torch.equal(whole[:, 3:5], stream.take(2))
    assert float(whole.abs().mean()) == pytest.approx(1, abs=0.02)
    assert float(whole.std()) == pytest.approx(2**0.5, abs=0.03)


def test_it_is_a_built_in_explainer_made_from_its_degree() -> None:
    cls: Any = BUILTIN["robust-topk"]
    made = cls(**{RobustTopK.degree_field: 0.4}, k=3)
    assert made == RobustTopK(noise=0.4, k=3)
    assert isinstance(made, Explainer)


def test_the_certificate_is_a_plain_record() -> None:
    import subprocess
    import sys

    code = "import sys, counterpoise.record as r; r.Certificate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    fields = set(Certificate.__dataclass_fields__)
    assert "epsilon" not in fields
    assert np.isfinite(certificates(RobustTopK(), network(), *some())[0].radius)
