"""Where a run lives on disk. Every file is written to a neighbour first and then renamed, so none is ever half-written.

runs/x/results.json            the study, its parties, and the digests of its records
runs/x/records/<digest>.json   one record a training, named by what it was made from
runs/x/weights/<digest>.safetensors
runs/x/galleries/<digest>.npz  a few images and maps for the report
runs/x/checkpoints/            trainings under way
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from counterpoise._check import InputError
from counterpoise._files import lock, remove_unfinished, write
from counterpoise.record import Party, Record, Results

_RECORD = TypeAdapter(Record)


def digest(parts: object) -> str:
    """A name for what a result is made from: 32 hexadecimal digits of the SHA-256 of its canonical JSON."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Manifest:
    """What the folder holds: the study in its canonical form, and the digests of all records it will have."""

    study: str
    digest: str
    parties: tuple[Party, ...]
    records: tuple[str, ...]
    configuration: Mapping[str, Any]
    environment: Mapping[str, str]


_MANIFEST = TypeAdapter(Manifest)


@dataclass(frozen=True)
class Store:
    """One run's folder."""

    root: Path

    @classmethod
    def create(cls, root: Path) -> Store:
        """The folder, made if it is not there."""
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(
                f"--out {root}: cannot be made ({problem.strerror}); name a folder you may write."
            ) from None
        return cls(root)

    @classmethod
    def open(cls, root: Path) -> Store:
        """The folder of an earlier run."""
        if not (root / "results.json").is_file():
            raise InputError(f"{root}: holds no run (no results.json); name a folder that 'counterpoise run' wrote.")
        return cls(root)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; a second run in it is refused. The lock goes with the process, however it ends."""
        try:
            file = lock(self.root)
        except BlockingIOError:
            raise InputError(
                f"{self.root}: another run is at work in this folder; wait for it, or name another with --out."
            ) from None
        except OSError as problem:
            raise InputError(f"--out {self.root}: cannot be written ({problem.strerror}).") from None
        with file:
            remove_unfinished(self.root)
            yield

    def weights(self, key: str) -> Path:
        """Where a training's weights are."""
        return self.root / "weights" / f"{key}.safetensors"

    def checkpoint(self, key: str) -> Path:
        """Where a training under way saves its state."""
        return self.root / "checkpoints" / f"{key}.safetensors"

    def _record(self, key: str) -> Path:
        return self.root / "records" / f"{key}.json"

    def save(self, record: Record) -> None:
        """Write a record; the last thing a training does, so that a record vouches for its weights."""
        write(self._record(record.digest), _RECORD.dump_json(record, indent=1) + b"\n")

    def load(self, key: str) -> Record | None:
        """The record of that digest; None where it is not there yet."""
        path = self._record(key)
        if not path.is_file():
            return None
        try:
            return _RECORD.validate_json(path.read_bytes())
        except (ValidationError, ValueError):
            raise InputError(f"{path}: this record is damaged; delete the file and run again.") from None

    def save_manifest(self, manifest: Manifest) -> None:
        """Write what the folder is about to hold."""
        write(self.root / "results.json", _MANIFEST.dump_json(manifest, indent=1) + b"\n")

    def manifest(self) -> Manifest:
        """What the folder holds."""
        path = self.root / "results.json"
        try:
            return _MANIFEST.validate_json(path.read_bytes())
        except (ValidationError, ValueError):
            raise InputError(f"{path}: this file is damaged; run the study again to write it anew.") from None

    def results(self) -> Results:
        """All finished records, in the order of the plan."""
        manifest = self.manifest()
        found = [record for key in manifest.records if (record := self.load(key)) is not None]
        missing = len(manifest.records) - len(found)
        notes = (f"{missing} of {len(manifest.records)} trainings are not finished.",) if missing else ()
        return Results(manifest.study, manifest.parties, tuple(found), manifest.digest, notes)

    def save_gallery(self, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """A few images and maps, as plain arrays."""
        content = BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        write(self.root / "galleries" / f"{key}.npz", content.getvalue())

    def gallery(self, key: str) -> dict[str, NDArray[Any]] | None:
        """The arrays of that training; None where there are none."""
        path = self.root / "galleries" / f"{key}.npz"
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
