"""Scattering against a naive twin that sums in space, and the properties that its theory promises."""

from __future__ import annotations

import cmath
import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.models import BUILTIN
from counterpoise.models.scattering import Scattering
from counterpoise.training import generator

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def picture(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=generator(seed, "picture"))


def mirrored(image: Array, scales: int) -> tuple[Array, list[int]]:
    """The image continued by its mirror image, and how far, pixel by pixel."""
    block = 2**scales
    wholes = [next(s for s in range(side + 2 * block, 10_000) if s % block == 0) for side in image.shape]
    before = [(whole - side) // 2 for whole, side in zip(wholes, image.shape, strict=True)]
    after = [whole - side - first for whole, side, first in zip(wholes, image.shape, before, strict=True)]
    return np.pad(image, list(zip(before, after, strict=True)), mode="symmetric"), before


def naive_filtered(image: Array, scale: int, turn: int, angles: int) -> Array:
    """|image * psi| at the centres of blocks of 2^scale samples, by sums over all pixels and three periods a side."""
    sigma, xi, slant, angle = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 4 / angles, math.pi * turn / angles
    rows, columns = image.shape
    step = 2**scale
    waves, bumps = np.zeros(image.shape, complex), np.zeros(image.shape)
    for dy, dx in product(range(rows), range(columns)):  # distances from a centre to the samples
        for y, x in product(
            *([d + (step - 1) / 2 + k * s for k in range(-3, 3)] for d, s in ((dy, rows), (dx, columns)))
        ):
            along = x * math.cos(angle) + y * math.sin(angle)
            aside = y * math.cos(angle) - x * math.sin(angle)
            bump = math.exp(-(along**2 + (slant * aside) ** 2) / (2 * sigma**2))
            bumps[dy, dx] += bump
            waves[dy, dx] += bump * cmath.exp(1j * xi * along)
    psi = (waves - bumps * waves.sum() / bumps.sum()) * slant / (2 * math.pi * sigma**2)
    out = np.zeros((rows // step, columns // step))
    for i, k in np.ndindex(out.shape):
        moved = psi[np.ix_((step * i - np.arange(rows)) % rows, (step * k - np.arange(columns)) % columns)]
        out[i, k] = abs((moved * image).sum())
    return out


def naive_blocks(samples: Array, step: int, shape: tuple[int, ...], before: list[int], scales: int) -> Array:
    """Gaussian means around the centres of the blocks of the image (not of its continuation)."""
    block = 2**scales
    weights = []
    for axis, side in enumerate(shape):
        period = samples.shape[axis] * step
        margin = (side - side // block * block) / 2
        rows = []
        for cell in range(side // block):
            centre = before[axis] + margin + block * cell + (block - 1) / 2
            apart = [abs(step * k + (step - 1) / 2 - centre) for k in range(samples.shape[axis])]
            row = np.exp([-(min(a, period - a) ** 2) / (2 * (0.4 * block) ** 2) for a in apart])
            rows.append(row / row.sum())
        weights.append(np.array(rows))
    blocks: Array = weights[0] @ samples @ weights[1].T
    return blocks


def naive(image: Array, scales: int, angles: int) -> Array:
    padded, before = mirrored(image, scales)
    found = [naive_blocks(padded, 1, image.shape, before, scales)]
    second = []
    for j1 in range(scales):
        for turn in range(angles):
            moduli = naive_filtered(padded, j1, turn, angles)
            found.append(naive_blocks(moduli, 2**j1, image.shape, before, scales))
            for j2, other in product(range(j1 + 1, scales), range(angles)):
                again = naive_filtered(moduli, j2 - j1, other, angles)
                second.append(naive_blocks(again, 2**j2, image.shape, before, scales))
    return np.stack(found + second)


@pytest.mark.parametrize("side", [(16, 16), (17, 22)])
def test_equals_a_naive_twin_in_space(side: tuple[int, int]) -> None:
    image = picture(1, 1, *side).double()
    ours = Scattering(scales=2, angles=2)(image)[0].numpy()
    truth = naive(image[0, 0].numpy(), 2, 2)
    assert ours.shape == truth.shape == (1 + 4 + 4, side[0] // 4, side[1] // 4)
    np.testing.assert_allclose(ours, truth, atol=1e-6)
    # The twin sees a wavelet turned by another angle, so agreement is no accident.
    assert abs(ours - Scattering(scales=2, angles=2)(image.mT).mT[0].numpy()).max() > 1e-3


def test_shapes_and_paths() -> None:
    assert Scattering()(picture(2, 1, 28, 28)).shape == (2, 81, 7, 7)
    assert Scattering()(picture(1, 3, 32, 32)).shape == (1, 243, 8, 8)
    assert Scattering(scales=3)(picture(1, 1, 32, 48)).shape == (1, 217, 4, 6)
    assert Scattering()(picture(0, 3, 32, 32)).shape == (0, 243, 8, 8)
    assert not list(Scattering().state_dict())


@given(
    height=st.integers(16, 33),
    width=st.integers(16, 33),
    scales=st.integers(1, 2),
    noise=st.floats(1e-3, 1),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_two_images_never_come_apart(height: int, width: int, scales: int, noise: float, seed: int) -> None:
    """|S x - S y| <= |x - y|: a block stands for 2^scales x 2^scales pixels, so its feature counts that often."""
    x = picture(1, 1, height, width, seed=seed)
    y = x + noise * torch.randn(x.shape, generator=generator(seed, "noise"))
    transform = Scattering(scales=scales, angles=4)
    apart = 2**scales * (transform(x) - transform(y)).norm()
    assert float(apart) <= float((x - y).norm()) * 1.0001


def test_energy_is_bounded_and_not_lost() -> None:
    x = picture(8, 1, 32, 32)
    kept = 16 * Scattering()(x).square().sum((1, 2, 3)) / x.square().sum((1, 2, 3))
    assert bool((kept < 1.05).all())
    assert bool((kept > 0.7).all())


@pytest.mark.parametrize(("scales", "side"), [(2, (16, 19)), (3, (32, 32))])
def test_a_constant_image_has_its_mean_and_nothing_else(scales: int, side: tuple[int, int]) -> None:
    found = Scattering(scales=scales)(torch.full((1, 1, *side), 0.7))
    assert torch.allclose(found[:, 0], torch.tensor(0.7), atol=1e-6)
    assert float(found[:, 1:].abs().max()) < 1e-6


def mirrored_paths(scales: int, angles: int) -> list[int]:
    turned = [-a % angles for a in range(angles)]
    first = [1 + j * angles + a for j in range(scales) for a in turned]
    start, pairs = 1 + scales * angles, scales * (scales - 1) // 2
    return [0, *first, *(start + p * angles**2 + a * angles + b for p in range(pairs) for a in turned for b in turned)]


@pytest.mark.parametrize(("scales", "side"), [(2, (28, 28)), (2, (18, 20)), (3, (32, 40))])
def test_a_mirrored_image_has_mirrored_features(scales: int, side: tuple[int, int]) -> None:
    x = picture(1, 1, *side)
    transform = Scattering(scales=scales)
    expected = transform(x)[:, mirrored_paths(scales, 8)].flip(3)
    assert torch.allclose(transform(x.flip(3)), expected, atol=1e-6)
    assert not torch.allclose(transform(x.flip(3)), transform(x).flip(3), atol=1e-3)


def test_a_shift_by_a_block_moves_features_by_one_cell_and_a_small_shift_moves_them_little() -> None:
    x = torch.zeros(1, 1, 48, 48)
    x[..., 18:30, 18:30] = picture(1, 1, 12, 12)
    transform = Scattering()
    still = transform(x)
    moved = transform(x.roll(4, 3))
    assert torch.allclose(moved[..., 3:9], still[..., 2:8], atol=1e-6)
    nudged = x.roll(1, 3)
    assert float((transform(nudged) - still).norm() / still.norm()) < 0.5 * float((nudged - x).norm() / x.norm())


def test_chunks_change_nothing() -> None:
    x = picture(7, 3, 16, 20)
    whole = Scattering(chunk=64)(x)
    for chunk in (1, 4):
        assert torch.allclose(Scattering(chunk=chunk)(x), whole, atol=1e-6)
    assert torch.allclose(Scattering()(x[3:4]), whole[3:4], atol=1e-6)
    assert torch.allclose(Scattering()(x[:, 1:2]), whole[:, 81:162], atol=1e-6)


def test_gradients_reach_the_pixels() -> None:
    x = picture(1, 1, 16, 16).double().requires_grad_()
    Scattering(angles=2)(x).square().sum().backward()
    assert x.grad is not None
    step = 1e-5 * torch.randn(x.shape, generator=generator(1), dtype=torch.float64)
    with torch.no_grad():
        ahead, behind = (Scattering(angles=2)(x + sign * step).square().sum() for sign in (1, -1))
        assert float((ahead - behind) / 2) == pytest.approx(float((x.grad * step).sum()), rel=1e-4)


def test_too_small_images_and_wrong_options_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^scattering with scales=2 needs images of at least 16 x 16 pixels, not 20 x 15\.$"
    ):
        Scattering()(torch.zeros(1, 1, 15, 20))
    with pytest.raises(InputError, match=r"^angles=0 must be a whole number, 1 or above\.$"):
        Scattering(angles=0)
    with pytest.raises(InputError, match=r"^scattering with scales=2 needs images of at least 16"):
        BUILTIN["scattering-linear"]((1, 8, 8), 10, generator(0))


def test_the_model_scores_images_and_trains_its_head_only() -> None:
    model = BUILTIN["scattering-linear"]((3, 32, 32), 10, generator(0))
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == {"head.weight": (10, 243 * 64)}
    assert model(picture(2, 3, 32, 32)).shape == (2, 10)
    assert torch.equal(model(picture(2, 3, 32, 32)), torch.zeros(2, 10))
    pixels = picture(3, 3, 32, 32)
    features = model.get_submodule("features")(pixels)
    assert torch.allclose(features.norm(dim=1), torch.ones(3))
    assert torch.allclose(
        model.get_submodule("features")(torch.zeros(1, 3, 32, 32)).isfinite().all(), torch.tensor(True)
    )
