"""One finished training's numbers as one file, so that a reproduction that was stopped goes on where it was."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from counterpoise import store
from counterpoise._files import write
from counterpoise.fingerprint import versions

Numbers = dict[str, Any]


def kept(folder: Path, configuration: Mapping[str, Any], compute: Callable[[], Numbers]) -> Numbers:
    """The numbers of this configuration with this code, computed once; with its digest, versions and CPU seconds."""
    made_from = {**configuration, "versions": {**versions(), "scikit-learn": version("scikit-learn")}}
    digest = store.digest(made_from)
    path = folder / "trainings" / f"{digest}.json"
    if (found := _sound(path)) is not None:
        return found
    started = time.process_time()
    numbers = compute()
    content = {
        "digest": digest,
        "configuration": made_from,
        "python": platform.python_version(),
        "cpu_seconds": round(time.process_time() - started, 1),
        **numbers,
    }
    write(path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")
    return content


def _sound(path: Path) -> Numbers | None:
    try:
        found: Numbers = json.loads(path.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):  # not there, or damaged: computed again
        return None
    return found
