"""Scattering: fixed features of an image, from wavelets instead of training.

An image is filtered by oriented Morlet wavelets, the moduli are filtered once more, and each result is averaged over
blocks of 2^scales pixels (Mallat, "Group invariant scattering", 2012; Bruna and Mallat 2013). Nothing is learned, so
the features cost no privacy, and a private training needs to learn a small head only (Tramèr and Boneh, ICLR 2021).

Everything is sampled at the centres of blocks, so that mirrored images have mirrored features.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import lru_cache

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise._check import InputError

WIDTH, FREQUENCY = 0.8, 3 * math.pi / 4
"""The finest wavelet's envelope in pixels, and its centre frequency; both halve in frequency from scale to scale."""

OPPONENT = ((1 / 3, 1 / 3, 1 / 3), (1 / 2, 0.0, -1 / 2), (-1 / 4, 1 / 2, -1 / 4))
"""Brightness, red against blue, green against both."""


class Scattering(nn.Module):
    """Images [n, c, h, w] to features [n, c * paths, h // 2^scales, w // 2^scales], without parameters.

    Paths, in order: the mean; first order by scale, then angle; second order by the pair of scales j1 < j2, then by
    the two angles. With 2 scales and 8 angles 1 + 16 + 64 = 81. Each side is continued by its mirror image, by at
    least 2^scales pixels, so that what wraps around is not seen.
    """

    def __init__(self, scales: int = 2, angles: int = 8, chunk: int = 16) -> None:
        super().__init__()
        _check.at_least(1, scales=scales, angles=angles, chunk=chunk)
        self.scales, self.angles, self.chunk = scales, angles, chunk

    @property
    def paths(self) -> int:
        """How many features a block of a channel has."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.scales * self.angles + pairs * self.angles**2

    def output_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """The shape of the features of images of this shape; raises where an image is too small."""
        channels, height, width = shape
        least = 4 * 2**self.scales
        if min(height, width) < least:
            raise InputError(
                f"scattering with scales={self.scales} needs images of at least {least} x {least} pixels,"
                f" not {width} x {height}."
            )
        return channels * self.paths, height >> self.scales, width >> self.scales

    def forward(self, pixels: Tensor) -> Tensor:
        """The features; an image's do not depend on the others, nor on the chunk size."""
        channels, *cells = self.output_shape((pixels.shape[1], pixels.shape[2], pixels.shape[3]))
        flat = pixels.reshape(-1, *pixels.shape[2:])
        if not len(flat):
            return pixels.new_zeros(0, channels, *cells)
        parts = [self._features(part) for part in torch.split(flat, self.chunk)]
        return torch.cat(parts).reshape(len(pixels), channels, *cells)

    def _features(self, images: Tensor) -> Tensor:
        """[m, h, w] to [m, paths, cells, cells]."""
        height, width = images.shape[1:]
        padded = _mirrored(images, self.scales)
        size = (padded.shape[1], padded.shape[2])

        def blocks(moduli: Tensor, scale: int) -> Tensor:
            down, across = (_averages(side, self.scales, scale).to(images.dtype) for side in (height, width))
            return (down @ moduli @ across.T).flatten(1, -3)

        firsts, seconds = [blocks(padded[:, None], 0)], []
        spectrum = torch.fft.fft2(padded)[:, None]
        for j1 in range(self.scales):
            moduli = _filtered(spectrum, _wavelets(size, j1, self.angles), 2**j1)
            firsts.append(blocks(moduli, j1))
            if j1 + 1 == self.scales:
                break
            spectra = torch.fft.fft2(moduli)[:, :, None]
            reduced = (size[0] >> j1, size[1] >> j1)
            for j2 in range(j1 + 1, self.scales):
                again = _filtered(spectra, _wavelets(reduced, j2 - j1, self.angles), 2 ** (j2 - j1))
                seconds.append(blocks(again, j2))
        return torch.cat([*firsts, *seconds], 1)


def _sides(side: int, scales: int) -> tuple[int, int]:
    """The padding before and after: to a multiple of 2^scales, at least 2^scales on both ends."""
    block = 2**scales
    whole = -(-(side + 2 * block) // block) * block
    before = (whole - side) // 2
    return before, whole - side - before


def _mirrored(images: Tensor, scales: int) -> Tensor:
    """Continued by reflection that repeats the edge pixel: the mirror lies between pixels, as the blocks' do."""
    for axis in (1, 2):
        before, after = _sides(images.shape[axis], scales)
        side = images.shape[axis]
        index = torch.arange(-before, side + after)
        index = torch.where(index < 0, -1 - index, index)
        index = torch.where(index >= side, 2 * side - 1 - index, index)
        images = images.index_select(axis, index)
    return images


def _filtered(spectrum: Tensor, wavelets: Tensor, step: int) -> Tensor:
    """The modulus of images, given by their spectra, filtered by each wavelet and sampled at every `step`-th pixel."""
    rows, columns = wavelets.shape[-2] // step, wavelets.shape[-1] // step
    folded = torch.zeros((), dtype=spectrum.dtype)
    # To keep every second sample is to fold the spectrum; the tiles are added one by one, in cache.
    for top in range(0, step * rows, rows):
        for left in range(0, step * columns, columns):
            tile = (..., slice(top, top + rows), slice(left, left + columns))
            folded = folded + spectrum[tile] * wavelets[tile]
    return torch.abs(torch.fft.ifft2(folded)) / step**2


@lru_cache(maxsize=64)
def _wavelets(size: tuple[int, int], scale: int, angles: int) -> Tensor:
    """The spectra of a scale's Morlet wavelets [angles, rows, columns], their values shifted to centres of blocks.

    psi(u) = (exp(i xi u') - k) * exp(-(u'^2 + (s v')^2) / (2 sigma^2)), where (u', v') is u turned by the angle, with
    k such that psi sums to 0, and s = 4 / angles the roundness: the more angles, the more elongated a wavelet.
    """
    sigma, xi, slant = WIDTH * 2**scale, FREQUENCY / 2**scale, 4 / angles
    down, across = (_periods(side, (2**scale - 1) / 2) for side in size)
    kernels = []
    for turn in range(angles):
        angle = math.pi * turn / angles
        v, u = down[:, None, :, None], across[None, :, None, :]
        along, aside = u * math.cos(angle) + v * math.sin(angle), v * math.cos(angle) - u * math.sin(angle)
        envelope = torch.exp(-(along**2 + (slant * aside) ** 2) / (2 * sigma**2))
        wave = (envelope * torch.exp(1j * xi * along)).sum((0, 1))
        bump = envelope.sum((0, 1))
        kernels.append((wave - bump * (wave.sum() / bump.sum())) * slant / (2 * math.pi * sigma**2))
    spectra: Tensor = torch.fft.fft2(torch.stack(kernels))
    return spectra.to(torch.complex64)


@lru_cache(maxsize=64)
def _averages(side: int, scales: int, scale: int) -> Tensor:
    """The matrix [cells, samples] of Gaussian means around the centres of blocks; a row sums to 1."""
    block, step = 2**scales, 2**scale
    before, after = _sides(side, scales)
    whole = before + side + after
    cells = side // block
    centres = before + (side - cells * block) / 2 + (block - 1) / 2 + block * torch.arange(cells, dtype=torch.float64)
    samples = (step - 1) / 2 + step * torch.arange(whole // step, dtype=torch.float64)
    apart = centres[:, None] - samples
    apart = (apart + whole / 2).remainder(whole) - whole / 2
    weights = torch.exp(-(apart**2) / (2 * (WIDTH * block / 2) ** 2))
    return weights / weights.sum(1, keepdim=True)


def _periods(side: int, shift: float) -> Tensor:
    """Positions [copies, side] of a filter's samples, with copies a period apart: convolution wraps around."""
    copies = torch.arange(-2, 3, dtype=torch.float64)[:, None] * side
    return torch.arange(side, dtype=torch.float64) + shift + copies


class UnitFeatures(nn.Module):
    """Scattering as one vector of length 1 an image, ready for a private linear head; nothing is fitted to its data.

    Colours become brightness and two differences; every `group` neighbouring features are moved to mean 0 and spread 1
    within their image (GroupNorm). With `mirror`, an image and its mirror image are averaged, and the half of the
    features that this makes equal is left out: where left and right do not matter, half the weights carry all of the
    signal, and only half of the noise. `whiten_by` evens out the features that move together.
    """

    colours: Tensor
    mirrored: Tensor
    centre: Tensor
    whitening: Tensor

    def __init__(self, channels: int, scales: int = 2, angles: int = 8, group: int = 3, mirror: bool = False) -> None:
        super().__init__()
        _check.at_least(1, channels=channels, group=group)
        self.scattering = Scattering(scales, angles)
        width = channels * self.scattering.paths
        if width % group:
            raise InputError(f"group={group} must divide the {width} features of a block.")
        self.groups, self.mirror = width // group, mirror
        self.register_buffer("colours", torch.tensor(OPPONENT), persistent=False)
        self.register_buffer("mirrored", torch.tensor(_mirrored_paths(scales, angles)), persistent=False)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("whitening", torch.eye(width))

    def size(self, shape: tuple[int, int, int]) -> int:
        """How many features an image of this shape has."""
        channels, height, width = self.scattering.output_shape(shape)
        return channels * height * ((width + 1) // 2 if self.mirror else width)

    def forward(self, pixels: Tensor) -> Tensor:
        """Features [n, size] of length 1; of length 0 where an image gives none."""
        even = torch.einsum("dc,nchw->ndhw", self.whitening, self._normal(pixels) - self.centre[:, None, None])
        return nn.functional.normalize(even.flatten(1), dim=1)

    @torch.no_grad()
    def whiten_by(self, images: Tensor, power: float, ridge: float = 1e-3) -> None:
        """Subtract the images' mean and multiply by (covariance + ridge * mean variance)^-power, of a block's features.

        These must be images that need no protection, such as `dead_leaves`: their statistics go into the model. A power
        of 1/2 whitens; less leaves strong features stronger. Private training takes few noisy steps, and those go
        further where no direction dominates.
        """
        _check.in_range(0, 0.5, power=power)
        _check.positive(ridge=ridge)
        normal = torch.cat([self._normal(part) for part in torch.split(images, 256)])
        each = normal.movedim(1, -1).flatten(0, -2).double()
        self.centre.copy_(each.mean(0))
        variances, axes = torch.linalg.eigh(torch.cov(each.T))
        gains = (variances.clamp_min(0) + ridge * variances.mean()) ** -power
        self.whitening.copy_((axes * gains) @ axes.T)

    def _normal(self, pixels: Tensor) -> Tensor:
        if pixels.shape[1] == 3:
            pixels = torch.einsum("dc,nchw->ndhw", self.colours, pixels)
        found = self.scattering(pixels)
        if self.mirror:
            by_path = found.unflatten(1, (-1, self.scattering.paths))
            found = ((by_path + by_path[:, :, self.mirrored].flip(-1)) / 2).flatten(1, 2)
            found = found[..., : (found.shape[-1] + 1) // 2]
        return nn.functional.group_norm(found, self.groups)


def scattering_linear(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Fixed scattering features and a linear head: the only weights, without a bias, and 0 at first."""
    features = UnitFeatures(shape[0])
    head = nn.Linear(features.size(shape), classes, bias=False)
    nn.init.zeros_(head.weight)
    return nn.Sequential(OrderedDict(features=features, head=head))


def _mirrored_paths(scales: int, angles: int) -> list[int]:
    """Which path of an image has the values of each path of its mirror image: the one with the mirrored angles."""
    turned = [-turn % angles for turn in range(angles)]
    first = [1 + scale * angles + turn for scale in range(scales) for turn in turned]
    start, pairs = 1 + scales * angles, scales * (scales - 1) // 2
    second = [start + pair * angles**2 + a * angles + b for pair in range(pairs) for a in turned for b in turned]
    return [0, *first, *second]
