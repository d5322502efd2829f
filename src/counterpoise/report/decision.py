"""`decision.json`: the decision with everything that another program needs to recompute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from counterpoise.grid import text
from counterpoise.record import Guarantee, Measurement, Party, Record, Results
from counterpoise.report.evidence import Evidence, gather, plain_number
from counterpoise.report.quantities import describe
from counterpoise.tradeoff import MODES, Bound, Budget, Choice, Decision, Infeasible, Panel, Standing, masks, parse
from counterpoise.tradeoff.policies import weights

SCHEMA = "counterpoise/decision/1"

Json = dict[str, Any]
Cell = Callable[..., Json | None]


def decision_json(
    results: Results,
    decision: Decision,
    budgets: Sequence[Budget] = (),
    environment: Mapping[str, str] | None = None,
) -> Json:
    """The whole evidence as plain data; `decision.schema.json` describes it."""
    return as_json(gather(results, decision, budgets, environment=environment))


def as_json(evidence: Evidence) -> Json:
    """The same, from gathered evidence."""
    decision, results = evidence.decision, evidence.results
    return {
        "schema": SCHEMA,
        "study": results.study,
        "digest": results.digest,
        "sentence": decision.sentence(),
        "policy": decision.policy,
        "mode": decision.mode,
        "quorum": decision.quorum,
        "winner": None if decision.best is None else _choice(decision.best),
        "parties": [_party(party) for party in decision.parties],
        "modes": {name: _mode(evidence, name) for name in MODES},
        "mechanisms": [_mechanism(name, panel) for name, panel in decision.panels.items()],
        "outcomes": {name: _outcome(outcome) for name, outcome in decision.outcomes.items()},
        "policies": [_answer(policy, mode, evidence.answers[policy, mode]) for policy, mode in evidence.answers],
        "budgets": [_budget(budget) for budget in evidence.budgets],
        "cells": [cell for name in decision.panels for cell in _cells(evidence, name)],
        "quantities": describe(_quantities(decision.panels)),
        "records": [_record(record) for record in results],
        "notes": list(results.notes),
        "environment": dict(evidence.environment or {}),
    }


def _party(party: Party) -> Json:
    return {
        "name": party.name,
        "mechanisms": list(party.mechanisms),
        "requires": [_requirement(words) for words in party.requires],
    }


def _requirement(words: str) -> Json:
    requirement = parse(words)
    if isinstance(requirement, Bound):
        limit = {"relation": requirement.relation, "value": text(requirement.value)}
        return {"words": words, "quantity": requirement.quantity, **limit}
    return {"words": words, "quantity": requirement.quantity, "extreme": requirement.way}


def _mode(evidence: Evidence, name: str) -> Json:
    mode, answer = MODES[name], evidence.answer(name)
    return {
        "privacy": mode.privacy,
        "explanation": mode.explanation,
        "utility_loss": mode.utility_loss,
        "comparable": mode.comparable,
        "unavailable": answer if isinstance(answer, str) else "",
    }


def _mechanism(name: str, panel: Panel) -> Json:
    return {
        "name": name,
        "degree": str(panel.table.attrs["degree"]),
        "more_private": str(panel.table.attrs["more_private"]),
        "degrees": [str(degree) for degree in panel.table["privacy"].values],
        "explainability": [str(level) for level in panel.table["explainability"].values],
    }


def _standing(standing: Standing) -> Json:
    return {
        "mechanism": standing.mechanism,
        "degree_name": standing.degree_name,
        "degree": text(standing.degree),
        "explainability": text(standing.explainability),
        "score": _triple(standing.score, standing.low, standing.high),
        "epsilon": plain_number(standing.epsilon),
        "utility_loss": plain_number(standing.utility_loss),
    }


def _choice(choice: Choice) -> Json:
    return {
        "feasible": True,
        "winner": _standing(choice.winner),
        "runners_up": [_standing(standing) for standing in choice.runners_up],
        "flip_margin": plain_number(choice.flip_margin),
        "contested": choice.contested,
        "feasible_cells": choice.feasible,
        "parties": [
            {
                "party": view.party,
                "score": plain_number(view.score),
                "best": plain_number(view.best),
                "regret": plain_number(view.regret),
                "allows": view.allows,
                "forbids": list(view.forbids),
            }
            for view in choice.parties
        ],
    }


def _outcome(outcome: Choice | Infeasible) -> Json:
    if isinstance(outcome, Choice):
        return _choice(outcome)
    return {
        "feasible": False,
        "sentence": outcome.sentence,
        "binding": [{"party": party, "requirement": words} for party, words in outcome.binding],
        "relaxations": [
            {"party": r.party, "requirement": r.requirement, "instead": r.instead} for r in outcome.relaxations
        ],
    }


def _answer(policy: str, mode: str, answer: Decision | str) -> Json:
    start: Json = {"policy": policy, "mode": mode}
    if isinstance(answer, str):
        return {**start, "quorum": None, "unavailable": answer, "winner": None, "mechanisms": {}}
    each = {
        name: _standing(outcome.winner) if isinstance(outcome, Choice) else None
        for name, outcome in answer.outcomes.items()
    }
    best = None if answer.best is None else _standing(answer.best.winner)
    return {**start, "quorum": answer.quorum, "unavailable": "", "winner": best, "mechanisms": each}


def _budget(budget: Budget) -> Json:
    return {
        "party": budget.party,
        "chosen_epsilon": plain_number(budget.chosen),
        "campaign_epsilon": plain_number(budget.campaign),
        "delta": budget.delta,
        "trainings": budget.trainings,
        "trainings_without_guarantee": budget.unproved,
        "sentence": budget.sentence(),
    }


def _triple(value: float, low: float, high: float) -> Json | None:
    number = plain_number(value)
    return None if number is None else {"value": number, "low": plain_number(low), "high": plain_number(high)}


def _quantities(panels: Mapping[str, Panel]) -> list[str]:
    names = dict.fromkeys(str(name) for panel in panels.values() for name in panel.table if "." not in str(name))
    return [name for name in names if name != "epsilon"]


def _cells(evidence: Evidence, mechanism: str) -> list[Json]:
    """One entry for each party, degree and explainability degree."""
    panel = evidence.decision.panels[mechanism]
    table = panel.table
    values = {name: _triples(table, name) for name in _quantities({mechanism: panel})}
    epsilon = table["epsilon"].values
    views = {mode: _view(evidence, mechanism, mode) for mode in MODES}
    found = []
    for p, party in enumerate(table["party"].values):
        for i, degree in enumerate(table["privacy"].values):
            for j, level in enumerate(table["explainability"].values):
                measured = {name: triples(p, i, j) for name, triples in values.items()}
                found.append(
                    {
                        "party": str(party),
                        "mechanism": mechanism,
                        "degree": str(degree),
                        "explainability": str(level),
                        "epsilon": plain_number(float(epsilon[p, i, j])),
                        "quantities": {name: triple for name, triple in measured.items() if triple is not None},
                        **{mode: None if view is None else view(p, i, j) for mode, view in views.items()},
                    }
                )
    return found


def _triples(values: xr.Dataset, name: str, parts: Sequence[str] = ("", ".low", ".high")) -> Cell:
    """A function from a cell's index to the value there and its interval."""
    value, low, high = (values[name + part].values for part in parts)
    return lambda *cell: _triple(float(value[cell]), float(low[cell]), float(high[cell]))


def _view(evidence: Evidence, mechanism: str, mode: str) -> Cell | None:
    """A function from a cell's index to its values, score and verdict in this mode, where the mode is available."""
    panel = evidence.panels(mode).get(mechanism)
    if panel is None:
        return None
    named = MODES[mode]
    values = {
        "privacy": _triples(panel.table, named.privacy),
        "explanation": _triples(panel.table, named.explanation),
        "utility_loss": _triples(panel.table, named.utility_loss),
        "score": _triples(panel.scores, "", ("value", "low", "high")),
    }
    aggregate = _triples(panel.aggregate, "", ("value", "low", "high"))
    wishes, share, possible = broken(evidence, panel, mode), weights(panel.possible).values, panel.possible.values

    def cell(party: int, *rest: int) -> Json:
        return {
            **{part: triple(party, *rest) for part, triple in values.items()},
            "possible": bool(possible[(party, *rest)]),
            "violates": [words for words, met in wishes[party] if not met[rest]],
            "weight": float(share[(party, *rest)]),
            "aggregate": aggregate(*rest),
        }

    return cell


def broken(evidence: Evidence, panel: Panel, mode: str) -> list[list[tuple[str, np.ndarray]]]:
    """For each party its requirements with where they hold, [privacy, explainability]; a closed mechanism first."""
    degrees = masks.degree_names(evidence.results)
    shape = panel.possible.shape[1:]
    found = []
    for party in evidence.decision.parties:
        own = [
            (words, masks.holds(parse(words), panel.table, party, MODES[mode], degrees).values)
            for words in party.requires
        ]
        if party.mechanisms and panel.table.attrs["mechanism"] not in party.mechanisms:
            own.insert(0, (f"mechanisms: {', '.join(party.mechanisms)}", np.zeros(shape, dtype=bool)))
        found.append(own)
    return found


def _record(record: Record) -> Json:
    return {
        "digest": record.digest,
        "party": record.party,
        "mechanism": record.mechanism,
        "degree": text(record.degree),
        "seed": record.seed,
        "refusal": record.refusal,
        "guarantees": [_guarantee(guarantee) for guarantee in record.guarantees],
        "over": _over(record.measurements),
        "configuration": dict(record.configuration),
        "versions": dict(record.versions),
    }


def _guarantee(guarantee: Guarantee) -> Json:
    return {
        "notion": guarantee.notion,
        "epsilon": plain_number(guarantee.epsilon),
        "delta": guarantee.delta,
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "accountant": guarantee.accountant,
        "releases": [
            {
                "kind": release.kind,
                "noise": release.noise,
                "sample_rate": release.sample_rate,
                "steps": release.steps,
                "sampling": release.sampling,
            }
            for release in guarantee.releases
        ],
    }


def _over(measurements: Mapping[str, Measurement]) -> Json:
    """What each training-level interval was taken over."""
    return {name: f"{m.n} {m.over}" if m.over != "exact" else "exact" for name, m in measurements.items()}
