"""Any table of labels beside pictures, and APTOS 2019, which is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

import torch

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source, opened
from counterpoise.datasets._listing import Listing, check_options, read_pictures
from counterpoise.datasets._locate import locate
from counterpoise.datasets._pictures import is_picture
from counterpoise.datasets._table import encode, rows
from counterpoise.interface import Images, Progress


@dataclass(frozen=True)
class CsvFolder:
    """A comma-separated `table` names pictures in column `image`; each column in `labels` is a label.

    A picture may be named with or without its folder and its ending. Classes are the values of a column in their
    order, and the first label's classes are divided equally into training and test.
    """

    name: ClassVar[str] = "csv-folder"
    root: str
    table: str
    image: str
    labels: tuple[str, ...] | list[str]
    size: int | None = None
    grey: bool = False
    test_share: float = 0.3
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if not self.labels:
            raise InputError("labels=[] must name at least one column of the table.")
        check_options(size=self.size, limit=self.limit, test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        with opened(Path(self.root).expanduser()) as source:
            parts = self._listing(source)
            train, test = read_pictures(
                source, parts, size=self.size, grey=self.grey, limit=self.limit, progress=progress
            )
        return train, test

    def _listing(self, source: Source) -> tuple[Listing, Listing]:
        table = source.need(self.table)
        found = list(rows(source, table, (self.image, *self.labels)))
        if not found:
            raise InputError(f"{source.path}/{table}: it has no rows; add some.")
        pictures = _by_name(source)
        files = []
        for row in found:
            if row[self.image] not in pictures:
                raise InputError(f"{source.path}/{table}: there is no picture named {row[self.image]!r}; add it.")
            files.append(pictures[row[self.image]])
        encoded = {label: encode([row[label] for row in found]) for label in self.labels}
        labels = {label: values for label, (values, _) in encoded.items()}
        classes = {label: names for label, (_, names) in encoded.items()}
        whole = Listing(source.path.stem, files, labels, classes)
        return whole.divide(labels[self.labels[0]], self.test_share, self.seed)


def _by_name(source: Source) -> Mapping[str, str]:
    """Every picture by its full name, its name, and its name without the ending."""
    found: dict[str, str] = {}
    for name in source.names:
        if is_picture(name):
            path = PurePosixPath(name)
            for spelled in (name, path.name, path.stem):
                found.setdefault(spelled, name)
    return found


APTOS_GRADES = ("none", "mild", "moderate", "severe", "proliferative")


@dataclass(frozen=True)
class Aptos:
    """Fundus photographs with the labels `grade` of retinopathy and `disease` (any grade but none); APTOS 2019."""

    name: ClassVar[str] = "aptos2019"
    root: str | None = None
    size: int = 128
    test_share: float = 0.3
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(size=self.size, limit=self.limit, test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images, both from the published training set: the other has no labels."""
        page = "https://www.kaggle.com/c/aptos2019-blindness-detection"
        root = locate(self.root, ("aptos2019*",), "APTOS 2019", page)
        table = CsvFolder(
            str(root), "train.csv", "id_code", ("diagnosis",), self.size, False, self.test_share, self.seed, self.limit
        )
        train, test = table.load(progress)
        return _graded(train, root), _graded(test, root)


def _graded(images: Images, root: Path) -> Images:
    found = images.classes["diagnosis"]
    if not set(found) <= set("01234"):
        raise InputError(f"{root}/train.csv: a diagnosis is out of range; grades go from 0 to 4, not {found[-1]!r}.")
    grade = torch.tensor([int(name) for name in found])[images.labels["diagnosis"]]
    labels = {"grade": grade, "disease": (grade > 0).long()}
    return Images("aptos2019", images.pixels, labels, {"grade": APTOS_GRADES, "disease": ("no", "yes")})
