"""Filters: a copy before training, the image's own noise when seeded, and the same again from their description."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from counterpoise.mechanisms.filters import EDGE, FRESH, DenseFilter, Filter, LinearFilter, Staged, UNet, build, load
from counterpoise.training import channels_last, generator


def images(n: int, *shape: int) -> Tensor:
    """Anything from 0 to 1, and both ends."""
    pixels = torch.rand(n, *shape, generator=generator(1))
    pixels[0, 0, 0, :2] = torch.tensor([0.0, 1.0])
    return pixels


def taught(filter: Filter, scale: float = 0.3) -> Filter:
    """Moved away from a copy, so that its noise shows."""
    with torch.no_grad():
        for index, weight in enumerate(filter.parameters()):
            weight.add_(scale * torch.randn(weight.shape, generator=generator(2, index)))
    return filter.eval()


SIZES: list[tuple[int, int, int]] = [
    (1, 8, 8),
    (3, 24, 24),
    (1, 25, 37),
    (3, 64, 48),
    (3, 97, 101),
    (1, 224, 224),
    (3, 5, 7),
    (1, 2, 3),
]


@pytest.mark.parametrize("shape", SIZES, ids=lambda shape: "x".join(map(str, shape)))
@torch.no_grad()
def test_an_untrained_filter_is_a_copy_of_any_size(shape: tuple[int, int, int]) -> None:
    pixels = images(2, *shape)
    copied = UNet(shape, width=8).eval()(pixels)
    assert copied.shape == pixels.shape
    assert float((copied - pixels).square().mean().sqrt()) < 0.006
    assert float((copied - pixels).abs().max()) <= EDGE + 1e-6
    assert bool(((copied >= 0) & (copied <= 1)).all())
    moved = taught(UNet(shape, width=8))(pixels)
    assert float((moved - pixels).square().mean().sqrt()) > 0.02


def test_maps_are_halved_until_a_handful_of_pixels_is_left() -> None:
    assert [UNet((1, side, side), width=8).halvings for side in (2, 8, 16, 24, 48, 224)] == [1, 1, 1, 2, 3, 5]
    assert UNet((1, 25, 37), noise=3).noise_shape(torch.zeros(4, 1, 25, 37)) == (4, 3, 7, 10)


FILTERS: dict[str, tuple[Callable[[], Filter], tuple[int, ...]]] = {
    "UNet": (lambda: UNet((1, 9, 8), width=8, noise=2), (1, 9, 8)),
    "LinearFilter": (lambda: LinearFilter(3), (3,)),
    "DenseFilter": (lambda: DenseFilter(3, hidden=16), (3,)),
    "Staged": (lambda: Staged(UNet((1, 9, 8), width=8), UNet((1, 9, 8), width=4, noise=2)), (1, 9, 8)),
}


@pytest.fixture(params=FILTERS)
def some(request: pytest.FixtureRequest) -> tuple[Filter, Tensor]:
    """Each kind with rows for it."""
    make, shape = FILTERS[request.param]
    return taught(make()), torch.rand(6, *shape, generator=generator(3))


@torch.no_grad()
def test_seeded_noise_is_the_image_s_own_and_fresh_noise_is_nobody_s(some: tuple[Filter, Tensor]) -> None:
    filter, rows = some
    together = filter.with_seed(5)(rows)
    for order in ([0], [3, 0, 1], [5, 4, 3, 2, 1, 0]):
        assert torch.allclose(filter(rows[order]), together[order], atol=1e-6)
    if rows.ndim == 4:
        assert torch.allclose(filter(channels_last(rows)), together, atol=1e-6)
    before = torch.get_rng_state()
    filter(rows)
    assert torch.equal(torch.get_rng_state(), before)  # and nobody else's noise moves
    assert not torch.allclose(filter.with_seed(6)(rows), together, atol=1e-3)
    assert torch.allclose(filter.with_seed(5)(rows), together, atol=1e-6)
    filter.fresh()
    assert int(filter.seed) == FRESH
    assert not torch.allclose(filter(rows), filter(rows), atol=1e-3)


@torch.no_grad()
def test_equal_rows_get_equal_noise_and_all_others_other(some: tuple[Filter, Tensor]) -> None:
    filter, rows = some
    rows[1], rows[2] = rows[0], (rows[0] + 1e-6)
    seen = filter.with_seed(5)(rows)
    assert torch.allclose(seen[0], seen[1], atol=1e-6)
    assert not torch.allclose(seen[0], seen[2], atol=1e-3)


@torch.no_grad()
def test_the_linear_filter_adds_what_it_says() -> None:
    """q = A x + B z + c: mean A x + c, covariance B B^T; also seeded, over images that differ."""
    filter = LinearFilter(2)
    a, b, c = torch.tensor([[2.0, 0], [1, 1]]), torch.tensor([[0.5, 0], [0.4, 0.3]]), torch.tensor([1.0, -1])
    filter.of_rows.weight.copy_(a), filter.of_noise.weight.copy_(b), filter.of_rows.bias.copy_(c)
    x = torch.tensor([0.3, 0.7])
    for seed, spread in ((FRESH, 0.0), (7, 1e-5)):
        rows = x + spread * torch.rand(20_000, 2, generator=generator(0))
        q = filter.with_seed(seed)(rows) if seed != FRESH else filter(rows)
        assert torch.allclose(q.mean(0), a @ x + c, atol=0.015)
        assert torch.allclose(q.T.cov(), b @ b.T, atol=0.015)
    assert not torch.allclose(q.T.cov(), b.T @ b, atol=0.015)


@pytest.mark.parametrize("filter", [LinearFilter(4), DenseFilter(4)], ids=["linear", "dense"])
@torch.no_grad()
def test_an_untrained_filter_of_numbers_is_nearly_a_copy(filter: Filter) -> None:
    rows = torch.randn(500, 4, generator=generator(0))
    assert float((filter(rows) - rows).square().mean().sqrt()) < 0.06


@torch.no_grad()
def test_a_description_and_the_weights_give_the_filter_back(some: tuple[Filter, Tensor], tmp_path: Path) -> None:
    filter, rows = some
    same = build(json.loads(json.dumps(filter.description())))
    assert same.description() == filter.description()
    same.load_state_dict(filter.with_seed(3).state_dict())
    assert torch.equal(same.eval()(rows), filter(rows))
    path = tmp_path / "filter.safetensors"
    save_file(filter.state_dict(), path, {"filter": json.dumps(filter.description())})
    loaded = load(path)
    noise = torch.randn(filter.noise_shape(rows), generator=generator(4))
    assert not loaded.training
    assert {int(part.seed) for part in loaded.modules() if isinstance(part, Filter)} == {FRESH}
    if not isinstance(filter, Staged):  # whose first filter draws too
        assert torch.equal(loaded.run(rows, noise), filter.run(rows, noise))


@torch.no_grad()
def test_two_stages_draw_different_noise() -> None:
    """From one seed and one image; had both the same z, the second could subtract what the first added."""
    first, second = LinearFilter(3), LinearFilter(3)
    staged = Staged(first, second)
    for part, sign in ((first, 1), (second, -1)):
        part.of_noise.weight.copy_(sign * torch.eye(3))
    rows = torch.rand(50, 3, generator=generator(0))
    assert float((staged.with_seed(5)(rows) - rows).std()) > 1
    first.seed.fill_(int(staged.seed))  # the nearby wrong thing: it is a copy again
    assert torch.allclose(staged(rows), rows, atol=1e-5)


def test_a_stage_that_is_frozen_stays_frozen() -> None:
    staged = Staged(nn.Sequential(nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1)), UNet((1, 8, 8), width=8))
    before = {key: value.clone() for key, value in staged.first.state_dict().items()}
    staged.train()
    assert not staged.first.training
    assert staged.second.training
    learning = [weight for weight in staged.parameters() if weight.requires_grad]
    assert len(learning) == len(list(staged.second.parameters()))
    optimiser = torch.optim.SGD(learning, lr=1.0)
    staged(torch.rand(4, 1, 8, 8)).sum().backward()
    optimiser.step()
    assert all(torch.equal(value, before[key]) for key, value in staged.first.state_dict().items())
    with pytest.raises(TypeError, match="the first filter, a Sequential, is not described in this file"):
        staged.description()


@torch.no_grad()
def test_a_filtered_image_does_not_depend_on_its_batch_or_on_the_mode() -> None:
    filter = taught(UNet((3, 12, 12), width=8))
    rows, noise = torch.rand(5, 3, 12, 12), torch.randn(5, 8, 6, 6)
    together = filter.run(rows, noise)
    assert torch.allclose(filter.run(rows[2:3], noise[2:3]), together[2:3], atol=1e-6)
    assert torch.equal(filter.train().run(rows, noise), together)


@torch.no_grad()
def test_no_images_are_no_images() -> None:
    assert UNet((1, 8, 8), width=8).eval()(torch.zeros(0, 1, 8, 8)).shape == (0, 1, 8, 8)
    assert LinearFilter(2).with_seed(1)(torch.zeros(0, 2)).shape == (0, 2)
