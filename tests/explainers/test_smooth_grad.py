"""SmoothGrad against captum, and how it treats batches, chunks and the model. Its noise has a file of its own."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from captum.attr import NoiseTunnel, Saliency
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers import BUILTIN, SmoothGrad, _probe
from counterpoise.explainers._noise import ImageNoise
from counterpoise.interface import Explainer, SharesDraws, Trained


def rng(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(channels: int = 1, side: int = 8, classes: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.Softplus(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(4 * side * side, classes),
    )


def some(n: int, channels: int = 1, side: int = 8, seed: int = 7) -> tuple[Tensor, Tensor]:
    return torch.rand(n, channels, side, side, generator=rng(seed)), torch.randint(3, (n,), generator=rng(seed + 1))


def test_agrees_with_captum() -> None:
    model = network(channels=2).double().eval()
    images, target = some(3, channels=2)
    images = images.double()
    sigma, samples = 0.2, 3000
    ours = SmoothGrad(noise=sigma, samples=samples).explain(model, images, target, rng())
    torch.manual_seed(4)
    theirs = NoiseTunnel(Saliency(model)).attribute(
        images.clone(), nt_type="smoothgrad", nt_samples=samples, nt_samples_batch_size=500, stdevs=sigma,
        target=target, abs=False,
    )  # fmt: skip
    assert ours.stderr is not None
    off = (ours.maps.double() - theirs.detach().abs().sum(1)).abs()
    assert float((off / ours.stderr.double()).max()) < 6
    assert float(off.max() / ours.maps.max()) < 0.05


def test_agrees_with_captum_on_the_same_draws() -> None:
    model = network().double().eval()
    images, target = some(2)
    images = images.double()
    noisy = images[:, None] + 0.2 * ImageNoise(images, 3).take(10)
    pixels = noisy.flatten(0, 1).requires_grad_(True)
    theirs = Saliency(model).attribute(pixels, target.repeat_interleave(10), abs=False)
    truth = theirs.detach().view(noisy.shape).mean(1).abs().sum(1)
    ours = SmoothGrad(noise=0.2, samples=10).explain(model, images, target, rng(3))
    torch.testing.assert_close(ours.maps, truth.float(), rtol=1e-6, atol=0)


def test_degree_0_is_the_plain_gradient() -> None:
    model, (images, target) = network().eval(), some(4)
    pixels = images.clone().requires_grad_(True)
    model(pixels).gather(1, target[:, None]).sum().backward()
    assert pixels.grad is not None
    got = SmoothGrad(noise=0).explain(model, images, target, rng())
    torch.testing.assert_close(got.maps, pixels.grad.abs().sum(1), rtol=1e-5, atol=1e-7)
    assert got.stderr is not None
    assert float(got.stderr.max()) == 0


def test_the_score_is_the_logit_of_the_asked_class() -> None:
    model, (images, _) = network().eval(), some(2)
    maps = [SmoothGrad(noise=0.1).explain(model, images, torch.full((2,), c), rng()).maps for c in range(3)]
    assert not torch.allclose(maps[0], maps[1])
    assert not torch.allclose(maps[1], maps[2])


def test_all_degrees_at_once_equal_one_by_one_and_share_their_draws() -> None:
    model, (images, target) = network(channels=3), some(5, channels=3)
    degrees = [Decimal("0"), Decimal("0.1"), Decimal("0.5"), Decimal("1")]
    together = SmoothGrad(samples=7).explain_degrees(degrees, model, images, target, rng())
    for degree, found in zip(degrees, together, strict=True):
        alone = SmoothGrad(noise=degree, samples=7).explain(model, images, target, rng())
        torch.testing.assert_close(found.maps, alone.maps, rtol=1e-6, atol=1e-8)
        assert found.stderr is not None
        assert alone.stderr is not None
        torch.testing.assert_close(found.stderr, alone.stderr, rtol=1e-5, atol=1e-8)
        assert found.samples == 7


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 5), channels=st.integers(1, 3), side=st.integers(2, 6), samples=st.integers(1, 9),
    chunk=st.integers(1, 500),
)  # fmt: skip
def test_maps_do_not_depend_on_chunks_batch_or_position(
    n: int, channels: int, side: int, samples: int, chunk: int
) -> None:
    model, (images, target) = network(channels, side), some(n, channels, side)
    explainer = SmoothGrad(noise=0.3, samples=samples)
    whole = explainer.explain(model, images, target, rng())
    assert whole.maps.shape == (n, side, side)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_probe, "FAST", 10 * chunk)
        patch.setattr(_probe, "ENOUGH", 1)
        chunked = explainer.explain(model, images, target, rng())
    backwards = explainer.explain(model, images.flip(0), target.flip(0), rng())
    alone = explainer.explain(model, images[:1], target[:1], rng())
    for maps in (chunked.maps, backwards.maps.flip(0)):
        torch.testing.assert_close(maps, whole.maps, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(alone.maps, whole.maps[:1], rtol=1e-5, atol=1e-6)


def test_memory_does_not_grow_with_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_probe, "FAST", 10_000)
    monkeypatch.setattr(_probe, "ENOUGH", 1)
    images, target = some(12)
    most = []
    for samples in (5, 50, 200):
        model, seen = network(), [0]
        model.register_forward_pre_hook(lambda module, inputs, seen=seen: seen.append(len(inputs[0])))
        SmoothGrad(samples=samples).explain_degrees([Decimal("0.1"), Decimal("0.2")], model, images, target, rng())
        most.append(max(seen))
    assert most == [5, 7, 7]  # rows of 1,347 activations each


def test_stderr_shrinks_with_the_root_of_the_samples_and_is_absent_for_one() -> None:
    model, (images, target) = network(), some(4)
    few, many = (SmoothGrad(noise=0.3, samples=n).explain(model, images, target, rng()) for n in (50, 800))
    assert few.stderr is not None
    assert many.stderr is not None
    assert float(few.stderr.mean() / many.stderr.mean()) == pytest.approx(4, rel=0.1)
    assert SmoothGrad(noise=0.3, samples=1).explain(model, images, target, rng()).stderr is None


class FailsAtTheSecondCall(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.calls = inner, 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == 2:
            raise RuntimeError("out of luck")
        result: Tensor = self.inner(images)
        return result


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_given_back_as_it_was_found(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_probe, "FAST", 64)
    monkeypatch.setattr(_probe, "ENOUGH", 1)
    inner = network()
    first, last = inner[0], inner[5]
    assert isinstance(first, nn.Conv2d)
    assert isinstance(last, nn.Linear)
    model = FailsAtTheSecondCall(inner) if fails else inner
    model.train()
    inner[1].eval()
    first.weight.requires_grad_(False)
    last.weight.grad = torch.ones_like(last.weight)
    last.register_forward_hook(lambda module, inputs, logits: None)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    images, target = some(3)
    if fails:
        with pytest.raises(RuntimeError, match="out of luck"):
            SmoothGrad().explain(model, images, target, rng())
    else:
        SmoothGrad().explain(Trained(model, nn.Identity()), images, target, rng())
    assert [module.training for module in inner] == [True, False, True, True, True, True]
    assert [p.requires_grad for p in inner.parameters()] == [False, True, True, True, True, True]
    assert [p.grad is not None for p in inner.parameters()] == [False, False, False, False, True, False]
    assert torch.equal(last.weight.grad, torch.ones_like(last.weight))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not images.requires_grad
    assert [len(module._forward_hooks) for module in inner] == [0, 0, 0, 0, 0, 1]


def test_it_explains_where_gradients_are_off() -> None:
    model, (images, target) = network(), some(2)
    with torch.no_grad():
        assert float(SmoothGrad().explain(model, images, target, rng()).maps.sum()) > 0


def test_wrong_settings_and_requests_are_told_in_a_sentence() -> None:
    model, (images, target) = network(), some(2)
    with pytest.raises(InputError, match=r"noise=1.2 must be a number in \[0, 1\]"):
        SmoothGrad(noise=1.2)
    with pytest.raises(InputError, match="noise=nan must be"):
        SmoothGrad(noise=math.nan)
    with pytest.raises(InputError, match="samples=0 must be a whole number, 1 or above"):
        SmoothGrad(samples=0)
    with pytest.raises(InputError, match=r"noise=Decimal\('-0.1'\) must be"):
        SmoothGrad().explain_degrees([Decimal("-0.1")], model, images, target, rng())
    with pytest.raises(InputError, match=r"images must be at least one, and floating point .* \[0, 1, 8, 8\]"):
        SmoothGrad().explain(model, images[:0], target[:0], rng())
    with pytest.raises(InputError, match="one int64 class index for each of the 2 images"):
        SmoothGrad().explain(model, images, target[:1], rng())


def test_the_code_of_the_docs_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explainers.md").read_text()
    codes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(codes) == 3
    images, target = some(2)
    names: dict[str, Any] = {"trained": Trained(network(), nn.Identity()), "images": images, "target": target}
    for code in codes:
        exec(code, names)
    assert names["found"].maps.shape == names["found"].stderr.shape == (2, 8, 8)


def test_it_is_a_built_in_explainer_made_from_its_degree() -> None:
    cls: Any = BUILTIN["smoothgrad"]
    made = cls(**{SmoothGrad.degree_field: Decimal("0.4")}, samples=9)
    assert made == SmoothGrad(noise=Decimal("0.4"), samples=9)
    assert isinstance(made, Explainer)
    assert isinstance(made, SharesDraws)
