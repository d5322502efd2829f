"""Cats vs. dogs, whose file names carry the label."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

import torch

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source, opened
from counterpoise.datasets._listing import Listing, check_options, read_pictures
from counterpoise.datasets._locate import locate
from counterpoise.datasets._pictures import is_picture
from counterpoise.interface import Images, Progress

CLASSES = ("cat", "dog")
PAGE = "https://www.kaggle.com/c/dogs-vs-cats"
_NAME = re.compile(r"(cat|dog)\.\d+\.")


@dataclass(frozen=True)
class CatsVsDogs:
    """Photographs named `cat.N.jpg` and `dog.N.jpg` with the label `animal`, resized because they differ in size."""

    name: ClassVar[str] = "cats-vs-dogs"
    root: str | None = None
    size: int = 64
    test_share: float = 0.3
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(size=self.size, limit=self.limit, test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images, both from the published training set: the other has no labels."""
        with opened(locate(self.root, ("dogs-vs-cats*",), "Dogs vs. Cats", PAGE)) as source:
            listing = _listing(source)
            parts = listing.divide(listing.labels["animal"], self.test_share, self.seed)
            train, test = read_pictures(source, parts, size=self.size, grey=False, limit=self.limit, progress=progress)
        return train, test


def _listing(source: Source) -> Listing:
    named = {name: _NAME.match(PurePosixPath(name).name) for name in sorted(source.names) if is_picture(name)}
    found = {name: match[1] for name, match in named.items() if match}
    if set(found.values()) != set(CLASSES):
        raise InputError(f"{source.path}: it must have pictures named cat.N.jpg and pictures named dog.N.jpg.")
    labels = torch.tensor([CLASSES.index(label) for label in found.values()])
    return Listing("cats-vs-dogs", list(found), {"animal": labels}, {"animal": CLASSES})
