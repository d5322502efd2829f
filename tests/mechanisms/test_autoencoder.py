"""The autoencoder against principal components, its exact code size, and what it must not claim."""

from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Images, Recipe, Task, Trained
from counterpoise.mechanisms._codec import Codec, patches_a_side, principal_axes
from counterpoise.mechanisms.autoencoder import Autoencoder
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.record import Guarantee
from counterpoise.training import apply, generator, seeded


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = Digits().load()
    train = train.take(torch.arange(0, len(train), 3))
    return Task(train, test, "digit", MODELS["small-cnn"], Recipe(epochs=5, batch=32, learning_rate=0.1, momentum=0.9))


def mse(release: nn.Module, images: Images) -> float:
    return float(nn.functional.mse_loss(apply(release, images.pixels), images.pixels))


def started(pixels: torch.Tensor, units: int) -> Codec:
    channels, height, width = pixels.shape[1:]
    codec = Codec((channels, height, width), units, generator(0))
    codec.start(pixels, generator(1))
    return codec


@pytest.mark.parametrize("units", [1, 5, 16, 63])
def test_the_start_is_the_principal_component_analysis(units: int, task: Task) -> None:
    from sklearn.decomposition import PCA

    flat = task.train.pixels.flatten(1).numpy()
    reference = PCA(units).fit(flat)
    expected = torch.from_numpy(reference.inverse_transform(reference.transform(flat))).clamp(0, 1)
    ours = apply(started(task.train.pixels, units), task.train.pixels).flatten(1)
    assert torch.allclose(ours, expected, atol=1e-4)


def test_training_improves_on_principal_components_and_more_units_on_fewer(task: Task) -> None:
    errors = []
    for ratio in ("0.05", "0.2", "0.6"):
        untrained = Autoencoder(Decimal(ratio), steps=0).train(task, generator(0))
        trained = Autoencoder(Decimal(ratio), steps=400).train(task, generator(0))
        assert mse(trained.release, task.train) < 0.8 * mse(untrained.release, task.train)
        assert mse(trained.release, task.test) < mse(untrained.release, task.test)
        assert trained.facts["reconstruction_mse"] == pytest.approx(mse(trained.release, task.train), rel=1e-4)
        errors.append(mse(trained.release, task.test))
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("steps", [0, 100])
def test_the_whole_image_as_code_keeps_the_image(steps: int, task: Task) -> None:
    """Training must not shake what is already perfect."""
    trained = Autoencoder(Decimal(1), steps=steps).train(task, generator(0))
    assert torch.allclose(trained.release(task.test.pixels), task.test.pixels, atol=1e-4)


@pytest.mark.parametrize(
    ("ratio", "shape", "units"),
    [
        ("0.0102", (1, 28, 28), 8),
        ("0.7857", (1, 28, 28), 616),
        ("0.0035", (1, 48, 48), 8),
        ("1", (3, 32, 32), 3072),
        ("0.000001", (1, 8, 8), 1),
        ("0.0078125", (1, 8, 8), 1),
        ("0.0234375", (1, 8, 8), 2),
    ],
)
def test_the_code_size_is_the_ratio_rounded(ratio: str, shape: tuple[int, int, int], units: int) -> None:
    assert Autoencoder(Decimal(ratio)).units(shape) == units


@settings(deadline=None, max_examples=40)
@given(
    channels=st.sampled_from([1, 3]),
    height=st.integers(1, 50),
    width=st.integers(1, 50),
    share=st.floats(0, 1),
)
def test_the_code_has_exactly_the_units_and_the_image_keeps_its_shape(
    channels: int, height: int, width: int, share: float
) -> None:
    shape = (channels, height, width)
    units = max(1, round(share * prod(shape)))
    codec = Codec(shape, units, generator(0))
    pixels = torch.rand(2, *shape, generator=generator(1))
    code = codec.encode(pixels)
    assert code.shape == (2, units)
    back = codec.decode(code)
    assert back.shape == pixels.shape
    assert float(back.detach().min()) >= 0
    assert float(back.detach().max()) <= 1
    assert torch.allclose(codec._join(codec._cut(pixels)), pixels)


def test_every_unit_of_the_code_is_used_and_nothing_passes_beside_it() -> None:
    shape = (1, 40, 44)
    codec = started(torch.rand(30, *shape, generator=generator(0)), 1500)
    assert codec.side > 1
    code = codec.encode(torch.rand(1, *shape, generator=generator(2))).detach()
    jacobian = torch.func.jacrev(lambda c: codec.decode(c).flatten())(0.1 * code)
    touched = jacobian.reshape(prod(shape), 1500).abs().amax(0)
    assert bool((touched > 0).all())
    blind = codec.decode(torch.zeros(2, 1500))
    assert torch.equal(blind[0], blind[1])


def test_large_images_are_cut_into_patches() -> None:
    assert patches_a_side((3, 32, 32), 3072) == 1
    assert patches_a_side((1, 33, 20), 100) == 2
    assert patches_a_side((1, 48, 48), 8) == 2
    assert patches_a_side((1, 48, 48), 3) == 1
    assert patches_a_side((3, 128, 128), 500) == 4
    whole = patches_a_side((3, 128, 128), 3 * 128 * 128)
    assert 2 * (3 * 128 * 128) ** 2 / whole**4 <= 4_000_000 < 2 * (3 * 128 * 128) ** 2 / (whole - 1) ** 4


def test_patches_share_their_weights() -> None:
    """A convolution: away from the neighbours' influence, the same patch has the same code everywhere."""
    codec = Codec((1, 128, 128), 160, generator(0))
    patch = torch.rand(1, 1, 32, 32, generator=generator(1))
    code = codec.encode(patch.repeat(1, 1, 4, 4)).detach().reshape(10, 4, 4)
    assert torch.allclose(code[:, 1, 1], code[:, 2, 2], atol=1e-5)
    dense = Codec((1, 32, 32), 160, generator(0))
    assert sum(p.numel() for p in codec.linear_in.parameters()) < sum(p.numel() for p in dense.linear_in.parameters())


@pytest.mark.parametrize(("n", "p", "count"), [(50, 20, 20), (10, 20, 15), (40, 5000, 60)])
def test_axes_are_orthonormal_and_hold_the_most_variance(n: int, p: int, count: int) -> None:
    rows = torch.randn(n, 4, generator=generator(0)) @ torch.randn(4, p, generator=generator(1))
    rows = rows - rows.mean(0)
    axes = principal_axes(rows, count, generator(2))
    assert axes.shape == (p, count)
    assert torch.allclose(axes.T @ axes, torch.eye(count), atol=1e-4)
    first = axes[:, :4]
    assert torch.allclose(rows @ first @ first.T, rows, atol=1e-2)


@dataclass(frozen=True)
class Claims(Plain):
    """An inner mechanism that proves something about the images it is given."""

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        return replace(super().train(task, rng), guarantees=(Guarantee("dp", 1.0, 1e-5),), facts={"inner": 1.0})


def test_an_inner_guarantee_does_not_survive_a_fitted_filter(task: Task) -> None:
    trained = Autoencoder(Decimal("0.1"), then=Claims(), steps=1).train(task, generator(0))
    assert trained.guarantees == ()
    assert trained.facts["inner"] == 1
    assert trained.facts["code_units"] == 6


@dataclass(frozen=True)
class Watches(Plain):
    """Remembers the pixels it was trained on."""

    seen: ClassVar[list[torch.Tensor]] = []

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        self.seen.append(task.train.pixels)
        return super().train(task, rng)


def test_the_classifier_sees_reconstructions_only(task: Task) -> None:
    trained = Autoencoder(Decimal("0.05"), then=Watches(), steps=5).train(task, generator(0))
    assert torch.equal(Watches.seen[-1], apply(trained.release, task.train.pixels))
    assert not torch.equal(Watches.seen[-1], task.train.pixels)


def test_progress_rises_over_both_stages(task: Task) -> None:
    shares: list[float] = []
    Autoencoder(Decimal("0.1"), steps=70).train(replace(task, progress=shares.append), generator(0))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert shares[69] == pytest.approx(0.5)


def test_the_seed_decides_everything_and_the_global_generator_stays(task: Task) -> None:
    def run(seed: int) -> torch.Tensor:
        trained = Autoencoder(Decimal("0.1"), steps=5).train(task, generator(seed))
        return apply(trained.model, apply(trained.release, task.test.pixels))

    before = torch.get_rng_state()
    first = run(0)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(generator(5)):
        assert torch.equal(run(0), first)
    assert not torch.equal(run(1), first)


class KilledError(Exception):
    """Stands for a kill in the middle of a training."""


@pytest.mark.parametrize("killed_at", [0.4, 0.95])
def test_a_killed_training_resumes_to_the_same_bits(task: Task, killed_at: float, tmp_path: Path) -> None:
    mechanism = Autoencoder(Decimal("0.1"), steps=150)
    long = replace(task, recipe=replace(task.recipe, epochs=11))
    whole = mechanism.train(long, generator(0))

    def kill(done: float) -> None:
        if done > killed_at:
            raise KilledError

    saved = replace(long, checkpoint=tmp_path / "training")
    with pytest.raises(KilledError):
        mechanism.train(replace(saved, progress=kill), generator(0))
    assert list(tmp_path.iterdir())
    resumed = mechanism.train(saved, generator(0))
    for ours, theirs in ((resumed.model, whole.model), (resumed.release, whole.release)):
        for key, value in theirs.state_dict().items():
            assert torch.equal(ours.state_dict()[key], value)
    assert not (tmp_path / "training.codec").exists()


def test_stored_weights_fit_a_blank_one(task: Task) -> None:
    mechanism = Autoencoder(Decimal("0.1"), steps=5)
    trained, blank = mechanism.train(task, generator(0)), mechanism.blank(task)
    blank.release.load_state_dict(trained.release.state_dict())
    assert torch.equal(apply(blank.release, task.test.pixels), apply(trained.release, task.test.pixels))
    assert blank.guarantees == ()


@pytest.mark.parametrize("ratio", ["0", "1.01", "-0.1"])
def test_a_ratio_outside_its_range(ratio: str) -> None:
    with pytest.raises(InputError, match=rf"^code_ratio={ratio} must be at least 0\.000001 and at most 1\.$"):
        Autoencoder(Decimal(ratio))
