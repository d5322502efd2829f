"""The synthetic case: filters are judged as independent integrals judge them, and never below what is possible."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import entr

from counterpoise.information.discrete import Values, entropy, information, synthetic
from counterpoise.information.frontier import frontier
from counterpoise.mechanisms.filtering import Rules
from counterpoise.reproduce._bertran_filters import UNIT, Dense, Linear
from counterpoise.reproduce._bertran_judging import SPREAD, draw, judged
from counterpoise.reproduce._bertran_tables import Cell
from counterpoise.reproduce.bertran_synthetic import estimated
from counterpoise.reproduce.settings import Settings
from counterpoise.training import one_thread


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def mapped(matrix: list[list[float]]) -> Linear:
    found = Linear()
    with torch.no_grad():
        found.map.weight.copy_(torch.tensor(matrix) / UNIT)
        found.map.bias.zero_()
    return found


def on_a_grid(matrix: list[list[float]], joint: Values) -> tuple[float, float]:
    """A and B of a linear filter: four Gaussians of known covariance, on a fine grid of outputs."""
    turn = np.array(matrix)
    covariance = SPREAD**2 * turn @ turn.T + np.eye(2)
    axis = np.linspace(-9, 9, 321)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1)
    density = np.zeros((2, 2, 321, 321))
    for u in (0, 1):
        for s in (0, 1):
            away = points - turn @ [u - 0.5, s - 0.5]
            exponent = np.einsum("xyi,ij,xyj->xy", away, np.linalg.inv(covariance), away)
            scale = 2 * math.pi * math.sqrt(np.linalg.det(covariance))
            density[u, s] = joint[u, s] * np.exp(-exponent / 2) / scale * (axis[1] - axis[0]) ** 2
    q = density.sum((0, 1))
    given = [entr(density.sum(side)).sum() - entr(q).sum() for side in (0, 1)]
    return entropy(joint.sum(0)) - float(given[0]), float(given[1])


@pytest.mark.parametrize("matrix", [[[2.0, 0.0], [0.0, 1.0]], [[3.0, -1.0], [0.5, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])
@pytest.mark.parametrize("k", [1.0, 0.4, 0.0])
def test_against_integrals_on_a_grid(k: float, matrix: list[list[float]]) -> None:
    joint = synthetic(k)
    found = judged(mapped(matrix), joint, outer=4000, inner=800, seed=0)
    leak, loss = on_a_grid(matrix, joint)
    for key, exact in (("leak", leak), ("loss", loss), ("sum", leak + loss)):
        value, low, high = found[key]
        # Nine matrices and three numbers each: two intervals in a hundred are allowed to miss, by a little.
        assert low - 0.005 <= exact <= high + 0.005
        assert value == pytest.approx(exact, abs=0.02)
        assert high - low < 0.08
    assert found["sum"][2] >= information(joint) - 1e-9


def test_at_first_both_filters_are_nearly_copies() -> None:
    joint = synthetic(0.4)
    for filter in (Linear(), Dense()):
        found = judged(filter, joint, outer=2000, inner=400, seed=0)
        assert found["leak"][0] > 0.66
        assert found["loss"][0] < 0.03
        rows, _, _ = draw(joint, 50, 0, "test")
        centres = filter.centres(rows, torch.zeros(50, filter.inner))
        assert torch.allclose(centres, rows, atol=1e-5)


def test_rows_and_the_estimate_of_what_their_labels_share() -> None:
    for k, nats in ((1.0, 0.0), (0.4, 0.19274), (0.0, math.log(2))):
        rows, u, s = draw(synthetic(k), 20_000, 1, "test")
        assert estimated(u, s) == pytest.approx(nats, abs=0.02)
        assert float((rows / UNIT + 0.5 - torch.stack([u, s], 1)).std()) == pytest.approx(SPREAD, rel=0.02)


def test_the_whole_way_to_table_and_figures_and_nothing_trained_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("counterpoise.reproduce.bertran_synthetic")
    tiny = module._scale(600, 8, 300, 100, Rules(steps=4, batch=64, check_every=2, refresh=1, adversary_steps=1))
    monkeypatch.setitem(module.SCALES, "quick", tiny)
    monkeypatch.setattr(module, "KS", (0.4,))
    settings = Settings(None, "quick", tmp_path)
    text = module.bertran_synthetic(settings)
    assert len([line for line in text.splitlines() if line.startswith("| 0.4 |")]) == 6
    assert "- A + B lies below K, beyond its interval, for 0 of 6 filters." in text
    assert "k = 0.4, MLP filter: off the frontier by at most" in text
    for figure in ("outputs", "losses", "plane"):
        assert (tmp_path / f"bertran-synthetic-quick-{figure}.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((tmp_path / "bertran-synthetic-quick.json").read_text())
    assert len(content["filters"][0]["trajectory"]) == 4  # two checks at alpha 1, two at its own
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "trainings").iterdir()}
    assert len(written) == 6
    assert module.bertran_synthetic(settings) == text
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "trainings").iterdir()} == written


def test_how_far_off_the_frontier_both_ways() -> None:
    """Beyond the leak at which nothing need be lost, the loss alone says that all is well."""
    front = frontier(synthetic(0.4), 20)

    def gap(leak: float, loss: float) -> float:
        numbers = {"leak": (leak, leak, leak), "loss": (loss, loss, loss)}
        return Cell(0.4, "linear", 0.5, numbers).gap(front)

    assert gap(float(front.leak[20]), float(front.loss[20])) == pytest.approx(0, abs=1e-9)
    assert gap(0.5, 0.0) == pytest.approx(0.5 - front.leak[-1], abs=1e-4)
    assert gap(0.0, front.loss[0] + 0.1) == pytest.approx(0.1)


def test_a_longer_game_comes_nearer_to_the_best_filter() -> None:
    """At k = 1 U costs nothing: the linear filter is to forget one direction, and a copy is far from that."""
    module = import_module("counterpoise.reproduce.bertran_synthetic")
    rules = Rules(steps=150, batch=256, learning_rate=0.02, adversary_rate=5e-3, check_every=50, refresh=20)
    scale = replace(module._scale(4000, 8, 1000, 300, rules), rules={"linear": rules})
    found = module.train(1.0, "linear", 0.5, scale)
    assert found["leak"][0] < 0.35
    assert found["loss"][0] < 0.05
    assert found["trajectory"][-1][1] < found["trajectory"][0][1]
