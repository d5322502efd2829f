"""Names: built-in parts, installed packages' parts, near misses and clashes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterpoise import catalogue
from counterpoise._check import InputError
from counterpoise.mechanisms.plain import Plain
from counterpoise.running import run
from counterpoise.study import read
from small_study import SMALL

PLUGIN = '''
"""A package of somebody else."""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from counterpoise.grid import DegreeKind
from counterpoise.mechanisms.plain import Plain


@dataclass(frozen=True)
class Grey(Plain):
    """Plain training under another name."""

    name: ClassVar[str] = "grey"
    kind: ClassVar[DegreeKind] = DegreeKind("greyness", "up")
    greyness: Decimal = Decimal(0)
'''


def install(site: Path, package: str, points: str) -> None:
    """What an installer leaves behind: a module and its metadata."""
    (site / f"{package}.py").write_text(PLUGIN)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("somebodys")]:
        del sys.modules[name]


def test_finds_built_in_parts_by_name() -> None:
    assert catalogue.find("mechanisms", "plain") is Plain
    for room in catalogue.ROOMS:
        for entry in catalogue.listing(room):
            assert entry.summary, f"{room} {entry.name} has no docstring"
            assert entry.origin == "built in"


def test_a_near_miss_is_asked_back_and_others_are_listed() -> None:
    with pytest.raises(InputError, match=r"mechanisms: there is no 'dp_sgd'; did you mean 'dp-sgd'\?"):
        catalogue.find("mechanisms", "dp_sgd")
    with pytest.raises(InputError, match=r"explainers: there is no 'zzz'; known: .*smoothgrad"):
        catalogue.find("explainers", "zzz")
    with pytest.raises(InputError, match="room='rooms' must be one of"):
        catalogue.find("rooms", "plain")


def test_an_installed_package_brings_a_mechanism_that_a_study_can_name(site: Path, tmp_path: Path) -> None:
    install(site, "somebodys_grey", "[counterpoise.mechanisms]\ngrey = somebodys_grey:Grey\n")
    found = {entry.name: entry for entry in catalogue.listing("mechanisms")}
    assert found["grey"].origin == "somebodys_grey"
    assert found["grey"].summary == "Plain training under another name."
    path = tmp_path / "study.toml"
    path.write_text(
        SMALL.replace('name = "dp-sgd"\ndegrees = [1, 2]', 'name = "grey"\ndegrees = [0, 1]').replace(
            '["dp-sgd"]\nrequires = ["noise > 1.5"]', '["grey"]'
        )
    )
    results = run(read(path), tmp_path / "out", executor="serial")
    assert {record.mechanism for record in results} == {"plain", "grey", "autoencoder"}


def test_one_name_from_two_packages_is_refused_and_both_are_named(site: Path) -> None:
    install(site, "somebodys_one", "[counterpoise.mechanisms]\ngrey = somebodys_one:Grey\n")
    install(site, "somebodys_two", "[counterpoise.mechanisms]\ngrey = somebodys_two:Grey\n")
    with pytest.raises(
        InputError, match=r"the name 'grey' is given by both somebodys_\w+ and somebodys_\w+; uninstall one"
    ):
        catalogue.find("mechanisms", "grey")


def test_a_built_in_name_cannot_be_taken(site: Path) -> None:
    install(site, "somebodys_plain", "[counterpoise.mechanisms]\nplain = somebodys_plain:Grey\n")
    with pytest.raises(InputError, match=r"the name 'plain' is given by both counterpoise and somebodys_plain"):
        catalogue.find("mechanisms", "plain")
