"""`run --until`: the weakest degree that meets a bound, or the strongest that still does, with few trainings.

A leak falls as a mechanism protects more, an accuracy loss rises. So one end of the grid meets the bound and the other
does not, and the turning point lies between: it is found by halving the bracket. Whatever the folder holds already is
not trained again. Between tried degrees the quantity is taken to be monotone; the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from statistics import fmean

from counterpoise._check import InputError
from counterpoise.grid import text
from counterpoise.prepare import BASELINE, Job, Prepared
from counterpoise.record import Record
from counterpoise.store import Store
from counterpoise.tradeoff.requirements import Bound, parse


class Threshold:
    """The order of such a run, and what it found: `run(study, out, order=Threshold("non-discriminatory: …"))`."""

    def __init__(self, words: str) -> None:
        mechanism, separator, bound = words.partition(":")
        parsed = parse(bound) if separator else None
        if not isinstance(parsed, Bound):
            raise InputError(f"until={words!r} must read like 'non-discriminatory: class_leak <= 0.1'.")
        self.mechanism, self.bound = mechanism.strip(), parsed
        self.found: Decimal | None = None
        self.tried: dict[Decimal, float] = {}
        self.sentences: tuple[str, ...] = ()

    def __call__(self, prepared: Prepared, store: Store) -> Iterator[Sequence[Job]]:
        """Baselines, both ends of the grid, then the middle of the bracket until its ends are neighbours."""
        degrees = self._degrees(prepared)
        yield [job for job in prepared.jobs if job.mechanism == BASELINE]
        weak, strong = 0, len(degrees) - 1
        yield self._jobs(prepared, {degrees[weak], degrees[strong]})
        ends = {place: self._meets(prepared, store, degrees[place]) for place in (weak, strong)}
        if ends[weak] != ends[strong]:
            while strong - weak > 1:
                middle = (weak + strong) // 2
                yield self._jobs(prepared, {degrees[middle]})
                if self._meets(prepared, store, degrees[middle]) == ends[0]:
                    weak = middle
                else:
                    strong = middle
        self._conclude(degrees, ends, weak, strong)

    def _conclude(self, degrees: Sequence[Decimal], ends: dict[int, bool], weak: int, strong: int) -> None:
        last = len(degrees) - 1
        if not any(ends.values()):
            words = f"no degree meets {self.bound}: neither end of the grid does"
        elif all(ends.values()):
            falls = self.tried[degrees[last]] < self.tried[degrees[0]]
            # What protection improves asks for the least of it; what it costs, for the most.
            place = 0 if falls == (self.bound.relation in ("<=", "<")) else last
            self.found = degrees[place]
            words = f"both ends of the grid meet {self.bound}; {self._shown(self.found)} is the one to take"
        else:
            self.found, other = (degrees[strong], degrees[weak]) if ends[last] else (degrees[weak], degrees[strong])
            kind = "weakest" if ends[last] else "strongest"
            words = (
                f"{self._shown(self.found)} is the {kind} degree that meets {self.bound}; {self._shown(other)} fails"
            )
        self.sentences = (
            f"{self.mechanism}: {words}. {len(self.tried)} of {len(degrees)} degrees were tried; between them"
            f" {self.bound.quantity} is taken to be monotone.",
        )

    def _shown(self, degree: Decimal) -> str:
        return f"{text(degree)} ({self.bound.quantity} {self.tried[degree]:.3g})"

    def _degrees(self, prepared: Prepared) -> list[Decimal]:
        """The grid, from the least protection to the most."""
        if self.mechanism not in prepared.mechanisms:
            raise InputError(f"until: the study has no mechanism {self.mechanism!r}; name one of its own.")
        if prepared.refusals[self.mechanism]:
            raise InputError(f"until: {prepared.refusals[self.mechanism]}")
        measured = {*prepared.everywhere, "privacy_gain", "utility_loss"}
        if self.bound.quantity not in measured:
            raise InputError(f"until: {self.bound.quantity!r} is not measured in this study; list it under measures.")
        family = prepared.mechanisms[self.mechanism]
        return sorted(family.degrees, reverse=family.kind.more_private == "down")

    def _jobs(self, prepared: Prepared, degrees: set[Decimal]) -> list[Job]:
        return [job for job in prepared.jobs if job.mechanism == self.mechanism and job.degree in degrees]

    def _meets(self, prepared: Prepared, store: Store, degree: Decimal) -> bool:
        """Whether every party's mean over seeds does; the worst of them is kept."""
        by_party: dict[str, list[float]] = {}
        for job in self._jobs(prepared, {degree}):
            record = store.load(job.digest)
            assert record is not None, "the wave has been trained"
            by_party.setdefault(job.party, []).append(_value(record, self.bound.quantity))
        means = [fmean(values) for values in by_party.values()]
        self.tried[degree] = max(means) if self.bound.relation in ("<=", "<") else min(means)
        return all(self.bound.holds(mean) for mean in means)


def _value(record: Record, quantity: str) -> float:
    if quantity not in record.measurements:
        raise InputError(f"until: {quantity!r} is measured on explanations, not on a training; name another quantity.")
    return record.measurements[quantity].value
