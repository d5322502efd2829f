"""Probes read planted leakage and nothing but noise where there is none; balance, choice, code and erasure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.measures import code_length
from counterpoise.measures.probes import FAMILIES, Material, best, erased, material, read
from counterpoise.representation.alignment import alignment
from counterpoise.training import one_thread


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def labelled(n: int, seed: int, classes: int = 3) -> tuple[Tensor, Tensor, torch.Generator]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, generator=rng), torch.randint(classes, (n,), generator=rng), rng


def given(plant: float = 0.0, square: bool = False) -> Material:
    """Noise in which the class moves the mean, or only the spread, of the rows."""
    parts = []
    for n, seed in ((900, 0), (600, 1)):
        rows, classes, _ = labelled(n, seed)
        if square:
            rows *= 1 + plant * classes[:, None]
        else:
            rows[:, 0] += plant * classes
        parts += [rows, classes]
    return material(*parts)


def test_planted_leakage_is_read_by_all_and_noise_by_none() -> None:
    planted, noise = read(given(6.0)), read(given(0.0))
    for reading in planted.values():
        assert reading.leak.low > 0.85
        assert reading.p_value == 0.001
    for reading in noise.values():
        assert reading.leak.low < 0.05
        assert reading.leak.value < 0.1
        assert reading.p_value > 0.01
    assert best(noise).accuracy.low <= 1 / 3 <= best(noise).accuracy.high + 0.02


def test_labels_that_are_permuted_while_learning_are_not_read() -> None:
    honest = given(6.0)
    shuffled = Material(
        honest.learn,
        honest.learn_classes.roll(1),
        honest.choose,
        honest.choose_classes.roll(1),
        honest.ask,
        honest.ask_classes,
        honest.count,
    )
    assert best(read(shuffled)).leak.value < 0.1


def test_a_spread_is_read_by_the_network_and_not_by_a_line() -> None:
    readings = read(given(4.0, square=True))
    assert readings["mlp"].accuracy.value > readings["linear"].accuracy.value + 0.15
    assert best(readings).name != "linear"


def test_after_leace_no_line_reads_what_lay_along_one_and_what_is_curved_stays() -> None:
    straight = read(erased(given(6.0)))
    assert straight["linear"].leak.value < 0.1
    curved = read(erased(given(4.0, square=True)))
    assert curved["linear"].leak.value < 0.1
    assert curved["mlp"].leak.value > 0.2


def test_classes_are_balanced_however_rare_they_are() -> None:
    parts, rare = [], []
    for seed in (0, 1):
        rows, _, rng = labelled(2000, seed)
        classes = (torch.rand(2000, generator=rng) < 0.1).long()
        parts += [rows, classes]
        rare.append(int(classes.sum()))
    found = material(*parts)
    assert torch.cat([found.learn_classes, found.choose_classes]).bincount().tolist() == [rare[0], rare[0]]
    assert found.ask_classes.bincount().tolist() == [rare[1], rare[1]]
    # Always saying the frequent class is right nine times in ten; here it is worth nothing.
    assert best(read(found)).leak.low < 0.05


def test_classes_with_too_few_images_are_left_out_and_one_class_is_no_question() -> None:
    rows, classes, _ = labelled(300, 0)
    classes[classes == 1] = 0
    classes[:3] = 1
    assert material(rows, classes, rows, classes).count == 2
    with pytest.raises(InputError, match=r"^probes need at least two hidden classes with 8 training and 2 test"):
        material(rows, torch.zeros(300, dtype=torch.int64), rows, torch.zeros(300, dtype=torch.int64))


def test_very_wide_rows_are_read_like_narrow_ones() -> None:
    wide = torch.zeros(6, 5000)
    wide[:, ::900] = torch.eye(6)
    parts = []
    for n, seed in ((300, 0), (200, 1)):
        rows, classes, _ = labelled(n, seed)
        rows[:, 0] += 6 * classes
        parts += [rows @ wide, classes]
    assert best(read(material(*parts))).leak.value > 0.85


def test_more_columns_than_rows_are_read_as_without_turning_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise on every one of 4000 columns, so that 240 rows span 239 axes: the readers are chosen by what they tell."""
    parts = []
    for n, seed in ((240, 0), (200, 1)):
        rng = torch.Generator().manual_seed(seed)
        classes = torch.arange(n) % 2
        parts += [torch.randn(n, 4000, generator=rng) + 0.07 * (2 * classes[:, None] - 1), classes]
    turned = material(*parts)
    monkeypatch.setattr("counterpoise.measures.probes.WIDEST", 4000)
    whole = material(*parts)
    assert turned.learn.shape[1] <= 180 < whole.learn.shape[1] == 4000
    seen, expected = read(turned), read(whole)
    assert (seen["knn"].answers == expected["knn"].answers).all()
    assert seen["knn"].chosen_by == expected["knn"].chosen_by
    for reading in (*seen.values(), *expected.values()):
        assert reading.chosen_by == pytest.approx(reading.accuracy.value, abs=0.15), reading.name
        assert reading.leak.low > 0.5, reading.name
    code, own_axes = code_length.bits(turned), code_length.bits(replace(turned, turned=False))
    assert code.high < 0.7
    assert code.value < own_axes.value
    # Axes that the rows to choose by have made as well turn the choice round.
    learn, choose = whole.learn, whole.choose
    _, _, axes = torch.linalg.svd(torch.cat([learn, choose]), full_matrices=False)
    axes = axes[:239].T
    leaking = replace(whole, learn=learn @ axes, choose=choose @ axes, ask=whole.ask @ axes)
    score = FAMILIES["linear"](leaking)
    assert float((score(leaking.choose).argmax(1) == leaking.choose_classes).float().mean()) < 0.3
    assert float((score(leaking.ask).argmax(1) == leaking.ask_classes).float().mean()) > 0.8


def test_right_angles_within_a_class_are_read_all_the_same() -> None:
    """Each class lives on its own axes, whose images are at right angles: R is small, and every reader tells."""
    rng = torch.Generator().manual_seed(0)
    parts = []
    for n in (400, 300):
        classes = torch.arange(n) % 2
        rows = torch.eye(40)[20 * classes + torch.randint(20, (n,), generator=rng)]
        parts += [rows, classes]
    assert float(alignment(parts[0], parts[1])) < 0.06
    assert best(read(material(*parts))).leak.value > 0.95


def test_the_code_is_short_where_the_class_is_told_and_not_shorter_than_the_class_elsewhere() -> None:
    told, noise = code_length.bits(given(6.0)), code_length.bits(given(0.0))
    assert told.high < 0.5
    assert noise.high > 1
    assert noise.value >= 0.98
    assert told.low < told.value < told.high


def test_readings_do_not_depend_on_what_was_drawn_before() -> None:
    first = best(read(given(1.0)))
    torch.manual_seed(99)
    again = best(read(given(1.0)))
    assert first.name == again.name
    assert np.array_equal(first.answers, again.answers)
