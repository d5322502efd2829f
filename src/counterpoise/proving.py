"""`run --prove`: the optimum of a mode, exact, with as few trainings as its bounds allow; and a certificate.

Trainings are ordered by what they could at best bring. The one whose best case wins is trained next; when the winner is
a finished training, no other one can beat it. The certificate holds every bound with its ingredients, so that it can be
checked from the records alone. What an attack or a map will show is not known before there is a model, so in the
measured mode little is skipped but what the requirements forbid anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from counterpoise._check import InputError
from counterpoise._files import write
from counterpoise.grid import DegreeKind, text
from counterpoise.interface import Mechanism, Planned
from counterpoise.prepare import BASELINE, Family, Job, Prepared
from counterpoise.record import Guarantee, Release
from counterpoise.store import Store
from counterpoise.tradeoff.modes import PAPER, Mode, mode_named
from counterpoise.tradeoff.policies import policy_named
from counterpoise.tradeoff.prospects import Prospect, next_degree, proved, refuse_unbounded, sentence, settle

CERTIFICATE = "certificate.json"
SCHEMA = "counterpoise/certificate/2"


class Search:
    """The order of a proving run, and what it has proved: `run(study, out, order=Search("unanimous", "paper"))`."""

    def __init__(self, policy: str = "unanimous", mode: str = "paper") -> None:
        self.policy = policy_named(policy).name
        self.mode = mode_named(mode)
        self.sentences: tuple[str, ...] = ()

    def __call__(self, prepared: Prepared, store: Store) -> Iterator[Sequence[Job]]:
        """Baselines, then one degree after the other, each time the one whose best case wins; then the certificate."""
        levels = _levels(prepared, self.mode)
        able = [job for job in prepared.jobs if job.mechanism != BASELINE and not prepared.refusals[job.mechanism]]
        waiting = {job: _prospect(prepared, job, self.mode) for job in able}
        refuse_unbounded(prepared.study.parties, policy_named(self.policy), _degrees(prepared), self.mode)
        yield [job for job in prepared.jobs if job not in waiting]
        waiting = {job: prospect for job, prospect in waiting.items() if store.load(job.digest) is None}
        mechanisms = tuple(dict.fromkeys(job.mechanism for job in able))
        for mechanism in mechanisms:
            while True:
                left = list(waiting.values())
                decision = settle(store.results(), left, levels, self.policy, self.mode)
                if proved(decision, mechanism, left):
                    break
                degree = next_degree(decision, mechanism)
                wave = [job for job in waiting if (job.mechanism, job.degree) == (mechanism, degree)]
                yield wave
                waiting = {job: prospect for job, prospect in waiting.items() if job not in wave}
        left = list(waiting.values())
        decision = settle(store.results(), left, levels, self.policy, self.mode)
        total = {name: sum(job.mechanism == name for job in able) for name in mechanisms}
        self.sentences = tuple(sentence(decision, name, total[name], left) for name in mechanisms)
        write(store.root / CERTIFICATE, _certificate(self, levels, left))


def check_certificate(folder: Path) -> tuple[str, ...]:
    """The certificate's sentences, recomputed from the records and the stated bounds; raises where they disagree."""
    store = Store.open(folder)
    path = folder / CERTIFICATE
    if not path.is_file():
        raise InputError(f"{path}: there is no certificate; 'counterpoise run … --prove' writes one.")
    try:
        stated = json.loads(path.read_bytes())
    except ValueError:
        raise InputError(f"{path}: damaged, not JSON; run --prove again to write it anew.") from None
    schema = stated.get("schema") if isinstance(stated, dict) else None
    if schema != SCHEMA:
        raise InputError(f"{path}: schema {schema!r} is not {SCHEMA!r}; run --prove again to write it anew.")
    mode = mode_named(stated["mode"])
    left = [_read(entry) for entry in stated["skipped"]]
    for prospect in left:
        for guarantee in prospect.guarantees:
            epsilon = _composed(guarantee)
            if abs(epsilon - guarantee.epsilon) > 1e-3 * epsilon:
                raise InputError(
                    f"{path}: epsilon {guarantee.epsilon} is not what its noise and steps give ({epsilon})."
                )
        gain = _gain(prospect.degree, prospect.loss, prospect.guarantees) if mode == PAPER else 0.0
        if abs(gain - prospect.privacy_gain) > 1e-9:
            raise InputError(
                f"{path}: the privacy gain {prospect.privacy_gain} of {text(prospect.degree)} should be {gain}."
            )
    results = store.results()
    planned = sorted(store.manifest().records)
    if sorted([*(record.digest for record in results), *(prospect.digest for prospect in left)]) != planned:
        raise InputError(f"{path}: its trainings, with the finished ones, are not the {len(planned)} of results.json.")
    levels = [Decimal(level) for level in stated["levels"]]
    decision = settle(results, left, levels, stated["policy"], mode)
    for mechanism in {prospect.mechanism for prospect in left}:
        if not proved(decision, mechanism, left):
            raise InputError(f"{path}: does not prove {mechanism}: a skipped training could still win.")
    trainings = [record.mechanism for record in results if record.mechanism != BASELINE and not record.refusal]
    trainings += [prospect.mechanism for prospect in left]
    words = tuple(sentence(decision, name, trainings.count(name), left) for name in dict.fromkeys(trainings))
    if sorted(words) != sorted(stated["sentences"]):
        raise InputError(f"{path}: its sentences are not what its records and bounds prove: {' '.join(words)}")
    return tuple(stated["sentences"])


def _levels(prepared: Prepared, mode: Mode) -> tuple[Decimal, ...]:
    levels = prepared.explainer.degrees.values
    scaled = prepared.explainer.kind.name == "explainability" and prepared.explainer.kind.high == 1
    if mode == PAPER and not scaled:
        raise InputError(
            f"explainer {prepared.explainer.name!r}: its gain has no bound before training; run without --prove."
        )
    return levels


def _degrees(prepared: Prepared) -> frozenset[str]:
    return frozenset(family.kind.name for family in prepared.mechanisms.values())


def _prospect(prepared: Prepared, job: Job, mode: Mode) -> Prospect:
    family: Family = prepared.mechanisms[job.mechanism]
    mechanism: Mechanism = family.at(job.degree)
    guarantees: tuple[Guarantee, ...] = ()
    if isinstance(mechanism, Planned):
        guarantees = mechanism.guarantees(prepared.task(job.party))
    gain = 0.0
    if mode == PAPER:
        if mechanism.privacy_gain not in ("inverse_epsilon", "code_share", "no_gain"):
            raise InputError(
                f"mechanism {family.name!r}: its privacy gain is not known before training; run without --prove."
            )
        gain = _gain(job.degree, mechanism.utility_loss, guarantees)
    return Prospect(
        digest=job.digest,
        party=job.party,
        mechanism=job.mechanism,
        kind=family.kind,
        degree=job.degree,
        seed=job.seed,
        privacy_gain=gain,
        loss=mechanism.utility_loss,
        guarantees=guarantees,
    )


def _gain(degree: Decimal, loss: str, guarantees: Sequence[Guarantee]) -> float:
    """The paper's privacy gain, which needs no training: 1/epsilon, or 1 - code/image."""
    if loss == "pooled_emd":
        return 1 - float(degree)
    return max((1 / g.epsilon for g in guarantees), default=0.0)


def _composed(guarantee: Guarantee) -> float:
    """The guarantee's epsilon again, by the accountant and adjacency that it names."""
    from counterpoise.privacy import compose

    accountant: Literal["pld", "rdp"] = "rdp" if guarantee.accountant == "rdp" else "pld"
    return compose(guarantee.releases, guarantee.delta, accountant, guarantee.adjacency)


def _certificate(search: Search, levels: Sequence[Decimal], left: Sequence[Prospect]) -> bytes:
    whole: dict[str, Any] = {
        "schema": SCHEMA,
        "policy": search.policy,
        "mode": search.mode.name,
        "levels": [text(level) for level in levels],
        "sentences": list(search.sentences),
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
