"""Study -> records: execute what is missing, resume what was stopped.

Killed at any moment, the next call continues; a finished training is never repeated, and the records of a resumed run
equal those of an uninterrupted one byte for byte.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from counterpoise._check import naming, one_of
from counterpoise.executors import Processes, Report, serial
from counterpoise.fingerprint import versions
from counterpoise.prepare import BASELINE, Job, Prepared, prepare
from counterpoise.record import Results
from counterpoise.store import Manifest, Store, digest
from counterpoise.study import Study
from counterpoise.work import Worker

EXECUTORS = ("processes", "serial")

Order = Callable[[Prepared, Store], Iterable[Sequence[Job]]]
"""Waves of trainings, asked for one after the other: the next wave may depend on what the last one brought."""


def everything(prepared: Prepared, store: Store) -> Iterable[Sequence[Job]]:
    """The full grid: baselines first, then all the rest."""
    yield [job for job in prepared.jobs if job.mechanism == BASELINE]
    yield [job for job in prepared.jobs if job.mechanism != BASELINE]


def run(
    study: Study,
    out: str | Path,
    *,
    executor: str = "processes",
    workers: int | None = None,
    order: Order = everything,
    report: Report = lambda job, done: None,
    started: Callable[[Sequence[Job], Sequence[Job]], None] = lambda todo, done: None,
    source: str = "",
) -> Results:
    """Train what is not trained yet, and return all records.

    `started(todo, done)` is told once what is left and what is there already; `report(job, share)` is called as the
    work goes on. `source` is the file that the study was read from, for the words of a mistake in it. Scripts guard
    the call with `if __name__ == "__main__":`, as worker processes import them again.
    """
    one_of(EXECUTORS, executor=executor)
    pool = Processes(workers) if executor == "processes" else None
    with naming(source):
        prepared = prepare(study)
        prepared.check_plans()
    store = Store.create(Path(out))
    with store.locked():
        store.save_manifest(manifest(prepared))
        done = {job.digest for job in prepared.jobs if store.load(job.digest) is not None}
        started(
            [job for job in prepared.jobs if job.digest not in done],
            [job for job in prepared.jobs if job.digest in done],
        )
        missing = ([job for job in wave if job.digest not in done] for wave in order(prepared, store))
        if pool is None:
            serial(missing, Worker(study, store, prepared), report)
        else:
            pool(missing, Worker(study, store), report)
        return store.results()


def manifest(prepared: Prepared) -> Manifest:
    """What a finished run of this study holds."""
    study = prepared.study
    records = tuple(job.digest for job in prepared.jobs)
    return Manifest(
        study=study.name,
        digest=digest([study.canonical(), records]),
        parties=tuple(study.parties),
        records=records,
        configuration={**study.canonical(), "target": prepared.target},
        environment={**versions(), "python": platform.python_version(), "machine": platform.machine()},
    )
