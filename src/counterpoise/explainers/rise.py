"""RISE: what the class probability is when random parts of the image are shown. Needs no gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.explainers._noise import image_streams
from counterpoise.explainers._probe import probe
from counterpoise.explainers._single import Single
from counterpoise.explainers.integrated_gradients import colour
from counterpoise.interface import Explanation


@dataclass(frozen=True)
class RISE(Single):
    """map = mean over random masks m of p_target(x m + fill (1 - m)) m / keep.

    Petsiuk, Das and Saenko, BMVC 2018. p is the softmax probability. A mask is a grid of `cells` x `cells` cells, each
    shown with probability `keep`, moved by a random part of a cell and blurred between cells (bilinear), so that a
    pixel's mean mask is `keep`. Masks belong to the image, as SmoothGrad's draws do. `stderr` is the Monte-Carlo
    standard error of every value; hundreds of masks are few.
    """

    samples: int = 1000
    cells: int = 7
    keep: float = 0.5
    fill: float | tuple[float, ...] = 0.0

    name: ClassVar[str] = "rise"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.at_least(2, samples=self.samples)
        _check.at_least(1, cells=self.cells)
        _check.inside(0, 1, keep=self.keep)

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        fill = colour(self.fill, images, "fill")
        generators = image_streams(images, seed)
        totals, squares = (torch.zeros_like(images[:, 0], dtype=torch.float64) for _ in range(2))
        at_once = max(1, probe(model, images).rows // len(images))
        with torch.no_grad():
            for done in range(0, self.samples, at_once):
                count = min(at_once, self.samples - done)
                masks = torch.stack([self._masks(g, count, images) for g in generators])[:, :, None]
                shown = (masks * images[:, None] + (1 - masks) * fill).flatten(0, 1)
                asked = target.repeat_interleave(count)[:, None]
                share = model(shown).softmax(1).gather(1, asked).view(len(images), count, 1, 1)
                values = (share * masks[:, :, 0] / self.keep).double()
                totals += values.sum(1)
                squares += values.square().sum(1)
        mean = totals / self.samples
        spread = (squares / self.samples - mean.square()).clamp(min=0) / (self.samples - 1)
        return Explanation(mean, spread.sqrt(), self.samples)

    def _masks(self, generator: np.random.Generator, count: int, images: Tensor) -> Tensor:
        """The next masks of one image, [count, height, width]. One more cell than asked for, to move within."""
        height, width = images.shape[2:]
        high, wide = -(-height // self.cells), -(-width // self.cells)
        found = []
        for _ in range(count):
            grid = generator.random((self.cells + 1, self.cells + 1), dtype=np.float32) < self.keep
            top, left = generator.integers(high), generator.integers(wide)
            found.append((torch.from_numpy(grid).to(images), top, left))
        grids = torch.stack([grid for grid, _, _ in found])[:, None]
        size = [(self.cells + 1) * high, (self.cells + 1) * wide]
        blurred = nn.functional.interpolate(grids, size, mode="bilinear", align_corners=False)[:, 0]
        moved = [b[t : t + height, w : w + width] for b, (_, t, w) in zip(blurred, found, strict=True)]
        return torch.stack(moved)
