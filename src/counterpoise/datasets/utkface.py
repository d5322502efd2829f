"""UTKFace: faces whose file names carry age, gender and race."""

from __future__ import annotations

import logging
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

GENDERS = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "Others")
AGES = tuple(str(age) for age in range(117))
PAGE = "https://susanqq.github.io/UTKFace/"
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+")


@dataclass(frozen=True)
class UtkFace:
    """Aligned faces with the labels `gender`, `race` and `age` in years, as the publisher names them.

    Names that lack a label, of which the published set has three, are left out, and logged.
    """

    name: ClassVar[str] = "utkface"
    root: str | None = None
    size: int | None = None
    test_share: float = 0.3
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        check_options(size=self.size, limit=self.limit, test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images, with equal shares of every pair of race and gender."""
        with opened(locate(self.root, ("utkface*", "UTKFace*"), "UTKFace", PAGE)) as source:
            listing = _listing(source)
            parts = listing.divide(2 * listing.labels["race"] + listing.labels["gender"], self.test_share, self.seed)
            train, test = read_pictures(source, parts, size=self.size, grey=False, limit=self.limit, progress=progress)
        return train, test


def _listing(source: Source) -> Listing:
    files, labels, left_out = [], [], []
    for name in sorted(name for name in source.names if is_picture(name)):
        found = _NAME.match(PurePosixPath(name).name)
        if found and int(found[1]) < len(AGES):
            files.append(name)
            labels.append([int(value) for value in found.groups()])
        else:
            left_out.append(name)
    if not files:
        raise InputError(f"{source.path}: no picture is named <age>_<gender>_<race>_<date>.jpg as in UTKFace.")
    if left_out:
        logging.getLogger(__name__).warning(
            "%s: %d picture(s) left out, whose names lack a label, such as %s.", source.path, len(left_out), left_out[0]
        )
    age, gender, race = torch.tensor(labels).T
    classes = {"gender": GENDERS, "race": RACES, "age": AGES}
    return Listing("utkface", files, {"gender": gender, "race": race, "age": age}, classes)
