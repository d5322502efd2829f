"""One view of a folder, a zip and a tar: names, and the bytes behind a name. Nothing is unpacked to the disk.

What a file claims is checked before it is believed: no member may point outside, and no archive may unpack to
far more than it weighs.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from counterpoise._check import InputError

MOST_EXPANSION = 100
FREE_BYTES = 64 * 2**20
"""An archive may unpack to this much, and beyond it to `MOST_EXPANSION` times its own size."""

BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,  # an encrypted zip member
    NotImplementedError,  # a zip compression that Python does not know
)


@dataclass(frozen=True)
class Source:
    """Files by name, in the order in which reading them is fast; and folders, those without files included."""

    path: Path
    names: tuple[str, ...]
    raw: Callable[[str], bytes]
    folders: tuple[str, ...] = ()

    def read(self, name: str) -> bytes:
        """The content of one file."""
        try:
            return self.raw(name)
        except BROKEN as problem:
            raise damaged(f"{self.path}: {name}", problem) from None

    @cached_property
    def position(self) -> dict[str, int]:
        """Where each name stands in the reading order."""
        return {name: index for index, name in enumerate(self.names)}

    def find(self, *filenames: str) -> str | None:
        """The first file that has one of these names, in whichever folder."""
        for filename in filenames:
            for name in self.names:
                if PurePosixPath(name).name == filename:
                    return name
        return None

    def need(self, *filenames: str) -> str:
        """Like `find`, but the file must be there."""
        found = self.find(*filenames)
        if found is None:
            raise InputError(f"{self.path}: there is no {' or '.join(filenames)} in it; get the complete data set.")
        return found


def damaged(where: str, problem: BaseException) -> InputError:
    """The sentence for content that cannot be read."""
    why = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
    return InputError(f"{where} cannot be read, it is damaged or incomplete ({why}); get it again.")


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The files of a folder, a zip or a tar (plain, gz, bz2 or xz)."""
    with ExitStack() as stack:
        try:
            if path.is_dir():
                source = _folder(path)
            elif not path.is_file():
                raise InputError(f"{path}: there is no such file or folder.")
            elif zipfile.is_zipfile(path):
                source = _zip(path, stack.enter_context(zipfile.ZipFile(path)))
            elif path.suffix == ".zip":
                raise zipfile.BadZipFile("this is no zip file")
            else:
                source = _tar(path, stack.enter_context(tarfile.open(path)))
        except BROKEN as problem:
            raise damaged(str(path), problem) from None
        yield source


def gunzipped(where: str, content: bytes) -> bytes:
    """The content, unpacked where it is gzipped, within the limit of expansion."""
    if content[:2] != b"\x1f\x8b":
        return content
    allowed = FREE_BYTES + MOST_EXPANSION * len(content)
    try:
        with gzip.open(io.BytesIO(content)) as file:
            plain = file.read(allowed + 1)
    except BROKEN as problem:
        raise damaged(where, problem) from None
    if len(plain) > allowed:
        raise bomb(where, len(content))
    return plain


def bomb(where: object, size: int) -> InputError:
    """The sentence for an archive that would fill the memory."""
    return InputError(
        f"{where}: these {size} bytes unpack to more than {FREE_BYTES + MOST_EXPANSION * size} bytes,"
        " as a decompression bomb does; nothing is unpacked."
    )


def _folder(path: Path) -> Source:
    files = (f for f in path.rglob("*") if f.is_file() and not _hidden(f.relative_to(path).as_posix()))
    names = tuple(sorted(f.relative_to(path).as_posix() for f in files))
    folders = (f.relative_to(path).as_posix() for f in path.rglob("*") if f.is_dir())
    return Source(path, names, lambda name: (path / name).read_bytes(), tuple(sorted(folders)))


def _zip(path: Path, archive: zipfile.ZipFile) -> Source:
    members = archive.infolist()
    for member in members:
        _refuse_outside(path, member.filename)
    size = path.stat().st_size
    if sum(member.file_size for member in members) > FREE_BYTES + MOST_EXPANSION * size:
        raise bomb(path, size)
    names = tuple(m.filename for m in members if not m.is_dir() and not _hidden(m.filename))
    folders = tuple(m.filename for m in members if m.is_dir() and not _hidden(m.filename))
    return Source(path, names, archive.read, folders)


def _tar(path: Path, archive: tarfile.TarFile) -> Source:
    members: dict[str, tarfile.TarInfo] = {}
    folders = []
    total, size = 0, path.stat().st_size
    # One by one: the sizes stand in the headers, so that a bomb is seen before it is unpacked.
    while (member := archive.next()) is not None:
        _refuse_outside(path, member.name)
        total += member.size
        if total > FREE_BYTES + MOST_EXPANSION * size:
            raise bomb(path, size)
        if member.isreg() and not _hidden(member.name):
            members[member.name] = member
        if member.isdir() and not _hidden(member.name):
            folders.append(member.name)

    def read(name: str) -> bytes:
        file = archive.extractfile(members[name])
        return b"" if file is None else file.read()

    return Source(path, tuple(members), read, tuple(folders))


def _refuse_outside(path: Path, name: str) -> None:
    plain = PurePosixPath(name.replace("\\", "/"))
    if plain.is_absolute() or ".." in plain.parts or ":" in name.split("/")[0]:
        raise InputError(f"{path}: the member {name!r} points outside the archive; it is not opened.")


def _hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)
