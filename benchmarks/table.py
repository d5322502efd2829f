"""What benchmarks take and give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How long to measure, from which seed, on how many threads."""

    quick: bool = False
    seed: int = 0
    threads: int = 1


@dataclass(frozen=True)
class Table:
    """Rows of equal keys, in the order of printing."""

    title: str
    rows: list[dict[str, str | float]]

    def text(self) -> str:
        """Columns as wide as their widest cell, numbers to three digits."""
        cells = [list(self.rows[0])] + [
            [
                value if isinstance(value, str) else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
                for value in row.values()
            ]
            for row in self.rows
        ]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
