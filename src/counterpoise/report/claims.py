"""Published statements beside this study's numbers, kept in the run's folder so that every later report shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from counterpoise import _files
from counterpoise._check import InputError

COMPARISON, PAGE = "comparison.json", "comparison.md"
Verdict = Literal["seen", "not seen", "not decidable at this scale", "for comparison"]


@dataclass(frozen=True)
class Claim:
    """One statement of a source, our number, and the verdict."""

    statement: str
    published: str
    ours: str
    verdict: Verdict


def write_claims(folder: Path, claims: Sequence[Claim], provenance: Mapping[str, Any]) -> None:
    """Keep the claims, under what they belong to; and the same as a table for a page of text."""
    whole = {**provenance, "claims": [asdict(claim) for claim in claims]}
    _files.write(folder / COMPARISON, json.dumps(whole, indent=1).encode() + b"\n")
    _files.write(folder / PAGE, markdown(claims, provenance).encode())


def markdown(claims: Sequence[Claim], provenance: Mapping[str, Any]) -> str:
    """The claims as a Markdown table, and beneath it what they belong to."""
    rows = [("statement", "published", "ours", "verdict"), ("---",) * 4]
    rows += [(claim.statement.strip(), claim.published, claim.ours, claim.verdict) for claim in claims]
    table = "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
    belongs = "; ".join(f"{key}: {_words(value)}" for key, value in provenance.items())
    return f"{table}\n\n{belongs}.\n"


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(part)}" for key, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_claims(folder: Path) -> tuple[Claim, ...]:
    """What was kept in the folder; nothing for a study that reproduces no source."""
    path = folder / COMPARISON
    if not path.is_file():
        return ()
    try:
        return TypeAdapter(tuple[Claim, ...]).validate_python(json.loads(path.read_bytes())["claims"])
    except (ValueError, KeyError, TypeError, ValidationError):
        raise InputError(f"{path}: not a comparison that a reproduction wrote; run the reproduction again.") from None
