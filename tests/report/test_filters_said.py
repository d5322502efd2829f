"""A learned filter's secrecy is said to be measured, and against whom, wherever the decision is told; no epsilon is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_study import PARTIES, budgets, results, smaller

from counterpoise.record import Results
from counterpoise.report.decision import as_json
from counterpoise.report.documents import documents
from counterpoise.report.evidence import Evidence, gather
from counterpoise.report.page import page
from counterpoise.tradeoff import choose

SAID = "measured against these attackers"


def chosen(name: str, requires: tuple[str, ...] = ()) -> Evidence:
    """The made study, in which the autoencoder is called that and nothing else is wanted."""
    made = smaller(results())
    renamed = tuple(
        replace(record, mechanism=name) for record in made.records if record.mechanism in ("autoencoder", "plain")
    )
    free = tuple(replace(party, requires=requires, mechanisms=(name,)) for party in PARTIES)
    study: Results = replace(made, parties=free, records=tuple(r for r in renamed if r.degree != 0))
    return gather(study, choose(study), budgets(study))


@pytest.mark.parametrize("requires", [(), ("accuracy > 2",)], ids=["one is chosen", "nothing is feasible"])
def test_the_report_and_every_document_say_it(requires: tuple[str, ...]) -> None:
    evidence = chosen("privatizer", requires)
    told = as_json(evidence)
    texts = {"report.html": page(evidence, told), **documents(evidence, told)}
    assert len(texts) == 4
    for name, text in texts.items():
        words = " ".join(text.split())
        assert SAID in words, name
        assert "an attacker not tried may find more" in words, name
        assert "Of privatizer nothing is proved." in words, name
        assert "logistic regression, nearest neighbours" in words, name


def test_of_other_mechanisms_it_is_not_said() -> None:
    evidence = chosen("autoencoder")
    told = as_json(evidence)
    html = page(evidence, told)
    assert SAID not in html
    for text in documents(evidence, told).values():
        assert SAID not in text
        assert "\n\n---\n" in text  # a line of its own, which makes no heading of the one before
    assert "Nothing is proved about this setting" in html
