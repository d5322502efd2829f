"""Writing a report: everything is made in memory first, then each file appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from counterpoise import _files
from counterpoise.record import Results
from counterpoise.report.claims import Claim
from counterpoise.report.decision import Json, as_json
from counterpoise.report.documents import documents
from counterpoise.report.evidence import Evidence, gather
from counterpoise.report.figures import draw, slug
from counterpoise.report.gallery import Gallery
from counterpoise.report.page import page
from counterpoise.report.tables import matrix_csv, paper_csv
from counterpoise.tradeoff import Budget, Decision


def write(
    results: Results,
    decision: Decision,
    out: Path,
    *,
    galleries: Sequence[Gallery] = (),
    budgets: Sequence[Budget] = (),
    environment: Mapping[str, str] | None = None,
    claims: Sequence[Claim] = (),
) -> tuple[Path, ...]:
    """Write the report into the folder `out`, and give the files' paths, the page first."""
    files = render(gather(results, decision, budgets, galleries, environment, claims))
    for name, content in files.items():
        _files.write(out / name, content)
    return tuple(out / name for name in files)


def render(evidence: Evidence) -> dict[str, bytes]:
    """Every file of the report by its name."""
    decided, drawn = as_json(evidence), draw(evidence)
    return {
        "report.html": page(evidence, decided, _stills(evidence, drawn)).encode(),
        **tables(evidence, decided),
        **{name: text.encode() for name, text in documents(evidence, decided).items()},
        **{f"figures/{name}": content for name, content in drawn.items()},
    }


def tables(evidence: Evidence, decided: Json) -> dict[str, bytes]:
    """The files that other programs read."""
    return {
        "decision.json": _json(decided).encode(),
        "matrix.csv": matrix_csv(decided),
        "matrix-paper.csv": paper_csv(evidence),
    }


def _stills(evidence: Evidence, drawn: Mapping[str, bytes]) -> dict[str, bytes]:
    """The surfaces that the page shows where the browser cannot draw them, by 'mechanism|mode'."""
    wanted = [(name, mode) for name in evidence.decision.panels for mode in evidence.modes]
    named = {f"{name}|{mode}": f"surface-{slug(name)}-{mode}.png" for name, mode in wanted}
    return {key: drawn[file] for key, file in named.items() if file in drawn}


def _json(decided: Json) -> str:
    """Strict JSON with one line for each entry of a list, so that versions can be compared line by line."""
    parts = [f"{json.dumps(key)}: {_lines(value)}" for key, value in decided.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(value: object) -> str:
    def compact(inner: object) -> str:
        return json.dumps(inner, allow_nan=False, ensure_ascii=False)

    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(compact(entry) for entry in value) + "\n]"
    return compact(value)
