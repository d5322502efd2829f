"""The MNIST family: idx files of bytes, plain or gzipped."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from counterpoise._check import InputError, at_least
from counterpoise.datasets import _fetch
from counterpoise.datasets._archive import Source, damaged, gunzipped, opened
from counterpoise.datasets._listing import check_options
from counterpoise.datasets._locate import cache_folder, locate
from counterpoise.datasets._pictures import scaled
from counterpoise.datasets._split import subset
from counterpoise.interface import Images, Progress

IMAGES, LABELS = 2051, 2049
"""The magic numbers: unsigned bytes in three dimensions, and in one."""

MNIST_PAGE = "http://yann.lecun.com/exdb/mnist/"
MNIST_ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist/"
MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}


@dataclass(frozen=True)
class Idx:
    """Four idx files in a folder, zip or tar, named `train-...` and `t10k-...` or `test-...`; the label is `class`."""

    name: ClassVar[str] = "idx"
    root: str
    classes: int = 10
    limit: int | None = None

    def __post_init__(self) -> None:
        at_least(2, classes=self.classes)
        check_options(limit=self.limit)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        names = tuple(str(label) for label in range(self.classes))
        parts = []
        with opened(Path(self.root).expanduser()) as source:
            for index, part in enumerate((("train",), ("t10k", "test"))):
                pixels, labels = _read_part(source, part, self.classes, self.limit)
                parts.append(Images(source.path.stem, pixels, {"class": labels}, {"class": names}))
                progress((index + 1) / 2)
        return parts[0], parts[1]


@dataclass(frozen=True)
class Mnist:
    """60,000 and 10,000 grey images of 28 x 28 pixels with the labels `digit` and `parity` (LeCun and Cortes).

    With `fetch`, missing files are taken from the copy that the CVDF hosts for the publisher, and checked.
    """

    name: ClassVar[str] = "mnist"
    root: str | None = None
    limit: int | None = None
    fetch: bool = False

    def __post_init__(self) -> None:
        check_options(limit=self.limit)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        if self.fetch:
            root = _fetch.fetch_all(MNIST_ADDRESS, MNIST_SHA256, cache_folder() / "mnist")
        else:
            root = locate(self.root, ("mnist", "mnist.zip", "MNIST/raw"), "MNIST", MNIST_PAGE)
        train, test = Idx(str(root), limit=self.limit).load(progress)
        return _with_parity(train), _with_parity(test)


def _with_parity(images: Images) -> Images:
    digit = images.labels["class"]
    classes = {"digit": images.classes["class"], "parity": ("even", "odd")}
    return Images("mnist", images.pixels, {"digit": digit, "parity": digit % 2}, classes)


def _read_part(source: Source, part: tuple[str, ...], classes: int, limit: int | None) -> tuple[Tensor, Tensor]:
    label_file, image_file = (_only(source, part, kind) for kind in ("labels", "images"))
    labels = read_idx(source, label_file, LABELS)
    if len(labels) and int(labels.max()) >= classes:
        where = int(np.argmax(labels >= classes))
        raise InputError(
            f"{source.path}/{label_file}: label {labels[where]} of image {where} is out of range; with"
            f" classes={classes} labels go from 0 to {classes - 1}."
        )
    images = read_idx(source, image_file, IMAGES)
    if len(images) != len(labels):
        raise InputError(
            f"{source.path}: {image_file} has {len(images)} images, but {label_file} has {len(labels)} labels;"
            " get both from the same release."
        )
    chosen = subset(len(images), limit).numpy()
    return scaled(images[chosen][:, None]), torch.from_numpy(labels[chosen]).long()


def _only(source: Source, part: tuple[str, ...], kind: str) -> str:
    found = [name for name in source.names if f"{kind}" in Path(name).name and any(p in Path(name).name for p in part)]
    # A file may be there as it is and gzipped.
    found = [name for name in found if not (name.endswith(".gz") and name.removesuffix(".gz") in found)]
    if len(found) != 1:
        raise InputError(
            f"{source.path}: {len(found)} files are named like {part[0]}-{kind}-idx*-ubyte[.gz]; exactly one is needed."
        )
    return found[0]


def read_idx(source: Source, name: str, magic: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The array of one idx file, after checking its magic number and its size."""
    where = f"{source.path}/{name}"
    content = gunzipped(where, source.read(name))
    dimensions = magic & 0xFF
    head = 4 * (1 + dimensions)
    found = int.from_bytes(content[:4], "big")
    if len(content) >= 4 and found != magic:
        kind = "images" if magic == IMAGES else "labels"
        raise InputError(f"{where}: its magic number is {found}, where idx {kind} have {magic}; give the right file.")
    if len(content) < head:
        raise damaged(where, EOFError("it ends within its header"))
    shape = struct.unpack(f">{dimensions}I", content[4:head])
    claimed = int(np.prod(shape, dtype=object))
    if len(content) - head != claimed:
        raise InputError(
            f"{where}: its header promises {claimed} bytes ({' x '.join(map(str, shape))}), but {len(content) - head}"
            " follow; get the complete file."
        )
    if not claimed:
        raise InputError(
            f"{where}: its header promises nothing ({' x '.join(map(str, shape))}); get the complete file."
        )
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)
