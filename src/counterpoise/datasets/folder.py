"""Any folder, zip or tar with one sub-folder of pictures a class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar

import torch

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source, opened
from counterpoise.datasets._listing import Listing, check_options, read_pictures
from counterpoise.datasets._pictures import SUFFIXES, is_picture
from counterpoise.interface import Images, Progress


@dataclass(frozen=True)
class Folder:
    """The sub-folders of `root` are the classes of the label `class`, in the order of their names.

    Where `root` has the folders `train` and `test`, these hold the classes; otherwise each class is divided.
    An archive whose files are all in one folder is read as if that folder were its root.
    """

    name: ClassVar[str] = "folder"
    root: str
    size: int | None = None
    grey: bool = False
    test_share: float = 0.3
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(size=self.size, limit=self.limit, test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images."""
        root = Path(self.root).expanduser()
        if not root.exists():
            raise InputError(f"root={self.root!r}: there is no such folder; name one with a sub-folder a class.")
        with opened(root) as source:
            parts = self._parts(source)
            train, test = read_pictures(
                source, parts, size=self.size, grey=self.grey, limit=self.limit, progress=progress
            )
        return train, test

    def _parts(self, source: Source) -> tuple[Listing, Listing]:
        top = _common_folder(source) if source.path.is_file() else ()
        folders = _folders(source, top)
        if {"train", "test"} <= {folder[0] for folder in folders if folder}:
            train = _listing(source, (*top, "train"))
            test = _listing(source, (*top, "test"), train.classes["class"])
            return train, test
        whole = _listing(source, top)
        return whole.divide(whole.labels["class"], self.test_share, self.seed)


def _parents(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts[:-1]


def _common_folder(source: Source) -> tuple[str, ...]:
    """The folder that all of an archive's files are in."""
    tops = {_parents(name)[:1] for name in source.names if is_picture(name)}
    return tops.pop() if len(tops) == 1 else ()


def _folders(source: Source, top: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Every folder below `top`, also the empty ones: a class without an image is a mistake, not no class."""
    names = [_parents(name) for name in source.names] + [PurePosixPath(name).parts for name in source.folders]
    depth = len(top)
    return {name[depth:] for name in names if name[:depth] == top and len(name) > depth}


def _listing(source: Source, top: tuple[str, ...], known: tuple[str, ...] | None = None) -> Listing:
    where = "/".join((str(source.path), *top))
    names = tuple(sorted({folder[0] for folder in _folders(source, top) if not folder[0].startswith(".")}))
    if known is None and len(names) < 2:
        raise InputError(f"{where}: {len(names)} sub-folder(s) with images; at least 2 classes are needed.")
    if known is not None and (extra := sorted(set(names) - set(known))):
        raise InputError(f"{where}/{extra[0]}: this class has no training images; add some or remove it.")
    pictures: dict[str, list[str]] = {name: [] for name in known or names}
    for name in sorted(name for name in source.names if is_picture(name)):
        parents = _parents(name)
        if parents[: len(top)] == top and len(parents) == len(top) + 1:
            pictures[parents[-1]].append(name)
    for name, found in pictures.items():
        if not found:
            raise InputError(f"{where}/{name}: this class has no image ({', '.join(SUFFIXES)}); add some or remove it.")
    labels = torch.tensor([label for label, found in enumerate(pictures.values()) for _ in found])
    files = [name for found in pictures.values() for name in found]
    return Listing(source.path.stem, files, {"class": labels}, {"class": tuple(pictures)})
