"""Encoded pictures to pixels. Pillow is imported only when a picture is decoded."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.interface import Progress

SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".bmp")
MAX_PIXELS = 64_000_000
"""No picture of a data set has more; a small file that claims more is a decompression bomb."""


def is_picture(name: str) -> bool:
    """Whether the file's name ends like a picture's."""
    return name.lower().endswith(SUFFIXES)


def decode(content: bytes, where: str, size: int | None, grey: bool) -> Tensor:
    """The picture as uint8 [channels, height, width], resized to `size` x `size` where asked."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise InputError(
                    f"{where}: {picture.width} x {picture.height} pixels are more than the {MAX_PIXELS} allowed;"
                    " remove or shrink this image."
                )
            plain = picture.convert("L" if grey else "RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{where}: this image cannot be read (it is corrupt); remove or replace it.") from None
    if size is not None and plain.size != (size, size):
        plain = plain.resize((size, size), Image.Resampling.LANCZOS)
    values = torch.from_numpy(np.array(plain))
    return values.unsqueeze(0) if grey else values.permute(2, 0, 1)


def stack(
    names: Sequence[str],
    read: Callable[[str], bytes],
    *,
    size: int | None,
    grey: bool,
    progress: Progress = lambda done: None,
) -> Tensor:
    """All pictures as float32 [n, channels, height, width] in [0, 1]; they must agree in size."""
    pixels = torch.empty(0)
    for index, name in enumerate(names):
        one = decode(read(name), name, size, grey)
        if index == 0:
            pixels = torch.empty(len(names), *one.shape)
        elif one.shape != pixels.shape[1:]:
            raise InputError(
                f"{name}: {one.shape[2]} x {one.shape[1]} pixels, where {names[0]} has {pixels.shape[3]} x"
                f" {pixels.shape[2]}; give a size to which all images are resized."
            )
        pixels[index] = one / 255
        progress((index + 1) / len(names))
    return pixels
