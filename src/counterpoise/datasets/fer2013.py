"""FER2013: faces with seven expressions, as the published table or as folders of images."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

import numpy as np
import torch

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source, opened
from counterpoise.datasets._listing import Listing, check_options, read_pictures
from counterpoise.datasets._locate import locate
from counterpoise.datasets._pictures import is_picture, scaled
from counterpoise.datasets._split import subset
from counterpoise.datasets._table import rows, whole
from counterpoise.interface import Images, Progress

CLASSES = ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")
USAGES = ("Training", "PublicTest", "PrivateTest")
SIDE = 48
PAGE = "https://www.kaggle.com/c/challenges-in-representation-learning-facial-expression-recognition-challenge"


@dataclass(frozen=True)
class Fer2013:
    """Grey faces of 48 x 48 pixels with the label `emotion` (Goodfellow et al. 2013).

    Training and public test images are used; the private test images stay apart, for `holdout`.
    """

    name: ClassVar[str] = "fer2013"
    root: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(limit=self.limit)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the public test images."""
        train, test = self._read(USAGES[:2], progress)
        return train, test

    def holdout(self, progress: Progress = lambda done: None) -> Images:
        """The private test images, for one last look after everything is decided."""
        return self._read(USAGES[2:], progress)[0]

    def _read(self, usages: tuple[str, ...], progress: Progress) -> list[Images]:
        root = locate(self.root, ("fer2013*",), "FER2013", PAGE)
        # The table alone may be given, instead of what it is in.
        folder = root.parent if root.suffix == ".csv" else root
        with opened(folder) as source:
            table = root.name if root.suffix == ".csv" else source.find("fer2013.csv")
            if table is not None:
                return _from_table(source, table, usages, self.limit, progress)
            listings = [_listing(source, usage) for usage in usages]
            return read_pictures(source, listings, size=None, grey=True, limit=self.limit, progress=progress)


def _images(pixels: torch.Tensor, labels: torch.Tensor) -> Images:
    return Images("fer2013", pixels, {"emotion": labels}, {"emotion": CLASSES})


def _from_table(
    source: Source, table: str, usages: tuple[str, ...], limit: int | None, progress: Progress
) -> list[Images]:
    """Columns emotion, pixels (2,304 numbers with spaces) and Usage."""
    where = f"{source.path}/{table}"
    kept: Mapping[str, list[tuple[int, str, int]]] = {usage: [] for usage in USAGES}
    for line, row in enumerate(rows(source, table, ("emotion", "pixels", "Usage")), start=2):
        if row["Usage"] not in kept:
            raise InputError(f"{where}: line {line} has the Usage {row['Usage']!r}, not one of {', '.join(USAGES)}.")
        label = whole(row["emotion"], len(CLASSES), f"{where}: line {line}")
        kept[row["Usage"]].append((label, row["pixels"], line))
    parts = []
    for done, usage in enumerate(usages):
        if not kept[usage]:
            raise InputError(f"{where}: it has no row with the Usage {usage!r}; get the complete data set.")
        chosen = [kept[usage][index] for index in subset(len(kept[usage]), limit).tolist()]
        values = np.empty((len(chosen), 1, SIDE, SIDE), np.uint8)
        for index, (_, numbers, line) in enumerate(chosen):
            values[index] = _face(numbers, f"{where}: line {line}")
            progress((done + (index + 1) / len(chosen)) / len(usages))
        parts.append(_images(scaled(values), torch.tensor([label for label, _, _ in chosen])))
    return parts


def _face(numbers: str, where: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    with warnings.catch_warnings():
        # numpy warns of text that is no number; here it is an error like a wrong count.
        warnings.simplefilter("error")
        try:
            values = np.fromstring(numbers, np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            values = np.empty(0, np.int64)
    if len(values) != SIDE * SIDE or values.min() < 0 or values.max() > 255:
        raise InputError(f"{where}: its pixels are not {SIDE * SIDE} numbers from 0 to 255; get the table again.")
    return values.astype(np.uint8).reshape(1, SIDE, SIDE)


def _listing(source: Source, usage: str) -> Listing:
    """The pictures <...>/<emotion>/<Usage>_<row>.png; without the Usage in the name, train and test folders count."""
    files, labels = [], []
    for name in sorted(name for name in source.names if is_picture(name)):
        path = PurePosixPath(name)
        if _usage(path) != usage:
            continue
        if path.parent.name not in CLASSES:
            raise InputError(f"{source.path}/{name}: {path.parent.name!r} is none of {', '.join(CLASSES)}.")
        files.append(name)
        labels.append(CLASSES.index(path.parent.name))
    if not files:
        raise InputError(f"{source.path}: it has no picture for {usage}; get the complete data set.")
    return Listing("fer2013", files, {"emotion": torch.tensor(labels)}, {"emotion": CLASSES})


def _usage(path: PurePosixPath) -> str:
    prefix = path.name.split("_")[0]
    if prefix in USAGES:
        return prefix
    return {"train": "Training", "test": "PublicTest"}.get(path.parent.parent.name, "")
