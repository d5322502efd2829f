"""Standard normal (or Laplace) draws that belong to an image, wherever it stands.

The draws depend on the seed and on the image's content only: not on its batch, its position, or how many
are asked for at a time. Two equal images get equal draws, and therefore equal maps.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np
import torch
from torch import Tensor


class ImageNoise:
    """A stream of draws for each image: calling `take(3)` and `take(2)` gives the same numbers as `take(5)`."""

    def __init__(self, images: Tensor, seed: int, distribution: Literal["gaussian", "laplace"] = "gaussian") -> None:
        self._images = images
        self._gaussian = distribution == "gaussian"
        contents = images.detach().to("cpu", torch.float32).contiguous().numpy()
        self._streams = [_stream(seed, content) for content in contents]

    def take(self, samples: int) -> Tensor:
        """The next draws, [n, samples, channels, height, width], in the images' precision and place."""
        shape = (samples, *self._images.shape[1:])
        draws = [
            stream.standard_normal(shape, dtype=np.float32) if self._gaussian else stream.laplace(size=shape)
            for stream in self._streams
        ]
        return torch.from_numpy(np.stack(draws)).to(self._images)


def _stream(seed: int, content: np.ndarray) -> np.random.Generator:
    """Philox is keyed, not seeded: its 128-bit key is a hash of the seed and the pixels."""
    words = f"{seed}/{content.shape}/".encode() + content.tobytes()
    key = int.from_bytes(hashlib.sha256(words).digest()[:16], "little")
    return np.random.Generator(np.random.Philox(key=key))
