"""`decision.json`: valid against its schema, strict JSON, and enough to decide again without this package."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_study import PARTIES, budgets, results, smaller, tiny

from counterpoise.grid import text
from counterpoise.record import Party
from counterpoise.report import SCHEMA, decision_json
from counterpoise.report.decision import as_json
from counterpoise.report.evidence import gather
from counterpoise.report.writing import tables
from counterpoise.tradeoff import MODES, POLICIES, choose

STUDY = smaller(results())
VALIDATOR = jsonschema.Draft202012Validator(
    json.loads(files("counterpoise.report").joinpath("decision.schema.json").read_text())
)

DEMANDING = (*PARTIES[:2], Party("research lab", ("maximum privacy",)))


def decided(policy: str = "unanimous", mode: str = "measured", parties: tuple[Party, ...] = PARTIES) -> Any:
    decision = choose(STUDY, policy, mode, parties)
    return decision_json(STUDY, decision, budgets(STUDY), {"python": "3.11"})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    evidence = gather(STUDY, choose(STUDY, parties=DEMANDING), budgets(STUDY))
    for name, content in tables(evidence, as_json(evidence)).items():
        (out / name).write_bytes(content)
    return out / "decision.json"


def test_the_schema_itself_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)


@pytest.mark.parametrize(("policy", "mode"), [("unanimous", "measured"), ("quorum", "paper"), ("nash", "measured")])
def test_a_decision_follows_the_schema(policy: str, mode: str) -> None:
    VALIDATOR.validate(decided(policy, mode))


def test_an_infeasible_decision_follows_the_schema() -> None:
    impossible = (replace(PARTIES[0], requires=("noise >= 3",)), *PARTIES[1:])
    found = decided(parties=impossible)
    VALIDATOR.validate(found)
    assert found["winner"]["winner"]["mechanism"] == "autoencoder"
    assert not found["outcomes"]["dp-sgd"]["feasible"]
    assert found["outcomes"]["dp-sgd"]["relaxations"][0]["instead"] == "noise >= 2"


@pytest.mark.parametrize(
    ("where", "wrong"),
    [("schema", "counterpoise/decision/2"), ("cells", [{}]), ("policy", "loudest"), ("parties", []), ("surprise", 1)],
)
def test_the_schema_refuses_what_is_wrong(where: str, wrong: object) -> None:
    assert not VALIDATOR.is_valid({**decided(), where: wrong})


def test_the_file_is_strict_json_of_this_version(written: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found = json.loads(written.read_text(), parse_constant=refuse)
    VALIDATOR.validate(found)
    assert found["schema"] == SCHEMA
    assert found == decided(parties=DEMANDING) | {"environment": {}}
    assert {cell["epsilon"] for cell in found["cells"] if cell["mechanism"] == "plain"} == {"inf"}


# --- an independent reader: standard library only, nothing of the package -----------------------------------------


def number(x: object) -> float:
    return float(x)  # type: ignore[arg-type]  # a number, or 'inf'


def trade_off(cell: Any, mode: Any) -> float | None:
    parts = [cell["quantities"].get(mode[part]) for part in ("privacy", "explanation", "utility_loss")]
    if any(part is None for part in parts):
        return None
    privacy, explanation, loss = (number(part["value"]) for part in parts)
    return (privacy + explanation) / (2 + loss)


def grasp(doc: Any, cell: Any, quantity: str, mode: Any) -> Decimal | float | None:
    mechanism = next(m for m in doc["mechanisms"] if m["name"] == cell["mechanism"])
    if quantity == "explainability":
        return Decimal(cell["explainability"])
    if quantity == mechanism["degree"]:
        return Decimal(cell["degree"])
    if quantity == "epsilon":
        return None if cell["epsilon"] is None else number(cell["epsilon"])
    words = {"privacy": mode["privacy"], "explanation": mode["explanation"], "utility_loss": mode["utility_loss"]}
    found = cell["quantities"].get(words.get(quantity, quantity))
    return None if found is None else number(found["value"])


def satisfied(doc: Any, cell: Any, party: Any, wish: Any, mode: Any) -> bool:
    degrees = {m["name"]: m["degree"] for m in doc["mechanisms"]}
    quantity = wish["quantity"]
    if quantity in degrees.values() and quantity != degrees[cell["mechanism"]]:
        return bool(party["mechanisms"])
    value = grasp(doc, cell, quantity, mode)
    if "extreme" in wish:
        own = [c for c in doc["cells"] if (c["party"], c["mechanism"]) == (cell["party"], cell["mechanism"])]
        present = [v for v in (grasp(doc, c, quantity, mode) for c in own) if v is not None]
        return bool(present) and value == (max(present) if wish["extreme"] == "maximum" else min(present))
    if value is None:
        return False
    limit = Decimal(wish["value"]) if isinstance(value, Decimal) else float(wish["value"])
    return {">=": value >= limit, ">": value > limit, "<=": value <= limit, "<": value < limit}[wish["relation"]]


def merged(policy: str, needed: int, scores: list[float | None], allowed: list[bool]) -> float | None:
    if sum(allowed) < needed:
        return None
    if policy == "egalitarian":
        return min(s for s in scores if s is not None)
    if policy == "nash":
        return math.prod(max(s, 0.0) for s in scores if s is not None) ** (1 / len(scores))
    willing = [s for s, ok in zip(scores, allowed, strict=True) if ok and s is not None]
    return sum(willing) / len(willing)


def recompute(doc: Any, policy: str, mode_name: str) -> dict[str, tuple[str, str, str]]:
    """Winners by mechanism (and '' for the best of all) as (mechanism, degree, explainability)."""
    mode, parties = doc["modes"][mode_name], doc["parties"]
    needed = {"paper": 1, "quorum": len(parties) // 2 + 1}.get(policy, len(parties))
    standings: list[Any] = []
    for mechanism in doc["mechanisms"]:
        for degree in mechanism["degrees"]:
            for level in mechanism["explainability"]:
                key = (mechanism["name"], degree, level)
                cells = [
                    next(
                        c
                        for c in doc["cells"]
                        if (c["party"], c["mechanism"], c["degree"], c["explainability"]) == (party["name"], *key)
                    )
                    for party in parties
                ]
                scores = [trade_off(cell, mode) for cell in cells]
                allowed = [
                    score is not None
                    and (not party["mechanisms"] or mechanism["name"] in party["mechanisms"])
                    and all(satisfied(doc, cell, party, wish, mode) for wish in party["requires"])
                    for party, cell, score in zip(parties, cells, scores, strict=True)
                ]
                together = merged(policy, needed, scores, allowed)
                if together is not None:
                    epsilon = max(number(c["epsilon"]) for c in cells if c["epsilon"] is not None)
                    losses = [c["quantities"].get(mode["utility_loss"]) for c in cells]
                    loss = max(number(found["value"]) for found in losses if found is not None)
                    standings.append((-float(f"{together:.12g}"), epsilon, loss, len(standings), key))
    winners = {key[0]: key for *_, key in sorted(standings, reverse=True)}
    comparable = mode["comparable"] or len(doc["mechanisms"]) == 1
    return winners | ({"": min(standings)[-1]} if standings and comparable else {})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_stranger_recomputes_every_winner_from_the_file(policy: str, mode: str, written: Path) -> None:
    doc = json.loads(written.read_text())
    found = recompute(doc, policy, mode)
    stated = next(a for a in doc["policies"] if (a["policy"], a["mode"]) == (policy, mode))
    expected = {name: winner for name, winner in {**stated["mechanisms"], "": stated["winner"]}.items() if winner}
    assert found == {name: (w["mechanism"], w["degree"], w["explainability"]) for name, w in expected.items()}
    assert len(found) >= 2
    own = choose(STUDY, policy, mode, DEMANDING)
    assert (own.best is None) == ("" not in found)
    if own.best is not None:
        winner = own.best.winner
        assert found[""] == (winner.mechanism, text(winner.degree), text(winner.explainability))


def test_the_stranger_notices_a_changed_cell() -> None:
    doc = decision_json(STUDY, choose(STUDY))
    before = recompute(doc, "unanimous", "measured")[""]
    for cell in doc["cells"]:
        if (cell["mechanism"], cell["degree"], cell["explainability"]) == before:
            cell["quantities"]["task_loss"]["value"] = 0.9
    assert recompute(doc, "unanimous", "measured")[""] != before


def test_cells_tell_mask_weights_and_violations() -> None:
    doc = decided()
    cell = next(
        c
        for c in doc["cells"]
        if (c["party"], c["mechanism"], c["degree"], c["explainability"]) == ("north clinic", "dp-sgd", "0.6", "0.4")
    )
    assert cell["measured"]["violates"] == ["noise > 1.1", "explainability > 0.4"]
    assert not cell["measured"]["possible"]
    assert cell["measured"]["weight"] == 0
    assert cell["measured"]["aggregate"] is None
    refused = [c for c in doc["cells"] if c["degree"] == "2.2"]
    assert refused
    assert all(c["measured"]["score"] is None and c["quantities"] == {} for c in refused)


def test_a_mode_without_its_measurements_is_said_to_be_unavailable() -> None:
    unmeasured = tuple(
        replace(r, measurements={k: v for k, v in r.measurements.items() if k != "membership_privacy"}) for r in STUDY
    )
    study = replace(STUDY, records=unmeasured)
    doc = decision_json(study, choose(study, "unanimous", "paper"))
    VALIDATOR.validate(doc)
    assert "needs the measurement 'membership_privacy'" in doc["modes"]["measured"]["unavailable"]
    assert doc["modes"]["paper"]["unavailable"] == ""
    assert all(cell["measured"] is None for cell in doc["cells"])


def test_the_tables_have_a_row_for_each_cell(written: Path) -> None:
    doc = json.loads(written.read_text())
    rows = list(csv.DictReader(io.StringIO((written.parent / "matrix.csv").read_text())))
    assert len(rows) == len(doc["cells"])
    first = next(row for row in rows if row["measured.possible"] == "1")
    twin = doc["cells"][rows.index(first)]
    assert float(first["measured.score"]) == twin["measured"]["score"]["value"]
    paper = list(csv.DictReader(io.StringIO((written.parent / "matrix-paper.csv").read_text())))
    forbidden = [row for row, cell in zip(paper, doc["cells"], strict=True) if not cell["paper"]["possible"]]
    assert {float(row["trade_off"]) for row in forbidden} == {0.0}


def test_a_table_runs_no_formula() -> None:
    named = tuple(replace(p, name=f"=cmd|{p.name}") for p in PARTIES)
    study = tiny(results(named))
    evidence = gather(study, choose(study))
    text = tables(evidence, as_json(evidence))["matrix.csv"].decode()
    assert "\n'=cmd|" in text
    assert "\n=cmd" not in text


def test_the_report_needs_no_torch() -> None:
    code = "import sys, counterpoise.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
