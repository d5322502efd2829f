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

COMPARISON = "comparison.json"
Verdict = Literal["seen", "not seen", "not decidable at this scale", "for comparison"]


@dataclass(frozen=True)
class Claim:
    """One statement of a source, our number, and the verdict."""

    statement: str
    published: str
    ours: str
    verdict: Verdict


def write_claims(folder: Path, claims: Sequence[Claim], provenance: Mapping[str, Any]) -> None:
    """Keep the claims, under what they belong to."""
    whole = {**provenance, "claims": [asdict(claim) for claim in claims]}
    _files.write(folder / COMPARISON, json.dumps(whole, indent=1).encode() + b"\n")


def read_claims(folder: Path) -> tuple[Claim, ...]:
    """What was kept in the folder; nothing for a study that reproduces no source."""
    path = folder / COMPARISON
    if not path.is_file():
        return ()
    try:
        return TypeAdapter(tuple[Claim, ...]).validate_python(json.loads(path.read_bytes())["claims"])
    except (ValueError, KeyError, TypeError, ValidationError):
        raise InputError(f"{path}: not a comparison that a reproduction wrote; run the reproduction again.") from None
