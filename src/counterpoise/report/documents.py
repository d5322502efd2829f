"""Drafts of documents that reviewers ask for, filled from the evidence. They state what is known; they do not judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jinja2

from counterpoise.grid import text
from counterpoise.report import words
from counterpoise.report.agreement import agreement
from counterpoise.report.evidence import Evidence
from counterpoise.report.quantities import quantity
from counterpoise.report.words import percent, say, setting, value_of
from counterpoise.tradeoff import Budget

NAMES = ("dpia.md", "annex-iv-2b.md", "model-card.md")


def documents(evidence: Evidence, decided: Mapping[str, Any]) -> dict[str, str]:
    """The drafts by file name. What the evidence does not hold is asked for, not made up."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("counterpoise.report", "templates"),
        autoescape=False,  # Markdown: `_plain` makes every printed name harmless instead
        finalize=_plain,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(say=say, setting=setting)
    decision = evidence.decision
    context = {
        "study": evidence.results.study,
        "decision": decision,
        "decided": decided,
        "headline": words.headline(decision),
        "rule": words.rule(decision),
        "outcomes": words.outcomes(decision),
        "advice": words.advice(decision),
        "against": words.against(evidence.results),
        "agreement": agreement(evidence),
        "budgets": [(budget, _bound(budget)) for budget in evidence.budgets],
        "rows": _rows(evidence),
        "policies": {
            f"{policy}, {mode}": answer if isinstance(answer, str) else words.headline(answer)
            for (policy, mode), answer in evidence.answers.items()
        },
        "settings": _settings(evidence),
        "refusals": list(dict.fromkeys(record.refusal for record in evidence.results if record.refusal)),
        "trained": sum(not record.refusal for record in evidence.results),
    }
    return {name: environment.get_template(f"{name}.j2").render(context) for name in NAMES}


def _plain(value: object) -> object:
    """Whatever a study calls things stays words: no markup, no heading, no end of a table's cell."""
    if not isinstance(value, str):
        return value
    for sign, harmless in (("&", "&amp;"), ("<", "&lt;"), ("|", "&#124;"), ("`", "'"), ("[", "&#91;"), ("\n", " ")):
        value = value.replace(sign, harmless)
    return value


def _bound(budget: Budget) -> str:
    """What the chosen epsilon means for one image, by the bound of `advantage_bound`."""
    if not math.isfinite(budget.chosen):
        return "nothing is proved, so no bound on a membership attack can be stated"
    shrunk = math.exp(-budget.chosen)
    bound = min(1.0, (1 - shrunk + 2 * budget.delta * shrunk) / (1 + shrunk))
    return f"no attacker's true-positive rate exceeds the false-positive rate by more than {percent(bound)}"


def _rows(evidence: Evidence) -> list[tuple[str, str, str, list[str]]]:
    """At the winner: (quantity, what it rests on, which way is better, each party's value with its interval)."""
    best = evidence.decision.best
    if best is None:
        return []
    table = evidence.decision.panels[best.winner.mechanism].table
    cell = table.sel(privacy=text(best.winner.degree), explainability=text(best.winner.explainability))
    rows: list[tuple[str, str, str, list[str]]] = []
    for name in (str(name) for name in table if "." not in str(name)):
        low, high = cell.get(f"{name}.low", cell[name]), cell.get(f"{name}.high", cell[name])
        bounds = zip(cell[name].values, low.values, high.values, strict=True)
        values = [_interval(name, float(value), float(a), float(b)) for value, a, b in bounds]
        described = quantity(name)
        rows.append((described.label, described.standing, described.better, values))
    return rows


def _interval(name: str, value: float, low: float, high: float) -> str:
    spread = f" ({value_of(name, low)} to {value_of(name, high)})" if high > low else ""
    return value_of(name, value) + spread


def _settings(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    """Each mechanism's configuration, as far as all its trainings share it."""
    found = {}
    for name in evidence.decision.panels:
        held = [record.configuration for record in evidence.results if record.mechanism == name and not record.refusal]
        shared = [{(key, str(value)) for key, value in one.items()} for one in held]
        found[name] = sorted(set.intersection(*shared)) if shared else []
    return found
