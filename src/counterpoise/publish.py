"""From a run's folder to its report: records, budgets and galleries gathered, then handed to the report."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from counterpoise.grid import text
from counterpoise.record import Release, Results
from counterpoise.report import Gallery, read_claims, write
from counterpoise.store import Store
from counterpoise.tradeoff import Budget, Decision, budgets

SEEDED = (
    "Private noise was drawn from a seeded generator, so that the run can be repeated; whoever knows the seed can take"
    " the noise off again, so keep the seed secret, or train the model to be released with secure noise."
)


def publish(store: Store, results: Results, decision: Decision) -> tuple[Path, ...]:
    """Write the report into the run's folder."""
    if any(record.guarantees for record in results):
        results = replace(results, notes=(*results.notes, SEEDED))
    return write(
        results,
        decision,
        store.root,
        galleries=galleries(store, results),
        budgets=campaign(results, decision),
        environment=store.manifest().environment,
        claims=read_claims(store.root),
    )


def campaign(results: Results, decision: Decision) -> tuple[Budget, ...]:
    """Both budgets of every party: the chosen model's, and the whole campaign's."""
    return budgets(results, decision.best.winner if decision.best is not None else None, _compose)


@functools.cache
def _compose_once(releases: tuple[Release, ...], delta: float) -> float:
    from counterpoise.privacy import compose  # here, because it brings torch and an accountant along

    return float(compose(releases, delta))


def _compose(releases: Sequence[Release], delta: float) -> float:
    return _compose_once(tuple(releases), delta)


def galleries(store: Store, results: Results) -> tuple[Gallery, ...]:
    """What was kept to look at, of the first party: the report shows degrees, not people."""
    found = []
    for record in results:
        if record.party != results.parties[0].name or (arrays := store.gallery(record.digest)) is None:
            continue
        found.append(
            Gallery(
                mechanism=record.mechanism,
                party=record.party,
                degree=record.degree,
                levels=tuple(cell.degree for cell in record.explained),
                images=arrays["released"],
                originals=arrays["original"],
                maps=arrays["maps"].astype("float32") / 255,
                labels=tuple(str(word) for word in arrays["labels"]),
                predictions=tuple(str(word) for word in arrays["predictions"]),
            )
        )
    return tuple(found)


def describe(results: Results) -> str:
    """How much there is, in a few words."""
    cells = sum(len(record.explained) for record in results)
    degrees = {(record.mechanism, text(record.degree)) for record in results}
    return f"{len(results)} trainings, {cells} cells, {len(degrees)} settings"
