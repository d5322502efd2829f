"""What every reproduction is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCALES = ("quick", "cpu", "paper")
"""A check that the path works; declared reductions that show the effect on two cores; the source's own settings."""


@dataclass(frozen=True)
class Settings:
    """Where data is looked for (None: nowhere was named), how much to do, where results go."""

    data: Path | None
    scale: str
    out: Path
