"""The bracket closes on the turning degree with few trainings, uses what is there, and says what it assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import pytest

from counterpoise._check import InputError
from counterpoise.grid import Grid
from counterpoise.interface import Level, Outcome
from counterpoise.prepare import Job
from counterpoise.record import Measurement, Party
from counterpoise.running import run
from counterpoise.study import Study, Sweep, Training, Use
from counterpoise.threshold import Threshold


@dataclass(frozen=True)
class Falling:
    """A leak that is 1 / (1 + degree) by definition. Unit: none. Lower is better. Exact."""

    name: ClassVar[str] = "falling"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        return Measurement.exact(1 / (1 + float(candidate.degree)))


@dataclass(frozen=True)
class Rising:
    """A loss that is the degree by definition. Unit: none. Lower is better. Exact."""

    name: ClassVar[str] = "rising"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        return Measurement.exact(float(candidate.degree))


STUDY = Study(
    name="threshold",
    model=Use("linear"),
    training=Training(epochs=1, batch=256),
    mechanisms=[Sweep("dp-sgd", degrees=Grid.span(0, 8, 1))],
    explainer=Sweep("smoothgrad", degrees=[0], options={"samples": 1}),
    explained_images=2,
    gallery_images=0,
    measures=[Use(Falling()), Use(Rising())],
    parties=[Party("a")],
)


def search(words: str, out: Path) -> tuple[Threshold, list[Job]]:
    order = Threshold(words)
    todo: list[Job] = []

    def started(left: Sequence[Job], done: Sequence[Job]) -> None:
        todo.extend(left)

    run(STUDY, out, executor="serial", order=order, started=started)
    return order, todo


def test_the_weakest_and_the_strongest_degree_are_found_and_shared_trainings_are_not_repeated(tmp_path: Path) -> None:
    weakest, todo = search("dp-sgd: falling <= 0.2", tmp_path)
    assert weakest.found == 4  # 1 / 5
    assert set(weakest.tried) == {Decimal(d) for d in (0, 8, 4, 2, 3)}
    assert len(todo) == 10
    assert weakest.sentences == (
        "dp-sgd: 4 (falling 0.2) is the weakest degree that meets falling <= 0.2; 3 (falling 0.25) fails."
        " 5 of 9 degrees were tried; between them falling is taken to be monotone.",
    )
    strongest, left = search("dp-sgd: rising <= 2.5", tmp_path)
    assert strongest.found == 2
    assert "2 (rising 2) is the strongest degree that meets rising <= 2.5; 3 (rising 3) fails" in strongest.sentences[0]
    assert len(left) == 4  # what the first search had not tried, and of that it needed none
    assert set(strongest.tried) <= set(weakest.tried)


def test_bounds_that_no_end_or_both_ends_meet(tmp_path: Path) -> None:
    none, _ = search("dp-sgd: falling <= 0.01", tmp_path)
    assert none.found is None
    assert "no degree meets falling <= 0.01: neither end" in none.sentences[0]
    both, _ = search("dp-sgd: falling <= 2", tmp_path)
    assert both.found == 0  # a leak that is small everywhere asks for the least protection
    cost, _ = search("dp-sgd: rising <= 99", tmp_path)
    assert cost.found == 8  # a loss that is small everywhere allows the most


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("falling <= 1", r"^until='falling <= 1' must read like 'non-discriminatory: class_leak <= 0\.1'\.$"),
        ("dp-sgd: maximum falling", r"must read like"),
        ("end: falling <= 1", r"^until: the study has no mechanism 'end'; name one of its own\.$"),
        ("dp-sgd: class_leak <= 1", r"^until: 'class_leak' is not measured in this study; list it under measures\.$"),
        ("dp-sgd: stability >= 1", r"^until: 'stability' is measured on explanations, not on a training"),
    ],
)
def test_searches_that_cannot_be_are_told(words: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=complaint):
        search(words, tmp_path)
