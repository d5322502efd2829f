"""Random draws that belong to an image, wherever it stands.

The draws depend on the seed and on the image's content only: not on its batch, its position, or how many
are asked for at a time. Two equal images get equal draws, and therefore equal maps.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class ImageNoise:
    """Standard normal draws for each image: calling `take(3)` and `take(2)` gives the same numbers as `take(5)`."""

    def __init__(self, images: Tensor, seed: int) -> None:
        self._images = images
        self._streams = image_streams(images, seed)

    def take(self, samples: int, chosen: Tensor | None = None) -> Tensor:
        """The next draws, [n, samples, channels, height, width], in the images' precision and place.

        Of the chosen images only, where some are: the others' streams stay where they are.
        """
        streams = self._streams if chosen is None else [self._streams[index] for index in chosen.tolist()]
        draws = np.empty((len(streams), samples, *self._images.shape[1:]), dtype=np.float32)
        for stream, part in zip(streams, draws, strict=True):
            stream.standard_normal(dtype=np.float32, out=part)
        return torch.from_numpy(draws).to(self._images)


def image_streams(images: Tensor, seed: int) -> list[np.random.Generator]:
    """A generator for each image. Philox is keyed, not seeded: its 128-bit key is a hash of the seed and the pixels."""
    contents = images.detach().to("cpu", torch.float32).contiguous().numpy()
    return [np.random.Generator(np.random.Philox(key=_key(seed, content))) for content in contents]


def _key(seed: int, content: NDArray[np.float32]) -> int:
    words = f"{seed}/{content.shape}/".encode() + content.tobytes()
    return int.from_bytes(hashlib.sha256(words).digest()[:16], "little")
