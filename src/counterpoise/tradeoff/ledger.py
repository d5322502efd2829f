"""Two budgets: what the chosen model reveals of the images, and what the whole campaign does.

Every training of a sweep looks at the same images, so the number that belongs to the chosen model alone understates
what the search for it has cost. Accounting is handed in as a function, so that this room stays free of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from counterpoise.record import Record, Release, Results
from counterpoise.tradeoff.choice import Standing

Compose = Callable[[Sequence[Release], float], float]
"""(releases on the same images, delta) -> epsilon of all of them together."""


@dataclass(frozen=True)
class Budget:
    """The epsilon of one party's images, with how it came about. `unproved` trainings have no guarantee at all.

    `single` is false where no one model is chosen: nothing was feasible, or each mechanism has its own optimum. For
    each of the `hidden` trainings every image was sent behind fresh noise: `local_epsilon` at `local_delta` is what all
    these versions of one image tell together. That is another notion, about what the image shows and not about whether
    it was there, and is not added to the epsilons. `local_only` of them have no other guarantee.
    """

    party: str
    chosen: float
    campaign: float
    delta: float
    trainings: int
    unproved: int
    single: bool = True
    hidden: int = 0
    local_epsilon: float = 0.0
    local_delta: float = 0.0
    local_only: int = 0

    def sentence(self) -> str:
        """Both numbers in plain words."""
        chosen = f"epsilon {_plain(self.chosen)}" if math.isfinite(self.chosen) else "no proved epsilon"
        alone = f"the chosen model alone has {chosen}" if self.single else "no single model is chosen"
        parts = [f"{self.party}: {alone} (delta {self.delta:g})"]
        private = self.trainings - self.unproved - self.local_only
        if private:
            total = _plain(self.campaign) if math.isfinite(self.campaign) else "no finite bound"
            parts.append(f"publishing all {private} private trainings of the sweep has epsilon {total}")
        if self.hidden:
            versions = "once" if self.hidden == 1 else f"{self.hidden} times, behind fresh noise each time"
            together = f"local epsilon {_plain(self.local_epsilon)} (delta {self.local_delta:g})"
            how = "" if self.hidden == 1 else " together, added up"
            parts.append(f"each image was sent {versions}, which has {together}{how}, and a prediction sends it again")
        if self.unproved:
            parts.append(
                f"{self.unproved} further trainings carry no guarantee, so their results must stay with the party"
            )
        return "; ".join(parts) + "."


def budgets(results: Results, chosen: Standing | None, compose: Compose) -> tuple[Budget, ...]:
    """One budget a party. Parties hold different images, so nothing is added across them."""
    found = []
    for party in results.parties:
        own = [record for record in results if record.party == party.name and not record.refusal]
        proved = [record for record in own if _releases(record)]
        releases = [release for record in proved for release in _releases(record)]
        local = [g for record in own for g in record.guarantees if g.notion == "local-dp"]
        local_only = [record for record in own if _hidden(record) and not _releases(record)]
        delta = max((g.delta for record in own for g in record.guarantees), default=0.0)
        campaign = compose(releases, delta) if releases else 0.0
        winners = [record for record in own if chosen is not None and _is(record, chosen)]
        winner = [release for record in winners[:1] for release in _releases(record)]
        epsilon = winners[0].epsilon if winners and winner else math.inf
        found.append(
            Budget(
                party.name,
                epsilon,
                campaign,
                delta,
                trainings=len(own),
                unproved=len(own) - len(proved) - len(local_only),
                single=chosen is not None,
                hidden=len(local),
                # Fresh noise every time, so the sums hold (basic composition).
                local_epsilon=sum(g.epsilon for g in local),
                local_delta=sum(g.delta for g in local),
                local_only=len(local_only),
            )
        )
    return tuple(found)


def _releases(record: Record) -> tuple[Release, ...]:
    return tuple(r for guarantee in record.guarantees if guarantee.notion == "dp" for r in guarantee.releases)


def _hidden(record: Record) -> bool:
    return any(guarantee.notion == "local-dp" for guarantee in record.guarantees)


def _is(record: Record, standing: Standing) -> bool:
    return record.mechanism == standing.mechanism and record.degree == standing.degree


def _plain(epsilon: float) -> str:
    """Three digits, and no powers of ten below a million."""
    return f"{epsilon:,.0f}" if 100 <= epsilon < 1e6 else f"{epsilon:.3g}"
