"""Studies: what is accepted, in which words; and one sentence for every mistake."""

from __future__ import annotations

from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from counterpoise._check import InputError
from counterpoise.grid import Grid
from counterpoise.record import Party
from counterpoise.study import Study, Sweep, parse_study, read

GOOD = """
name = "s"
[[mechanisms]]
name = "dp-sgd"
degrees = { from = 0, to = 2, step = 0.1 }
clip = 0.5
[[parties]]
name = "a"
requires = ["noise > 1.7"]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def test_the_file_and_the_object_are_the_same_study(tmp_path: Path) -> None:
    from_file = read(written(tmp_path, GOOD))
    in_python = Study(
        name="s",
        mechanisms=[Sweep("dp-sgd", degrees=Grid.span(0, 2, "0.1"), options={"clip": 0.5})],
        parties=[Party("a", ("noise > 1.7",))],
    )
    assert from_file.canonical() == in_python.canonical()


def test_degrees_are_decimals_and_options_are_floats(tmp_path: Path) -> None:
    sweep = read(written(tmp_path, GOOD)).mechanisms[0]
    assert sweep.degrees is not None
    assert sweep.degrees.values[17] == Decimal("1.7")
    assert sweep.options == {"clip": 0.5}
    assert type(sweep.options["clip"]) is float


def test_the_canonical_form_reads_back_as_the_same_study(tmp_path: Path) -> None:
    study = read(written(tmp_path, GOOD))
    assert parse_study(study.canonical()).canonical() == study.canonical()


def test_the_commented_study_of_init_is_one(tmp_path: Path) -> None:
    text = files("counterpoise").joinpath("study.toml").read_text()
    study = read(written(tmp_path, text))
    assert [party.requires[:1] for party in study.parties] == [("noise > 1.7",), ("noise > 1.5",), ()]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "s"', 'nmae = "s"', r"study\.toml: nmae: is not a key of a study"),
        ("[[parties]]", "[[partys]]", r"study\.toml: partys: is not a key|study\.toml: parties: is missing"),
        ('name = "a"', 'colour = "a"', r"study\.toml: parties\.1\.(name: is missing|colour)"),
        ('name = "a"', 'name = " "', r"study\.toml: parties: a party needs a name\."),
        ('name = "a"', 'name = "a"\nshare = 0', r"parties: 'a' has share=0\.0, which must be above 0\."),
        ('name = "a"', 'name = "a"\nshare = nan', r"parties: 'a' has share=nan|share = .*finite"),
        ('name = "a"', 'name = "a"\nmechanisms = ["blur"]', r"'a' allows 'blur', which the study does not have\."),
        ("noise > 1.7", "noise more", r"requirement 'noise more' must read like 'noise >= 1.8'"),
        ("step = 0.1", "step = 0.3", r"mechanisms\.1\.degrees.*step=0\.3 does not divide the grid from 0 to 2"),
        ("step = 0.1", "step = 0", r"step=0 must be above 0"),
        ("step = 0.1", "width = 0.1", r"mechanisms\.1\.degrees.*must have exactly the keys from, to and step"),
        ("{ from = 0, to = 2, step = 0.1 }", "[0.2, 0.1]", r"degrees must increase, but 0\.1 follows 0\.2"),
        ("{ from = 0, to = 2, step = 0.1 }", "[nan]", r"degree=.* must be a finite decimal"),
        ("{ from = 0, to = 2, step = 0.1 }", "[]", r"degrees=\[\] must hold at least one degree"),
        ('name = "s"', 'name = "s"\nseeds = [1, 1]', r"seeds: '1' is named twice\."),
        ('name = "s"', 'name = "s"\ndelta = 1', r"delta = 1: Input should be less than 1"),
        ('name = "s"', "name = s", r"study\.toml: is not valid TOML:"),
        ("[[parties]]", "[training]\nepochs = 0\n[[parties]]", r"training\.epochs = 0: Input should be greater"),
        ("[[parties]]", "[training]\nepoch = 3\n[[parties]]", r"training\.epoch: is not a key"),
        ("[[parties]]", "[training]\nepochs = true\n[[parties]]", r"training\.epochs = True: must be a number\."),
        ("[[parties]]", '[training]\nbatch = "64"\n[[parties]]', r"training\.batch = '64': must be a number\."),
        ('name = "s"', 'name = "s"\nseeds = 3', r"study\.toml: seeds = 3: must be a list\."),
        ('name = "s"', 'name = "s"\n[data]\nname = 3', r"study\.toml: data.*: name=3 must be text\."),
        (
            'requires = ["noise > 1.7"]',
            'requires = "noise > 1.7"',
            r"parties\.1\.requires = 'noise > 1\.7': must be a list",
        ),
        ('name = "dp-sgd"', "", r"study\.toml: mechanisms\.1\.name: is missing\."),
        ('name = "a"', 'name = "a"\nweight = 2', r"study\.toml: parties\.1\.weight: is not a key of a study"),
        ("{ from = 0, to = 2, step = 0.1 }", "[0.1, nan]", r"degrees = \[0\.1, NaN\]: degree=NaN must be a finite"),
        ("step = 0.1", "step = 1e-40", r"mechanisms\.1\.degrees: step=0\.0+1 gives 20+1 degrees; use at most 10000\."),
    ],
)
def test_a_mistake_is_one_sentence_with_file_key_value_and_rule(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    assert old in GOOD
    with pytest.raises(InputError, match=complaint) as mistake:
        read(written(tmp_path, GOOD.replace(old, new, 1)))
    assert "\n" not in str(mistake.value)


def test_a_party_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"parties: 'a' is named twice\."):
        read(written(tmp_path, GOOD + '[[parties]]\nname = "a"\n'))


def test_a_missing_or_binary_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml: there is no such file; 'counterpoise init"):
        read(tmp_path / "gone.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.toml: cannot be read as a text file"):
        read(tmp_path / "binary.toml")
