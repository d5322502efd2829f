"""The page: harmless whatever a study calls things, whole without a network, and true to the decision."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from report_study import PARTIES, budgets, galleries, results, smaller, tiny

from counterpoise.record import Party, Results
from counterpoise.report import Gallery, write
from counterpoise.report import page as page_module
from counterpoise.report.decision import as_json
from counterpoise.report.evidence import gather
from counterpoise.report.page import page
from counterpoise.tradeoff import Decision, choose

STUDY = smaller(results())


def made(study: Results = STUDY, decision: Decision | None = None, shown: tuple[Gallery, ...] = ()) -> str:
    evidence = gather(study, decision or choose(study), budgets(study), shown, {"python": "3.11.7"})
    return page(evidence, as_json(evidence))


class Reader(HTMLParser):
    """What a browser would see: elements with their attributes, the text outside scripts, and each script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside: dict[str, str | None] | None = None
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._inside = dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.words.append(data)
        else:
            self.scripts.append((self._inside, data))

    @property
    def data(self) -> Any:
        return json.loads(next(body for attributes, body in self.scripts if attributes.get("id") == "data"))


PAGE = Reader(made(shown=galleries(STUDY)))


def test_the_decision_comes_first() -> None:
    decided = choose(STUDY)
    assert decided.best is not None
    winner = decided.best.winner
    assert f"Choose dp-sgd at noise {winner.degree}, explainability {winner.explainability}." in PAGE.text
    order = [
        "Choose dp-sgd",
        "Policy unanimous",
        "Who gives up what",
        "What it reveals of the images",
        "not legal advice",
    ]
    places = [PAGE.text.index(words) for words in order]
    assert places == sorted(places)
    sections = [attributes["id"] for tag, attributes in PAGE.elements if tag == "section"]
    assert sections == ["meaning", "explore", "modes", "unseen", "curves", "galleries", "tables", "provenance"]


def test_it_says_who_gives_up_what_and_both_budgets() -> None:
    decided = choose(STUDY)
    assert decided.best is not None
    for view in decided.best.parties:
        assert re.search(rf"{view.party} gives up (nothing|0\.\d+ of)", PAGE.text)
    told = budgets(STUDY)[0].sentence().removeprefix("north clinic: ")
    assert f"north clinic, south clinic and research lab, each : {told}" in PAGE.text
    assert "flip margin" in PAGE.text
    assert ("Contested" if decided.best.contested else "Uncontested") in PAGE.text


def test_nothing_is_loaded_from_anywhere() -> None:
    for tag, attributes in PAGE.elements:
        for name in ("src", "href", "srcset", "action", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), (tag, name, value)
    style = (Path(page_module.__file__).parent / "assets" / "page.css").read_text()
    assert "url(#hatch)" in style
    assert re.findall(r"url\((?!#)|@import|@font-face", style) == []


def test_the_policy_admits_these_scripts_and_no_others() -> None:
    policy = next(a["content"] for t, a in PAGE.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    run = [body for attributes, body in PAGE.scripts if "type" not in attributes]
    assert len(run) == 2
    for body in run:
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert "unsafe" not in scripts
    assert "default-src 'none'" in policy
    assert not any(name.startswith("on") for _, attributes in PAGE.elements for name in attributes)


HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(1)> & "it\'s" {{ 7 * 7 }} <!--'


def test_names_are_words_whatever_they_contain() -> None:
    parties = (Party(HOSTILE, PARTIES[0].requires, PARTIES[0].mechanisms), *PARTIES[1:])
    study = replace(smaller(results(parties)), study=HOSTILE, notes=(HOSTILE,))
    shown = galleries(study, images=1)[:2]
    html = made(study, shown=tuple(replace(g, labels=(HOSTILE,), predictions=(HOSTILE,)) for g in shown))
    hostile, tame = Reader(html), Reader(made(shown=galleries(STUDY, images=1)[:2]))
    assert len(hostile.scripts) == len(tame.scripts)
    assert [tag for tag, _ in hostile.elements].count("img") == [tag for tag, _ in tame.elements].count("img")
    assert hostile.data["parties"][0]["name"] == HOSTILE
    assert " ".join(HOSTILE.split()) in hostile.text
    assert "alert(1)</script>" not in html.replace("&lt;/script&gt;", "")


def test_a_script_that_could_end_its_element_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    page_module._scripts.cache_clear()
    monkeypatch.setattr(page_module, "get_plotlyjs", lambda: "var x = '</SCRIPT>';")
    with pytest.raises(ValueError, match="'</script'"):
        page_module._scripts()
    monkeypatch.undo()
    page_module._scripts.cache_clear()


def test_controls_have_labels_and_pictures_have_words() -> None:
    labelled = {attributes["for"] for tag, attributes in PAGE.elements if tag == "label" and "for" in attributes}
    wrapped = {"checkbox"}
    for tag, attributes in PAGE.elements:
        if tag in {"select", "input"} and attributes.get("type") not in wrapped:
            assert attributes["id"] in labelled, attributes
        if tag == "img":
            assert attributes["alt"]
    ids = [attributes["id"] for _, attributes in PAGE.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_scripts_ask_only_for_elements_that_exist() -> None:
    source = "".join(page_module._asset(name) for name in page_module.SCRIPTS)
    asked = set(re.findall(r"""(?:\$|getElementById)\("([a-z0-9-]+)"\)""", source))
    boxes = {f"{name}-box" for name in re.findall(r'box\("([a-z]+)"', source)}
    ids = {attributes.get("id") for _, attributes in PAGE.elements}
    assert len(asked) > 15
    assert asked | boxes <= ids


def test_the_embedded_numbers_are_those_of_the_matrix() -> None:
    panel = choose(STUDY).panels["dp-sgd"]
    mechanism = next(found for found in PAGE.data["mechanisms"] if found["name"] == "dp-sgd")
    scores = [float("nan") if s is None else s for s in mechanism["scores"]["measured"]["value"]]
    assert scores == pytest.approx(panel.scores["value"].values.ravel().tolist(), rel=1e-15, nan_ok=True)
    assert mechanism["quantities"]["epsilon"]["by"] == "degree"
    assert "inf" in mechanism["quantities"]["epsilon"]["value"]


def test_an_infeasible_study_says_what_would_help() -> None:
    closed = tuple(replace(party, mechanisms=(), requires=("noise >= 2", "epsilon <= 0.1")) for party in PARTIES)
    decided = choose(STUDY, parties=closed)
    text = Reader(made(decision=decided)).text
    assert "No setting meets what the 3 parties require." in text
    for outcome in decided.outcomes.values():
        assert outcome.sentence in text  # type: ignore[union-attr]  # all are Infeasible here
    assert text.index("Smallest relaxation") < text.index("Ask differently")


def test_paper_mode_gives_one_optimum_a_mechanism() -> None:
    text = Reader(made(decision=choose(STUDY, mode="paper"))).text
    assert "One optimum for each mechanism: dp-sgd at noise 2, explainability 1 and autoencoder" in text
    assert "are not on one scale, so none of these beats another" in text


def test_a_winner_without_a_guarantee_carries_a_warning() -> None:
    study = replace(STUDY, records=tuple(r for r in STUDY if r.mechanism == "autoencoder"))
    open_to_all = tuple(Party(party.name) for party in PARTIES)
    assert "Nothing is proved about this setting" in Reader(made(study, choose(study, parties=open_to_all))).text
    assert "Nothing is proved about this setting" not in PAGE.text


def test_without_galleries_or_budgets_there_is_no_empty_section() -> None:
    evidence = gather(STUDY, choose(STUDY))
    found = Reader(page(evidence, as_json(evidence)))
    assert "Galleries" not in found.text
    assert "No privacy budget was computed" in found.text


def test_a_single_training_makes_a_page() -> None:
    one = replace(STUDY, records=tuple(replace(r, explained=r.explained[:1]) for r in STUDY if r.mechanism == "plain"))
    parties = tuple(Party(party.name) for party in PARTIES)
    assert "Choose plain training, explainability 0." in Reader(made(one, choose(one, parties=parties))).text


def test_only_one_mode_measured_makes_a_page() -> None:
    kept = tuple(
        replace(r, measurements={k: m for k, m in r.measurements.items() if k in {"privacy_gain", "utility_loss"}},
                explained=tuple(replace(c, measurements={k: m for k, m in c.measurements.items()
                                                         if k == "explainability_gain"}) for c in r.explained))
        for r in STUDY
    )  # fmt: skip
    study = replace(STUDY, records=kept, parties=tuple(Party(party.name) for party in PARTIES))
    found = Reader(made(study, choose(study, mode="paper")))
    assert found.data["modesAvailable"] == ["paper"]
    assert "needs the measurement 'membership_privacy'" in found.text


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny(results())
    files = write(study, choose(study), tmp_path, galleries=galleries(study)[:2], budgets=budgets(study))
    names = {path.relative_to(tmp_path).as_posix() for path in files}
    assert {"report.html", "decision.json", "matrix.csv", "matrix-paper.csv", "dpia.md"} <= names
    assert names == {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    before = (tmp_path / "report.html").read_bytes()

    def full_disk(path: Path, content: bytes) -> int:
        with path.open("wb") as stream:
            stream.write(content[:10])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write(study, choose(study, mode="paper"), tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert list(tmp_path.rglob("*.part")) == []


def test_the_same_evidence_gives_the_same_bytes(tmp_path: Path) -> None:
    study = tiny(results())
    shown = galleries(study)[:2]
    for folder in ("one", "two"):
        write(study, choose(study), tmp_path / folder, galleries=shown)
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path.name
