"""The report's sentences: what was decided, how firmly, and who gives up what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterpoise.grid import text
from counterpoise.record import Results
from counterpoise.report.evidence import Evidence, choices
from counterpoise.report.quantities import quantity
from counterpoise.tradeoff import Budget, Choice, Decision, Infeasible, PartyView, Standing

POLICY_WORDS = {
    "paper": "the mean over the parties that allow a setting; one willing party is enough",
    "unanimous": "the mean over all parties; every party must allow the setting",
    "quorum": "the mean over the parties that allow a setting; {quorum} of {parties} must",
    "egalitarian": "the score of the party that is served worst; every party must allow the setting",
    "nash": "the geometric mean of the parties' scores; every party must allow the setting",
}
MODE_WORDS = {
    "paper": "the source's formulas, which look at settings more than at results",
    "measured": "a real attack, the real quality of the maps, the real loss of accuracy",
}


def say(value: float, digits: int = 3) -> str:
    """A number as people read it: three digits, a real minus, infinity as ∞."""
    if math.isnan(value):
        return "not measured"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    spelled = f"{value:.{digits}g}"
    if "e" in spelled and 1e-4 <= abs(value) < 1e9:
        spelled = f"{float(spelled):.0f}"
    return "0" if float(spelled) == 0 else spelled.replace("-", "−")


def percent(value: float) -> str:
    """A share in per cent."""
    return f"{say(100 * value)} %" if math.isfinite(value) else say(value)


def value_of(name: str, value: float) -> str:
    """A value in its quantity's unit."""
    return percent(value) if quantity(name).unit == "share" else say(value)


def listed(items: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def setting(standing: Standing) -> str:
    """A cell in words."""
    if standing.mechanism == "plain":
        return f"plain training, explainability {text(standing.explainability)}"
    where = f"{standing.degree_name} {text(standing.degree)}"
    return f"{standing.mechanism} at {where}, explainability {text(standing.explainability)}"


def scored(standing: Standing) -> str:
    """A score with its interval."""
    interval = f"95 % interval {say(standing.low)} to {say(standing.high)}"
    return f"{say(standing.score)} ({interval}; higher is better)"


def rule(decision: Decision) -> str:
    """The policy and mode, explained."""
    policy = POLICY_WORDS[decision.policy].format(quorum=decision.quorum, parties=len(decision.parties))
    return f"Policy {decision.policy}: {policy}. Mode {decision.mode}: {MODE_WORDS[decision.mode]}."


def headline(decision: Decision) -> str:
    """The decision in one plain sentence."""
    if decision.best is not None:
        return f"Choose {setting(decision.best.winner)}."
    found = choices(decision)
    if not found:
        return f"No setting meets what the {len(decision.parties)} parties require."
    if len(found) == 1:
        return f"Only {next(iter(found))} is feasible: {setting(next(iter(found.values())).winner)}."
    return f"One optimum for each mechanism: {listed([setting(choice.winner) for choice in found.values()])}."


@dataclass(frozen=True)
class Outcome:
    """One winner, told: `firm` says how far it is from changing, `parties` who gives up what."""

    title: str
    score: str
    firm: str
    warning: str
    parties: tuple[tuple[PartyView, str], ...]


UNPROVED = (
    "Nothing is proved about this setting: how private it is was measured with one simple attack, and a better attack"
    " may find more."
)
AGAINST = (
    "What it hides is measured against these attackers, who learned from filtered images when the filter was final:"
    " logistic regression, nearest neighbours and a small network on pixels, and the study's own network, trained anew"
    " and trained on from the one in the game; an attacker not tried may find more."
)
"""Of a learned filter, which networks have fought already: that it fooled those is no measurement."""
FILTERS = frozenset({"privatizer"})
"""The mechanisms of which that is said."""


def outcome(choice: Choice, total: int, title: str) -> Outcome:
    """A winner in sentences."""
    allowed = f"{choice.feasible} of {total} settings are feasible; this one scores {scored(choice.winner)}."
    filtered = choice.winner.mechanism in FILTERS
    unproved = f"Nothing is proved about this setting. {AGAINST}" if filtered else UNPROVED
    warning = unproved if math.isinf(choice.winner.epsilon) else ""
    return Outcome(title, allowed, firmness(choice), warning, tuple((view, gives_up(view)) for view in choice.parties))


def against(results: Results) -> str:
    """What a run with a learned filter says wherever it says what is proved; empty for all others."""
    names = sorted({record.mechanism for record in results} & FILTERS)
    return f"Of {listed(names)} nothing is proved. {AGAINST}" if names else ""


def outcomes(decision: Decision) -> list[Outcome]:
    """The best of all, or each mechanism's winner where mechanisms are not compared."""
    sizes = {name: panel.aggregate["value"].size for name, panel in decision.panels.items()}
    if decision.best is not None:
        return [outcome(decision.best, sum(sizes.values()), setting(decision.best.winner))]
    return [outcome(choice, sizes[name], setting(choice.winner)) for name, choice in choices(decision).items()]


def advice(decision: Decision) -> list[str]:
    """What would make an infeasible mechanism feasible."""
    return [found.sentence for found in decision.outcomes.values() if isinstance(found, Infeasible)]


def firmness(choice: Choice) -> str:
    """How firm the choice is."""
    if not choice.runners_up:
        return "No other setting is feasible, so no change of a score can flip the choice."
    margin, second = say(choice.flip_margin, 2), choice.runners_up[0]
    tied = "Another setting ties with it" if choice.flip_margin <= 1e-12 else f"It leads by {margin}"
    start = f"{tied}: next is {setting(second)} (the flip margin, {margin}, is what a score would have to move)."
    if choice.contested:
        reach = "the interval of another setting reaches this one's, so more images or seeds may decide otherwise"
        return f"{start} Contested: {reach}."
    return f"{start} Uncontested: no other setting's interval reaches this one's."


def gives_up(view: PartyView) -> str:
    """What the winner costs one party."""
    if not view.allows:
        return f"forbids this setting ({'; '.join(view.forbids) or 'it was not measured there'})"
    if view.regret <= 1e-12:
        return "gives up nothing: this is the best setting it allows"
    return f"gives up {say(view.regret, 2)} of {say(view.best)}, its best allowed score"


def revealed(budgets: Sequence[Budget]) -> list[tuple[str, str]]:
    """Both budgets in words, as (parties, sentence): parties whose sentences agree are named together."""
    told: dict[str, list[str]] = {}
    for budget in budgets:
        told.setdefault(budget.sentence().removeprefix(f"{budget.party}: "), []).append(budget.party)
    return [(listed(parties) + (", each" if len(parties) > 1 else ""), words) for words, parties in told.items()]


@dataclass(frozen=True)
class Fact:
    """One number at the winner; the worst over the parties."""

    label: str
    value: str
    how: str


FACTS = ("epsilon", "membership_advantage", "advantage_bound", "accuracy", "task_loss", "faithfulness", "stability")
ON_REQUEST = ("secret_advantage", "class_leak", "worst_group_loss", "certified_radius", "attacked_overlap")
"""Shown too where a study takes them: somebody asked."""


def facts(evidence: Evidence) -> list[Fact]:
    """The numbers that matter at the winner, each the worst over the parties, with its interval."""
    best = evidence.decision.best
    if best is None:
        return []
    winner = best.winner
    table = evidence.decision.panels[winner.mechanism].table
    cell = table.sel(privacy=text(winner.degree), explainability=text(winner.explainability))
    found = []
    for name in (*FACTS, *ON_REQUEST):
        if name not in cell or cell[name].isnull().all():
            continue
        described = quantity(name)
        values = cell[name].values
        worst = int(np.nanargmin(values) if described.better == "higher" else np.nanargmax(values))
        value = float(values[worst])
        low, high = (float(cell.get(name + end, cell[name])[worst]) for end in (".low", ".high"))
        interval = f"{value_of(name, low)} to {value_of(name, high)}, " if high > low else ""
        meaning = f"{interval}{described.standing}, {described.better} is better"
        if (name == "epsilon" and math.isinf(value)) or (name == "advantage_bound" and value >= 1):
            meaning = "nothing is proved"
        found.append(Fact(described.label, value_of(name, value), meaning))
    return found
