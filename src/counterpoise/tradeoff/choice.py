"""The decision: which cell wins under a policy and a mode, how firmly, and what each party gives up for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import xarray as xr

from counterpoise._check import InputError
from counterpoise.grid import text
from counterpoise.record import Party, Results
from counterpoise.tradeoff import masks
from counterpoise.tradeoff.matrix import build, decimals, score
from counterpoise.tradeoff.modes import Mode, mode_named
from counterpoise.tradeoff.policies import Policy, policy_named
from counterpoise.tradeoff.relax import Infeasible, explain_infeasible
from counterpoise.tradeoff.requirements import parse, refuse_unknown

RUNNERS_UP = 5


@dataclass(frozen=True)
class Standing:
    """One cell with its aggregated score and interval; epsilon and utility loss are the worst over the parties."""

    mechanism: str
    degree_name: str
    degree: Decimal
    explainability: Decimal
    score: float
    low: float
    high: float
    epsilon: float
    utility_loss: float

    def __str__(self) -> str:
        setting = f"{self.mechanism} at {self.degree_name} {text(self.degree)}"
        return f"{setting}, explainability {text(self.explainability)}"


@dataclass(frozen=True)
class PartyView:
    """The winner as one party sees it. `regret` is its best allowed score minus its score here (never below 0 where
    it allows the winner); infinite losses do not occur. `forbids` names its requirements that the winner breaks.
    """

    party: str
    score: float
    best: float
    regret: float
    allows: bool
    forbids: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A winner, how it stands among the others, and what it means to each party.

    `flip_margin` is how far the winner's score would have to fall, or the next one's to rise, for another cell to win
    (infinite where no other cell is feasible); `contested` tells whether a runner-up's interval reaches the winner's.
    """

    winner: Standing
    runners_up: tuple[Standing, ...]
    flip_margin: float
    contested: bool
    parties: tuple[PartyView, ...]
    feasible: int


@dataclass(frozen=True)
class Panel:
    """Everything about one mechanism: its measured matrix, scores, mask and the aggregated scores."""

    table: xr.Dataset
    scores: xr.Dataset
    possible: xr.DataArray
    aggregate: xr.Dataset


@dataclass(frozen=True)
class Decision:
    """The outcome for each mechanism, and the best of all where the mode can compare them."""

    study: str
    policy: str
    mode: str
    quorum: int | None
    parties: tuple[Party, ...]
    panels: Mapping[str, Panel]
    outcomes: Mapping[str, Choice | Infeasible]
    best: Choice | None

    def sentence(self) -> str:
        """The decision in one sentence."""
        if self.best is not None:
            winner = self.best.winner
            return f"Choose {winner}: score {winner.score:.3f} (95 % interval {winner.low:.3f} to {winner.high:.3f})."
        winners = [outcome for outcome in self.outcomes.values() if isinstance(outcome, Choice)]
        if not winners:
            return "No setting is feasible. " + " ".join(
                outcome.sentence for outcome in self.outcomes.values() if isinstance(outcome, Infeasible)
            )
        each = "; ".join(f"{choice.winner} (score {choice.winner.score:.3f})" for choice in winners)
        return f"In the {self.mode} mode mechanisms are not on one scale, so there is one optimum for each: {each}."


def choose(
    results: Results,
    policy: str | Policy = "unanimous",
    mode: str | Mode = "measured",
    parties: Sequence[Party] | None = None,
    quorum: int | None = None,
) -> Decision:
    """Decide over finished records: `choose(results, policy="unanimous", mode="measured").sentence()`.

    `parties` replaces the requirements of the study, so that questions can be asked without training again.
    """
    rule = policy_named(policy, quorum) if isinstance(policy, str) else policy
    mode = mode_named(mode) if isinstance(mode, str) else mode
    deciding = tuple(results.parties if parties is None else parties)
    if {party.name for party in deciding} != {party.name for party in results.parties}:
        raise InputError(
            f"parties={[p.name for p in deciding]} must be the study's: {[p.name for p in results.parties]}."
        )
    _refuse_unfinished(results)
    _refuse_unknown(results, deciding, mode)
    question = Question(deciding, rule, mode, masks.degree_names(results))
    mechanisms = dict.fromkeys(record.mechanism for record in results if not record.refusal)
    return decide(results.study, {mechanism: build(results, mechanism) for mechanism in mechanisms}, question)


def decide(study: str, tables: Mapping[str, xr.Dataset], question: Question) -> Decision:
    """The decision over measured matrices, one a mechanism."""
    panels = {mechanism: _panel(table, question) for mechanism, table in tables.items()}
    outcomes = {mechanism: _outcome(panel, question) for mechanism, panel in panels.items()}
    rule, parties = question.policy, question.parties
    return Decision(
        study=study,
        policy=rule.name,
        mode=question.mode.name,
        quorum=rule.willing(len(parties)) if rule.name == "quorum" else None,
        parties=parties,
        panels=panels,
        outcomes=outcomes,
        best=_best(panels, outcomes, question),
    )


def standings(tables: Mapping[str, xr.Dataset], question: Question) -> list[Standing]:
    """The feasible cells of these mechanisms, best first: what `decide` chooses from, without the explanations."""
    return sorted((s for t in tables.values() for s in _standings(_panel(t, question), question.mode)), key=_rank)


@dataclass(frozen=True)
class Question:
    """What is asked of every mechanism's matrix: whose requirements, under which policy and mode.

    `degrees` are the names of all degrees in the study.
    """

    parties: tuple[Party, ...]
    policy: Policy
    mode: Mode
    degrees: frozenset[str]


def _refuse_unfinished(results: Results) -> None:
    if any(not record.refusal for record in results):
        return
    refused: dict[str, dict[str, None]] = {}
    for record in results:
        refused.setdefault(record.refusal.rstrip("."), {})[record.mechanism] = None
    if refused:
        told = "; ".join(f"{reason} ({', '.join(mechanisms)})" for reason, mechanisms in refused.items())
        raise InputError(f"study {results.study!r}: every mechanism was refused: {told}.")
    raise InputError(f"study {results.study!r} has no finished record to choose from; run it first.")


def _refuse_unknown(results: Results, parties: Sequence[Party], mode: Mode) -> None:
    known = {*masks.degree_names(results), *results.measured()}
    refuse_unknown(parties, known, mode.resolve)


def _panel(table: xr.Dataset, question: Question) -> Panel:
    scores = score(table, question.mode)
    possible = masks.possible(table, scores, question.parties, question.mode, question.degrees)
    merged = {part: question.policy.aggregate(scores[part], possible) for part in ("value", "low", "high")}
    return Panel(table, scores, possible, xr.Dataset(merged))


def _outcome(panel: Panel, question: Question) -> Choice | Infeasible:
    standings = _standings(panel, question.mode)
    if standings:
        return _choice(standings, {panel.table.attrs["mechanism"]: panel}, question)
    return explain_infeasible(panel.table, question.parties, question.policy, question.mode, question.degrees)


def _standings(panel: Panel, mode: Mode) -> list[Standing]:
    """The feasible cells, best first; ties by lower epsilon, then lower utility loss, then grid order."""
    table = panel.table
    degrees, levels = decimals(table, "privacy"), decimals(table, "explainability")
    epsilon, loss = (table[name].max("party").values for name in ("epsilon", mode.utility_loss))
    value, low, high = (panel.aggregate[part].values for part in ("value", "low", "high"))
    found = []
    for i, j in np.argwhere(~np.isnan(value)):
        found.append(
            Standing(
                mechanism=str(table.attrs["mechanism"]),
                degree_name=str(table.attrs["degree"]),
                degree=degrees[i],
                explainability=levels[j],
                score=float(value[i, j]),
                low=float(low[i, j]),
                high=float(high[i, j]),
                epsilon=float(epsilon[i, j]),
                utility_loss=float(loss[i, j]),
            )
        )
    return sorted(found, key=_rank)


def _rank(standing: Standing) -> tuple[float, float, float]:
    # Scores are compared to 12 digits: a sum in another order must not decide between equal cells.
    return (-float(f"{standing.score:.12g}"), standing.epsilon, standing.utility_loss)


def _choice(standings: list[Standing], panels: Mapping[str, Panel], question: Question) -> Choice:
    winner, others = standings[0], standings[1:]
    return Choice(
        winner=winner,
        runners_up=tuple(others[:RUNNERS_UP]),
        flip_margin=winner.score - others[0].score if others else math.inf,
        contested=any(other.high >= winner.low for other in others),
        parties=tuple(_view(party, winner, panels, question) for party in question.parties),
        feasible=len(standings),
    )


def _view(party: Party, winner: Standing, panels: Mapping[str, Panel], question: Question) -> PartyView:
    panel = panels[winner.mechanism]
    cell = {"privacy": text(winner.degree), "explainability": text(winner.explainability)}
    own = float(panel.scores["value"].sel({"party": party.name, **cell}))
    allowed = [p.scores["value"].where(p.possible).sel(party=party.name).max() for p in panels.values()]
    best = max((float(value) for value in allowed if not math.isnan(float(value))), default=math.nan)
    forbids = tuple(
        words
        for words in party.requires
        if not bool(masks.holds(parse(words), panel.table, party, question.mode, question.degrees).sel(cell))
    )
    if party.mechanisms and winner.mechanism not in party.mechanisms:
        forbids = (f"mechanisms: {', '.join(party.mechanisms)}", *forbids)
    return PartyView(
        party.name, own, best, best - own, bool(panel.possible.sel({"party": party.name, **cell})), forbids
    )


def _best(
    panels: Mapping[str, Panel], outcomes: Mapping[str, Choice | Infeasible], question: Question
) -> Choice | None:
    """The best of all mechanisms, where the mode compares them or there is only one."""
    if len(panels) == 1:
        outcome = next(iter(outcomes.values()))
        return outcome if isinstance(outcome, Choice) else None
    standings = [standing for panel in panels.values() for standing in _standings(panel, question.mode)]
    if not question.mode.comparable or not standings:
        return None
    return _choice(sorted(standings, key=_rank), panels, question)
