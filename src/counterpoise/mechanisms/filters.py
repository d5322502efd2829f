"""Filters: networks that turn what they get into something of the same size, partly by chance.

This file needs torch alone (and safetensors to read weights), so that it can travel with them to where images are made:

    from filter import load
    filtered = load("filter.safetensors")(pixels)  # float32 [n, channels, height, width] in [0, 1]
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

FRESH = -1
EDGE = 0.01
"""Pixels are kept this far from 0 and 1 before the logit, which is infinite there: a copy is this exact."""
SMALLEST = 6
"""Pixels a side below which maps are not halved any more."""
M = TypeVar("M", bound="Filter")


class Filter(nn.Module):
    """q = run(x, z) with standard normal z. Calling it draws z: fresh, or fixed by a seed and the image itself."""

    seed: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seed", torch.tensor(FRESH))

    def noise_shape(self, rows: Tensor) -> tuple[int, ...]:
        """The shape of z for these rows."""
        raise NotImplementedError

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        """The filtered rows, given the noise."""
        raise NotImplementedError

    def description(self) -> dict[str, Any]:
        """What `build` makes an untrained one from."""
        raise NotImplementedError

    def with_seed(self: M, seed: int) -> M:
        """From now on the same image gets the same noise, in any batch; filters inside this one draw other noise."""
        for place, part in enumerate(self._filters()):
            part.seed.fill_((seed + place) % 2**63)
        return self

    def fresh(self) -> None:
        """From now on every call draws anew."""
        for part in self._filters():
            part.seed.fill_(FRESH)

    def _filters(self) -> list[Filter]:
        return [part for part in self.modules() if isinstance(part, Filter)]

    def forward(self, rows: Tensor) -> Tensor:
        """The filtered rows."""
        shape = self.noise_shape(rows)
        # An exported filter draws anew, and its number of rows is not known yet.
        if torch.compiler.is_exporting() or not len(rows) or int(self.seed) == FRESH:
            return self.run(rows, torch.randn(shape, dtype=rows.dtype, device=rows.device))
        drawn = torch.stack([torch.randn(shape[1:], generator=self._generator(row)) for row in rows])
        return self.run(rows, drawn.to(rows))

    def _generator(self, row: Tensor) -> torch.Generator:
        content = row.detach().cpu().contiguous().numpy().tobytes()
        digest = hashlib.sha256(int(self.seed).to_bytes(8, "big") + content).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


class UNet(Filter):
    """Images to images in [0, 1] of the same size: halved and widened, noise beside the smallest maps, and back up.

    Each size on the way up also sees the maps of that size on the way down (Ronneberger et al. 2015). What is learned
    is added to the image's logits and starts at zero: an untrained filter is a copy.
    """

    def __init__(self, shape: tuple[int, int, int], width: int = 16, noise: int = 8) -> None:
        super().__init__()
        self.shape, self.width, self.noise = tuple(shape), width, noise
        channels, height, wide = self.shape
        self.halvings = max(1, int(math.log2(max(2.0, min(height, wide) / SMALLEST))))
        widths = [width * min(4, 2**level) for level in range(self.halvings + 1)]
        self.start = _block(channels, width)
        self.down = nn.ModuleList(_block(a, b, 2) for a, b in itertools.pairwise(widths))
        self.middle = _block(widths[-1] + noise, widths[-1])
        self.up = nn.ModuleList(_block(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.last = nn.Conv2d(width, channels, 3, padding=1)
        for weight in self.last.parameters():
            nn.init.zeros_(weight)

    def description(self) -> dict[str, Any]:
        """Its sizes."""
        return {"kind": "UNet", "shape": list(self.shape), "width": self.width, "noise": self.noise}

    def noise_shape(self, rows: Tensor) -> tuple[int, ...]:
        """Some channels of the smallest maps' size."""
        height, wide = rows.shape[2:]
        for _ in range(self.halvings):
            height, wide = -(-height // 2), -(-wide // 2)
        return rows.shape[0], self.noise, height, wide  # `len` would make the number of rows a constant of an export

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        """The filtered images."""
        maps = [self.start(2 * rows - 1)]
        for down in self.down:
            maps.append(down(maps[-1]))
        here = self.middle(torch.cat([maps.pop(), noise], 1))
        for up in self.up:
            beside = maps.pop()
            larger = nn.functional.interpolate(here, size=beside.shape[2:])
            here = up(torch.cat([larger, beside], 1))
        inside = rows.clamp(EDGE, 1 - EDGE)
        return torch.sigmoid(torch.logit(inside) + self.last(here))


class Staged(Filter):
    """A first filter, which stays as it is, and a second one that learns behind it."""

    def __init__(self, first: nn.Module, second: Filter) -> None:
        super().__init__()
        self.first, self.second = first.requires_grad_(False).eval(), second

    def description(self) -> dict[str, Any]:
        """Both, where the first is one of these filters too."""
        if not isinstance(self.first, Filter):
            raise TypeError(f"the first filter, a {type(self.first).__name__}, is not described in this file")
        return {"kind": "Staged", "first": self.first.description(), "second": self.second.description()}

    def noise_shape(self, rows: Tensor) -> tuple[int, ...]:
        """The second's: what the first draws is its own affair."""
        return self.second.noise_shape(rows)

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        """One after the other."""
        return self.second.run(self.first(rows), noise)

    def train(self, mode: bool = True) -> Staged:
        """The first filter never trains."""
        super().train(mode)
        self.first.eval()
        return self


class LinearFilter(Filter):
    """Rows of numbers: q = A x + B z + c, z with as many numbers as x. Starts as a copy with a little noise."""

    def __init__(self, size: int, noise: float = 0.05) -> None:
        super().__init__()
        self.of_rows = nn.Linear(size, size)
        self.of_noise = nn.Linear(size, size, bias=False)
        with torch.no_grad():
            self.of_rows.weight.copy_(torch.eye(size))
            self.of_rows.bias.zero_()
            # Not zero: there the gradient with respect to B is zero on average, whichever way noise would help.
            self.of_noise.weight.copy_(noise * torch.eye(size))

    def description(self) -> dict[str, Any]:
        """Its size."""
        return {"kind": "LinearFilter", "size": self.of_rows.in_features}

    def noise_shape(self, rows: Tensor) -> tuple[int, ...]:
        """As many numbers as a row has."""
        return tuple(rows.shape)

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        """The filtered rows."""
        mixed: Tensor = self.of_rows(rows) + self.of_noise(noise)
        return mixed


class DenseFilter(Filter):
    """Rows of numbers: q = x + f(x, z), f with two hidden layers, its last one zero at first: a copy."""

    def __init__(self, size: int, hidden: int = 64) -> None:
        super().__init__()
        self.learned = nn.Sequential(
            nn.Linear(2 * size, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, size)
        )
        for weight in self.learned[-1].parameters():
            nn.init.zeros_(weight)

    def description(self) -> dict[str, Any]:
        """Its sizes."""
        last = self.learned[-1]
        return {"kind": "DenseFilter", "size": last.out_features, "hidden": last.in_features}

    def noise_shape(self, rows: Tensor) -> tuple[int, ...]:
        """As many numbers as a row has."""
        return tuple(rows.shape)

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        """The filtered rows."""
        moved: Tensor = rows + self.learned(torch.cat([rows, noise], 1))
        return moved


KINDS: dict[str, Any] = {"UNet": UNet, "Staged": Staged, "LinearFilter": LinearFilter, "DenseFilter": DenseFilter}


def build(description: Mapping[str, Any]) -> Filter:
    """An untrained filter as described."""
    parts = {key: build(value) if isinstance(value, Mapping) else value for key, value in description.items()}
    made: Filter = KINDS[str(parts.pop("kind"))](**parts)
    return made


def load(path: str | Path) -> Filter:
    """A filter from its weights, which carry its description; it draws its noise anew at every call."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        found = build(json.loads((file.metadata() or {})["filter"]))
        found.load_state_dict({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118 - no mapping
    found.fresh()
    return found.eval()


def _block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Two convolutions, each normalised within its image: what an image becomes must not depend on its batch."""
    groups = math.gcd(8, outputs)
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, padding=1),
        nn.GroupNorm(groups, outputs),
        nn.SiLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.GroupNorm(groups, outputs),
        nn.SiLU(),
    )
