"""The campaign's epsilon is that of all its trainings; a cheaper way is cheaper only where the numbers say so."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from counterpoise.privacy import account, compose
from counterpoise.record import Release
from counterpoise.reproduce.abbasi_campaign import abbasi_campaign, ways
from counterpoise.reproduce.settings import Settings

RELEASES = {Decimal(k) / 10: Release("gaussian", k / 10, 250 / 60_000, 3600) for k in range(21)}
FOUND = {way.what: way.epsilon for way in ways(RELEASES, 1e-5)}


def test_the_sweeps_cost_what_the_specification_says() -> None:
    assert FOUND["the model of noise 2 alone"] == pytest.approx(0.52, abs=0.005)
    assert FOUND["all 11 trainings of noise 1 to 2"] == pytest.approx(3.2, abs=0.05)
    assert FOUND["all 16 trainings of noise 0.5 to 2"] == pytest.approx(15, abs=0.5)
    assert FOUND["all 20 trainings of noise 0.1 to 2"] > 1e4
    assert FOUND["all 21 trainings of noise 0 to 2"] == math.inf


def test_a_sweep_is_composed_and_not_added_up() -> None:
    swept = [RELEASES[Decimal(k) / 10] for k in range(10, 21)]
    alone = [
        account(noise=r.noise, sample_rate=r.sample_rate, steps=r.steps, delta=1e-5, accountant="rdp") for r in swept
    ]
    assert max(alone) < FOUND["all 11 trainings of noise 1 to 2"] == compose(swept, 1e-5, "rdp") < sum(alone)


def test_selection_pays_only_where_all_trials_are_noisy() -> None:
    assert (
        FOUND["best of a Poisson number of trials, mean 6, of noise 1.5 or more"]
        < FOUND["all 6 trainings of noise 1.5 to 2"]
    )
    assert (
        FOUND["best of a Poisson number of trials, mean 16, of noise 0.5 or more"]
        > FOUND["all 16 trainings of noise 0.5 to 2"]
    )


def test_what_a_shorter_sweep_did_not_train_is_not_told() -> None:
    told = [way.what for way in ways({k: RELEASES[k] for k in (Decimal(0), Decimal(1), Decimal(2))}, 1e-5)]
    assert not any("0.5" in words or "1.5" in words for words in told)
    assert "all 2 trainings of noise 1 to 2" in told


def test_the_command_says_what_is_assumed() -> None:
    text = abbasi_campaign(Settings(None, "quick", Path("unused")))
    assert "compared on images that are not the private ones" in text
    assert "16,9" in text
