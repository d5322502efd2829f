"""Features are computed once, and again whenever anything that they depend on has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from counterpoise.reproduce._features import cached


class Counting(nn.Module):
    """Counts what it is asked for, but for the blank image that a layout is tried on."""

    calls = 0

    def forward(self, pixels: Tensor) -> Tensor:
        self.calls += bool(pixels.any())
        return 2 * pixels.flatten(1)


def test_the_second_time_nothing_is_computed(tmp_path: Path) -> None:
    module, pixels = Counting(), torch.rand(3, 1, 2, 2)
    first = cached(tmp_path / "new", pixels, module, "double")
    assert torch.equal(first, 2 * pixels.flatten(1))
    assert torch.equal(cached(tmp_path / "new", pixels, module, "double"), first)
    assert module.calls == 1
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".safetensors"]


def test_other_images_and_other_features_are_other_files(tmp_path: Path) -> None:
    module, pixels = Counting(), torch.rand(3, 1, 2, 2)
    cached(tmp_path, pixels, module, "double")
    changed = pixels.clone()
    changed[2, 0, 1, 1] += 0.25
    assert torch.equal(cached(tmp_path, changed, module, "double"), 2 * changed.flatten(1))
    cached(tmp_path, pixels.reshape(3, 1, 1, 4), module, "double")
    cached(tmp_path, pixels, module, "thrice")
    assert module.calls == 4


@pytest.mark.parametrize("damage", [b"", b"no tensors", None])
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    module, pixels = Counting(), torch.rand(3, 1, 2, 2)
    whole = cached(tmp_path, pixels, module, "double")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-3] if damage is None else damage)
    assert torch.equal(cached(tmp_path, pixels, module, "double"), whole)
    assert torch.equal(cached(tmp_path, pixels, module, "double"), whole)
    assert module.calls == 2


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[float] = []
    cached(tmp_path, torch.rand(1100, 1, 1, 1), Counting(), "double", told.append)
    assert told == [pytest.approx(500 / 1100), pytest.approx(1000 / 1100), 1.0]
