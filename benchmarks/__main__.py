"""`python -m benchmarks [names] [--quick]`: run benchmarks, print their tables, write benchmarks/results/NAME.json.

A benchmark is a module of this package with a function `run(options) -> Table`, named in BENCHMARKS.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.table import Options

BENCHMARKS = ("dp_step", "campaign", "explain_speed", "hiding_step")
RESULTS = Path(__file__).parent / "results"
VERSIONS = ("counterpoise", "torch", "opacus", "captum", "torchcam", "numpy")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", default=BENCHMARKS, help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller batches: a minute or two")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there is {', '.join(BENCHMARKS)}")
    torch.set_num_threads(chosen.threads)
    options = Options(chosen.quick, chosen.seed, chosen.threads)
    for name in chosen.names:
        table = importlib.import_module(f"benchmarks.{name}").run(options)
        print(f"\n{table.title}\n{table.text()}")
        RESULTS.mkdir(exist_ok=True)
        whole = {"benchmark": name, "title": table.title, "rows": table.rows, "settings": settings(options)}
        (RESULTS / f"{name}.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def settings(options: Options) -> dict[str, object]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": sys.version.split()[0],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "versions": {name: version(name) for name in VERSIONS},
        "quick": options.quick,
        "seed": options.seed,
        "threads": options.threads,
    }


if __name__ == "__main__":
    main()
