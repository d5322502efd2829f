"""Sentences, rank agreement and documents: plain, true, and careful with what is only assumed."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_study import PARTIES, budgets, results, smaller
from scipy.stats import spearmanr

from counterpoise.record import Measurement, Party, Results
from counterpoise.report.agreement import agreement, interval, rank_correlation
from counterpoise.report.decision import as_json
from counterpoise.report.documents import documents
from counterpoise.report.evidence import gather
from counterpoise.report.words import advice, facts, firmness, headline, listed, outcomes, revealed, rule, say, value_of
from counterpoise.tradeoff import Decision, choose

STUDY = smaller(results())


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (-0.0, "0"), (0.5236, "0.524"), (-1.5, "−1.5"), (1234.5, "1230"), (math.inf, "∞"), (-math.inf, "−∞"),
     (math.nan, "not measured"), (1e-9, "1e−09"), (100.0, "100")],
)  # fmt: skip
def test_numbers_are_said_with_three_digits(value: float, said: str) -> None:
    assert say(value) == said


def test_shares_are_said_in_per_cent() -> None:
    assert value_of("accuracy", 0.8712) == "87.1 %"
    assert value_of("epsilon", 0.52) == "0.52"
    assert value_of("of a third party", 0.5) == "0.5"


def test_lists_read_as_sentences() -> None:
    assert (listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == ("a", "a and b", "a, b and c")


def decided(policy: str = "unanimous", mode: str = "measured", parties: tuple[Party, ...] = PARTIES) -> Decision:
    return choose(STUDY, policy, mode, parties)


def test_every_decision_has_a_headline() -> None:
    assert re.fullmatch(r"Choose dp-sgd at noise 2, explainability 0\.\d\.", headline(decided()))
    assert headline(decided(mode="paper")).startswith("One optimum for each mechanism: dp-sgd at noise 2")
    only_noise = tuple(replace(party, mechanisms=("dp-sgd",)) for party in PARTIES)
    assert headline(decided(mode="paper", parties=only_noise)).startswith("Only dp-sgd is feasible: dp-sgd at noise 2")
    closed = tuple(replace(party, requires=("accuracy > 2",)) for party in PARTIES)
    assert headline(decided(parties=closed)) == "No setting meets what the 3 parties require."
    assert len(advice(decided(parties=closed))) == 3


def test_the_rule_is_explained_with_its_numbers() -> None:
    assert "2 of 3 must" in rule(decided("quorum"))
    assert "the geometric mean" in rule(decided("nash"))


def test_a_party_that_forbids_the_winner_is_named_with_its_reason() -> None:
    parties = (Party("north clinic", ("noise <= 0.6",)), *PARTIES[1:])
    told = outcomes(choose(STUDY, "paper", "paper", parties))
    sentences = {view.party: words for one in told for view, words in one.parties if not view.allows}
    assert "forbids this setting (noise <= 0.6)" in sentences["north clinic"]


def test_firmness_tells_margin_and_contest() -> None:
    best = decided().best
    assert best is not None
    assert firmness(replace(best, contested=True)).endswith("may decide otherwise.")
    assert "Uncontested" in firmness(replace(best, contested=False))
    assert "ties with it" in firmness(replace(best, flip_margin=0.0))
    assert firmness(replace(best, runners_up=())).startswith("No other setting is feasible")


def test_equal_budgets_are_told_once() -> None:
    north, south, lab = budgets(STUDY)
    cheaper = replace(lab, chosen=0.1)
    assert [parties for parties, _ in revealed([north, south, cheaper])] == [
        "north clinic and south clinic, each",
        "research lab",
    ]
    assert revealed([cheaper])[0][1].startswith("the chosen model alone has epsilon 0.1 ")


def test_facts_are_the_worst_over_the_parties() -> None:
    evidence = gather(STUDY, decided())
    found = {fact.label: fact for fact in facts(evidence)}
    best = evidence.decision.best
    assert best is not None
    assert found["epsilon"].value == say(best.winner.epsilon)
    assert found["task loss"].value == value_of("task_loss", best.winner.utility_loss)
    assert "measured, lower is better" in found["task loss"].how
    assert facts(gather(STUDY, decided(mode="paper"))) == []


def test_what_was_asked_for_is_among_the_facts() -> None:
    told = Measurement(0.04, -0.01, 0.09, 400, "images")
    records = tuple(replace(r, measurements={**r.measurements, "secret_advantage": told}) for r in STUDY.records)
    asked = replace(STUDY, records=records)
    found = {fact.label: fact for fact in facts(gather(asked, choose(asked)))}
    assert found["secret told"].value == "0.04"
    assert found["secret told"].how == "−0.01 to 0.09, measured, lower is better"
    assert "secret told" not in {fact.label for fact in facts(gather(STUDY, decided()))}


scores = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=40)


@given(scores)
def test_rank_correlation_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=float).T
    found = rank_correlation(first, second)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(first, second).statistic)


def test_rank_correlation_looks_at_cells_that_both_scored() -> None:
    first, second = np.array([1.0, 2, 3, math.nan, 9]), np.array([2.0, 4, 8, 1, math.nan])
    assert rank_correlation(first, second) == pytest.approx(1)
    assert rank_correlation(first, -second) == pytest.approx(-1)


def test_the_interval_is_wider_with_fewer_trainings() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=(3, 20, 11))
    second = first + rng.normal(size=first.shape)
    (low, high), (wide_low, wide_high) = interval(first, second), interval(first[:, :3], second[:, :3])
    assert low < rank_correlation(first, second) < high
    assert wide_high - wide_low > high - low


def test_agreement_is_told_in_words() -> None:
    told = agreement(gather(STUDY, decided()))
    noise = next(sentence for sentence in told if sentence.startswith("dp-sgd"))
    assert re.search(r"rank correlation −?[\d.]+, 95 % interval", noise)
    assert "Paper mode puts dp-sgd at noise 2, explainability 1 first" in noise


def drafts(study: Results = STUDY, **asked: str) -> dict[str, str]:
    evidence = gather(study, choose(study, **asked), budgets(study))  # type: ignore[arg-type]  # policy and mode
    return documents(evidence, as_json(evidence))


@pytest.mark.parametrize("mode", ["paper", "measured"])
def test_documents_state_and_never_judge(mode: str) -> None:
    found = drafts(mode=mode)
    assert set(found) == {"dpia.md", "annex-iv-2b.md", "model-card.md"}
    for name, text in found.items():
        assert "not legal advice" in text, name
        assert not re.search(r"complian|complies|certif|guaranteed|fully anonym|safe\b", text, re.IGNORECASE), name
        assert "{{" not in text, name
        assert re.search(r'"measured".*"bounded".*"assumed"', text.replace("\n", " "), re.IGNORECASE), name
        for budget in budgets(STUDY):
            assert budget.sentence() in text, name


def test_documents_hold_the_studys_own_numbers() -> None:
    text = drafts()["model-card.md"]
    accuracy = next(line for line in text.splitlines() if line.startswith("| accuracy |"))
    assert accuracy.startswith("| accuracy | measured | higher | 87.1 % (85.9 % to 88.3 %) | ")
    assert "no attacker's true-positive rate exceeds the false-positive rate by more than 25.4 %" in text


def test_documents_cannot_be_broken_by_a_name() -> None:
    named = (Party("a|b\n# <script>x</script> [link](x)", PARTIES[0].requires, PARTIES[0].mechanisms), *PARTIES[1:])
    for text in drafts(smaller(results(named))).values():
        assert "<script" not in text
        assert "[link]" not in text
        assert "\n# <" not in text
        rows = [line for line in text.splitlines() if line.startswith("|")]
        heads = [line for line in rows if line.startswith("| quantity")]
        assert all(line.count("|") == 7 for line in heads)


def test_an_unproved_setting_has_no_bound() -> None:
    evidence = gather(STUDY, decided(), [replace(b, chosen=math.inf) for b in budgets(STUDY)])
    text = documents(evidence, as_json(evidence))["dpia.md"]
    assert "no bound on a membership attack can be stated" in text
