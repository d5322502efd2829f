"""`report.html`: one self-contained file. Everything shown is escaped, and only the scripts written here may run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from counterpoise.report import words
from counterpoise.report.agreement import agreement
from counterpoise.report.embedded import embedded
from counterpoise.report.evidence import Evidence, choices
from counterpoise.report.pixels import data_uri
from counterpoise.report.quantities import QUANTITIES, quantity
from counterpoise.report.strips import shown
from counterpoise.report.unseen import unseen
from counterpoise.report.words import say, setting, value_of
from counterpoise.tradeoff import MODES, POLICIES, Decision

SCRIPTS = ("engine.js", "heat.js", "explore.js", "plot.js", "charts.js", "curves.js", "unseen.js", "galleries.js")


@cache
def _asset(name: str) -> str:
    return files("counterpoise.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _scripts() -> tuple[str, ...]:
    """Each script of the page, plotly first. None may end the element that holds it."""
    found = (get_plotlyjs(), "\n".join(_asset(name) for name in SCRIPTS))
    if any("</script" in script.lower() or "<!--" in script for script in found):
        raise ValueError("a script of the page contains '</script' or '<!--' and cannot be written into it")
    return found


@cache
def _policy() -> str:
    """The Content-Security-Policy: nothing is loaded from anywhere, and only these scripts run, each by its hash."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in _scripts()
    )
    # Plotly writes styles into elements, so inline styles are allowed; they can load nothing either.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> Markup:
    """JSON that cannot end its element, whatever a party is called."""
    encoded = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Markup(encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def page(evidence: Evidence, decided: Mapping[str, Any], stills: Mapping[str, bytes] | None = None) -> str:
    """The whole page. `stills` are pictures of the surface by 'mechanism|mode', for browsers without WebGL."""
    loader = jinja2.PackageLoader("counterpoise.report", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(say=_said, setting=setting, value_of=value_of)
    decision = evidence.decision
    first = _first_mechanism(decision)
    best = decision.best.winner if decision.best is not None else None
    parts = unseen(evidence)
    data = {
        **embedded(evidence),
        "winner": best and {"mechanism": best.mechanism, "degree": str(best.degree)},
        "unseen": [chart.as_json() for part in parts for chart in part.charts],
    }
    return environment.get_template("page.html").render(
        study=evidence.results.study,
        decision=decision,
        decided=decided,
        evidence=evidence,
        headline=words.headline(decision),
        rule=words.rule(decision),
        outcomes=words.outcomes(decision),
        advice=words.advice(decision),
        facts=words.facts(evidence),
        revealed=words.revealed(evidence.budgets),
        against=words.against(evidence.results),
        agreement=agreement(evidence),
        unseen=parts,
        meanings=_meanings(decided),
        answers=_answers(evidence),
        policies=list(POLICIES),
        modes=evidence.modes,
        shown=sorted(shown(evidence.galleries), key=lambda gallery: gallery.mechanism != first),
        refusals=[record for record in evidence.results if record.refusal],
        stills={key: data_uri(content) for key, content in (stills or {}).items()},
        quantity=quantity,
        first_mechanism=first,
        csp=_policy(),
        style=Markup(_asset("page.css")),
        scripts=[Markup(script) for script in _scripts()],
        data=_json(data),
    )


def _first_mechanism(decision: Decision) -> str:
    """The mechanism the page opens with: the winner's, else one that is feasible and has degrees to move along."""
    if decision.best is not None:
        return decision.best.winner.mechanism
    names = [*choices(decision), *decision.panels]
    return max(names, key=lambda name: (name in choices(decision), decision.panels[name].table.sizes["privacy"]))


def _said(value: float | str | None) -> str:
    """A number of `decision.json` in words."""
    return "not measured" if value is None else say(float(value))


def _meanings(decided: Mapping[str, Any]) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """The quantities of this study under what they rest on, in the order they are described."""
    present = decided["quantities"]
    order = [name for name in QUANTITIES if name in present] + [name for name in present if name not in QUANTITIES]
    groups: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for standing in ("measured", "bounded", "assumed", "computed", "not described"):
        own = [(name, present[name]) for name in order if present[name]["standing"] == standing]
        if own:
            groups[standing] = own
    return groups


def _answers(evidence: Evidence) -> list[tuple[str, dict[str, str]]]:
    """What each policy would choose in each mode, in words."""

    def told(answer: Decision | str) -> str:
        return answer if isinstance(answer, str) else words.headline(answer)

    return [(policy, {mode: told(evidence.answers[policy, mode]) for mode in MODES}) for policy in POLICIES]
