"""What private training did to groups: `python examples/groups_under_privacy.py runs/groups` prints it as a table.

The run is that of groups-under-privacy.toml beside this file; any run with its measures will do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from counterpoise.grid import text
from counterpoise.record import Measurement, Record
from counterpoise.store import Store

LOSSES = ("task_loss", "smallest_group_loss", "worst_group_loss")
HEAD = ("", "epsilon", "accuracy %", "loss, all", "loss, smallest group", "loss, worst group", "digests")


def table(records: Sequence[Record]) -> str:
    """A line for each mechanism and degree, in each cell a value for each seed; in percent, 95 % over test images."""
    settings = dict.fromkeys((record.mechanism, record.degree) for record in records)
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for mechanism, degree in settings:
        seeds = [record for record in records if (record.mechanism, record.degree) == (mechanism, degree)]
        epsilons = sorted({f"{guarantee.epsilon:.2f}" for record in seeds for guarantee in record.guarantees})
        cells = [
            f"{mechanism} {text(degree)}",
            ", ".join(epsilons) or "-",
            ", ".join(f"{100 * record.measurements['accuracy'].value:.1f}" for record in seeds),
            *(", ".join(percent(record.measurements[name]) for record in seeds) for name in LOSSES),
            ", ".join(f"`{record.digest[:8]}`" for record in seeds),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def percent(found: Measurement) -> str:
    """With its interval, where it has one."""
    value = f"{100 * found.value:.1f}"
    return value if found.low == found.high else f"{value} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def main(folder: Path) -> None:
    """The table, and what it was made from."""
    store = Store.open(folder)
    manifest, results = store.manifest(), store.results()
    print(table([record for record in results if not record.refusal]))
    versions = ", ".join(f"{name} {version}" for name, version in manifest.environment.items() if name != "machine")
    print(f"\nSeeds {', '.join(map(str, manifest.configuration['seeds']))}; run `{manifest.digest[:8]}`; {versions}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
