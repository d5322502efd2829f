"""Where trainings run: here, or in worker processes. Results do not depend on which, nor on how many.

Every training runs on one torch thread, in an order that respects its baseline; all it shares with the others is the
folder it writes its record to.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import torch

from counterpoise._check import InputError, at_least
from counterpoise.prepare import Job
from counterpoise.training import one_thread

Execute = Callable[[Job, Callable[[float], None]], None]
Report = Callable[[Job, float], None]
"""(job, share done): called in the process that started the run."""


def serial(waves: Iterable[Sequence[Job]], execute: Execute, report: Report) -> None:
    """One after the other, in this process. All of one wave are finished before the next one is asked for."""
    with one_thread():
        for wave in waves:
            for job in wave:
                execute(job, lambda done, job=job: report(job, done))  # type: ignore[misc]
                report(job, 1.0)


class Processes:
    """In worker processes; by default one a core."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None:
            at_least(1, workers=workers)
        self.workers = workers or len(os.sched_getaffinity(0))

    def __call__(self, waves: Iterable[Sequence[Job]], execute: Execute, report: Report) -> None:
        """Run the waves: all of one are finished before the next one is asked for."""
        context = multiprocessing.get_context("spawn")
        messages: multiprocessing.SimpleQueue[tuple[Job, float]] = context.SimpleQueue()
        pool = ProcessPoolExecutor(self.workers, context, initializer=_start, initargs=(messages, execute))
        done = False
        try:
            for wave in waves:
                self._finish({pool.submit(_work, job): job for job in wave}, messages, report)
            done = True
        except BrokenProcessPool:
            raise InputError(
                "executor='processes': a worker process ended by itself (out of memory, or a script that does not"
                " guard its call with \"if __name__ == '__main__':\"); try executor='serial'."
            ) from None
        finally:
            # Stopped early, nobody waits for what is under way: an unfinished training has written nothing.
            for process in [] if done else list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)

    @staticmethod
    def _finish(running: dict[Future[None], Job], messages: Any, report: Report) -> None:
        """Wait for one wave, passing on what its workers say."""
        while running:
            ended, _ = wait(running, timeout=0.2)
            while not messages.empty():
                report(*messages.get())
            for future in ended:
                report(running.pop(future), 1.0)
                future.result()


_worker: tuple[Any, Execute] | None = None


def _start(messages: Any, execute: Execute) -> None:
    """Set up a worker process: one thread, deaf to Ctrl-C (the parent decides), and never an orphan."""
    global _worker
    _worker = (messages, execute)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    """End this worker when its parent is gone, also when that was killed."""
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _work(job: Job) -> None:
    assert _worker is not None, "the pool's initialiser has run"
    messages, execute = _worker
    execute(job, lambda done: messages.put((job, done)))
