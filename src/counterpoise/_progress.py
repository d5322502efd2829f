"""A run's progress: a live bar on a terminal, one line a finished training elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from counterpoise.prepare import Job


class Live:
    """Counts shares of trainings, so that the bar moves while one is under way."""

    def __init__(self, console: Console) -> None:
        self.total = self.finished = 0
        self._console, self._start = console, time.monotonic()
        self._shares: dict[str, float] = {}
        self._bar = Progress(
            TextColumn("{task.fields[count]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, count="")

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def started(self, todo: Sequence[Job], done: Sequence[Job]) -> None:
        """Say what is left to do and what is there already."""
        self.total, self.finished = len(todo) + len(done), len(done)
        kept = f", {len(done)} of them finished earlier" if done else ""
        self._console.print(f"{self.total} trainings{kept}.")
        self._bar.update(self._task, total=self.total, completed=self.finished, count=f"{self.finished}/{self.total}")

    def report(self, job: Job, share: float) -> None:
        """A training is so far; the message 1.0 comes once, at its end."""
        if self._shares.get(job.digest) == 1.0:
            return  # a late message of a finished training
        self._shares[job.digest] = share
        if share == 1.0:
            self.finished += 1
            if not self._console.is_terminal:
                seconds = time.monotonic() - self._start
                self._console.print(
                    f"[{self.finished}/{self.total}] {seconds:.0f} s  {job}", markup=False, highlight=False
                )
        before = self.finished - sum(value == 1.0 for value in self._shares.values())
        done = before + sum(self._shares.values())
        count = f"{self.finished}/{self.total}"
        self._bar.update(self._task, completed=done, description=str(job), count=count)
