"""Groups' numbers against fairlearn's own, by hand, and in what happens to the smallest group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairlearn.metrics import MetricFrame, demographic_parity_difference, equalized_odds_difference
from measured import images, outcome
from sklearn.metrics import accuracy_score
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.interface import Outcome
from counterpoise.measures.fairness import (
    DemographicParity,
    EqualisedOdds,
    SmallestGroupLoss,
    WorstGroupAccuracy,
    WorstGroupLoss,
    by_group,
)


def said(truth: Tensor, answers: Tensor, groups: Tensor, classes: int = 2) -> Outcome:
    """An outcome whose model gives these answers to images of these groups."""
    pixels = torch.nn.functional.one_hot(answers, max(classes, 2)).float()[:, None, None, :]
    made = images(pixels, truth, classes)
    made = replace(
        made,
        labels={**made.labels, "group": groups},
        classes={**made.classes, "group": tuple(f"g{i}" for i in range(int(groups.max()) + 1))},
    )
    found = outcome(made)
    return replace(found, task=replace(found.task, hidden="group"))


def drawn(seed: int, classes: int = 2, groups: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    truth, group = (torch.randint(k, (400,), generator=rng) for k in (classes, groups))
    wrong = torch.rand(400, generator=rng) < 0.1 * (1 + group)
    return truth, torch.where(wrong, (truth + 1) % classes, truth), group


@pytest.mark.parametrize("seed", range(3))
def test_the_values_are_fairlearns(seed: int) -> None:
    truth, answers, groups = drawn(seed)
    found = said(truth, answers, groups)
    theirs = {"y_true": truth.numpy(), "y_pred": answers.numpy(), "sensitive_features": groups.numpy()}
    assert DemographicParity()(found, found).value == pytest.approx(demographic_parity_difference(**theirs))
    assert EqualisedOdds()(found, found).value == pytest.approx(equalized_odds_difference(**theirs))
    frame = MetricFrame(metrics=accuracy_score, **theirs)
    assert WorstGroupAccuracy()(found, found).value == pytest.approx(frame.group_min())
    table = by_group(found).by_group
    assert table["accuracy"].tolist() == pytest.approx(frame.by_group.tolist())
    assert table["images"].sum() == 400


def test_several_target_classes_are_taken_one_against_the_rest() -> None:
    truth, answers, groups = drawn(0, classes=3)
    found = said(truth, answers, groups, classes=3)
    parity, odds = [], []
    for k in range(3):
        theirs = {
            "y_true": (truth == k).numpy(), "y_pred": (answers == k).numpy(), "sensitive_features": groups.numpy()
        }  # fmt: skip
        parity.append(demographic_parity_difference(**theirs))
        odds.append(equalized_odds_difference(**theirs))
    assert DemographicParity()(found, found).value == pytest.approx(max(parity))
    assert EqualisedOdds()(found, found).value == pytest.approx(max(odds))


def test_intervals_hold_the_value_and_narrow_with_images() -> None:
    truth, answers, groups = drawn(1)
    few = WorstGroupAccuracy()(*[said(truth, answers, groups)] * 2)
    many = WorstGroupAccuracy()(*[said(truth.repeat(9), answers.repeat(9), groups.repeat(9))] * 2)
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_the_loss_of_the_worst_and_of_the_smallest_group() -> None:
    groups = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    truth = torch.zeros(100, dtype=torch.int64)
    before = said(truth, truth, groups)
    answers = truth.clone()
    answers[60:75] = 1  # half of the middle group is lost
    answers[90:93] = 1  # three of ten in the smallest
    after = said(truth, answers, groups)
    assert WorstGroupLoss()(before, after).value == pytest.approx(0.5)
    assert SmallestGroupLoss()(before, after).value == pytest.approx(0.3)
    assert WorstGroupLoss()(before, before).value == 0
    assert WorstGroupLoss()(after, before).value == 0  # the first group gains nothing
    assert SmallestGroupLoss()(after, before).value == pytest.approx(-0.3)


def test_a_group_without_images_of_a_class_has_no_rate_there() -> None:
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    truth = torch.tensor([0, 0, 1, 1, 0, 0, 0, 0])
    found = EqualisedOdds()(*[said(truth, truth, groups)] * 2)
    assert found.value == 0
    assert np.isfinite([found.low, found.high]).all()


def test_without_a_hidden_label_there_are_no_groups() -> None:
    found = said(*drawn(0))
    bare = replace(found, task=replace(found.task, hidden=None))
    with pytest.raises(InputError, match=r"^fairness needs to know what is to be hidden: set hidden to one of"):
        WorstGroupLoss()(bare, bare)
