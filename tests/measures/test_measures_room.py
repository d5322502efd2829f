from __future__ import annotations

import re
from pathlib import Path

import pytest

from counterpoise.interface import Measure
from counterpoise.measures import BUILTIN, EVERYWHERE

DOCS = Path(__file__).parents[2] / "docs" / "measures.md"


@pytest.mark.parametrize("name", BUILTIN)
def test_every_measure_says_what_it_is(name: str) -> None:
    cls = BUILTIN[name]
    assert cls.name == name
    assert isinstance(cls(), Measure)
    assert cls() == cls()
    said = " ".join((cls.__doc__ or "").split())
    assert "Unit: " in said
    assert ("Higher is better" in said) == cls.higher_is_better
    assert ("Lower is better" in said) != cls.higher_is_better
    assert "Interval: " in said or "Exact" in said or "interval is U's" in said


@pytest.mark.parametrize("name", BUILTIN)
def test_every_measure_has_a_row_in_the_docs(name: str) -> None:
    row = [line for line in DOCS.read_text().splitlines() if line.startswith(f"| `{name}` |")]
    assert len(row) == 1
    cells = [cell.strip() for cell in row[0].strip("|").split(" | ")]
    assert len(cells) == 5
    assert all(cells)
    assert cells[2] == BUILTIN[name].unit
    assert cells[3] == ("higher" if BUILTIN[name].higher_is_better else "lower")


def test_the_code_of_the_docs_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    exec(code, {})


def test_measures_of_every_training_are_known() -> None:
    assert set(EVERYWHERE) < set(BUILTIN)
    assert "task_loss" in EVERYWHERE
