"""CIFAR-10, in its publisher's python and binary versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from counterpoise._check import InputError
from counterpoise.datasets import _fetch
from counterpoise.datasets._archive import Source, opened
from counterpoise.datasets._listing import check_options
from counterpoise.datasets._locate import cache_folder, locate
from counterpoise.datasets._pictures import scaled
from counterpoise.datasets._split import subset
from counterpoise.datasets._unpickle import read_batch
from counterpoise.interface import Images, Progress

PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
ADDRESS = "https://www.cs.toronto.edu/~kriz/"
SHA256 = {"cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"}
PLACES = ("cifar-10-python.tar.gz", "cifar-10-batches-py", "cifar-10-binary.tar.gz", "cifar-10-batches-bin", "cifar10*")
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN = tuple(f"data_batch_{index}" for index in range(1, 6))
TEST = ("test_batch",)
VALUES = 3 * 32 * 32

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


@dataclass(frozen=True)
class Cifar10:
    """Colour images of 32 x 32 pixels with the label `object` (Krizhevsky 2009), from a folder or a tar.

    With `fetch`, the python version is taken from the publisher and checked.
    """

    name: ClassVar[str] = "cifar10"
    root: str | None = None
    limit: int | None = None
    fetch: bool = False

    def __post_init__(self) -> None:
        check_options(limit=self.limit)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        if self.fetch:
            root = _fetch.fetch_all(ADDRESS, SHA256, cache_folder()) / next(iter(SHA256))
        else:
            root = locate(self.root, PLACES, "CIFAR-10", PAGE)
        with opened(root) as source:
            files = {batch: source.need(batch, f"{batch}.bin") for batch in (*TRAIN, *TEST)}
            read: dict[str, tuple[Bytes, Bytes]] = {}
            # In the archive's order: going back in a compressed tar means unpacking it again.
            for done, batch in enumerate(sorted(files, key=lambda batch: source.position[files[batch]]), start=1):
                read[batch] = _read(source, files[batch])
                progress(done / 6)
        return self._joined([read[batch] for batch in TRAIN]), self._joined([read[batch] for batch in TEST])

    def _joined(self, batches: Sequence[tuple[Bytes, Bytes]]) -> Images:
        values = np.concatenate([batch[0] for batch in batches])
        labels = np.concatenate([batch[1] for batch in batches])
        chosen = subset(len(values), self.limit).numpy()
        pixels = scaled(values[chosen].reshape(-1, 3, 32, 32))
        return Images("cifar10", pixels, {"object": torch.from_numpy(labels[chosen]).long()}, {"object": CLASSES})


def _read(source: Source, name: str) -> tuple[Bytes, Bytes]:
    """Values [n, 3072] and labels [n] of one batch, checked."""
    where = f"{source.path}/{name}"
    content = source.read(name)
    values, labels = _binary(content, where) if name.endswith(".bin") else _pickled(content, where)
    if len(values) != len(labels):
        raise InputError(f"{where}: {len(values)} images, but {len(labels)} labels; get the batch again.")
    if len(labels) and int(labels.max()) >= len(CLASSES):
        at = int(np.argmax(labels >= len(CLASSES)))
        raise InputError(f"{where}: label {labels[at]} of image {at} is out of range; labels go from 0 to 9.")
    return values, labels


def _binary(content: bytes, where: str) -> tuple[Bytes, Bytes]:
    if len(content) % (1 + VALUES):
        raise InputError(f"{where}: {len(content)} bytes are no whole number of images of {1 + VALUES} bytes.")
    records = np.frombuffer(content, np.uint8).reshape(-1, 1 + VALUES)
    return records[:, 1:], records[:, 0]


def _pickled(content: bytes, where: str) -> tuple[Bytes, Bytes]:
    batch = read_batch(content, where)
    values, labels = batch.get("data"), batch.get("labels")
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.shape[1] != VALUES:
        raise InputError(f"{where}: its 'data' is no array of {VALUES} bytes an image; give a batch of CIFAR-10.")
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise InputError(f"{where}: its 'labels' are no list of small whole numbers; give a batch of CIFAR-10.")
    return values, np.array(labels, np.uint8)
