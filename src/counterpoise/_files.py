"""Files that are there whole or not at all. Standard library only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A neighbour to write to; it takes the file's place when the block has ended well, and is gone otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed while writing has left in the folder; nobody else may be writing there."""
    for part in folder.rglob(".*.part"):
        part.unlink(missing_ok=True)


def lock(folder: Path) -> TextIOWrapper:
    """Hold the folder until the file is closed or the process ends, however; BlockingIOError where another holds it."""
    file = (folder / ".lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def write(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a crash."""
    with replacing(path) as part:
        part.write_bytes(content)
