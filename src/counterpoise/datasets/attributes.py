"""Faces with tables of attributes: CelebA, and Labeled Faces in the Wild."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source, opened
from counterpoise.datasets._listing import Listing, check_options, read_pictures
from counterpoise.datasets._locate import locate
from counterpoise.datasets._pictures import is_picture
from counterpoise.datasets._table import encode, rows, text
from counterpoise.interface import Images, Progress

CELEBA_PAGE = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
LFW_PAGE = "http://vis-www.cs.umass.edu/lfw/"


@dataclass(frozen=True)
class CelebA:
    """Faces with 40 attributes, each a label of its own with the classes `no` and `yes`; and `identity` where given.

    The publisher's partition divides: 0 trains, 2 tests, and 1 (validation) stays apart, for `holdout`.
    """

    name: ClassVar[str] = "celeba"
    root: str | None = None
    size: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(size=self.size, limit=self.limit)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        train, test = self._read((0, 2), progress)
        return train, test

    def holdout(self, progress: Progress = lambda done: None) -> Images:
        """The validation images."""
        return self._read((1,), progress)[0]

    def _read(self, partitions: tuple[int, ...], progress: Progress) -> list[Images]:
        with opened(locate(self.root, ("celeba*", "CelebA*"), "CelebA", CELEBA_PAGE)) as source:
            listing, partition = _celeba(source)
            parts = [listing.take(torch.nonzero(partition == wanted).flatten()) for wanted in partitions]
            return read_pictures(source, parts, size=self.size, grey=False, limit=self.limit, progress=progress)


def _celeba(source: Source) -> tuple[Listing, Tensor]:
    """All pictures that the attribute table names, and the partition each is in."""
    table = source.need("list_attr_celeba.txt")
    attributes, values = _attributes(source, table)
    partition = _column(source, source.need("list_eval_partition.txt"))
    pictures = {PurePosixPath(name).name: name for name in source.names if is_picture(name)}
    for name in values:
        if name not in pictures or name not in partition:
            what = "picture" if name not in pictures else "line in list_eval_partition.txt"
            raise InputError(f"{source.path}/{table}: there is no {what} for {name}; get the complete data set.")
    matrix = torch.tensor(list(values.values()))
    labels = {attribute: matrix[:, index] for index, attribute in enumerate(attributes)}
    classes: dict[str, tuple[str, ...]] = dict.fromkeys(attributes, ("no", "yes"))
    if identities := source.find("identity_CelebA.txt"):
        identity = _column(source, identities)
        if missing := [name for name in values if name not in identity]:
            raise InputError(f"{source.path}/{identities}: there is no line for {missing[0]}; get the complete file.")
        labels["identity"], classes["identity"] = encode([identity[name] for name in values])
    for name in values:
        if partition[name] not in ("0", "1", "2"):
            raise InputError(f"{source.path}: list_eval_partition.txt has {partition[name]!r} for {name}, not 0, 1, 2.")
    numbers = torch.tensor([int(partition[name]) for name in values])
    return Listing("celeba", [pictures[name] for name in values], labels, classes), numbers


def _attributes(source: Source, table: str) -> tuple[list[str], Mapping[str, list[int]]]:
    """The publisher's format: the number of rows, the names, and rows of a file name with 1 or -1 for each name."""
    where = f"{source.path}/{table}"
    lines = text(source, table).read().splitlines()
    if len(lines) < 2 or not lines[0].strip().isdecimal():
        raise InputError(f"{where}: it must begin with the number of rows and a line of names.")
    attributes = lines[1].split()
    values: dict[str, list[int]] = {}
    for number, line in enumerate(lines[2:], start=3):
        name, *marks = line.split()
        if len(marks) != len(attributes) or not set(marks) <= {"1", "-1"}:
            raise InputError(f"{where}: line {number} must have a name and {len(attributes)} values, each 1 or -1.")
        values[name] = [int(mark == "1") for mark in marks]
    if len(values) != int(lines[0]):
        raise InputError(f"{where}: its first line promises {int(lines[0])} rows, but it has {len(values)}.")
    return attributes, values


def _column(source: Source, table: str) -> Mapping[str, str]:
    """Lines of a file name and one value."""
    found: dict[str, str] = {}
    for number, line in enumerate(text(source, table), start=1):
        words = line.split()
        if len(words) != 2:
            raise InputError(f"{source.path}/{table}: line {number} must have a file name and one value.")
        found[words[0]] = words[1]
    return found


@dataclass(frozen=True)
class Lfw:
    """One folder of faces a person, with the label `person`; and `gender` where `people.csv` tells it."""

    name: ClassVar[str] = "lfw"
    root: str | None = None
    size: int | None = None
    test_share: float = 0.3
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(size=self.size, limit=self.limit, test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images, with equal shares of every person."""
        with opened(locate(self.root, ("lfw*",), "Labeled Faces in the Wild", LFW_PAGE)) as source:
            listing = _lfw(source)
            parts = listing.divide(listing.labels["person"], self.test_share, self.seed)
            train, test = read_pictures(source, parts, size=self.size, grey=False, limit=self.limit, progress=progress)
        return train, test


def _lfw(source: Source) -> Listing:
    files = sorted(name for name in source.names if is_picture(name))
    if not files:
        raise InputError(f"{source.path}: it has no picture; get the complete data set.")
    people = [PurePosixPath(name).parent.name for name in files]
    person, names = encode(people)
    labels, classes = {"person": person}, {"person": names}
    if table := source.find("people.csv"):
        gender = {row["name"]: row["gender"] for row in rows(source, table, ("name", "gender"))}
        if missing := [name for name in names if name not in gender]:
            raise InputError(f"{source.path}/{table}: there is no row for {missing[0]}; add it.")
        labels["gender"], classes["gender"] = encode([gender[name] for name in people])
    return Listing("lfw", files, labels, classes)
