"""A folder, a zip and a tar look the same; what is hostile or damaged is refused in one sentence."""

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from counterpoise._check import InputError
from counterpoise.datasets import _archive
from counterpoise.datasets._archive import gunzipped, opened

FILES = {"a/one.png": b"first", "a/b/two.png": b"second" * 100, "table.csv": b"x,y\n"}


COMPRESS: Mapping[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def write(path: Path, files: Mapping[str, bytes]) -> Path:
    """The files as whatever the path's ending says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    elif ".tar" in path.name:
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        path.write_bytes(COMPRESS[path.suffix](plain.getvalue()))
    else:
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    return path


ARCHIVES = ["set.zip", "set.tar", "set.tar.gz", "set.tar.xz", "set.tar.bz2"]


@pytest.mark.parametrize("kind", ["set", *ARCHIVES])
def test_every_kind_gives_the_same_files(kind: str, tmp_path: Path) -> None:
    hidden = {"__MACOSX/a/one.png": b"", ".git/config": b"", "a/.DS_Store": b""}
    with opened(write(tmp_path / kind, FILES | hidden)) as source:
        assert {name: source.read(name) for name in source.names} == FILES
        assert source.find("absent", "two.png") == "a/b/two.png"
        assert source.find("absent") is None
        with pytest.raises(
            InputError, match=rf"{kind}: there is no absent or gone in it; get the complete data set\.$"
        ):
            source.need("absent", "gone")
    assert {path.name for path in tmp_path.iterdir()} == {kind}


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("name", ["../evil.png", "/etc/evil.png", "a/../../evil.png", "..\\evil.png", "C:/evil.png"])
def test_members_that_point_outside_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    path = write(tmp_path / kind, {"fine.png": b"1", name: b"2"})
    sentence = rf"{kind}: the member {re.escape(repr(name))} points outside the archive; it is not opened\.$"
    with pytest.raises(InputError, match=sentence), opened(path):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == [kind]


def test_a_link_in_a_tar_is_no_file(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "set.tar", "w") as tar:
        link = tarfile.TarInfo("passwords.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with opened(tmp_path / "set.tar") as source:
        assert source.names == ()


@pytest.fixture
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_archive, "FREE_BYTES", 10_000)


@pytest.mark.usefixtures("_small_limits")
@pytest.mark.parametrize("kind", [kind for kind in ARCHIVES if kind != "set.tar"])
def test_a_decompression_bomb_is_refused(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / kind, {"zeros.png": b"\0" * 3_000_000})
    allowed = 10_000 + 100 * path.stat().st_size
    assert allowed < 3_000_000
    sentence = rf"{kind}: these \d+ bytes unpack to more than {allowed} bytes, as a decompression bomb does; nothing"
    with pytest.raises(InputError, match=sentence), opened(path):
        pass
    ordinary = write(tmp_path / f"ordinary-{kind}", {"noise.png": bytes(range(256)) * 30})
    with opened(ordinary) as source:
        assert len(source.read("noise.png")) == 7680


@pytest.mark.usefixtures("_small_limits")
def test_a_gzip_bomb_is_refused() -> None:
    bomb = gzip.compress(b"\0" * 3_000_000)
    with pytest.raises(InputError, match=r"^file: these .* as a decompression bomb does; nothing is unpacked"):
        gunzipped("file", bomb)
    assert gunzipped("file", gzip.compress(b"fine")) == b"fine"
    assert gunzipped("file", b"fine") == b"fine"


def test_real_limits_admit_what_data_sets_need() -> None:
    """A table of 300 MB that compresses 3 : 1 passes; 10 MB that claim 10 GB do not."""
    allowed = _archive.FREE_BYTES + _archive.MOST_EXPANSION * 10_000_000
    assert 30_000_000 < allowed < 10_000_000_000


@pytest.mark.parametrize("kind", ["set.zip", "set.tar.gz", "set.tar.xz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_a_cut_archive_is_damaged(kind: str, share: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).bytes(20_000)
    path = write(tmp_path / kind, {"a.png": noise, "b.png": noise})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match=r"cannot be read, it is damaged or incomplete \(.+\); get it again\.$"):
        _read_everything(path)


def _read_everything(path: Path) -> None:
    with opened(path) as source:
        for name in ("a.png", "b.png"):
            source.read(source.need(name))


def test_a_flipped_byte_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "set.zip", {"a.png": bytes(range(256)) * 10, "b.png": b"1"})
    content = bytearray(path.read_bytes())
    content[60] ^= 255
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"set\.zip: a\.png cannot be read, it is damaged"):
        _read_everything(path)


def test_neither_folder_nor_archive(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match=r"notes\.txt cannot be read, it is damaged"), opened(tmp_path / "notes.txt"):
        pass
    with pytest.raises(InputError, match=r"absent: there is no such file or folder\.$"), opened(tmp_path / "absent"):
        pass
