"""Fetch a publisher's file and check its SHA-256. The network is used only where somebody asked for it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from counterpoise._check import InputError
from counterpoise.interface import Progress

CHUNK = 2**20
PATIENCE = 60.0
"""Seconds without an answer."""


def fetch(address: str, sha256: str, target: Path, progress: Progress = lambda done: None) -> Path:
    """The file at `target`, fetched if it is not there. A file with another sum is never put there."""
    if target.exists() and _sum(target) == sha256:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    whole = hashlib.sha256()
    try:
        with urlopen(address, timeout=PATIENCE) as answer, open(part, "wb") as file:
            size = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                whole.update(chunk)
                progress(min(1.0, file.tell() / size) if size else 0.0)
        if whole.hexdigest() != sha256:
            raise InputError(
                f"{address}: the fetched file has SHA-256 {whole.hexdigest()}, not {sha256}; it is not kept."
            )
        os.replace(part, target)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as problem:
        raise InputError(
            f"{address} cannot be fetched ({problem}); get the file another way and put it into {target.parent}."
        ) from None
    finally:
        part.unlink(missing_ok=True)
    return target


def fetch_all(address: str, sums: Mapping[str, str], folder: Path) -> Path:
    """The folder with all named files."""
    for name, sha256 in sums.items():
        fetch(address + name, sha256, folder / name)
    return folder


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
