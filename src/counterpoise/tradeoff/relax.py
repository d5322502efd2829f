"""Infeasible is an answer with advice: which requirement binds, whose it is, and the smallest relaxation that helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import xarray as xr

from counterpoise.record import Party
from counterpoise.tradeoff import masks
from counterpoise.tradeoff.modes import Mode
from counterpoise.tradeoff.policies import Policy
from counterpoise.tradeoff.requirements import Bound, Requirement, parse


@dataclass(frozen=True)
class Relaxation:
    """Replacing one requirement of one party; `instead` is empty where it has to be given up."""

    party: str
    requirement: str
    instead: str

    def __str__(self) -> str:
        return f"{self.party}: '{self.requirement}' to '{self.instead}'"


@dataclass(frozen=True)
class Infeasible:
    """No cell is allowed by enough parties. `binding` are (party, requirement) that would each be enough to give up."""

    mechanism: str
    binding: tuple[tuple[str, str], ...]
    relaxations: tuple[Relaxation, ...]
    sentence: str


@dataclass(frozen=True)
class _Wish:
    """One requirement over all cells: where it is met, and by how much of the quantity's range it is missed."""

    party: str
    requirement: Requirement
    met: np.ndarray
    missed: np.ndarray
    values: np.ndarray


def explain_infeasible(
    table: xr.Dataset, parties: Sequence[Party], policy: Policy, mode: Mode, degrees: frozenset[str]
) -> Infeasible:
    """The advice for one mechanism that no cell survived."""
    mechanism, needed = str(table.attrs["mechanism"]), policy.willing(len(parties))
    wishes = {party.name: [_wish(parse(w), table, party, mode, degrees) for w in party.requires] for party in parties}
    measured = {party.name: table[mode.privacy].sel(party=party.name).notnull().values for party in parties}
    open_to = {p.name: measured[p.name] & (not p.mechanisms or mechanism in p.mechanisms) for p in parties}
    who = "all parties" if needed == len(parties) else f"{needed} of {len(parties)} parties"
    start = f"No cell of '{mechanism}' is allowed by {who}."

    def feasible_without(party: str, dropped: _Wish) -> bool:
        allowed = [
            open_to[name] & np.all([w.met for w in own if w is not dropped] + [open_to[name]], axis=0)
            for name, own in wishes.items()
        ]
        return bool((np.sum(allowed, axis=0) >= needed).any())

    binding = tuple(
        (name, str(wish.requirement)) for name, own in wishes.items() for wish in own if feasible_without(name, wish)
    )
    relaxations = _smallest(wishes, open_to, needed)
    if relaxations is None:
        closed = [name for name, cells in open_to.items() if not cells.any()]
        why = f" Not listed, or nothing measured, by {' and '.join(closed)}." if closed else ""
        return Infeasible(mechanism, binding, (), f"{start}{why} No change of a bound makes it feasible.")
    names = binding or tuple((r.party, r.requirement) for r in relaxations)
    joint = " or ".join if binding else " together with ".join
    binds = joint([f"{party}'s '{words}'" for party, words in names])
    advice = " and ".join(str(relaxation) for relaxation in relaxations)
    return Infeasible(mechanism, binding, relaxations, f"{start} Binding: {binds}. Smallest relaxation: {advice}.")


def _wish(requirement: Requirement, table: xr.Dataset, party: Party, mode: Mode, degrees: frozenset[str]) -> _Wish:
    met = masks.holds(requirement, table, party, mode, degrees).values
    foreign = requirement.quantity in degrees and requirement.quantity not in (table.attrs["degree"], "explainability")
    if foreign:
        nowhere = np.full(met.shape, np.nan)
        return _Wish(party.name, requirement, met, np.where(met, 0.0, np.inf), nowhere)
    observed = masks.observed(requirement.quantity, table, party.name, mode).values
    values = np.vectorize(float, otypes=[float])(observed)
    finite = values[np.isfinite(values)]
    spread = float(np.ptp(finite)) if finite.size else 0.0
    if isinstance(requirement, Bound):
        target = float(requirement.value)
    else:
        target = (finite.max() if requirement.way == "maximum" else finite.min()) if finite.size else 0.0
    missed = np.where(met, 0.0, np.abs(values - target) / (spread or 1.0))
    return _Wish(party.name, requirement, met, np.where(np.isnan(missed), np.inf, missed), values)


def _smallest(
    wishes: dict[str, list[_Wish]], open_to: dict[str, np.ndarray], needed: int
) -> tuple[Relaxation, ...] | None:
    """The cell that misses the fewest requirements, and of those by the least, for the cheapest `needed` parties."""
    best: tuple[tuple[int, float], list[Relaxation]] | None = None
    shape = next(iter(open_to.values())).shape
    for cell in np.ndindex(*shape):
        costs = []
        for name, own in wishes.items():
            missed = [wish for wish in own if not wish.met[cell]]
            distance = sum(float(wish.missed[cell]) for wish in missed)
            if open_to[name][cell] and np.isfinite(distance):
                costs.append(((len(missed), distance), missed))
        if len(costs) < needed:
            continue
        chosen = sorted(costs, key=lambda cost: cost[0])[:needed]
        total = (sum(c[0][0] for c in chosen), sum(c[0][1] for c in chosen))
        if best is None or total < best[0]:
            best = (total, [_relax(wish, cell) for _, missed in chosen for wish in missed])
    return None if best is None else tuple(best[1])


def _relax(wish: _Wish, cell: tuple[int, ...]) -> Relaxation:
    requirement, value = wish.requirement, float(wish.values[cell])
    if isinstance(requirement, Bound):
        bound = requirement
    else:
        bound = Bound(requirement.quantity, ">=" if requirement.way == "maximum" else "<=", Decimal(0))
    return Relaxation(wish.party, str(requirement), str(bound.relaxed_to(value)))
