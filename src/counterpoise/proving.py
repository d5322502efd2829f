"""`run --prove`: the paper-mode optimum, exact, with as few trainings as its bounds allow; and a certificate.

Trainings are ordered by what they could at best bring. The one whose best case wins is trained next; when the winner is
a finished training, no other one can beat it. The certificate holds every bound with its ingredients, so that it can be
checked from the records alone. The measured mode has no such bound: what a map or an attack will show is not known
before there is a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from counterpoise._check import InputError
from counterpoise._files import write
from counterpoise.grid import DegreeKind, text
from counterpoise.interface import Mechanism, Planned
from counterpoise.prepare import BASELINE, Family, Job, Prepared
from counterpoise.record import Guarantee, Release
from counterpoise.store import Store
from counterpoise.tradeoff.policies import policy_named
from counterpoise.tradeoff.prospects import Prospect, next_degree, proved, refuse_unbounded, sentence, settle

CERTIFICATE = "certificate.json"


class Search:
    """The order of a proving run, and what it has proved: `run(study, out, order=Search("unanimous"))`."""

    def __init__(self, policy: str = "unanimous") -> None:
        self.policy = policy_named(policy).name
        self.sentences: tuple[str, ...] = ()

    def __call__(self, prepared: Prepared, store: Store) -> Iterator[Sequence[Job]]:
        """Baselines, then one degree after the other, each time the one whose best case wins; then the certificate."""
        levels = _levels(prepared)
        able = [job for job in prepared.jobs if job.mechanism != BASELINE and not prepared.refusals[job.mechanism]]
        waiting = {job: _prospect(prepared, job) for job in able}
        refuse_unbounded(prepared.study.parties, policy_named(self.policy), _degrees(prepared))
        yield [job for job in prepared.jobs if job not in waiting]
        waiting = {job: prospect for job, prospect in waiting.items() if store.load(job.digest) is None}
        mechanisms = tuple(dict.fromkeys(job.mechanism for job in able))
        for mechanism in mechanisms:
            while True:
                left = list(waiting.values())
                decision = settle(store.results(), left, levels, self.policy)
                if proved(decision, mechanism, left):
                    break
                degree = next_degree(decision, mechanism)
                wave = [job for job in waiting if (job.mechanism, job.degree) == (mechanism, degree)]
                yield wave
                waiting = {job: prospect for job, prospect in waiting.items() if job not in wave}
        left = list(waiting.values())
        decision = settle(store.results(), left, levels, self.policy)
        total = {name: sum(job.mechanism == name for job in able) for name in mechanisms}
        skipped = {name: sum(prospect.mechanism == name for prospect in left) for name in mechanisms}
        self.sentences = tuple(
            sentence(decision, name, total[name] - skipped[name], total[name], left) for name in mechanisms
        )
        write(store.root / CERTIFICATE, _certificate(self.policy, levels, left, self.sentences))


def check_certificate(folder: Path) -> tuple[str, ...]:
    """The certificate's sentences, recomputed from the records and the stated bounds; raises where they disagree."""
    from counterpoise.privacy import compose

    store = Store.open(folder)
    path = folder / CERTIFICATE
    if not path.is_file():
        raise InputError(f"{path}: there is no certificate; 'counterpoise run … --prove' writes one.")
    stated = json.loads(path.read_bytes())
    left = [_read(entry) for entry in stated["skipped"]]
    for prospect in left:
        for guarantee in prospect.guarantees:
            epsilon = compose(guarantee.releases, guarantee.delta)
            if abs(epsilon - guarantee.epsilon) > 1e-3 * epsilon:
                raise InputError(
                    f"{path}: epsilon {guarantee.epsilon} is not what its noise and steps give ({epsilon})."
                )
        gain = _gain(prospect.degree, prospect.loss, prospect.guarantees)
        if abs(gain - prospect.privacy_gain) > 1e-9:
            raise InputError(
                f"{path}: the privacy gain {prospect.privacy_gain} of {text(prospect.degree)} should be {gain}."
            )
    results = store.results()
    levels = [Decimal(level) for level in stated["levels"]]
    decision = settle(results, left, levels, stated["policy"])
    for mechanism in {prospect.mechanism for prospect in left}:
        if not proved(decision, mechanism, left):
            raise InputError(f"{path}: does not prove {mechanism}: a skipped training could still win.")
    return tuple(stated["sentences"])


def _levels(prepared: Prepared) -> tuple[Decimal, ...]:
    levels = prepared.explainer.degrees.values
    if prepared.explainer.kind.name != "explainability" or prepared.explainer.kind.high != 1:
        raise InputError(
            f"explainer {prepared.explainer.name!r}: its gain has no bound before training; run without --prove."
        )
    return levels


def _degrees(prepared: Prepared) -> frozenset[str]:
    return frozenset(family.kind.name for family in prepared.mechanisms.values())


def _prospect(prepared: Prepared, job: Job) -> Prospect:
    family: Family = prepared.mechanisms[job.mechanism]
    mechanism: Mechanism = family.at(job.degree)
    guarantees: tuple[Guarantee, ...] = ()
    if isinstance(mechanism, Planned):
        guarantees = mechanism.guarantees(prepared.task(job.party))
    if mechanism.privacy_gain not in ("inverse_epsilon", "code_share", "no_gain"):
        raise InputError(
            f"mechanism {family.name!r}: its privacy gain is not known before training; run without --prove."
        )
    gain = _gain(job.degree, mechanism.utility_loss, guarantees)
    return Prospect(
        job.party, job.mechanism, family.kind, job.degree, job.seed, gain, mechanism.utility_loss, guarantees
    )


def _gain(degree: Decimal, loss: str, guarantees: Sequence[Guarantee]) -> float:
    """The paper's privacy gain, which needs no training: 1/epsilon, or 1 - code/image."""
    if loss == "pooled_emd":
        return 1 - float(degree)
    return max((1 / g.epsilon for g in guarantees), default=0.0)


def _certificate(policy: str, levels: Sequence[Decimal], left: Sequence[Prospect], words: Sequence[str]) -> bytes:
    whole: dict[str, Any] = {
        "schema": "counterpoise/certificate/1",
        "policy": policy,
        "mode": "paper",
        "levels": [text(level) for level in levels],
        "sentences": list(words),
        "skipped": [
            {**asdict(p), "kind": {"name": p.kind.name, "more_private": p.kind.more_private}, "degree": text(p.degree)}
            for p in left
        ],
    }
    return json.dumps(whole, indent=1).encode() + b"\n"


def _read(entry: dict[str, Any]) -> Prospect:
    guarantees = tuple(
        Guarantee(**{**g, "releases": tuple(Release(**r) for r in g["releases"])}) for g in entry["guarantees"]
    )
    kind = DegreeKind(**entry["kind"])
    return Prospect(**{**entry, "kind": kind, "degree": Decimal(entry["degree"]), "guarantees": guarantees})
