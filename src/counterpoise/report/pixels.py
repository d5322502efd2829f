"""Pictures for the page: small PNG files, written here because a palette of 256 colours is all that maps need."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def png(pixels: Bytes, palette: Bytes | None = None) -> bytes:
    """A PNG of [height, width] (grey, or indices into `palette` [256, 3]) or [height, width, 3] (colour)."""
    height, width = pixels.shape[:2]
    kind = 2 if pixels.ndim == 3 else 3 if palette is not None else 0
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), rows]).tobytes()
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if kind == 3 and palette is not None:
        chunks.append((b"PLTE", palette.astype(np.uint8).tobytes()))
    chunks += [(b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def data_uri(content: bytes) -> str:
    """A PNG inside the page."""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def viridis() -> Bytes:
    """256 colours, dark to light, that stay in order for colour-blind readers and in grey print."""
    colours: Bytes = (colormaps["viridis"](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
    return colours


def image_strip(images: Sequence[Bytes]) -> bytes:
    """Images [h, w, c] side by side, one light pixel between two."""
    parts: list[Bytes] = []
    for image in images:
        gap = np.full((image.shape[0], 1, image.shape[2]), 255, dtype=np.uint8)
        parts += [image, gap]
    joined = np.concatenate(parts[:-1], axis=1)
    return png(joined[..., 0] if joined.shape[-1] == 1 else joined)


def map_strip(maps: Sequence[NDArray[np.floating]]) -> bytes:
    """Maps [h, w] side by side, each stretched over its own range, in viridis."""
    parts: list[Bytes] = []
    for values in maps:
        # The last colour is the gap between two maps, so maps use 255 of them.
        parts += [stretched(values, 254), np.full((values.shape[0], 1), 255, dtype=np.uint8)]
    palette = viridis()
    palette[255] = 255
    return png(np.concatenate(parts[:-1], axis=1), palette)


def stretched(values: NDArray[np.floating], top: int) -> Bytes:
    """A map as whole numbers from 0 to `top` over its own range; a constant map is 0, and so is what is not finite."""
    finite = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    span = float(np.ptp(finite))
    scaled = (finite - finite.min()) / span if span else np.zeros_like(finite)
    whole: Bytes = (scaled * top).round().astype(np.uint8)
    return whole
