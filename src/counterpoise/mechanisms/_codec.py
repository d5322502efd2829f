"""The network of the autoencoder: an exact number of code units between an encoder and a decoder.

Images up to 32 pixels a side have one dense code. Larger images are cut into equal patches of at most 32 pixels, all
coded by the same weights (a convolution whose kernel is the patch), and 3 x 3 convolutions of the codes let neighbours
help each other. Fewer weights than a dense code of the whole image also memorise fewer of the training images.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from counterpoise.training import seeded

DENSE_SIDE = 32
MOST_WEIGHTS = 4_000_000
HIDDEN = 128
LARGEST_COVARIANCE = 4096
FEWER_ROWS = 2048


class Codec(nn.Module):
    """Maps images to images of the same shape through `units` numbers.

    Each half is a linear map plus a small network that starts at zero. `start` makes the linear maps the principal
    component analysis of the images; they stay so, and training fits what is not linear.
    """

    def __init__(self, shape: tuple[int, int, int], units: int, rng: torch.Generator) -> None:
        super().__init__()
        channels, height, width = shape
        self.units = units
        self.side = patches_a_side(shape, units)
        self.patch = (-(-height // self.side), -(-width // self.side))
        inputs = channels * self.patch[0] * self.patch[1]
        self.components = -(-units // self.side**2)
        self.mean = nn.Parameter(torch.zeros(shape), requires_grad=False)
        self.missing = nn.Parameter(torch.ones(()), requires_grad=False)
        # A lone patch has no neighbours.
        reach = 1 if self.side == 1 else 3
        with seeded(rng):
            self.linear_in = nn.Conv2d(inputs, self.components, 1, bias=False).requires_grad_(False)
            self.linear_out = nn.Conv2d(self.components, inputs, 1, bias=False).requires_grad_(False)
            self.curved_in = nn.Sequential(
                nn.Conv2d(inputs, HIDDEN, 1),
                nn.Tanh(),
                nn.Conv2d(HIDDEN, self.components, reach, padding=reach // 2),
            )
            self.curved_out = nn.Sequential(
                nn.Conv2d(self.components, HIDDEN, reach, padding=reach // 2),
                nn.Tanh(),
                nn.Conv2d(HIDDEN, inputs, 1),
            )

    def encode(self, pixels: Tensor) -> Tensor:
        """The code of each image: [n, units]."""
        patches = self._cut(pixels - self.mean)
        code: Tensor = self.linear_in(patches) + self.missing * self.curved_in(patches)
        return code.flatten(1)[:, : self.units]

    def decode(self, code: Tensor) -> Tensor:
        """Images from codes, in [0, 1]."""
        unused = self.components * self.side**2 - self.units
        grid = nn.functional.pad(code, (0, unused)).reshape(-1, self.components, self.side, self.side)
        pixels = self.mean + self._join(self.linear_out(grid) + self.missing * self.curved_out(grid))
        return pixels.clamp(0, 1)

    def forward(self, pixels: Tensor) -> Tensor:
        """The reconstruction."""
        return self.decode(self.encode(pixels))

    @torch.no_grad()
    def start(self, pixels: Tensor, rng: torch.Generator) -> None:
        """Set the weights so that the codec is the principal component analysis of these images."""
        self.mean.copy_(pixels.mean(0))
        rows = self._cut(pixels - self.mean).permute(0, 2, 3, 1).flatten(0, 2)
        axes = principal_axes(rows, self.components, rng)
        self.linear_in.weight.copy_(axes.T[:, :, None, None])
        self.linear_out.weight.copy_(axes[:, :, None, None])
        for weight in (*self.curved_in[-1].parameters(), *self.curved_out[-1].parameters()):
            weight.zero_()
        # Corrections are on the scale of what is missing, so that a nearly perfect code is not shaken by training.
        sample = pixels[:: max(1, len(pixels) // 1000)]
        self.missing.copy_((self(sample) - sample).square().mean().sqrt())

    def _cut(self, pixels: Tensor) -> Tensor:
        """Patches as channels: [n, inputs, side, side]; the last row and column are padded where they are short."""
        high, wide = self.patch
        padding = (0, wide * self.side - pixels.shape[3], 0, high * self.side - pixels.shape[2])
        # `len` would make the number of images a constant of an exported program.
        padded = nn.functional.pad(pixels, padding)
        cut = padded.reshape(pixels.shape[0], -1, self.side, high, self.side, wide)
        return cut.permute(0, 1, 3, 5, 2, 4).reshape(pixels.shape[0], -1, self.side, self.side)

    def _join(self, patches: Tensor) -> Tensor:
        """The inverse of `_cut`."""
        channels, height, width = self.mean.shape
        high, wide = self.patch
        apart = patches.reshape(patches.shape[0], channels, high, wide, self.side, self.side).permute(0, 1, 4, 2, 5, 3)
        return apart.reshape(patches.shape[0], channels, high * self.side, wide * self.side)[:, :, :height, :width]


def patches_a_side(shape: tuple[int, int, int], units: int) -> int:
    """1 for a dense code; else patches of at most `DENSE_SIDE` pixels, smaller where the weights would be too many.

    A code of fewer units than patches has larger patches, down to the whole image.
    """
    _, height, width = shape
    side = min(-(-max(height, width) // DENSE_SIDE), math.isqrt(units))
    while max(height, width) > DENSE_SIDE and 2 * units * math.prod(shape) / side**4 > MOST_WEIGHTS:
        side += 1
    return side


def principal_axes(rows: Tensor, count: int, rng: torch.Generator) -> Tensor:
    """The first `count` principal axes of the rows [n, p], as orthonormal columns [p, count].

    Where p is too large for a covariance matrix, a sample of rows spans the axes and random directions fill up.
    """
    n, p = rows.shape
    if p <= LARGEST_COVARIANCE:
        axes: Tensor = torch.linalg.eigh(rows.T @ rows / n)[1].flip(1)
        return axes[:, :count]
    few = rows[torch.randperm(n, generator=rng)[:FEWER_ROWS]]
    weights: Tensor = torch.linalg.eigh(few @ few.T)[1].flip(1)
    spanned = few.T @ weights[:, :count]
    filled = torch.randn(p, count - spanned.shape[1], generator=rng)
    orthonormal: Tensor = torch.linalg.qr(torch.cat([spanned, filled], 1))[0]
    return orthonormal
