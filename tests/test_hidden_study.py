"""A hidden label in a study: found by mechanisms and measures, taken on request, refused where wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Images
from counterpoise.prepare import prepare
from counterpoise.record import Party
from counterpoise.running import run
from counterpoise.study import Study, Sweep, Training, Use, parse_study
from counterpoise.tradeoff import build, choose


@dataclass(frozen=True)
class Parity:
    """Digits that are also even or odd."""

    name: ClassVar[str] = "parity"

    def load(self) -> tuple[Images, Images]:
        train, test = (_with_parity(part) for part in Digits().load())
        return train, test


def _with_parity(images: Images) -> Images:
    digit = images.labels["digit"]
    labels = {"digit": digit, "parity": digit % 2}
    return replace(images, labels=labels, classes={**images.classes, "parity": ("even", "odd")})


def study(**changes: object) -> Study:
    settings: dict[str, object] = {
        "name": "hidden",
        "data": Use(Parity()),
        "target": "parity",
        "hidden": "digit",
        "model": Use("mlp"),
        "training": Training(epochs=4, batch=40, learning_rate=0.1, momentum=0.9),
        "mechanisms": [Sweep("non-discriminatory", degrees=[0, 3])],
        "explainer": Sweep("smoothgrad", degrees=[0], options={"samples": 2}),
        "explained_images": 4,
        "gallery_images": 0,
        "parties": [Party("a", ("class_leak <= 0.1",)), Party("b", ("worst_group_loss <= 0.5",))],
        **changes,
    }
    return Study(**settings)  # type: ignore[arg-type]


def test_what_a_party_requires_is_measured_and_decides(tmp_path: Path) -> None:
    results = run(study(), tmp_path, executor="serial")
    table = build(results, "non-discriminatory")
    leaks = table["class_leak"].isel(explainability=0)
    assert leaks.shape == (2, 2)
    assert float(leaks.min()) > 0.1  # parity alone tells a digit twice as well as guessing: .11 above chance
    assert "worst_group_loss" in table
    assert "mlp_leak" not in table
    assert choose(results, policy="unanimous", mode="measured").best is None
    willing = choose(results, "unanimous", "measured", (Party("a", ("class_leak <= 1",)), Party("b")))
    assert willing.best is not None


def test_without_a_wish_nothing_expensive_is_measured() -> None:
    everywhere = prepare(study(parties=[Party("a")])).everywhere
    assert "class_leak" not in everywhere
    asked = study(parties=[Party("a")], measures=[Use("class_leak", at="predictions"), Use("alignment")])
    assert prepare(asked).everywhere[-2:] == ("class_leak", "alignment")
    twice = study(measures=[Use("class_leak", at="2")])
    assert prepare(twice).everywhere.count("class_leak") == 1
    assert prepare(twice).measures["class_leak"].at == "2"  # type: ignore[attr-defined]


def test_the_hidden_label_is_part_of_the_digest_and_of_the_file() -> None:
    one, other = (
        prepare(study(mechanisms=[Sweep("plain")], parties=[Party("a"), Party("b")])),
        prepare(study(mechanisms=[Sweep("plain")], hidden=None, parties=[Party("a"), Party("b")])),
    )
    assert one.jobs[0].digest != other.jobs[0].digest
    canonical = study(data="digits", target=None, hidden=None).canonical()
    assert parse_study(canonical).hidden is None
    assert parse_study({**canonical, "hidden": "race"}).hidden == "race"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"hidden": "race"},
            r"^hidden='race' must be one of the labels of 'digits' other than the target 'parity': digit",
        ),
        ({"hidden": "parity"}, r"^hidden='parity' must be one of the labels of 'digits' other than the target"),
        ({"hidden": None}, r"^measure 'class_leak' needs to know what is to be hidden: set hidden to one of"),
    ],
)
def test_a_label_that_is_not_there_is_told_before_training(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        prepare(study(**changes))


@dataclass(frozen=True)
class Rare(Parity):
    """As `Parity`, but the first training images alone are of the hidden class 1; all others are of class 0."""

    images: int = 0

    def load(self) -> tuple[Images, Images]:
        train, test = super().load()
        hidden = (torch.arange(len(train)) < self.images).long(), (torch.arange(len(test)) < 5).long()
        return _labelled(train, hidden[0]), _labelled(test, hidden[1])


def _labelled(images: Images, rare: Tensor) -> Images:
    return replace(images, labels={**images.labels, "rare": rare}, classes={**images.classes, "rare": ("no", "yes")})


def rare(images: int) -> Study:
    return study(data=Use(Rare(images)), hidden="rare", parties=[Party("a", ("class_leak <= 0.1",))])


@pytest.mark.parametrize(
    ("images", "complaint"),
    [
        (0, r"^hidden='rare' has one class only among the training images of '.*', so there is nothing to hide;"),
        (7, r"^measure 'class_leak' for party 'a': probes need at least two hidden classes with 8 training and 2 test"),
    ],
)
def test_too_few_images_of_a_hidden_class_are_told_before_training(images: int, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=complaint):
        run(rare(images), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    prepare(rare(8)).check_plans()


@pytest.mark.parametrize("measure", ["class_leak", "alignment"])
def test_a_measure_at_a_layer_that_is_not_there_is_told_before_training(measure: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^measure '{measure}' for party 'a': at='9': the model has no layer of"):
        run(study(measures=[Use(measure, at="9")]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_a_hidden_label_the_mechanism_is_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    results = run(study(hidden=None, parties=[Party("a")]), tmp_path, executor="serial")
    refused = {record.mechanism: record.refusal for record in results}
    assert refused["non-discriminatory"].startswith("non-discriminatory needs to know what is to be hidden: set hidden")
    assert refused["plain"] == ""


def test_a_wrong_layer_and_a_small_batch_are_told_before_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at='9': the model has no layer of that name"):
        run(study(mechanisms=[Sweep("non-discriminatory", degrees=[1], options={"at": "9"})]), tmp_path)
    with pytest.raises(InputError, match=r"batch=8 must be at least 20"):
        run(study(training=Training(batch=8)), tmp_path)
