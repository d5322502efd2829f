"""What a report is made from: the decision, the same question under every policy and mode, budgets and galleries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterpoise._check import InputError, one_of
from counterpoise.record import Results
from counterpoise.report.claims import Claim
from counterpoise.report.gallery import Gallery
from counterpoise.tradeoff import MODES, POLICIES, Budget, Choice, Decision, Panel, choose

Answer = Decision | str
"""A decision, or the sentence that says why the records cannot give one."""


@dataclass(frozen=True)
class Evidence:
    """Everything that the files of a report show. `answers` are keyed by (policy, mode)."""

    results: Results
    decision: Decision
    answers: Mapping[tuple[str, str], Answer]
    budgets: tuple[Budget, ...] = ()
    galleries: tuple[Gallery, ...] = ()
    environment: Mapping[str, str] | None = None
    claims: tuple[Claim, ...] = ()

    @property
    def explainer(self) -> str:
        """The name of the study's explainer; empty where the records do not say."""
        return str(next((record.configuration.get("explainer", "") for record in self.results), ""))

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that the records can answer in, the decision's own first."""
        others = [mode for mode in MODES if mode != self.decision.mode and self.panels(mode)]
        return (self.decision.mode, *others)

    def answer(self, mode: str) -> Answer:
        """The decision's question, asked in this mode."""
        return self.answers[self.decision.policy, mode]

    def panels(self, mode: str) -> Mapping[str, Panel]:
        """The matrices of this mode under the decision's policy; none where the records lack what the mode needs."""
        answer = self.answer(mode)
        return answer.panels if isinstance(answer, Decision) else {}


def gather(
    results: Results,
    decision: Decision,
    budgets: Sequence[Budget] = (),
    galleries: Sequence[Gallery] = (),
    environment: Mapping[str, str] | None = None,
    claims: Sequence[Claim] = (),
) -> Evidence:
    """Ask the decision's question under every policy, in both modes."""
    one_of(MODES, mode=decision.mode)
    one_of(POLICIES, policy=decision.policy)
    answers = {(policy, mode): _answer(results, decision, policy, mode) for policy in POLICIES for mode in MODES}
    return Evidence(results, decision, answers, tuple(budgets), tuple(galleries), environment, tuple(claims))


def _answer(results: Results, decision: Decision, policy: str, mode: str) -> Answer:
    if (policy, mode) == (decision.policy, decision.mode):
        return decision
    quorum = decision.quorum if policy == "quorum" else None
    try:
        return choose(results, policy, mode, decision.parties, quorum)
    except InputError as missing:
        return str(missing)


def choices(decision: Decision) -> dict[str, Choice]:
    """The mechanisms that have a winner."""
    return {name: outcome for name, outcome in decision.outcomes.items() if isinstance(outcome, Choice)}


def plain_number(value: float) -> float | str | None:
    """A number as strict JSON can hold it: null for not measured, 'inf' and '-inf' in words."""
    number = float(value)
    if math.isnan(number):
        return None
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number
