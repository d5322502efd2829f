"""What a training could at best bring, known before it: enough to skip trainings and still prove the optimum.

In the paper's score privacy is known in advance (the accountant's, or the size of the code), and both other parts are
bounded by the smallest utility loss U_low that is possible at all:

    T = (P + w (1 - U)) / (2 + U)  falls with U for P >= 0 and w in [0, 1], so  T <= T(U_low)

with U_low = Acc(baseline) - 1 where U is accuracy lost (nothing is more accurate than 1), and 0 where U is an earth
mover's distance. In the measured mode P and the quality of a map are at most 1, which is rarely tight: there trainings
are skipped mostly because what is known before them (degree, epsilon, explainability) forbids all of their cells.
A cell whose bound does not win cannot win when it is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from counterpoise._check import InputError
from counterpoise.grid import DegreeKind, text
from counterpoise.record import Explained, Guarantee, Measurement, Party, Record, Results
from counterpoise.tradeoff.choice import Choice, Decision, choose
from counterpoise.tradeoff.modes import PAPER, Mode
from counterpoise.tradeoff.policies import Policy, policy_named
from counterpoise.tradeoff.requirements import Bound, Requirement, parse

LOSSES = ("accuracy_loss", "pooled_emd", "no_loss")
"""Utility losses of source papers that have a known lower bound."""

_HIGHEST = {"accuracy": 1.0, "membership_privacy": 1.0, "ssim": 1.0}
_LOWEST = {"membership_advantage": -1.0, "emd_per_image": 0.0, "mse": 0.0, "pooled_emd": 0.0}
_HIGHEST_OF_MAPS = {"explanation_quality": 1.0, "faithfulness": 1.0, "insertion": 1.0, "stability": 1.0}
_LOWEST_OF_MAPS = {"deletion": 0.0}
_LOWEST_BY_BASELINE = ("accuracy_loss", "task_loss")
"""The best values that measures can have by their definition: the least, or for the last two Acc(baseline) - 1."""


@dataclass(frozen=True)
class Prospect:
    """A training that has not been done: what it will prove, and its privacy gain in the paper's mode.

    `digest` is the name that its record would have.
    """

    digest: str
    party: str
    mechanism: str
    kind: DegreeKind
    degree: Decimal
    seed: int
    privacy_gain: float
    loss: str
    guarantees: tuple[Guarantee, ...] = ()


def lowest_loss(loss: str, baseline_accuracy: float) -> float:
    """The smallest utility loss any training of this party can have."""
    if loss not in LOSSES:
        raise InputError(f"utility loss {loss!r} has no lower bound before training, so no training can be skipped.")
    return baseline_accuracy - 1 if loss == "accuracy_loss" else 0.0


def best_case(prospect: Prospect, levels: Sequence[Decimal], baseline_accuracy: float, mode: Mode) -> Record:
    """The record that the training could at best have. No record has its empty digest: nothing was trained."""
    measured = {**_HIGHEST, **_LOWEST, **dict.fromkeys(_LOWEST_BY_BASELINE, baseline_accuracy - 1)}
    of_maps = {**_HIGHEST_OF_MAPS, **_LOWEST_OF_MAPS}
    gains = dict.fromkeys(levels, 0.0)
    if mode == PAPER:
        loss = lowest_loss(prospect.loss, baseline_accuracy)
        measured |= {"privacy_gain": prospect.privacy_gain, "utility_loss": loss}
        gains = {level: float(level) * (1 - loss) for level in levels}
    return Record(
        digest="",
        party=prospect.party,
        mechanism=prospect.mechanism,
        kind=prospect.kind,
        degree=prospect.degree,
        seed=prospect.seed,
        measurements=_exact(measured),
        explained=tuple(Explained(w, _exact({**of_maps, "explainability_gain": gains[w]})) for w in levels),
        guarantees=prospect.guarantees,
    )


def _exact(values: Mapping[str, float]) -> dict[str, Measurement]:
    return {name: Measurement.exact(value) for name, value in values.items()}


def with_best_cases(results: Results, prospects: Sequence[Prospect], levels: Sequence[Decimal], mode: Mode) -> Results:
    """The finished records, and the best case of every other training; baselines must be finished."""
    accuracy = {
        (r.party, r.seed): r.measurements["accuracy"].value for r in results if r.mechanism == "plain" and not r.refusal
    }
    hoped = tuple(best_case(p, levels, accuracy[p.party, p.seed], mode) for p in prospects)
    return replace(results, records=(*results.records, *hoped))


def refuse_unbounded(parties: Sequence[Party], policy: Policy, degrees: frozenset[str], mode: Mode) -> None:
    """Raise where a requirement or policy could make a cell win that its best case does not show winning."""
    known = degrees | {"explainability", "epsilon"} | ({"privacy", "privacy_gain"} if mode == PAPER else set())
    for party in parties:
        for words in party.requires:
            requirement = parse(words)
            if requirement.quantity in known:
                continue
            if not _towards_best(requirement, mode):
                raise InputError(
                    f"party {party.name!r}: '{words}' has no bound before training, so no training can be skipped;"
                    " run without --prove."
                )
            if policy.willing(len(parties)) < len(parties):
                raise InputError(
                    f"party {party.name!r}: whether '{words}' is met shows only after training, and under the policy"
                    f" {policy.name!r} a party that drops out can raise a cell's score; run without --prove."
                )


def _towards_best(requirement: Requirement, mode: Mode) -> bool:
    """Whether a training that misses it by its best case misses it for sure."""
    if not isinstance(requirement, Bound):
        return False
    quantity = mode.resolve(requirement.quantity)
    highest = {**_HIGHEST, **_HIGHEST_OF_MAPS}.keys() | {PAPER.explanation}
    lowest = {**_LOWEST, **_LOWEST_OF_MAPS}.keys() | {*_LOWEST_BY_BASELINE, PAPER.utility_loss}
    return quantity in (highest if requirement.relation in (">=", ">") else lowest)


def settle(
    results: Results, prospects: Sequence[Prospect], levels: Sequence[Decimal], policy: str, mode: Mode
) -> Decision:
    """The decision over finished records and best cases together."""
    degrees = frozenset(r.kind.name for r in results) | {p.kind.name for p in prospects}
    refuse_unbounded(results.parties, policy_named(policy), degrees, mode)
    return choose(with_best_cases(results, prospects, levels, mode), policy, mode)


def proved(decision: Decision, mechanism: str, prospects: Sequence[Prospect]) -> bool:
    """Whether the winner of a mechanism is a finished training, which then no other one can beat."""
    outcome = decision.outcomes[mechanism]
    if not isinstance(outcome, Choice):
        return True  # not even the best cases are feasible
    return all((p.mechanism, p.degree) != (mechanism, outcome.winner.degree) for p in prospects)


def next_degree(decision: Decision, mechanism: str) -> Decimal:
    """The degree to train next: the one whose best case wins."""
    outcome = decision.outcomes[mechanism]
    assert isinstance(outcome, Choice), "a proved mechanism needs no further training"
    return outcome.winner.degree


def sentence(decision: Decision, mechanism: str, total: int, prospects: Sequence[Prospect]) -> str:
    """What was proved, in words, of a mechanism with that many trainings in all."""
    outcome = decision.outcomes[mechanism]
    trained = total - sum(prospect.mechanism == mechanism for prospect in prospects)
    if not isinstance(outcome, Choice):
        return f"{mechanism}: proved infeasible after {trained} of {total} trainings. {outcome.sentence}"
    skipped = {prospect.degree for prospect in prospects if prospect.mechanism == mechanism}
    scores = decision.panels[mechanism].aggregate["value"]
    bounds = [float(scores.sel(privacy=text(degree)).max()) for degree in skipped]
    highest = max((bound for bound in bounds if bound == bound), default=None)
    rest = "" if highest is None else f"; no skipped training can score above {highest:.4f}"
    return (
        f"{outcome.winner} is optimal (score {outcome.winner.score:.4f}),"
        f" proved by {trained} of {total} trainings{rest}."
    )
