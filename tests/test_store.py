"""The folder of a run: records read back as they were written, nothing half-written, one run at a time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from counterpoise._check import InputError
from counterpoise._files import write
from counterpoise.grid import DegreeKind
from counterpoise.record import Explained, Guarantee, Measurement, Party, Record, Release
from counterpoise.store import Manifest, Store, digest

RECORD = Record(
    digest="d" * 32,
    party="a",
    mechanism="dp-sgd",
    kind=DegreeKind("noise", "up"),
    degree=Decimal("1.8"),
    seed=3,
    measurements={"privacy_gain": Measurement(0.1, 0.0, 0.3, 5, "images"), "wide": Measurement.exact(math.inf)},
    explained=(Explained(Decimal("0.1"), {"stability": Measurement.exact(0.25)}),),
    guarantees=(Guarantee("dp", 1.5, 1e-5, releases=(Release("gaussian", 1.8, 0.1, 100),)),),
    versions={"torch": "2.13.0"},
)


def manifest(*records: str) -> Manifest:
    return Manifest("s", "0", (Party("a", ("noise > 1",)),), records, {}, {})


def test_a_record_reads_back_equal_and_writes_the_same_bytes(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "run")
    store.save(RECORD)
    again = store.load(RECORD.digest)
    assert again == RECORD
    path = tmp_path / "run" / "records" / f"{RECORD.digest}.json"
    before = path.read_bytes()
    assert again is not None
    store.save(again)
    assert path.read_bytes() == before
    json.loads(before, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))


def test_results_follow_the_manifest_and_say_what_is_missing(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    store.save(RECORD)
    store.save_manifest(manifest(RECORD.digest, "e" * 32))
    results = Store.open(tmp_path).results()
    assert results.records == (RECORD,)
    assert results.parties == (Party("a", ("noise > 1",)),)
    assert results.notes == ("1 of 2 trainings are not finished.",)


@pytest.mark.parametrize("content", [b"", b"{", b'{"digest": 3}', b'{"unknown": 1}', b"\xff"])
def test_a_damaged_record_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    store = Store.create(tmp_path)
    write(tmp_path / "records" / f"{RECORD.digest}.json", content)
    with pytest.raises(InputError, match=r"this record is damaged; delete the file and run again\."):
        store.load(RECORD.digest)


def test_a_record_with_an_unknown_key_is_damaged(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    store.save(RECORD)
    path = tmp_path / "records" / f"{RECORD.digest}.json"
    path.write_text(path.read_text().replace('"seed"', '"sead"'))
    with pytest.raises(InputError, match="damaged"):
        store.load(RECORD.digest)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no run \(no results\.json\)"):
        Store.open(tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(InputError, match=r"results\.json: this file is damaged"):
        Store.open(tmp_path).manifest()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be made \(.*\); name a folder you may write\."):
        Store.create(tmp_path / "file" / "run")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.json"
    write(path, b"old")

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.json"]


def test_a_second_process_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from counterpoise.store import Store\n"
        "from counterpoise._check import InputError\n"
        "try:\n    with Store(Path(sys.argv[1])).locked(): print('held')\n"
        "except InputError as problem: print(problem)"
    )

    def other() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        ).stdout

    with Store.create(tmp_path).locked():
        assert "another run is at work in this folder; wait for it, or name another with --out." in other()
    assert other() == "held\n"


def test_what_a_killed_write_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    code = (
        "import os, signal, sys; from pathlib import Path; from counterpoise._files import replacing\n"
        "with replacing(Path(sys.argv[1])) as part:\n"
        "    part.write_bytes(b'half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(store.weights("k"))], check=False)
    (left,) = store.weights("k").parent.iterdir()
    assert left.name.endswith(".part")
    write(store.weights("whole"), b"kept")
    with store.locked():
        assert [path.name for path in store.weights("k").parent.iterdir()] == ["whole.safetensors"]


def test_a_digest_depends_on_every_value_and_not_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1})
    assert len({digest(x) for x in ({"a": 1}, {"a": 2}, {"a": "1"}, {"b": 1}, [1], {"a": [1]})}) == 6


def test_a_gallery_reads_back(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    arrays = {"maps": np.arange(6, dtype=np.uint8).reshape(1, 2, 3), "labels": np.array(["one", "two"])}
    store.save_gallery("k", arrays)
    found = store.gallery("k")
    assert found is not None
    assert {name: value.tolist() for name, value in found.items()} == {k: v.tolist() for k, v in arrays.items()}
    assert store.gallery("other") is None
