"""Inception-v3 has its source's size, and its stem puts out the 968,000 numbers of the layer that is hidden."""

from __future__ import annotations

import pytest
import torch

from counterpoise._check import InputError
from counterpoise.models.inception_v3 import inception_stem, inception_v3
from counterpoise.representation.layers import size


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_it_has_the_published_size_and_answers_small_images() -> None:
    model = inception_v3((3, 75, 75), 1000, rng())
    assert sum(weight.numel() for weight in model.parameters()) == 23_834_568  # the reference without its side head
    with torch.no_grad():
        assert model.eval()(torch.rand(1, 3, 75, 75)).shape == (1, 1000)


def test_the_stem_is_the_layer_that_the_source_hides() -> None:
    assert size(inception_stem((3, 299, 299), 2, rng()), "1", (3, 299, 299)) == 192 * 71 * 71
    assert size(inception_stem((3, 32, 32), 2, rng()), "1", (3, 32, 32)) == 192 * 4 * 4


def test_images_that_are_too_small_are_told() -> None:
    with pytest.raises(InputError, match=r"^inception-v3 needs images of at least 75 x 75, not 64 x 64\.$"):
        inception_v3((3, 64, 64), 2, rng())
    with pytest.raises(InputError, match=r"^inception-stem needs images of at least 19 x 19, not 18 x 18\.$"):
        inception_stem((3, 18, 18), 2, rng())
