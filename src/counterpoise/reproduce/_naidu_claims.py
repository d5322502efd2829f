"""What the source claims, each decided by rank correlations or differences with an interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from counterpoise.measures.comparison import Trend, spread, trend
from counterpoise.report import Claim, Verdict
from counterpoise.reproduce._naidu_maps import Group

UNDECIDED: Verdict = "not decidable at this scale"
FEWEST_SEEDS = 3


def by_direction(found: Trend, expected: int) -> Verdict:
    """'seen' where the whole interval has the claimed sign, 'not seen' where it has the other one."""
    low, high = sorted((expected * found.low, expected * found.high))
    if low > 0:
        return "seen"
    return "not seen" if high < 0 else UNDECIDED


def by_size(low: float, high: float, stated: float) -> Verdict:
    """'seen' where the interval holds the stated difference and not 0, 'not seen' where it does not hold it."""
    if not low <= stated <= high:
        return "not seen"
    return "seen" if low > 0 else UNDECIDED


def seed_means(group: Group, quantity: str, settings: Sequence[tuple[float, float]]) -> np.ndarray:
    """[seeds, settings] of the seeds' means over their scored images; a seed with a setting all blank is left out."""
    columns = []
    for epsilon, clip in settings:
        table = group.table(quantity, epsilon, clip)
        scored = ~np.isnan(table)
        sums = np.where(scored, table, 0).sum(1)
        columns.append(np.where(scored.any(1), sums / np.maximum(1, scored.sum(1)), np.nan))
    whole = np.stack(columns, axis=1)
    kept: np.ndarray = whole[~np.isnan(whole).any(1)]
    return kept


def trends(
    group: Group, settings: Sequence[tuple[float, float]], along: str, expected: dict[str, int], statement: str
) -> list[Claim]:
    """One claim a quantity: its rank correlation with epsilon, or with the clip."""
    axis = [epsilon if along == "epsilon" else clip for epsilon, clip in settings]
    found = []
    for quantity, sign in expected.items():
        words = f"{statement}: {quantity.replace('_', ' ')} {'rises' if sign > 0 else 'falls'} with {along}"
        means = seed_means(group, quantity, settings) if group.decidable else np.empty((0, 0))
        if not len(means):
            found.append(Claim(words, "stated", f"{len(group.images)} shared images", UNDECIDED))
            continue
        if len(means) < FEWEST_SEEDS:
            found.append(Claim(words, "stated", f"{len(means)} seeds whose maps are not all blank", UNDECIDED))
            continue
        result = trend(np.where(np.isinf(axis), 1e9, axis), means)
        ours = f"rank correlation {result.value:.2f} [{result.low:.2f}, {result.high:.2f}], {result.seeds} seeds"
        published = "stated" if quantity in ("average_drop", "confidence_increase", "masked_score") else "not measured"
        found.append(Claim(words, published, ours, by_direction(result, sign)))
    return found


def points(group: Group, quantity: str, first: float, second: float, stated: float) -> Claim:
    """A difference in points between two epsilons, over seeds."""
    names = ["no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}" for epsilon in (first, second)]
    words = f"{quantity.replace('_', ' ')}: {names[1]} minus {names[0]}"
    means = seed_means(group, quantity, [(first, 1.0), (second, 1.0)]) if group.decidable else np.empty((0, 2))
    if len(means) < FEWEST_SEEDS:
        return Claim(words, f"about {stated:g} points", f"{len(group.images)} shared images", UNDECIDED)
    found = spread((means[:, 1] - means[:, 0])[:, None]).mean
    ours = f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}], {found.n} seeds"
    return Claim(words, f"about {stated:g} points", ours, by_size(found.low, found.high, stated))


def sensitive(larger: Group, smaller: Group, least: float) -> list[Claim]:
    """Whether the smaller network loses more between no noise and the least epsilon."""
    found = []
    for quantity in ("average_drop", "accuracy"):
        words = (
            f"the smaller network is more sensitive: {quantity.replace('_', ' ')}, change from no noise to {least:g}"
        )
        changes = []
        for group in (larger, smaller):
            if quantity == "accuracy":
                pairs = zip(group.of(math.inf), group.of(least), strict=True)
                changes.append(np.array([100 * (whole.accuracy - noisy.accuracy) for whole, noisy in pairs]))
            elif group.decidable:
                means = seed_means(group, quantity, [(math.inf, 1.0), (least, 1.0)])
                changes.append(means[:, 1] - means[:, 0])
        if len(changes) < 2 or len(changes[0]) != len(changes[1]) or len(changes[0]) < FEWEST_SEEDS:
            found.append(Claim(words, "stated", "too few shared images or seeds", UNDECIDED))
            continue
        more = spread((changes[1] - changes[0])[:, None]).mean
        ours = f"smaller minus larger {more.value:.1f} [{more.low:.1f}, {more.high:.1f}] points, {more.n} seeds"
        verdict: Verdict = "seen" if more.low > 0 else "not seen" if more.high < 0 else UNDECIDED
        found.append(Claim(words, "stated", ours, verdict))
    return found
