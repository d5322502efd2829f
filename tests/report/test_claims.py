"""Published values stay with the run, are shown escaped, and a foreign file in their place is a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_study import results, tiny

from counterpoise._check import InputError
from counterpoise.report import Claim, read_claims, write, write_claims
from counterpoise.tradeoff import choose

CLAIMS = (
    Claim("optimum of the paper's score", "(2, 1)", "(2, 1)", "seen"),
    Claim("U < .5 & <b>flat</b>", ".48", "0.6", "not seen"),
)


def test_claims_come_back_as_they_were_written(tmp_path: Path) -> None:
    assert read_claims(tmp_path) == ()
    write_claims(tmp_path, CLAIMS, {"scale": "quick", "seeds": [0]})
    assert read_claims(tmp_path) == CLAIMS
    assert json.loads((tmp_path / "comparison.json").read_text())["scale"] == "quick"


def test_claims_are_also_a_table_that_says_what_it_belongs_to(tmp_path: Path) -> None:
    claim = Claim("  U | V", "near 0", "0.1", "not seen")
    write_claims(tmp_path, [claim], {"scale": "quick", "seeds": [0, 1], "versions": {"torch": "2", "numpy": "3"}})
    assert (tmp_path / "comparison.md").read_text().splitlines() == [
        "| statement | published | ours | verdict |",
        "| --- | --- | --- | --- |",
        "| U / V | near 0 | 0.1 | not seen |",
        "",
        "scale: quick; seeds: 0, 1; versions: torch 2, numpy 3.",
    ]


def test_the_page_shows_them_escaped_and_only_where_there_are_some(tmp_path: Path) -> None:
    study = tiny(results())
    page, *_ = write(study, choose(study), tmp_path / "with", claims=CLAIMS)
    shown = page.read_text(encoding="utf-8")
    assert "Published beside ours</h2>" in shown
    assert "<td>not seen</td>" in shown
    assert "U &lt; .5 &amp; &lt;b&gt;flat&lt;/b&gt;" in shown
    page, *_ = write(study, choose(study), tmp_path / "without")
    assert "Published beside ours" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"claims": [{"statement": "a"}]}', '{"claims": [{"verdict": "fine"}]}']
)
def test_what_no_reproduction_wrote_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "comparison.json").write_text(content)
    with pytest.raises(InputError, match=r"comparison\.json: not a comparison that a reproduction wrote; run the"):
        read_claims(tmp_path)
