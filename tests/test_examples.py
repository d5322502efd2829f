"""The tables that the documentation takes from runs are laid out as the records say."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

from counterpoise.grid import DegreeKind
from counterpoise.record import Guarantee, Measurement, Record
from counterpoise.store import Manifest, Store

SCRIPT = Path(__file__).parents[1] / "examples" / "groups_under_privacy.py"


def record(mechanism: str, degree: str, seed: int, accuracy: float, lost: float) -> Record:
    private = mechanism == "dp-sgd"
    wide = Measurement(lost, lost - 0.1, lost + 0.1, 10, "images") if private else Measurement.exact(0.0)
    return Record(
        digest=f"{seed}{mechanism}".ljust(32, "0"),
        party="a",
        mechanism=mechanism,
        kind=DegreeKind("noise", "up"),
        degree=Decimal(degree),
        seed=seed,
        measurements={
            "accuracy": Measurement.exact(accuracy),
            **dict.fromkeys(("task_loss", "worst_group_loss"), Measurement.exact(lost)),
            "smallest_group_loss": wide,
        },
        guarantees=(Guarantee("dp", 3.004, 1e-5),) if private else (),
    )


def test_groups_under_privacy(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    records = [
        record("plain", "0", 0, 0.8, 0),
        record("plain", "0", 1, 0.7, 0),
        record("dp-sgd", "1", 0, 0.75, 0.05),
        record("dp-sgd", "1", 1, 0.72, -0.02),
    ]
    for each in records:
        store.save(each)
    names = tuple(each.digest for each in records)
    versions = {"torch": "2", "machine": "vax"}
    store.save_manifest(Manifest("groups", "f" * 32, (), names, {"seeds": [0, 1]}, versions))
    done = subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "|  | epsilon | accuracy % | loss, all | loss, smallest group | loss, worst group | digests |",
        "|---|---|---|---|---|---|---|",
        "| plain 0 | - | 80.0, 70.0 | 0.0, 0.0 | 0.0, 0.0 | 0.0, 0.0 | `0plain00`, `1plain00` |",
        "| dp-sgd 1 | 3.00 | 75.0, 72.0 | 5.0, -2.0 | 5.0 [-5.0, 15.0], -2.0 [-12.0, 8.0] | 5.0, -2.0"
        " | `0dp-sgd0`, `1dp-sgd0` |",
        "",
        "Seeds 0, 1; run `ffffffff`; torch 2.",
    ]
