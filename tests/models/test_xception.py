"""Xception in small: its size, its blocks, seeded weights, and what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.models import BUILTIN
from counterpoise.models.xception import xception_small
from counterpoise.tags import provides
from counterpoise.training import generator


def count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def test_it_has_the_size_that_it_says() -> None:
    """By hand: a block is two separable convolutions (9 a + a b + b, 9 b + b b + b) and a shortcut (a b + b)."""

    def block(a: int, norms: int) -> int:
        b = 2 * a
        return (9 * a + a * b + b) + (9 * b + b * b + b) + (a * b + b) + norms * 2 * b

    for norm, norms in (("none", 0), ("group", 2)):
        start = 3 * 9 * 24 + 24 + (2 * 24 if norms else 0)
        whole = start + sum(block(a, norms) for a in (24, 48, 96)) + 192 * 2 + 2
        assert count(xception_small((3, 64, 64), 2, generator(0), norm=norm)) == whole
    assert whole == 104_762
    assert BUILTIN["xception-small"] is xception_small


@pytest.mark.parametrize("norm", ["group", "batch", "none"])
@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 24, 40), (3, 65, 33)])
def test_any_larger_shape_gives_finite_scores(norm: str, shape: tuple[int, int, int]) -> None:
    model = xception_small(shape, 5, generator(0), width=8, norm=norm)
    scores = model(torch.rand(3, *shape, generator=generator(1)))
    assert scores.shape == (3, 5)
    assert bool(scores.isfinite().all())


def test_its_blocks_halve_the_image_and_double_the_channels() -> None:
    model = xception_small((3, 64, 64), 2, generator(0), width=8)
    sizes = []
    for module in model.children():
        if type(module).__name__ == "_Block":
            module.register_forward_hook(lambda _, __, output: sizes.append(tuple(output.shape[1:])))
    model(torch.zeros(1, 3, 64, 64))
    assert sizes == [(16, 16, 16), (32, 8, 8), (64, 4, 4)]


def test_channels_are_convolved_by_themselves() -> None:
    model = xception_small((3, 32, 32), 2, generator(0), width=8)
    wide = [m for m in model.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) and m.in_channels > 3]
    assert len(wide) == 6
    assert all(convolution.groups == convolution.in_channels for convolution in wide)


def test_weights_come_from_the_given_generator_only() -> None:
    before = torch.get_rng_state()
    tables = [
        torch.cat([w.flatten() for w in xception_small((1, 16, 16), 2, generator(s), 8).parameters()])
        for s in (0, 0, 1)
    ]
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_only_batch_normalisation_mixes_images() -> None:
    made = {norm: xception_small((1, 24, 24), 2, generator(0), 8, norm).train() for norm in ("group", "batch", "none")}
    assert {norm for norm, model in made.items() if "per-example" in provides(model)} == {"group", "none"}
    pixels = torch.rand(4, 1, 24, 24, generator=generator(2))
    for norm, model in made.items():
        same = torch.allclose(model(pixels)[:1], model(torch.cat([pixels[:1], pixels[2:3]]))[:1], atol=1e-5)
        assert same == (norm != "batch")


@pytest.mark.parametrize(
    ("shape", "options", "complaint"),
    [
        ((3, 15, 40), {}, r"^xception-small needs images of at least 16 x 16 pixels, not 40 x 15\.$"),
        ((3, 32, 32), {"width": 3}, r"^width=3 must be a whole number, 4 or above\.$"),
        ((3, 32, 32), {"norm": "layer"}, r"^norm='layer' must be one of 'batch', 'group', 'none'\.$"),
    ],
)
def test_what_it_cannot_be_is_told(shape: tuple[int, int, int], options: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        xception_small(shape, 2, generator(0), **options)  # type: ignore[arg-type]
