"""Pictures of nothing have the statistics that natural images have, and evening out by them is what it says."""

from __future__ import annotations

import pytest
import torch

from counterpoise._check import InputError
from counterpoise.models.dead_leaves import dead_leaves
from counterpoise.models.scattering import OPPONENT, UnitFeatures
from counterpoise.training import generator


def test_pictures_are_of_the_generator_and_within_range() -> None:
    first = dead_leaves(3, 3, 20, generator(1))
    assert first.shape == (3, 3, 20, 20)
    assert torch.equal(dead_leaves(3, 3, 20, generator(1)), first)
    assert not torch.equal(dead_leaves(3, 3, 20, generator(2)), first)
    assert float(first.min()) >= 0
    assert float(first.max()) <= 1
    assert dead_leaves(2, 1, 16, generator(1)).shape == (2, 1, 16, 16)
    with pytest.raises(InputError, match=r"^channels='2' must be one of '1', '3'\.$"):
        dead_leaves(1, 2, 16, generator(0))


def slope(images: torch.Tensor) -> float:
    """The exponent of the power spectrum along a row: about -2 for natural images, 0 for noise."""
    power = torch.fft.rfft(images - images.mean(), dim=-1).abs().square().mean((0, 1, 2))[1:9]
    at = torch.arange(1, 9).log()
    level = power.log()
    return float(((at - at.mean()) * (level - level.mean())).sum() / (at - at.mean()).square().sum())


def test_their_spectrum_falls_as_that_of_natural_images() -> None:
    assert -2.6 < slope(dead_leaves(100, 1, 32, generator(0))) < -1.4
    assert abs(slope(torch.rand(100, 1, 32, 32, generator=generator(0)))) < 0.2


def test_they_differ_in_brightness_more_than_in_hue() -> None:
    pixels = dead_leaves(100, 3, 16, generator(0))
    light, red, green = torch.einsum("dc,nchw->dnhw", torch.tensor(OPPONENT), pixels).std((1, 2, 3)).tolist()
    assert light > 2 * red > 2 * green


@pytest.mark.parametrize("power", [0.5, 0.25, 0.0])
def test_whitening_raises_every_variance_to_one_minus_twice_the_power(power: float) -> None:
    features = UnitFeatures(1, scales=1, angles=4, group=5)
    images = dead_leaves(60, 1, 16, generator(3))

    def moved() -> torch.Tensor:
        blocks = torch.einsum(
            "dc,nchw->ndhw", features.whitening, features._normal(images) - features.centre[:, None, None]
        )
        return blocks.movedim(1, -1).flatten(0, -2)

    before = torch.linalg.eigvalsh(torch.cov(moved().T))
    features.whiten_by(images, power, ridge=1e-6)
    after = moved()
    assert float(after.mean(0).abs().max()) < 1e-4
    # Group normalisation of all five features takes one direction away: its variance is 0, and stays it.
    assert torch.allclose(torch.linalg.eigvalsh(torch.cov(after.T))[1:], before[1:] ** (1 - 2 * power), rtol=1e-2)


def test_features_are_of_length_one_and_fixed_by_the_public_images_alone() -> None:
    features = UnitFeatures(3, group=9, mirror=True)
    features.whiten_by(dead_leaves(40, 3, 16, generator(0)), 0.25)
    kept = {name: value.clone() for name, value in features.state_dict().items()}
    pixels = torch.rand(4, 3, 16, 16, generator=generator(1))
    found = features(pixels)
    assert found.shape == (4, features.size((3, 16, 16)))
    assert features.size((3, 32, 32)) == 243 * 8 * 4
    assert torch.allclose(found.norm(dim=1), torch.ones(4))
    assert torch.allclose(features(pixels[2:3]), found[2:3], atol=1e-6)
    assert torch.allclose(features(pixels.flip(3)), found, atol=1e-6)
    assert not torch.allclose(features(pixels.flip(2)), found, atol=1e-2)
    assert all(torch.equal(value, kept[name]) for name, value in features.state_dict().items())


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InputError, match=r"^group=4 must divide the 81 features of a block\.$"):
        UnitFeatures(1, group=4)
    with pytest.raises(InputError, match=r"^power=0\.6 must be a number in \[0, 0\.5\]\.$"):
        UnitFeatures(1).whiten_by(torch.rand(2, 1, 16, 16), 0.6)
