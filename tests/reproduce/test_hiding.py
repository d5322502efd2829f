"""The reproductions that hide a class, from files to tables, on files of random images."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoise.datasets.biased_mnist import COLOURS, BiasedMnist
from counterpoise.interface import Recipe
from counterpoise.reproduce import tartaglione_mnist
from counterpoise.reproduce._judging import told_by_target
from counterpoise.reproduce._kept import kept
from counterpoise.reproduce.settings import Settings
from counterpoise.training import one_thread


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """600 and 300 images of random grey, each digit a brighter row of its own."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part, n in (("train", 600), ("t10k", 300)):
        labels = np.arange(n) % 10
        images = rng.integers(0, 80, (n, 28, 28), dtype=np.uint8)
        for index, label in enumerate(labels):
            images[index, 2 + 2 * label : 4 + 2 * label, :] += 150
        for name, magic, array in (("images-idx3", 2051, images), ("labels-idx1", 2049, labels.astype(np.uint8))):
            head = struct.pack(f">{1 + array.ndim}I", magic, *array.shape)
            (folder / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    return folder


def test_table_one_with_probes_and_figures_and_nothing_trained_twice(
    mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tartaglione_mnist.Schedule(None, ("0.1", "0"), Recipe(1, 60, 0.02, 0.9))
    monkeypatch.setitem(tartaglione_mnist.SCHEDULES, ("quick", "fc1"), short)
    settings = Settings(mnist, "quick", tmp_path / "out")
    text = tartaglione_mnist.tartaglione_mnist_fc1(settings)
    lines = text.splitlines()
    assert lines[0].startswith("MNIST even/odd, digits hidden at fc1, scale quick (all images, 1 epochs, SGD 0.02")
    rows = [line for line in lines if line.startswith("| gamma")]
    assert [row.split("|")[1].strip() for row in rows] == ["gamma 0", "gamma 0.1"]
    assert [row.split("|")[3].strip() for row in rows] == ["99.32", "99.15"]
    assert "Features at right angles inside a class do not hide the class: the MLP probe reads" in text
    out = tmp_path / "out"
    assert (out / "tartaglione-mnist-fc1-quick.png").read_bytes().startswith(b"\x89PNG")
    numbers = json.loads((out / "tartaglione-mnist-fc1-quick.json").read_text())["rows"]
    assert numbers[0]["chance"] == pytest.approx(0.1)
    assert numbers[0]["told_by_target"] == pytest.approx(0.2)
    written = {path: path.stat().st_mtime_ns for path in (out / "trainings").iterdir()}
    assert len(written) == 2
    assert tartaglione_mnist.tartaglione_mnist_fc1(settings) == text
    assert {path: path.stat().st_mtime_ns for path in (out / "trainings").iterdir()} == written


def test_one_output_is_binary_cross_entropy() -> None:
    model = tartaglione_mnist.network((1, 28, 28), 2, torch.Generator().manual_seed(0))
    logits = model(torch.rand(5, 1, 28, 28))
    labels = torch.tensor([0, 1, 1, 0, 1])
    assert torch.allclose(
        torch.nn.functional.cross_entropy(logits, labels),
        torch.nn.functional.binary_cross_entropy_with_logits(logits[:, 1], labels.float()),
    )


def test_every_way_to_hide_in_one_table(mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(1, 100, 0.002, optimiser="adam")
    biased = import_module("counterpoise.reproduce.biased_mnist")
    monkeypatch.setitem(biased.SCHEDULES, "quick", biased.Schedule(None, (0.99,), 2, recipe, "small network"))
    text = biased.biased_mnist(Settings(mnist, "quick", tmp_path / "out"))
    (row,) = [line for line in text.splitlines() if line.startswith("| 0.990 | 96.0 |")]
    assert row.count("±") == 2 * len(biased.WAYS)
    assert "seeds 0 to 1" in text
    assert len(list((tmp_path / "out" / "trainings").iterdir())) == 2 * len(biased.WAYS)


def test_colours_go_with_digits_as_often_as_said_and_never_in_the_test(mnist: Path) -> None:
    for rho in (0.9, 0.5):
        train, test = BiasedMnist(rho, str(mnist)).load()
        same = [float((part.labels["colour"] == part.labels["digit"]).float().mean()) for part in (train, test)]
        assert same[0] == pytest.approx(rho, abs=0.06)
        assert same[1] == pytest.approx(0.1, abs=0.06)
    corner = train.pixels[:, :, 0, 0]
    assert float((corner - COLOURS[train.labels["colour"]]).abs().max()) < 0.35  # the ground, under a little grey
    assert bool((train.labels["colour"].bincount(minlength=10) > 0).all())


def test_what_the_target_tells_of_the_hidden_class() -> None:
    digits = torch.arange(100) % 10
    assert told_by_target(digits % 2, digits) == pytest.approx(0.2)
    assert told_by_target(digits, digits) == 1
    assert told_by_target(torch.zeros(100, dtype=torch.int64), digits) == pytest.approx(0.1)
    rare = torch.tensor([0] * 90 + [1] * 10)
    assert told_by_target(torch.zeros(100, dtype=torch.int64), rare) == pytest.approx(0.5)


def test_a_changed_configuration_is_computed_anew(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute() -> dict[str, int]:
        calls.append(1)
        return {"number": len(calls)}

    first = kept(tmp_path, {"seed": 0}, compute)
    assert kept(tmp_path, {"seed": 0}, compute) == first
    assert kept(tmp_path, {"seed": 1}, compute)["number"] == 2
    assert first["configuration"]["versions"]["torch"]
    assert len(first["digest"]) == 32
