"""Progress of a long explanation, with an estimate of the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Countdown:
    """`explain(…, progress=Countdown())` writes a line on how far it is, and about how long it will still take."""

    def __init__(self, every: float = 1.0, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
        self._every, self._out, self._clock = every, out, clock
        self._start = self._said = clock()

    def __call__(self, done: float) -> None:
        """Say it, but not more than once in `every` seconds, and always at the end."""
        now = self._clock()
        if done <= 0 or (now - self._said < self._every and done < 1):
            return
        self._said = now
        spent = now - self._start
        words = f"{spent:.0f} s in all" if done >= 1 else f"about {spent * (1 - done) / done:.0f} s left"
        print(f"explaining: {done:.0%}, {words}", file=self._out or sys.stderr, flush=True)
