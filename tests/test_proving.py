"""The optimum without training everything: the same as the full grid's, fewer trainings, a certificate that checks."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise._check import InputError
from counterpoise.grid import Grid
from counterpoise.proving import CERTIFICATE, Search, check_certificate
from counterpoise.record import Party
from counterpoise.running import run
from counterpoise.store import Store
from counterpoise.study import Study, Sweep, Training, Use
from counterpoise.tradeoff import MODES, POLICIES, Choice, choose

STUDY = Study(
    model=Use("linear"),
    training=Training(epochs=2, batch=64),
    mechanisms=[
        Sweep("dp-sgd", degrees=Grid.span(0, 2, "0.25")),
        Sweep("autoencoder", degrees=["0.1", "0.5", "0.9"], options={"steps": 5}),
    ],
    explainer=Sweep("smoothgrad", degrees=["0", "0.5", "1"], options={"samples": 2}),
    explained_images=3,
    gallery_images=0,
    parties=[Party("a", ("noise > 0.5",), ("dp-sgd", "autoencoder")), Party("b")],
)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("full")
    run(STUDY, out, executor="serial")
    return out


def settings(folder: Path, policy: str, mode: str = "paper") -> dict[str, tuple[Decimal, Decimal, float]]:
    outcomes = choose(Store.open(folder).results(), policy, mode).outcomes
    return {
        name: (o.winner.degree, o.winner.explainability, o.winner.score)
        for name, o in outcomes.items()
        if isinstance(o, Choice)
    }


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_proved_optimum_is_the_full_grids_with_fewer_trainings(
    full: Path, tmp_path: Path, policy: str, mode: str
) -> None:
    search = Search(policy, mode)
    results = run(STUDY, tmp_path, executor="serial", order=search)
    assert settings(tmp_path, policy, mode) == settings(full, policy, mode)
    if mode == "paper" or policy == "unanimous":
        assert len(results) < len(Store.open(full).results())
    assert all("is optimal" in words for words in search.sentences)
    assert check_certificate(tmp_path) == search.sentences
    for record in results:  # a proved run's records are the full run's
        assert Store.open(full).load(record.digest) == record


def test_a_tampered_certificate_is_refused(full: Path, tmp_path: Path) -> None:
    run(STUDY, tmp_path, executor="serial", order=Search())
    path = tmp_path / CERTIFICATE
    honest = json.loads(path.read_text())
    assert honest["skipped"]

    def refused(change: Any, complaint: str) -> None:
        stated = json.loads(json.dumps(honest))
        change(stated["skipped"])
        path.write_text(json.dumps(stated))
        with pytest.raises(InputError, match=complaint):
            check_certificate(tmp_path)

    private = next(i for i, s in enumerate(honest["skipped"]) if s["mechanism"] == "dp-sgd" and s["guarantees"])
    refused(lambda s: s[private]["guarantees"][0].update(epsilon=99.0), "is not what its noise and steps give")
    refused(lambda s: s[private].update(privacy_gain=0.0), "the privacy gain 0.0 of .* should be")
    refused(lambda s: s.pop(), "with the finished ones, are not the 26 of results.json")
    refused(lambda s: s[0].update(digest="another"), "with the finished ones, are not the 26 of results.json")
    path.write_text(json.dumps({**honest, "sentences": ["dp-sgd: all is well."]}))
    with pytest.raises(InputError, match=r"its sentences are not what its records and bounds prove: dp-sgd at"):
        check_certificate(tmp_path)
    path.write_text(json.dumps({**honest, "schema": "counterpoise/certificate/1"}))
    with pytest.raises(InputError, match="run --prove again to write it anew"):
        check_certificate(tmp_path)
    for damaged, complaint in (("{", "damaged, not JSON"), ("[]", "schema None is not")):
        path.write_text(damaged)
        with pytest.raises(InputError, match=complaint):
            check_certificate(tmp_path)
    # A skipped training whose real bound wins: the autoencoder's smallest code, left out by hand.
    path.write_text(json.dumps(honest))
    smallest = next(
        r for r in Store.open(full).results() if r.mechanism == "autoencoder" and r.degree == Decimal("0.1")
    )
    entry = next(s for s in honest["skipped"] if s["mechanism"] == "autoencoder")
    added = {**entry, "degree": "0.1", "privacy_gain": 0.9, "party": smallest.party}
    other = {**added, "party": "b" if smallest.party == "a" else "a"}
    dropped = [r for r in Store.open(full).results() if (r.mechanism, r.degree) == ("autoencoder", Decimal("0.1"))]
    for record in dropped:
        (tmp_path / "records" / f"{record.digest}.json").unlink()
    for entry, record in zip((added, other), sorted(dropped, key=lambda r: r.party != smallest.party), strict=True):
        entry["digest"] = record.digest
    refused(lambda s: s.extend([added, other]), "does not prove autoencoder: a skipped training could still win")


def test_the_measured_mode_skips_what_the_requirements_forbid(tmp_path: Path) -> None:
    search = Search("unanimous", "measured")
    results = run(STUDY, tmp_path, executor="serial", order=search)
    allowed = {degree for degree in Grid.span(0, 2, "0.25").values if degree > Decimal("0.5")}
    assert {record.degree for record in results if record.mechanism == "dp-sgd"} <= allowed
    assert json.loads((tmp_path / CERTIFICATE).read_text())["mode"] == "measured"


def test_an_epsilon_is_checked_by_the_accountant_that_gave_it(tmp_path: Path) -> None:
    by_moments = Sweep("dp-sgd", degrees=["0.5", "2"], options={"accountant": "rdp"})
    run(STUDY.model_copy(update={"mechanisms": (by_moments,)}), tmp_path, executor="serial", order=Search())
    path = tmp_path / CERTIFICATE
    stated = json.loads(path.read_text())
    (guarantee,) = stated["skipped"][0]["guarantees"]
    assert guarantee["accountant"] == "rdp"
    check_certificate(tmp_path)
    guarantee["accountant"] = "pld"  # the same noise and steps give another epsilon
    path.write_text(json.dumps(stated))
    with pytest.raises(InputError, match="is not what its noise and steps give"):
        check_certificate(tmp_path)


@pytest.mark.parametrize(
    ("requires", "policy", "complaint"),
    [
        (("ssim <= 0.5",), "unanimous", r"'ssim <= 0\.5' has no bound before training, so no training can be skipped"),
        (("minimum utility_loss",), "unanimous", "has no bound before training"),
        (("utility_loss <= 0.1",), "paper", "a party that drops out can raise a cell's score; run without --prove"),
    ],
)
def test_what_has_no_bound_is_said_and_nothing_is_skipped(
    tmp_path: Path, requires: tuple[str, ...], policy: str, complaint: str
) -> None:
    changed = STUDY.model_copy(update={"parties": (Party("a", requires), Party("b"))})
    with pytest.raises(InputError, match=complaint):
        run(changed, tmp_path, executor="serial", order=Search(policy))


def test_a_requirement_that_only_best_cases_meet_is_trained_until_it_is_settled(tmp_path: Path) -> None:
    hopeless = replace(STUDY.parties[1], requires=("utility_loss <= -0.5",))
    changed = STUDY.model_copy(update={"parties": (STUDY.parties[0], hopeless), "mechanisms": STUDY.mechanisms[:1]})
    search = Search()
    run(changed, tmp_path, executor="serial", order=search)
    assert search.sentences[0].startswith("dp-sgd: proved infeasible after 0 of 18 trainings.")


@given(st.floats(0, 5), st.floats(0, 1), st.floats(-1, 0.99), st.floats(0, 0.5))
def test_the_score_falls_with_the_loss_so_the_bound_is_one(gain: float, level: float, low: float, more: float) -> None:
    loss = min(low + more, 1.0)

    def score(u: float) -> float:
        return (gain + level * (1 - u)) / (2 + u)

    assert score(loss) <= score(low) + 1e-12
