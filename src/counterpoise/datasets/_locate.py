"""Where data sets are looked for: a given root, then $COUNTERPOISE_DATA, then the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from counterpoise._check import InputError


def cache_folder() -> Path:
    """Where fetched files are kept. It is not made before something is fetched."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "counterpoise"


def locate(root: str | None, patterns: Sequence[str], title: str, page: str) -> Path:
    """The file or folder of a data set.

    `root` may be the data set itself, or a folder that has it under one of the usual names (`patterns`). `page`
    tells where its publisher offers it.
    """
    if root is not None:
        given = Path(root).expanduser()
        if not given.exists():
            raise InputError(f"root={root!r}: there is no such file or folder; {title} is offered at {page}.")
        return _inside(given, patterns) or given
    places = [Path(folder) for folder in (os.environ.get("COUNTERPOISE_DATA"),) if folder] + [cache_folder()]
    for place in places:
        if found := _inside(place, patterns):
            return found
    looked = " or ".join(str(place) for place in places)
    raise InputError(
        f"{title} is not in {looked}; get it from {page} and put it there as {patterns[0]}, or give its path as root."
    )


def _inside(place: Path, patterns: Sequence[str]) -> Path | None:
    if not place.is_dir():
        return None
    return next((found for pattern in patterns for found in sorted(place.glob(pattern))), None)
