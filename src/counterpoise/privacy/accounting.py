"""What uses of the private data cost, as an upper bound on epsilon at a given delta.

Two accountants. 'pld' (the default, the tighter) follows the whole distribution of the privacy loss with
dp-accounting; 'rdp' (what most papers use) follows its Rényi moments. Both answers are upper bounds, so where
one of them cannot follow (tiny noise, a delta below its resolution) the other's answer is given, and named.

The library takes a second to import, so it is imported when it is first needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.privacy import rdp
from counterpoise.record import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

Adjacency = Literal["add-remove", "replace-one"]
Accountant = Literal["pld", "rdp"]

_FINEST, _COARSEST = 1e-5, 0.03  # the resolution of privacy loss, in nats
_RESOLUTION = 1e4  # how many of them to an epsilon; 2e4 changes the answer by less than 1e-3 of itself
_TOO_LARGE = 1e6  # beyond this epsilon says nothing, and the distribution would take gigabytes


class Spent(NamedTuple):
    """An epsilon, and the accountant that proves it: 'pld', 'rdp' or 'basic' (epsilons of pure releases added)."""

    epsilon: float
    accountant: str


def account(
    *,
    noise: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: Accountant = "pld",
    kind: Literal["gaussian", "laplace"] = "gaussian",
) -> float:
    """The epsilon of Poisson-sampled training under add-remove adjacency; infinite without noise."""
    return compose([Release(kind, noise, sample_rate, steps)], delta, accountant)


def compose(
    releases: Iterable[Release], delta: float, accountant: Accountant = "pld", adjacency: Adjacency = "add-remove"
) -> float:
    """The epsilon of several uses of the same images together, such as all trainings of a sweep."""
    return spend(releases, delta, accountant, adjacency).epsilon


def spend(
    releases: Iterable[Release], delta: float, accountant: Accountant = "pld", adjacency: Adjacency = "add-remove"
) -> Spent:
    """As `compose`, with the name of the accountant that proves it."""
    uses = merged(releases)
    check_covered(uses, accountant, adjacency)
    _check.in_range(0, 1, delta=delta)
    if not uses or delta == 1:
        return Spent(0.0, accountant)
    return _spend(uses, float(delta), accountant, adjacency)


def true_positive_bound(
    releases: Iterable[Release], false_positive_rate: float, adjacency: Adjacency = "add-remove"
) -> float:
    """The most an attacker can reach: the rate of members found, at a rate of non-members wrongly accused.

    For every epsilon, rate <= exp(epsilon) * false_positive_rate + delta(epsilon); the smallest of these counts.
    """
    uses = merged(releases)
    _check.inside(0, 1, false_positive_rate=false_positive_rate)
    check_covered(uses, "pld", adjacency)
    if not uses:
        return false_positive_rate
    if any(use.noise == 0 for use in uses):
        return 1.0
    rough = _guide(uses, 1e-5, adjacency)
    if rough > _TOO_LARGE:
        return 1.0
    # Beyond log(1 / rate) the first term alone exceeds 1. The grid only decides how tight the bound is.
    losses = np.linspace(0, -math.log(false_positive_rate), 400)
    deltas = np.asarray(_composed(uses, _interval(rough), adjacency).get_delta(losses))
    return float(min(1.0, (np.exp(losses) * false_positive_rate + deltas).min()))


def merged(releases: Iterable[Release]) -> tuple[Release, ...]:
    """The releases in a fixed order, equal ones joined and those of no step left out."""
    steps: dict[Release, int] = {}
    for release in releases:
        seen_once = _per_image(release)
        key = Release(seen_once.kind, seen_once.noise, seen_once.sample_rate, 1, seen_once.sampling)
        steps[key] = steps.get(key, 0) + seen_once.steps
    joined = (
        Release(key.kind, key.noise, key.sample_rate, count, key.sampling) for key, count in steps.items() if count
    )
    return tuple(sorted(joined, key=lambda use: (use.kind, use.noise, use.sample_rate, use.steps, use.sampling)))


def _per_image(release: Release) -> Release:
    """The release as one image meets it.

    Of shuffled batches each image is in one a pass, and nothing is gained from not knowing which (the proofs of
    such gains are for Poisson sampling): so many full uses as there are passes, begun ones included.
    """
    # A use that nobody knows how to account must never count as none.
    _check.one_of(("gaussian", "laplace"), kind=release.kind)
    _check.one_of(("poisson", "shuffle", "full"), sampling=release.sampling)
    _check.not_negative(noise=release.noise)
    _check.at_least(0, steps=release.steps)
    _check.positive(sample_rate=release.sample_rate)
    if release.sample_rate > 1:
        raise InputError(f"sample_rate={release.sample_rate!r} must be above 0 and at most 1: it is a probability.")
    if release.sampling == "shuffle":
        passes = math.ceil(release.steps / max(1, round(1 / release.sample_rate)))
        return Release(release.kind, release.noise, 1.0, passes, "shuffle")
    if release.sampling == "full" and release.sample_rate != 1:
        raise InputError(f"sample_rate={release.sample_rate!r} must be 1 where every step uses all images.")
    return release


def check_covered(releases: Iterable[Release], accountant: Accountant, adjacency: Adjacency) -> None:
    """Raise, with the reason, where there is no proof to account by."""
    _check.one_of(("pld", "rdp"), accountant=accountant)
    _check.one_of(("add-remove", "replace-one"), adjacency=adjacency)
    for use in releases:
        if use.sampling == "shuffle" and adjacency != "replace-one":
            raise InputError(
                "shuffled batches have no privacy proof under add-remove adjacency (one image more moves all batches);"
                ' sample by Poisson, or state adjacency="replace-one".'
            )
        if use.kind == "laplace" and (accountant == "rdp" or adjacency == "replace-one"):
            raise InputError('Laplace noise is accounted by accountant="pld" under adjacency="add-remove" only.')
        if accountant == "rdp" and adjacency == "replace-one" and use.sampling == "poisson" and use.sample_rate < 1:
            raise InputError('The RDP accountant covers sampled batches under add-remove only; take accountant="pld".')


@lru_cache(maxsize=4096)
def _spend(uses: tuple[Release, ...], delta: float, accountant: Accountant, adjacency: Adjacency) -> Spent:
    if any(use.noise == 0 for use in uses):
        return Spent(math.inf, accountant)
    fallback = _without_library(uses, delta, adjacency)
    rough = _guide(uses, delta, adjacency) if delta else math.inf
    if accountant == "rdp" or rough > _TOO_LARGE:
        return fallback
    epsilon = float(_composed(uses, _interval(rough), adjacency).get_epsilon(delta))
    return min(Spent(epsilon, "pld"), fallback, key=lambda spent: spent.epsilon)


def _without_library(uses: tuple[Release, ...], delta: float, adjacency: Adjacency) -> Spent:
    """An upper bound that is always at hand: Rényi moments for Gaussian uses, added epsilons for Laplace ones."""
    gaussian, laplace = _by_kind(uses)
    pure = sum(use.steps * float(_log_mix(use.sample_rate, 1 / use.noise)) for use in laplace)
    if not gaussian:
        return Spent(pure, "basic")
    if delta == 0 or (adjacency == "replace-one" and any(use.sample_rate < 1 for use in gaussian)):
        return Spent(math.inf, "rdp")
    return Spent(pure + rdp.epsilon(_as_add_remove(gaussian, adjacency), delta), "rdp + basic" if laplace else "rdp")


def _guide(uses: tuple[Release, ...], delta: float, adjacency: Adjacency) -> float:
    """About how large epsilon is. Decides the resolution only, so it need not be a bound."""
    alike = [Release("gaussian", use.noise * math.sqrt(2), use.sample_rate, use.steps) for use in _by_kind(uses)[1]]
    return rdp.epsilon(_as_add_remove([*_by_kind(uses)[0], *alike], adjacency), delta)


def _by_kind(uses: Iterable[Release]) -> tuple[list[Release], list[Release]]:
    every = list(uses)
    return [use for use in every if use.kind == "gaussian"], [use for use in every if use.kind == "laplace"]


def _as_add_remove(uses: Sequence[Release], adjacency: Adjacency) -> list[Release]:
    """To replace an image moves the sum twice as far as to add one. (Exact for unsampled uses.)"""
    scale = 2 if adjacency == "replace-one" else 1
    return [Release(use.kind, use.noise / scale, use.sample_rate, use.steps) for use in uses]


def _log_mix(rate: float, loss: float) -> float:
    """log(1 + rate * (e^loss - 1)): the pure epsilon of one sampled step."""
    return float(np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate) + loss))


def _interval(rough: float) -> float:
    return min(_COARSEST, max(_FINEST, rough / _RESOLUTION))


@lru_cache(maxsize=32)
def _composed(uses: tuple[Release, ...], interval: float, adjacency: Adjacency) -> Any:
    """The library's accountant after these uses; it rounds privacy losses upwards."""
    import dp_accounting
    from dp_accounting import pld

    relation = dp_accounting.NeighboringRelation
    accountant = pld.PLDAccountant(
        relation.ADD_OR_REMOVE_ONE if adjacency == "add-remove" else relation.REPLACE_ONE,
        value_discretization_interval=interval,
    )
    for use in uses:
        make = dp_accounting.GaussianDpEvent if use.kind == "gaussian" else dp_accounting.LaplaceDpEvent
        event = make(use.noise)
        if use.sample_rate < 1:
            event = dp_accounting.PoissonSampledDpEvent(use.sample_rate, event)
        accountant.compose(event, use.steps)
    return accountant
