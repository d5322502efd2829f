"""Scattering: fixed features of an image, from wavelets instead of training.

An image is filtered by oriented Morlet wavelets, the moduli are filtered once more, and each result is averaged over
blocks of 2^scales pixels (Mallat, "Group invariant scattering", 2012; Bruna and Mallat 2013). Nothing is learned, so
the features cost no privacy, and a private training needs to learn a small head only (Tramèr and Boneh, ICLR 2021).

Everything is sampled at the centres of blocks, so that mirrored images have mirrored features.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise._check import InputError

WIDTH, FREQUENCY = 0.8, 3 * math.pi / 4
"""The finest wavelet's envelope in pixels, and its centre frequency; both halve in frequency from scale to scale."""


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
