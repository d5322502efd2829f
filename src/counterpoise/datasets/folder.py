"""Any folder with one sub-folder of pictures a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from counterpoise._check import InputError, at_least, inside
from counterpoise.datasets._pictures import SUFFIXES, is_picture, stack
from counterpoise.datasets._split import stratified
from counterpoise.interface import Images


@dataclass(frozen=True)
class Folder:
    """The sub-folders of `root` are the classes of the label `class`, in the order of their names.

    Where `root` has the folders `train` and `test`, these hold the classes; otherwise each class is divided.
    """

    name: ClassVar[str] = "folder"
    root: str
    size: int | None = None
    grey: bool = False
    test_share: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size is not None:
            at_least(1, size=self.size)
        inside(0, 1, test_share=self.test_share)
        at_least(0, seed=self.seed)

    def load(self) -> tuple[Images, Images]:
        """The training and the test images."""
        root = Path(self.root).expanduser()
        if not root.is_dir():
            raise InputError(f"root={self.root!r}: there is no such folder; name one with a sub-folder a class.")
        if not ((root / "train").is_dir() and (root / "test").is_dir()):
            whole = self._read(root, _class_names(root))
            train, test = stratified(whole.labels["class"], self.test_share, self.seed)
            return whole.take(train), whole.take(test)
        names = _class_names(root / "train")
        if extra := sorted(set(_class_names(root / "test")) - set(names)):
            raise InputError(f"{root / 'test' / extra[0]}: this class is not in {root / 'train'}; add or remove it.")
        return self._read(root / "train", names), self._read(root / "test", names)

    def _read(self, root: Path, names: Sequence[str]) -> Images:
        files: list[str] = []
        labels: list[int] = []
        for label, name in enumerate(names):
            folder = root / name
            found = sorted(str(f) for f in folder.iterdir() if is_picture(f.name)) if folder.is_dir() else []
            if not found:
                raise InputError(f"{folder}: this class has no image ({', '.join(SUFFIXES)}); add some or remove it.")
            files += found
            labels += [label] * len(found)
        pixels = stack(files, lambda file: Path(file).read_bytes(), size=self.size, grey=self.grey)
        return Images(root.name, pixels, {"class": torch.tensor(labels)}, {"class": tuple(names)})


def _class_names(root: Path) -> list[str]:
    names = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if len(names) < 2:
        raise InputError(f"{root}: {len(names)} sub-folder(s) with images; at least 2 classes are needed.")
    return names
