"""Sets of pictures with labels in names, folders and tables: made small here, and the real ones by their counts."""

import logging
from pathlib import Path

import pytest
import torch
from small_sets import DATA, counts, packed, picture, value

from counterpoise._check import InputError
from counterpoise.datasets.attributes import CelebA, Lfw
from counterpoise.datasets.cats_dogs import CatsVsDogs
from counterpoise.datasets.csv_folder import Aptos, CsvFolder
from counterpoise.datasets.folder import Folder
from counterpoise.datasets.utkface import UtkFace


def test_utkface_names_carry_labels_and_broken_names_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    people = [(gender, race, day) for gender in (0, 1) for race in (1, 2) for day in (1, 2)]
    names = [f"{10 * gender + race}_{gender}_{race}_201{day}.jpg.chip.png" for gender, race, day in people]
    files = {f"UTKFace/{name}": picture(int(name.split("_")[0])) for name in names}
    files |= {f"UTKFace/9{name}": picture(0) for name in ("9_1_2017.png", "_0_7_2017.png", "99_0_1_2017.png")}
    with caplog.at_level(logging.WARNING):
        train, test = UtkFace(packed(tmp_path / "utkface.zip", files), test_share=0.5).load()
    assert "3 picture(s) left out, whose names lack a label, such as UTKFace/9" in caplog.text
    for part in (train, test):
        assert torch.equal(value(part), part.labels["age"])
        assert torch.equal(part.labels["age"], 10 * part.labels["gender"] + part.labels["race"])
    assert counts("gender", test) == [2, 2]


def test_utkface_without_a_usable_name(tmp_path: Path) -> None:
    root = packed(tmp_path / "u.zip", {"face.png": picture(1)})
    with pytest.raises(InputError, match=r"u\.zip: no picture is named <age>_<gender>_<race>_<date>\.jpg as in UTKF"):
        UtkFace(root).load()


def test_the_published_utkface(caplog: pytest.LogCaptureFixture) -> None:
    train, test = UtkFace(DATA).load()
    assert (len(train) + len(test), train.shape) == (8002, (3, 64, 64))
    assert counts("gender", train, test) == [4170, 3832]
    assert counts("race", train, test) == [3389, 1527, 1137, 1370, 579]
    ages = torch.cat([train.labels["age"], test.labels["age"]])
    assert (int(ages.min()), int(ages.max())) == (1, 116)
    assert "3 picture(s) left out" in caplog.text


def celeba(**changed: str) -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {f"img_align_celeba/00000{k}.png": picture(k) for k in range(1, 5)}
    rows = ["000001.png 1 -1", "000002.png -1  1", "000003.png -1 -1", "000004.png 1  1"]
    files["list_attr_celeba.txt"] = "\n".join(["4", "Smiling Male ", *rows, ""])
    for table, column in (("list_eval_partition.txt", "0 2 0 1"), ("identity_CelebA.txt", "9 10 9 2")):
        files[table] = "".join(f"00000{k}.png {entry}\n" for k, entry in enumerate(column.split(), start=1))
    return files | {name.replace("__", "."): content for name, content in changed.items()}


def test_celeba_tables(tmp_path: Path) -> None:
    data = CelebA(packed(tmp_path / "celeba.zip", celeba()))
    train, test = data.load()
    assert (value(train).tolist(), value(test).tolist(), value(data.holdout()).tolist()) == ([1, 3], [2], [4])
    assert (train.labels["Smiling"].tolist(), test.labels["Male"].tolist()) == ([1, 0], [1])
    assert train.classes["Smiling"] == ("no", "yes")
    assert train.classes["identity"] == ("2", "9", "10")
    assert train.labels["identity"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("list_attr_celeba__txt", "", r"it must begin with the number of rows and a line of names\.$"),
        ("list_attr_celeba__txt", "2\nMale\n000001.png 1\n", r"its first line promises 2 rows, but it has 1\.$"),
        ("list_attr_celeba__txt", "1\nMale\n000001.png 0\n", r"line 3 must have a name and 1 values, each 1 or -1\.$"),
        (
            "list_attr_celeba__txt",
            "1\nMale\n9.png 1\n",
            r"there is no picture for 9\.png; get the complete",
        ),
        ("list_eval_partition__txt", "000001.png 0\n", r"there is no line in list_eval_partition\.txt for 000002\.png"),
        ("list_eval_partition__txt", "000001.png\n", r"line 1 must have a file name and one value\.$"),
        (
            "list_eval_partition__txt",
            "".join(f"00000{k}.png 3\n" for k in range(1, 5)),
            r"list_eval_partition\.txt has '3' for 000001\.png, not 0, 1, 2\.$",
        ),
        ("identity_CelebA__txt", "000001.png 1\n", r"there is no line for 000002\.png; get the complete file\.$"),
    ],
)
def test_wrong_celeba_tables(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"celeba\.zip.*: " + sentence):
        CelebA(packed(tmp_path / "celeba.zip", celeba(**{name: text}))).load()


def test_a_table_that_is_no_text(tmp_path: Path) -> None:
    root = packed(tmp_path / "celeba.zip", celeba() | {"list_attr_celeba.txt": b"\xff\xfe\x00"})
    with pytest.raises(InputError, match=r"list_attr_celeba\.txt: this is no UTF-8 text; save it again as UTF-8\.$"):
        CelebA(root).load()


def test_the_published_celeba() -> None:
    data = CelebA(DATA)
    parts = [*data.load(), data.holdout()]
    assert [len(part) for part in parts] == [4130, 415, 455]
    for attribute, yes in (("Smiling", 2406), ("Male", 2354), ("Young", 3766), ("Eyeglasses", 380)):
        assert counts(attribute, *parts)[1] == yes
    assert counts("identity", *parts) == [5] * 1000


def test_lfw_without_its_table_knows_the_people_only(tmp_path: Path) -> None:
    files = {f"lfw/{who}/{who}_000{k}.png": picture(k) for who in ("Ann", "Bob") for k in (1, 2)}
    train, _ = Lfw(packed(tmp_path / "lfw.zip", files)).load()
    assert train.classes == {"person": ("Ann", "Bob")}
    wrong = packed(tmp_path / "lfw2.zip", files | {"people.csv": "name,gender\nAnn,female\n"})
    with pytest.raises(InputError, match=r"people\.csv: there is no row for Bob; add it\.$"):
        Lfw(wrong).load()


def test_the_published_lfw() -> None:
    train, test = Lfw(DATA).load()
    assert len(train) + len(test) == 2155
    people = counts("person", train, test)
    assert (len(people), min(people), max(people)) == (62, 20, 60)
    person, gender = (torch.cat([part.labels[label] for part in (train, test)]) for label in ("person", "gender"))
    women = set(person[gender == 0].tolist())
    assert (train.classes["gender"], len(women)) == (("female", "male"), 12)


def test_the_published_aptos() -> None:
    train, test = Aptos(DATA).load()
    assert counts("grade", train, test) == [493, 101, 273, 53, 81]
    assert counts("disease", train, test) == [493, 508]
    assert train.shape == (3, 128, 128)
    assert train.classes["grade"][0] == "none"


def test_aptos_refuses_an_unknown_grade(tmp_path: Path) -> None:
    files = {"train.csv": "id_code,diagnosis\na,0\nb,5\nc,0\n"} | {f"train_images/{k}.png": picture(1) for k in "abc"}
    with pytest.raises(InputError, match=r"train\.csv: a diagnosis is out of range; grades go from 0 to 4, not '5'\.$"):
        Aptos(packed(tmp_path / "aptos.zip", files)).load()


def test_the_published_cats_and_dogs() -> None:
    train, test = CatsVsDogs(DATA).load()
    assert (len(train), len(test)) == (2800, 1200)
    assert counts("animal", train, test) == [2000, 2000]


def test_cats_without_dogs(tmp_path: Path) -> None:
    root = packed(tmp_path / "c.zip", {"train/cat.1.png": picture(1), "train/wolf.1.png": picture(1)})
    with pytest.raises(InputError, match=r"c\.zip: it must have pictures named cat\.N\.jpg and pictures named dog\.N"):
        CatsVsDogs(root).load()


def test_the_published_orl_faces_are_a_folder_per_class() -> None:
    train, test = Folder(f"{DATA}/orl-faces.zip", grey=True).load()
    assert (train.shape, len(train.classes["class"])) == ((1, 112, 92), 40)
    assert counts("class", train, test) == [10] * 40


def test_any_table_beside_pictures(tmp_path: Path) -> None:
    table = "file,kind,age\n" + "".join(f"{k},{'ab'[k % 2]},{k}\n" for k in range(8, 14))
    files = {"labels.csv": table} | {f"photos/{k}.png": picture(k) for k in range(8, 14)}
    root = packed(tmp_path / "any.zip", files)
    train, test = CsvFolder(root, "labels.csv", "file", ["kind", "age"]).load()
    assert train.classes == {"kind": ("a", "b"), "age": ("8", "9", "10", "11", "12", "13")}
    for part in (train, test):
        assert torch.equal(value(part) % 2, part.labels["kind"])
        assert torch.equal(value(part) - 8, part.labels["age"])
    assert counts("kind", test) == [1, 1]
    with pytest.raises(InputError, match=r"labels\.csv: it has no column 'sex', its first line is: file, kind, age\.$"):
        CsvFolder(root, "labels.csv", "file", ("sex",)).load()
    with pytest.raises(InputError, match=r"^labels=\[\] must name at least one column of the table\.$"):
        CsvFolder(root, "labels.csv", "file", ())
    (tmp_path / "labels.csv").write_text("file,kind\n7,a\n")
    with pytest.raises(InputError, match=r"labels\.csv: there is no picture named '7'; add it\.$"):
        CsvFolder(str(tmp_path), "labels.csv", "file", ("kind",)).load()


@pytest.mark.parametrize("options", [{"limit": 0}, {"size": 0}, {"test_share": 1.0}, {"seed": -1}])
@pytest.mark.parametrize("kind", [Aptos, CatsVsDogs, Lfw, UtkFace])
def test_wrong_options(kind: type, options: dict[str, object]) -> None:
    ((name, wrong),) = options.items()
    with pytest.raises(InputError, match=rf"^{name}={wrong} must be a "):
        kind(**options)


def test_progress_rises_to_one_over_both_parts() -> None:
    shares: list[float] = []
    Aptos(DATA, limit=20).load(shares.append)
    assert shares == [pytest.approx((index + 1) / 40) for index in range(40)]
