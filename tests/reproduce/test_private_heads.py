"""The two reproductions from files to table, on files of random images, and the numbers they lay out."""

from __future__ import annotations

import gzip
import json
import math
import struct
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoise.reproduce import listing, reproduction
from counterpoise.reproduce._private_heads import DELTA, Fixed, Head, epsilon_with_tuning, table, train_levels

HEAD = Head(1.0, 60, 10, 0.5, 20.0, 0.5, "published", "prototype")


def clusters(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (n,), generator=rng)
    return torch.nn.functional.normalize(torch.eye(5)[labels] + 0.1 * torch.randn(n, 5, generator=rng)), labels


def test_a_level_has_one_accuracy_a_seed_and_an_epsilon_within_what_was_asked() -> None:
    (easy,) = train_levels(Fixed(*clusters(300, 0), *clusters(200, 1)), [HEAD], seeds=range(3), classes=3)
    assert len(easy.accuracies) == 3
    assert min(easy.accuracies) > 90
    assert easy.spread == pytest.approx(np.std(easy.accuracies, ddof=1))
    assert 0.999 < easy.epsilon <= 1.0
    assert easy.steps == 50
    shuffled = clusters(200, 1)[1].roll(1)
    (chance,) = train_levels(
        Fixed(clusters(300, 0)[0], clusters(300, 9)[1], clusters(200, 1)[0], shuffled), [HEAD], range(1), 3
    )
    assert chance.accuracies[0] < 60
    assert math.isnan(chance.spread)


def test_tuning_costs_more_the_more_trainings_it_takes() -> None:
    plan = HEAD.plan(10_000)
    assert plan.spent("rdp").epsilon < epsilon_with_tuning(plan, 2) < epsilon_with_tuning(plan)


def test_the_table_says_what_is_and_is_not_in_epsilon() -> None:
    levels = train_levels(Fixed(*clusters(100, 0), *clusters(50, 1)), [HEAD], seeds=range(2), classes=3)
    text = table("Title", levels, 2, ["A note."])
    assert text.startswith("Title\n")
    assert text.endswith("\nA note.")
    assert f"PLD, delta {DELTA:g}, Poisson sampling, add-remove adjacency" in text
    assert "Tuned on a held-out part of the training images; this is not in epsilon." in text
    assert f"{levels[0].spread:.2f}" in text.splitlines()[2]
    assert "+-" not in table(
        "Title", train_levels(Fixed(*clusters(99, 0), *clusters(9, 1)), [HEAD], range(1), 3), 1, []
    )


def write_mnist(folder: Path, n: int) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part in ("train", "t10k"):
        labels = rng.integers(0, 10, n, dtype=np.uint8)
        images = rng.integers(0, 60, (n, 28, 28), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label : 2 * label + 6, 4:24] += 180
        head = struct.pack(">4I", 2051, n, 28, 28)
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, n) + labels.tobytes())


def write_cifar(folder: Path, n: int) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in [*(f"data_batch_{index}" for index in range(1, 6)), "test_batch"]:
        records = rng.integers(0, 256, (n, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def test_private_mnist_from_files_to_table(tmp_path: Path) -> None:
    write_mnist(tmp_path / "data" / "mnist", 300)
    run = reproduction("private-mnist")
    text = run(tmp_path / "data", "quick", tmp_path / "out")
    assert "MNIST, 300 training and 300 test images" in text
    content = json.loads((tmp_path / "out" / "private-mnist-quick.json").read_text())
    assert content["seeds"] == [0]
    assert [level["epsilon"] <= goal for level, goal in zip(content["levels"], (1, 3), strict=True)] == [True, True]
    assert content["levels"][0]["noise"] > content["levels"][1]["noise"]
    assert content["levels"][1]["mean"] > 60
    assert {"python", "torch", "counterpoise", "dp-accounting"} <= set(content["versions"])
    assert (
        run(tmp_path / "data", "quick", tmp_path / "out").splitlines()[2].split()[1] == text.splitlines()[2].split()[1]
    )


def test_private_cifar10_says_when_the_files_hold_less_than_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cifar(tmp_path / "data" / "cifar-10-batches-bin", 12)
    module = import_module("counterpoise.reproduce.private_cifar10")
    monkeypatch.setattr(module, "LEAVES", 20)
    run = reproduction("private-cifar10")
    text = run(tmp_path / "data", "paper", tmp_path / "out")
    assert "The files hold 60 of the 50,000 training images, so this is no more than scale cpu" in text
    monkeypatch.setitem(module.SUBSETS, "quick", (40, 5))
    quick = run(tmp_path / "data", "quick", tmp_path / "out")
    assert "CIFAR-10, 40 training and 5 test images" in quick
    assert "The files hold" not in quick
    assert "Scale quick shows that all works, on fewer images" in quick


def test_both_are_listed() -> None:
    listed = {entry.name: entry for entry in listing()}
    assert {"private-mnist", "private-cifar10"} <= set(listed)
