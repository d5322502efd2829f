"""The face reproductions start to finish at a tiny size, on files of noise: tables, figures, galleries, resuming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoise.interface import Images, Recipe, Task
from counterpoise.models import BUILTIN as MODELS
from counterpoise.reproduce import _faces
from counterpoise.reproduce._faces import Schedule
from counterpoise.reproduce._first_filter import Fader
from counterpoise.reproduce.settings import Settings
from counterpoise.training import apply, fit_classifier, generator

consent, identity, smile = (
    import_module(f"counterpoise.reproduce.bertran_{name}") for name in ("consent", "identity", "smile")
)
PEOPLE = 12


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grey noise in the publishers' folders; who it is and what is to be hidden shows as brightness."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)

    def face(path: Path, *shown: float) -> None:
        pixels = rng.integers(0, 60, (12, 12, 3))
        for place, value in enumerate(shown):
            pixels[3 * place : 3 * place + 3] += int(150 * value)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    lines, partition = [], []
    for index in range(160):
        male, smiling = rng.integers(2, size=2)
        face(root / f"celeba/img_align_celeba/{index:06d}.png", male, smiling)
        lines.append(f"{index:06d}.png {2 * male - 1} {2 * smiling - 1}")
        partition.append(f"{index:06d}.png {0 if index < 100 else 2}")
    (root / "celeba/list_attr_celeba.txt").write_text("\n".join(["160", "Male Smiling", *lines]) + "\n")
    (root / "celeba/list_eval_partition.txt").write_text("\n".join(partition) + "\n")
    for person in range(PEOPLE):
        for index in range(10):
            face(root / f"lfw/lfw/P{person:02d}/P{person:02d}_{index:04d}.png", person % 2, person / PEOPLE)
    genders = [f"P{person:02d},10,{'mf'[person % 2]}" for person in range(PEOPLE)]
    (root / "lfw/people.csv").write_text("\n".join(["name,images,gender", *genders]) + "\n")
    return root


def tiny() -> Schedule:
    return Schedule(12, None, "linear", Recipe(1, 64, 2e-3, optimiser="adam"), ("0.5",), 4, 4, 2)


@pytest.fixture(scope="module")
def smiles(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    out = tmp_path_factory.mktemp("smiles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(smile.SCHEDULES, "quick", tiny())
        yield smile.bertran_smile_gender(Settings(data, "quick", out)), out


def test_both_directions_have_a_table_with_every_number_and_its_digest(smiles: tuple[str, Path]) -> None:
    text, out = smiles
    for stem in ("male-kept-smiling-hidden", "smiling-kept-male-hidden"):
        rows = json.loads((out / f"bertran-{stem}-quick.json").read_text())
        assert [row["alpha"] for row in rows] == [None, "0.5"]
        raw, filtered = rows
        assert raw["measured"]["inversion_psnr"]["value"] > filtered["measured"]["inversion_psnr"]["value"]
        assert raw["utility"] == raw["utility_raw"]
        assert raw["utility_nats_lost"] == 0
        assert set(filtered["attackers"]) == {"linear", "knn", "mlp", "cnn", "fixed", "cotrained", "continued"}
        assert filtered["trajectory"][-1]["step"] == 4
        assert f"`{filtered['digest'][:8]}`" in (out / f"bertran-{stem}-quick.md").read_text()
    assert "filtered 54.0 / 60.0" in text
    assert "Measured against these attackers; nothing is proved." in text


def test_the_gallery_has_the_faces_and_a_row_for_each_filter(smiles: tuple[str, Path]) -> None:
    with Image.open(smiles[1] / "bertran-male-kept-smiling-hidden-quick-gallery.png") as picture:
        assert picture.size == (12 * _faces.GALLERY * 3, 12 * 2 * 3)


def test_what_is_kept_is_not_trained_again(
    smiles: tuple[str, Path], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, out = smiles
    monkeypatch.setitem(smile.SCHEDULES, "quick", tiny())
    monkeypatch.setattr(_faces, "judged", None)  # would raise if it were called
    assert smile.bertran_smile_gender(Settings(data, "quick", out)) == text


@pytest.mark.parametrize(
    ("module", "name", "rows"),
    [(identity, "bertran_identity_gender", 4), (consent, "bertran_consent", 2)],
    ids=["identity-gender", "consent"],
)
def test_the_others_run(
    module: ModuleType, name: str, rows: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module.SCHEDULES, "quick", tiny())
    text = getattr(module, name)(Settings(data, "quick", tmp_path))
    (table,) = tmp_path.glob("*.md")
    assert table.read_text().strip() in text
    (numbers,) = tmp_path.glob("*.json")
    assert len(json.loads(numbers.read_text())) == rows
    assert len(list(tmp_path.glob("*.png"))) == 2


def test_people_are_dealt_into_three_groups_and_the_unobserved_are_never_trained_on() -> None:
    groups = consent.deal_people(62)
    assert torch.bincount(groups).tolist() == [31, 15, 16]
    person = torch.arange(62).repeat(3)
    images = Images("lfw", torch.zeros(186, 1, 4, 4), {"person": person}, {"person": tuple(map(str, range(62)))})
    labelled = consent.grouped(images, groups)
    consenting, private = labelled.labels["consenting"], labelled.labels["private"]
    assert bool(((consenting < 31) == (groups[person] == 0)).all())
    assert bool(((private < 15) == (groups[person] == 1)).all())
    assert labelled.classes["consenting"][int(consenting[0])] in ("0", "somebody else")
    assert len(set(consenting[groups[person] == 0].tolist())) == 31


def test_the_strongest_namer_is_the_one_that_names_people_whose_images_it_has_not_learned() -> None:
    """Who it is shows as one faint pixel: faint is as clear as plain to those who standardise."""
    person = torch.arange(6).repeat(40)
    pixels = torch.full((240, 1, 8, 8), 0.5)
    pixels[:, 0, 2, 3] += 0.002 * person
    images = Images("faint", pixels, {"person": person}, {"person": tuple("abcdef")})
    recipe = Recipe(20, 32, 5e-3, optimiser="adam")
    task = Task(images, images, "person", MODELS["linear"], recipe)
    namer = consent.strongest_namer(task, pixels, person, 0)
    assert float((apply(namer, pixels).argmax(1) == person).float().mean()) > 0.9
    plain = MODELS["linear"]((1, 8, 8), 6, generator(0))
    fit_classifier(plain, pixels, person, recipe, 0)
    assert float((apply(plain, pixels).argmax(1) == person).float().mean()) < 0.5


def test_the_first_filter_takes_no_look_at_the_attribute_of_the_image_it_filters() -> None:
    fader = Fader(1, 2)
    images = torch.rand(3, 1, 13, 10)
    filtered = fader(images)
    assert filtered.shape == images.shape
    assert torch.equal(filtered, fader(images))
    middling = fader.decode(fader.encoder(images), torch.full((3, 2), 0.5), images.shape[2:])
    assert torch.equal(filtered, middling)
    assert not torch.equal(filtered, fader.decode(fader.encoder(images), torch.eye(2)[[0, 0, 0]], images.shape[2:]))
