"""Images to look at: what a mechanism releases, and what the explainer draws on it, for one party and one degree."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from counterpoise._check import InputError

Bytes = NDArray[np.uint8]
Maps = NDArray[np.floating]


@dataclass(frozen=True)
class Gallery:
    """A few test images of one training.

    `images` (released) and `originals` are uint8 [n, height, width, channels] with 1 or 3 channels; `maps` are
    floats [levels, n, height, width], larger = more important, in the order of `levels`. `labels` and
    `predictions` are words, one an image; empty where there are none.
    """

    mechanism: str
    party: str
    degree: Decimal
    levels: tuple[Decimal, ...]
    images: Bytes
    originals: Bytes
    maps: Maps
    labels: tuple[str, ...] = ()
    predictions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"gallery of {self.mechanism!r} for {self.party!r}"
        for name, pixels in (("images", self.images), ("originals", self.originals)):
            if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[-1] not in (1, 3):
                raise InputError(
                    f"{where}: {name} must be uint8 [n, height, width, 1 or 3], not {pixels.dtype} {pixels.shape}."
                )
        if self.images.shape != self.originals.shape:
            raise InputError(f"{where}: images {self.images.shape} and originals {self.originals.shape} must agree.")
        expected = (len(self.levels), *self.images.shape[:3])
        if self.maps.shape != expected:
            raise InputError(f"{where}: maps must have shape {expected}, not {self.maps.shape}.")
        for name, words in (("labels", self.labels), ("predictions", self.predictions)):
            if words and len(words) != len(self.images):
                raise InputError(f"{where}: {len(words)} {name} for {len(self.images)} images.")
