"""One sub-folder a class: what is read, and one sentence for everything that is wrong."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoise._check import InputError
from counterpoise.datasets.folder import Folder


def write(path: Path, value: int, size: tuple[int, int] = (8, 8), mode: str = "L") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
    Image.fromarray(np.full(shape, value, np.uint8), mode).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for index in range(5):
        write(tmp_path / "pets" / "cat" / f"{index}.png", 10 * index)
        write(tmp_path / "pets" / "dog" / f"{index}.pgm", 200 + 10 * index)
    return tmp_path / "pets"


def test_classes_are_the_sub_folders_in_order(root: Path) -> None:
    (root / "cat" / "notes.txt").write_text("not a picture")
    train, test = Folder(str(root), grey=True).load()
    assert train.classes == {"class": ("cat", "dog")}
    assert (len(train), len(test)) == (6, 4)
    values = {round(255 * float(image.mean())) for image in [*train.pixels, *test.pixels]}
    assert values == {*range(0, 50, 10), *range(200, 250, 10)}
    for part in (train, test):
        assert torch.equal(part.labels["class"], (part.pixels.mean((1, 2, 3)) > 0.5).long())


def test_colour_is_the_default_and_size_resizes(root: Path) -> None:
    write(root / "cat" / "large.png", 0, (30, 20))
    train, _ = Folder(str(root), size=5).load()
    assert train.shape == (3, 5, 5)


def test_train_and_test_folders_are_kept_apart(tmp_path: Path) -> None:
    for label in ("a", "b"):
        write(tmp_path / "train" / label / "1.png", 0)
        write(tmp_path / "train" / label / "2.png", 0)
        write(tmp_path / "test" / label / "1.png", 255)
    train, test = Folder(str(tmp_path)).load()
    assert (len(train), float(train.pixels.max())) == (4, 0.0)
    assert (len(test), float(test.pixels.min())) == (2, 1.0)


def refused(root: Path, sentence: str, **options: object) -> None:
    with pytest.raises(InputError, match=sentence):
        Folder(str(root), **options).load()  # type: ignore[arg-type]


def test_a_missing_folder(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    refused(absent, rf"^root='{re.escape(str(absent))}': there is no such folder; name one with a sub-folder a class")


def test_a_class_with_no_image(root: Path) -> None:
    (root / "emu").mkdir()
    refused(root, rf"^{re.escape(str(root / 'emu'))}: this class has no image \(\.png.*\); add some or remove it\.$")


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_class_with_no_image_is_missed_in_an_archive_too(root: Path, kind: str) -> None:
    assert len(Folder(shutil.make_archive(str(root), kind, root.parent, "pets")).load()[0]) == 6
    (root / "emu").mkdir()
    archive = shutil.make_archive(str(root), kind, root.parent, "pets")
    refused(Path(archive), rf"{kind}/pets/emu: this class has no image \(\.png.*\); add some or remove it\.$")


def test_a_class_that_only_the_test_has(tmp_path: Path) -> None:
    for part, label in (("train", "a"), ("train", "b"), ("test", "a"), ("test", "c")):
        write(tmp_path / part / label / "1.png", 0)
    refused(tmp_path, r"/test/c: this class has no training images; add some or remove it\.$")


def test_fewer_than_two_classes(tmp_path: Path) -> None:
    write(tmp_path / "only" / "1.png", 0)
    refused(tmp_path, r"1 sub-folder\(s\) with images; at least 2 classes are needed\.$")


@pytest.mark.parametrize("content", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 50])
def test_a_corrupt_image_is_named(root: Path, content: bytes) -> None:
    (root / "dog" / "broken.png").write_bytes(content)
    refused(root, r"dog/broken\.png: this image cannot be read, it is corrupt; remove or replace it\.$")


def test_a_truncated_image_is_named(root: Path) -> None:
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8)).save(root / "dog" / "cut.png")
    whole = (root / "dog" / "cut.png").read_bytes()
    (root / "dog" / "cut.png").write_bytes(whole[: len(whole) // 2])
    refused(root, r"dog/cut\.png: this image cannot be read, it is corrupt", size=8)


def test_sizes_that_differ(root: Path) -> None:
    write(root / "dog" / "wide.png", 0, (9, 8))
    refused(
        root,
        r"dog/wide\.png has 9 x 8 pixels, but cat/\d\.png has 8 x 8; give a size to which all images are resized\.$",
        grey=True,
    )


@pytest.mark.parametrize("size", [0, -1, 2.5])
def test_a_wrong_size(size: int) -> None:
    with pytest.raises(InputError, match=rf"^size={size} must be a whole number, 1 or above\.$"):
        Folder("anywhere", size=size)
