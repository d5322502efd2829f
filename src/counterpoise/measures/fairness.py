"""What a training does to each group of the hidden class: accuracy, rates, and who loses most.

Groups are those of the hidden label among the test images. Every number is a function of means over images, so its
interval is the bootstrap's; the values are fairlearn's, by whose MetricFrame `by_group` lays them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import Values, bootstrap
from counterpoise.record import Measurement

HIDDEN: frozenset[str] = frozenset({"hidden"})


def by_group(outcome: Outcome) -> Any:
    """Accuracy and number of images of every group, as fairlearn's MetricFrame."""
    from fairlearn.metrics import MetricFrame, count
    from sklearn.metrics import accuracy_score

    task, label = outcome.task, outcome.task.to_hide("fairness")
    names = np.array(task.test.classes[label])[task.test.labels[label].numpy()]
    return MetricFrame(
        metrics={"accuracy": accuracy_score, "images": count},
        y_true=task.test.labels[task.target].numpy(),
        y_pred=outcome.test_logits.argmax(1).numpy(),
        sensitive_features={label: names},
    )


@dataclass(frozen=True)
class WorstGroupAccuracy:
    """min over groups of Acc(D' of the group, candidate). Unit: share of images. Higher is better.

    Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "worst_group_accuracy"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The least of the groups' means."""
        members = _members(candidate)
        return _of_groups(members, members * _hits(candidate)[:, None], lambda rates: np.nanmin(rates, -1))


@dataclass(frozen=True)
class WorstGroupLoss:
    """max over groups of Acc(D, baseline) - Acc(D', candidate) in the group: what the group loses that loses most.

    Beside it `task_loss` is the average. Unit: share of images. Lower is better; may be negative. Interval: bootstrap
    over test images, paired.
    """

    name: ClassVar[str] = "worst_group_loss"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The largest of the groups' mean losses."""
        members = _members(candidate)
        return _of_groups(members, members * _lost(baseline, candidate)[:, None], lambda rates: np.nanmax(rates, -1))


@dataclass(frozen=True)
class SmallestGroupLoss:
    """Acc(D, baseline) - Acc(D', candidate) in the group with the fewest training images.

    Private training is said to cost small groups most; this is what it cost this one. Unit: share of images. Lower is
    better; may be negative. Interval: bootstrap over test images, paired.
    """

    name: ClassVar[str] = "smallest_group_loss"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean loss over the group's test images."""
        task, label = candidate.task, candidate.task.to_hide(self.name)
        tested = task.test.labels[label]
        sizes = task.train.labels[label].bincount(minlength=len(task.test.classes[label]))
        present = tested.bincount(minlength=len(sizes)) > 0
        smallest = min((int(size), group) for group, size in enumerate(sizes) if present[group])[1]
        return bootstrap(_lost(baseline, candidate)[(tested == smallest).numpy()])


@dataclass(frozen=True)
class DemographicParity:
    """max over target classes k of (max - min over groups of P(predicted k | group)).

    With two target classes it is fairlearn's demographic_parity_difference. Unit: difference of two rates. Lower is
    better. Where groups differ in their targets, a perfect classifier has it too. Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "demographic_parity_difference"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "difference of two rates"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """From the rates of every predicted class in every group."""
        members, said = _members(candidate), candidate.test_logits.argmax(1)
        classes = _one_hot(said, candidate.task.classes)
        given = np.repeat(members[:, None, :], classes.shape[1], 1)
        return _of_groups(given, given * classes[:, :, None], _widest)


@dataclass(frozen=True)
class EqualisedOdds:
    """max over target classes k of the larger spread between groups: of the true, and of the false positive rate of k.

    With two target classes it is fairlearn's equalized_odds_difference. Unit: difference of two rates. Lower is better.
    A group without images of a class has no rate there. Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "equalised_odds_difference"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "difference of two rates"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """From both rates of every class in every group."""
        task, members = candidate.task, _members(candidate)
        said = _one_hot(candidate.test_logits.argmax(1), task.classes)[:, :, None]
        truth = _one_hot(task.test.labels[task.target], task.classes)[:, :, None]
        given = np.concatenate([members[:, None, :] * truth, members[:, None, :] * (1 - truth)], 1)
        return _of_groups(given, given * np.concatenate([said, said], 1), _widest)


def _of_groups(given: Values, met: Values, statistic: Callable[[Values], Values]) -> Measurement:
    """A function of the rates met / given, [..., kinds, groups] or [..., groups]; NaN where a group is empty."""
    shape = given.shape[1:]
    size = int(np.prod(shape))

    def of_means(means: Values) -> Values:
        counted, reached = means[..., :size], means[..., size:]
        rates = np.full_like(counted, np.nan)
        np.divide(reached, counted, out=rates, where=counted > 0)
        return statistic(rates.reshape(*means.shape[:-1], *shape))

    n = len(given)
    return bootstrap(np.concatenate([given.reshape(n, size), met.reshape(n, size)], 1), of_means)


def _widest(rates: Values) -> Values:
    """The largest spread between groups, over the kinds of rate; a kind that fewer than two groups have counts 0."""
    top = np.where(np.isnan(rates), -np.inf, rates).max(-1)
    bottom = np.where(np.isnan(rates), np.inf, rates).min(-1)
    found: Values = np.maximum(top - bottom, 0).max(-1)
    return found


def _members(outcome: Outcome) -> Values:
    """[n, groups]: 1 where the test image belongs to the group; only groups that have test images."""
    labels = outcome.task.test.labels[outcome.task.to_hide("fairness")]
    table = _one_hot(labels, int(labels.max()) + 1)
    return table[:, table.any(0)]


def _one_hot(labels: Tensor, classes: int) -> Values:
    table: Values = np.eye(classes)[labels.numpy()]
    return table


def _hits(outcome: Outcome) -> Values:
    """1 where the candidate is right on what is released."""
    truth = outcome.task.test.labels[outcome.task.target]
    return (outcome.test_logits.argmax(1) == truth).double().numpy()


def _lost(baseline: Outcome, candidate: Outcome) -> Values:
    """1 where only the baseline is right, -1 where only the candidate is."""
    truth = candidate.task.test.labels[candidate.task.target]
    before = (baseline.raw_test_logits.argmax(1) == truth).double().numpy()
    return np.asarray(before - _hits(candidate))
