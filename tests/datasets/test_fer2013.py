"""FER2013 as a table and as folders: the same faces, and a private test that stays apart."""

import csv
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_sets import DATA, counts, packed, picture, value

from counterpoise._check import InputError
from counterpoise.datasets._archive import opened
from counterpoise.datasets.fer2013 import Fer2013, _listing


def fer_table(rows: list[tuple[object, object, object]]) -> str:
    return "emotion,pixels,Usage\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def face(level: int) -> str:
    return " ".join([str(level)] * 2304)


ROWS: list[tuple[object, object, object]] = [
    (3, face(3), "Training"),
    (6, face(6), "PrivateTest"),
    (0, face(0), "Training"),
    (5, face(5), "PublicTest"),
]


def test_fer_table_keeps_the_private_test_apart(tmp_path: Path) -> None:
    (tmp_path / "fer2013.csv").write_text(fer_table(ROWS))
    inside = packed(tmp_path / "fer2013.zip", {"fer2013/fer2013.csv": fer_table(ROWS)})
    for root in (str(tmp_path / "fer2013.csv"), inside):
        train, test = Fer2013(root).load()
        assert (train.shape, len(train.classes["emotion"])) == ((1, 48, 48), 7)
        assert value(train).tolist() == train.labels["emotion"].tolist() == [3, 0]
        assert value(test).tolist() == test.labels["emotion"].tolist() == [5]
        assert value(Fer2013(root).holdout()).tolist() == [6]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((7, face(1), "Training"), r"line 3: label '7' is out of range; labels go from 0 to 6\.$"),
        (("happy", face(1), "Training"), r"line 3: label 'happy' is out of range"),
        ((1, face(256), "Training"), r"line 3: its pixels are not 2304 numbers from 0 to 255; get the table again\.$"),
        ((1, face(1)[:-2], "Training"), r"line 3: its pixels are not 2304 numbers"),
        ((1, face(1) + " x", "Training"), r"line 3: its pixels are not 2304 numbers"),
        ((1, "", "Training"), r"line 3: its pixels are not 2304 numbers"),
        ((1, face(1), "Test"), r"line 3 has the Usage 'Test', not one of Training, PublicTest, PrivateTest\.$"),
    ],
)
def test_wrong_rows_of_the_fer_table(row: tuple[object, object, object], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "fer2013.csv").write_text(fer_table([ROWS[0], row, ROWS[3]]))
    with pytest.raises(InputError, match=r"fer2013\.csv: " + sentence):
        Fer2013(str(tmp_path)).load()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("emotion,pixels\n1,2\n", r"it has no column 'Usage', its first line is: emotion, pixels\.$"),
        ("", r"it has no column 'emotion', its first line is: nothing\.$"),
        ("emotion,pixels,Usage\n1\n", r"line 2 has too few values\.$"),
        ("emotion,pixels,Usage\n", r"it has no row with the Usage 'Training'; get the complete data set\.$"),
    ],
)
def test_wrong_fer_tables(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "fer2013.csv").write_text(text)
    with pytest.raises(InputError, match=r"fer2013\.csv: " + sentence):
        Fer2013(str(tmp_path)).load()


def test_fer_folders_whose_names_tell_no_usage(tmp_path: Path) -> None:
    names = [f"{part}/{emotion}/1.png" for part in ("train", "test") for emotion in ("sad", "fear")]
    root = packed(tmp_path / "f.zip", dict.fromkeys(names, picture(9)))
    train, test = Fer2013(root).load()
    assert counts("emotion", train) == counts("emotion", test) == [0, 0, 1, 0, 1]
    with pytest.raises(InputError, match=r"f\.zip: it has no picture for PrivateTest; get the complete data set\.$"):
        Fer2013(root).holdout()


def test_the_published_fer_subset_and_its_table_agree(tmp_path: Path) -> None:
    train, test = Fer2013(DATA, limit=300).load()
    assert (len(train), len(test), train.shape) == (300, 300, (1, 48, 48))
    with zipfile.ZipFile(Path(DATA) / "fer2013-png.zip") as archive:
        index = list(csv.DictReader(archive.read("index.csv").decode().splitlines()))
        chosen = [row for row in index if row["Usage"] == "PublicTest"][:5]
        pixels = [np.asarray(Image.open(BytesIO(archive.read(row["path"])))) for row in chosen]
    rows = [
        (row["emotion"], " ".join(map(str, array.flatten())), usage)
        for row, array in zip(chosen, pixels, strict=True)
        for usage in ("Training", "PublicTest")
    ]
    (tmp_path / "fer2013.csv").write_text(fer_table(list(rows)))
    table = Fer2013(str(tmp_path)).load()[1]
    assert torch.equal((table.pixels * 255).round().byte().flatten(1), torch.from_numpy(np.stack(pixels)).flatten(1))
    assert table.labels["emotion"].tolist() == [int(row["emotion"]) for row in chosen]


def test_the_published_fer_counts() -> None:
    with opened(Path(DATA) / "fer2013-png.zip") as source:
        found = {usage: _listing(source, usage) for usage in ("Training", "PublicTest", "PrivateTest")}
    expected = {
        "Training": [2780, 305, 2857, 5033, 3359, 2214, 3454],
        "PublicTest": [466, 56, 496, 891, 652, 414, 604],
        "PrivateTest": [489, 55, 527, 876, 588, 414, 624],
    }
    assert {usage: listing.labels["emotion"].bincount().tolist() for usage, listing in found.items()} == expected
