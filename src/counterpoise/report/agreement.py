"""Do the two modes order the settings alike? Rank correlation, with an interval over trainings."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from counterpoise.grid import text
from counterpoise.report.evidence import Evidence, choices
from counterpoise.report.words import say, setting
from counterpoise.tradeoff import Choice, Decision

Values = NDArray[np.float64]

RESAMPLES = 500
SEED = 7


def agreement(evidence: Evidence) -> list[str]:
    """One sentence or two a mechanism that both modes have scored."""
    paper, measured = evidence.answer("paper"), evidence.answer("measured")
    if not isinstance(paper, Decision) or not isinstance(measured, Decision):
        return [answer for answer in (paper, measured) if isinstance(answer, str)]
    found = []
    for name in paper.panels:
        first = paper.panels[name].scores["value"].values
        second = measured.panels[name].scores["value"].values
        found.append(f"{name}: {_correlation(first, second)} {_winners(name, paper, measured)}".strip())
    return found


def rank_correlation(first: Values, second: Values) -> float:
    """Spearman's rho over cells that both scored; NaN where one of the two does not vary.

    Reference: Spearman 1904; ties share their mean rank. Unit: none, in [-1, 1]. 1: the same order, -1: the reverse.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    a, b = _ranks(first[both]), _ranks(second[both])
    if a.size < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Values) -> Values:
    # Scores that agree to 12 digits are equal here as in the decision.
    _, where, counts = np.unique(np.round(values, 12), return_inverse=True, return_counts=True)
    ranks: Values = (np.cumsum(counts) - (counts - 1) / 2)[where]
    return ranks


def interval(first: Values, second: Values) -> tuple[float, float]:
    """95 % bootstrap interval over trainings: the cells of one training share a model, so they are drawn together."""
    rows = np.arange(first.shape[0] * first.shape[1])
    a, b = first.reshape(len(rows), -1), second.reshape(len(rows), -1)
    rng = np.random.default_rng(SEED)
    drawn = (rng.choice(rows, len(rows)) for _ in range(RESAMPLES))
    found = np.array([rank_correlation(a[rows_], b[rows_]) for rows_ in drawn])
    known = found[~np.isnan(found)]
    if known.size == 0:
        return math.nan, math.nan
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


def _correlation(first: Values, second: Values) -> str:
    rho = rank_correlation(first, second)
    if math.isnan(rho):
        return "too few distinct scores to compare the two orders."
    low, high = interval(first, second)
    words = "order the settings much alike" if rho > 0.8 else "agree in part" if rho > 0.4 else "hardly agree"
    words = "order the settings in opposite ways" if rho < -0.4 else words
    spread = f"95 % interval {say(low, 2)} to {say(high, 2)} over trainings"
    return f"the two modes {words} (rank correlation {say(rho, 2)}, {spread})."


def _winners(name: str, paper: Decision, measured: Decision) -> str:
    first, second = choices(paper).get(name), choices(measured).get(name)
    if first is None or second is None:
        return ""
    if setting(first.winner) == setting(second.winner):
        return "Both put the same setting first."
    return (
        f"Paper mode puts {setting(first.winner)} first; the measured mode ranks that setting"
        f" {_place(measured, first)} and puts {setting(second.winner)} first."
    )


def _place(decision: Decision, choice: Choice) -> str:
    scores = decision.panels[choice.winner.mechanism].aggregate["value"]
    cell = {"privacy": text(choice.winner.degree), "explainability": text(choice.winner.explainability)}
    own = float(scores.sel(cell))
    if math.isnan(own):
        return "among the infeasible"
    return f"{int((scores > own + 1e-12).sum()) + 1} of {int(scores.notnull().sum())}"
