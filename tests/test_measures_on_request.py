"""Measures that a study asks for: they come with what they are read beside, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterpoise import Party, Study, Sweep, run
from counterpoise._check import InputError
from counterpoise.measures import EVERYWHERE
from counterpoise.prepare import prepare
from counterpoise.report.quantities import quantity
from counterpoise.study import Training, Use


def study(*measures: object) -> Study:
    return Study(
        name="asked",
        data=Use("dots", train=120, test=60),
        target="position",
        training=Training(epochs=2, batch=32, learning_rate=0.1, momentum=0.9),
        mechanisms=[Sweep("plain")],
        explainer=Sweep("smoothgrad", degrees=[0], samples=1),
        explained_images=6,
        gallery_images=0,
        measures=measures,  # type: ignore[arg-type]
        parties=[Party("one")],
    )


def test_nobody_pays_for_what_nobody_asked() -> None:
    assert prepare(study()).everywhere == EVERYWHERE


def test_a_masked_score_brings_its_floors_and_blank_maps() -> None:
    added = prepare(study("average_drop", "blank_maps")).everywhere[len(EVERYWHERE) :]
    floors = tuple(f"average_drop_of_{of}" for of in ("ones", "random", "centre", "edges"))
    assert added == ("average_drop", *floors, "blank_maps", "whole_score")
    beside = prepare(study("infidelity")).everywhere[len(EVERYWHERE) :]
    assert beside == ("infidelity", *(f"infidelity_of_{of}" for of in ("ones", "random", "centre", "edges")))
    of_edges = prepare(study({"name": "deletion", "of": "edges"})).everywhere
    assert of_edges == (*EVERYWHERE, "deletion_of_edges")


def test_twice_is_a_mistake() -> None:
    with pytest.raises(InputError, match="measure 'deletion' is in every study already, or named twice"):
        prepare(study("deletion"))
    with pytest.raises(InputError, match="measure 'sparsity' is in every study already, or named twice"):
        prepare(study("sparsity", "sparsity"))


def test_a_run_measures_them_all(tmp_path: Path) -> None:
    asked = ("average_drop", "map_cosine", "randomisation_check", "sensitivity_max", "pointing_accuracy", "infidelity")
    results = run(study(*asked), tmp_path, executor="serial")
    found = results.records[0].explained[0].measurements
    assert set(asked) <= set(found)
    assert found["map_cosine"].value == pytest.approx(1)  # the baseline compared with itself
    assert found["average_drop_of_ones"].value == 0
    assert found["pointing_accuracy_of_random"].value == pytest.approx(4 / 64)


def test_a_floor_is_described_as_one() -> None:
    assert quantity("average_drop_of_edges").label == "average drop, image edges"
    assert quantity("average_drop_of_edges").meaning.startswith("A floor: ")
    assert quantity("average_drop_of_nobody").standing == "not described"
    assert quantity("deletion_of_centre").better == "lower"
