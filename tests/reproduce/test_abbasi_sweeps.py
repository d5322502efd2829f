"""The sweeps' settings are the source's, codes keep their exact sizes, and verdicts follow the numbers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from counterpoise.grid import DegreeKind, Grid
from counterpoise.mechanisms.autoencoder import Autoencoder
from counterpoise.record import Explained, Measurement, Party, Record, Results
from counterpoise.report import Claim
from counterpoise.reproduce.abbasi_sweeps import CIFAR, FER, MNIST, REDUCTIONS, Data, ratio, sweep_study
from counterpoise.reproduce.abbasi_three_parties import three_parties
from counterpoise.reproduce.claims import autoencoder_claims, dp_claims, table
from counterpoise.reproduce.settings import Settings

NOISE = DegreeKind("noise", "up")


@pytest.mark.parametrize("data", [MNIST, FER, CIFAR], ids=lambda data: data.title)
def test_every_code_keeps_its_number_of_units(data: Data) -> None:
    assert [Autoencoder(ratio(code, data.shape)).units(data.shape) for code in data.codes] == list(data.codes)


def test_the_paper_scale_is_the_declared_configuration() -> None:
    study = sweep_study(MNIST, "dp", REDUCTIONS["paper", "dp"], None)
    assert (study.training.batch, study.training.epochs, study.delta) == (250, 15, 1e-5)
    assert study.mechanisms[0].degrees is not None
    assert len(study.mechanisms[0].degrees) == 21
    assert study.explainer.options == {"samples": 25}
    assert "limit" not in study.data.options
    for data, low, high in (
        (MNIST, "0.010204", "0.785714"),
        (FER, "0.003472", "0.895833"),
        (CIFAR, "0.083333", "0.833333"),
    ):
        degrees = sweep_study(data, "autoencoder", REDUCTIONS["paper", "autoencoder"], None).mechanisms[0].degrees
        assert degrees is not None
        assert (degrees.values[0], degrees.values[-1]) == (Decimal(low), Decimal(high))


def test_the_autoencoder_is_swept_beside_a_control_that_its_utility_loss_cannot_see() -> None:
    studies = {flow: sweep_study(FER, flow, REDUCTIONS["quick", flow], None) for flow in ("dp", "autoencoder")}
    assert [sweep.name for sweep in studies["dp"].mechanisms] == ["dp-sgd"]
    assert [sweep.name for sweep in studies["autoencoder"].mechanisms] == ["autoencoder", "pixel-shuffle"]
    assert studies["autoencoder"].name == "FER2013, autoencoder"
    kept = sweep({"0": 0.01, "1": 0.02}, GAINS)
    renamed = [replace(r, mechanism="autoencoder") for r in kept]
    assert "shuffled" not in table(autoencoder_claims("MNIST", replace(kept, records=tuple(renamed))))
    losses = {"utility_loss": Measurement.exact(0.0), "task_loss": Measurement.exact(0.75)}
    last = kept.records[-1]
    control = replace(last, mechanism="pixel-shuffle", measurements={**last.measurements, **losses})
    claims = table(autoencoder_claims("MNIST", replace(kept, records=(*renamed, control))))
    assert "U 0.000, accuracy lost 0.750" in claims


def test_the_three_parties_are_the_sources() -> None:
    study = three_parties(Settings(None, "paper", Path("x")))
    assert [party.requires[0] if party.requires else "" for party in study.parties] == [
        "noise > 1.7",
        "noise > 1.5",
        "",
    ]
    assert [sweep.name for sweep in study.mechanisms] == ["dp-sgd", "autoencoder"]


def sweep(losses: dict[str, float], gains: dict[str, float]) -> Results:
    levels = Grid.of([0, "0.5", 1])
    exact = Measurement.exact
    records = [
        Record(
            noise, "everyone", "dp-sgd", NOISE, Decimal(noise), 0,
            {"privacy_gain": exact(gains[noise]), "utility_loss": exact(loss), "task_loss": exact(loss)},
            tuple(Explained(w, {"explainability_gain": exact(float(w) * (1 - loss))}) for w in levels),
        )
        for noise, loss in losses.items()
    ]  # fmt: skip
    return Results("sweep", (Party("everyone"),), tuple(records))


def verdicts(claims: tuple[Claim, ...]) -> dict[str, str]:
    return {claim.statement: claim.verdict for claim in claims}


GAINS = {"0": 0.0, "0.1": 0.0, "0.5": 0.2, "1": 0.658, "1.5": 1.2, "2": 1.92}


def test_a_jump_then_flat_is_seen_and_a_slope_is_not() -> None:
    flat = dict.fromkeys(GAINS, 0.055) | {"0": 0.0}
    found = verdicts(dp_claims("MNIST", sweep(flat, GAINS), whole=True))
    assert found["U jumps at the first noise, then flat"] == "seen"
    assert found["optimum of the paper's score"] == "seen"
    assert found["T(1, 0)"] == "seen"
    assert found["T(1, 1)"] == "seen"
    assert found["T(0, 0.5)"] == "seen"  # .25 against the quoted .2
    slope = {noise: 0.1 * float(noise) for noise in GAINS}
    assert (
        verdicts(dp_claims("MNIST", sweep(slope, GAINS), whole=True))["U jumps at the first noise, then flat"]
        == "not seen"
    )


def test_scores_of_a_reduced_run_decide_nothing() -> None:
    few = {"0": 0.0, "1": 0.1}
    found = verdicts(dp_claims("MNIST", sweep(few, GAINS), whole=False))
    assert found["U jumps at the first noise, then flat"] == "not decidable at this scale"
    assert found["T(1, 0)"] == "not decidable at this scale"
    assert found["T(2, 0.5)"] == "not decidable at this scale"


def test_a_large_loss_on_faces_is_told() -> None:
    losses = {"0": 0.0, "1": 0.5}
    assert verdicts(dp_claims("FER2013", sweep(losses, GAINS), whole=True))["largest utility loss"] == "not seen"


def test_an_emd_that_is_not_near_zero_is_told() -> None:
    results = sweep({"0": 0.01, "1": 0.2}, GAINS)
    renamed = tuple(Record(**{**r.__dict__, "mechanism": "autoencoder"}) for r in results)
    claims = autoencoder_claims("MNIST", Results("sweep", results.parties, renamed))
    assert verdicts(claims)["U (earth mover's distance) near 0 everywhere"] == "not seen"
    assert "at most 0.200" in table(claims)
