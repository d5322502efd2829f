"""How far released images are from the originals, image by image, where the pooled histogram cannot see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import bootstrap
from counterpoise.measures._pixels import histogram_differences, moved
from counterpoise.record import Measurement

WINDOW, SPREAD = 11, 1.5
STABLE_MEAN, STABLE_CONTRAST = 0.01**2, 0.03**2
"""(K L)^2 of Wang et al. 2004, for images in [0, 1]: they keep dark or flat windows from dividing by 0."""
CHUNK = 256


@dataclass(frozen=True)
class EMDPerImage:
    """Mean over images of EMD(x, release(x)), between the 256-level histograms of an image and of its release.

    Ground distance |i - j| / 255. Unit: share of the grey range, in [0, 1]. Lower is better. Interval: bootstrap
    over test images. At least `pooled_emd`, where images may trade pixels; it is still blind to a shuffle of the
    pixels within an image.
    """

    name: ClassVar[str] = "emd_per_image"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of the grey range"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of each image's own distance."""
        return bootstrap(moved(candidate.once(histogram_differences)))


@dataclass(frozen=True)
class MSE:
    """Mean over images of mean over pixels of (x - release(x))^2.

    Unit: squared pixel value, in [0, 1]. Lower is better. Interval: bootstrap over test images. It sees every
    changed pixel, and cannot tell a change that matters from one that does not.
    """

    name: ClassVar[str] = "mse"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "squared pixel value"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of each image's mean squared difference."""
        difference = candidate.released_test - candidate.task.test.pixels
        return bootstrap(difference.double().square().mean((1, 2, 3)).numpy())


@dataclass(frozen=True)
class SSIM:
    """Structural similarity of x and release(x): mean over windows, channels and images of
    (2 m_x m_y + c1)(2 s_xy + c2) / ((m_x^2 + m_y^2 + c1)(s_xx + s_yy + c2)).

    Wang et al. 2004: means, variances and covariance under an 11 x 11 Gaussian window of standard deviation 1.5,
    windows inside the image only, c1 = .01^2, c2 = .03^2. An image smaller than the window gets the largest odd
    window that fits. Unit: none, in [-1, 1], 1 for equal images. Higher is better. Interval: bootstrap over test
    images.
    """

    name: ClassVar[str] = "ssim"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "similarity in [-1, 1]"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of each image's similarity."""
        pairs = zip(
            torch.split(candidate.task.test.pixels, CHUNK), torch.split(candidate.released_test, CHUNK), strict=True
        )
        return bootstrap(torch.cat([similarity(original, released) for original, released in pairs]).numpy())


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """SSIM of each pair of images, float64 [n]."""
    x, y = first.double(), second.double()
    height, width = x.shape[-2:]
    size = min(WINDOW, height, width)
    size -= size % 2 == 0
    down, along = _windows(height, size), _windows(width, size).T

    def smooth(values: Tensor) -> Tensor:
        return down @ values @ along

    mean_x, mean_y = smooth(x), smooth(y)
    var_x = smooth(x * x) - mean_x**2
    var_y = smooth(y * y) - mean_y**2
    shared = smooth(x * y) - mean_x * mean_y
    above = (2 * mean_x * mean_y + STABLE_MEAN) * (2 * shared + STABLE_CONTRAST)
    below = (mean_x**2 + mean_y**2 + STABLE_MEAN) * (var_x + var_y + STABLE_CONTRAST)
    return (above / below).mean((1, 2, 3))


def _windows(side: int, size: int) -> Tensor:
    """Every Gaussian window that lies inside a line of `side` pixels, as the rows of a matrix."""
    offsets = torch.arange(size, dtype=torch.float64) - size // 2
    weights = torch.exp(-offsets.square() / (2 * SPREAD**2))
    rows = torch.zeros(side - size + 1, side, dtype=torch.float64)
    for start in range(len(rows)):
        rows[start, start : start + size] = weights / weights.sum()
    return rows
