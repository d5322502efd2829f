"""Encoded pictures to pixels. Pillow is imported only when a picture is decoded."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source
from counterpoise.interface import Progress

SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".bmp")
MOST_PIXELS = 64_000_000
"""No picture of a data set has more; a small file that claims more is a decompression bomb."""


def is_picture(name: str) -> bool:
    """Whether the file's name ends like a picture's."""
    return name.lower().endswith(SUFFIXES)


def decode(content: bytes, where: str, size: int | None, grey: bool) -> Tensor:
    """The picture as uint8 [channels, height, width], resized to `size` x `size` where asked."""
    from PIL import Image, UnidentifiedImageError

    corrupt = InputError(f"{where}: this image cannot be read, it is corrupt; remove or replace it.")
    try:
        picture = Image.open(io.BytesIO(content))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(where) from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        raise corrupt from None
    # The size stands in the header: refuse before anything is unpacked.
    if picture.width * picture.height > MOST_PIXELS:
        raise _too_large(where)
    try:
        plain = picture.convert("L" if grey else "RGB")
    except (OSError, SyntaxError, ValueError):
        raise corrupt from None
    if size is not None and plain.size != (size, size):
        plain = plain.resize((size, size), Image.Resampling.LANCZOS)
    values = torch.from_numpy(np.array(plain))
    return values.unsqueeze(0) if grey else values.permute(2, 0, 1)


def stack(
    source: Source, names: Sequence[str], *, size: int | None, grey: bool, progress: Progress = lambda done: None
) -> Tensor:
    """All pictures as float32 [n, channels, height, width] in [0, 1]; they must agree in size."""
    pixels = torch.empty(0)
    # Read in the archive's order: going back in a compressed tar means unpacking it again.
    order = sorted(range(len(names)), key=lambda index: source.position[names[index]])
    for done, index in enumerate(order, start=1):
        name = names[index]
        one = decode(source.read(name), f"{source.path}: {name}", size, grey)
        if done == 1:
            pixels = allocate((len(names), *one.shape))
        elif one.shape != pixels.shape[1:]:
            raise InputError(
                f"{source.path}: {name} has {one.shape[2]} x {one.shape[1]} pixels, but {names[order[0]]} has"
                f" {pixels.shape[3]} x {pixels.shape[2]}; give a size to which all images are resized."
            )
        torch.div(one, 255, out=pixels[index])
        progress(done / len(names))
    return pixels


def scaled(values: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Tensor:
    """Bytes [n, channels, height, width] as float32 in [0, 1]."""
    pixels = allocate(values.shape)
    for start in range(0, len(values), 4096):
        part = torch.from_numpy(values[start : start + 4096])
        torch.div(part, 255, out=pixels[start : start + 4096])
    return pixels


def allocate(shape: Sequence[int]) -> Tensor:
    """Room for pixels: in memory, or where half the machine's memory is too small, in a file mapped into it."""
    if 4 * prod(shape) <= _memory() // 2:
        return torch.empty(*shape)
    # The name is removed at once; the system frees the room when the last tensor on it is gone.
    handle, path = tempfile.mkstemp(prefix="counterpoise-", suffix=".pixels")
    os.close(handle)
    try:
        return torch.from_file(path, shared=True, size=prod(shape), dtype=torch.float32).reshape(*shape)
    finally:
        os.unlink(path)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _too_large(where: str) -> InputError:
    return InputError(
        f"{where}: this image has more than {MOST_PIXELS} pixels, as a decompression bomb has; remove or shrink it."
    )
