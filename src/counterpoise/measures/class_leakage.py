"""What the hidden class can still be told from: probes on a layer, on released images, or on predictions.

All are taken on request only (list them under measures, or require one), for they train readers. `at` says where:
'' is what goes into the last linear layer, 'images' the released images, 'predictions' the model's probabilities, and
anything else a layer's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from counterpoise.interface import Level, Outcome
from counterpoise.measures import code_length
from counterpoise.measures._interval import Values, bootstrap
from counterpoise.measures._places import Placed, Taught
from counterpoise.measures.clusters import Clusters, axes_needed, clusters, information
from counterpoise.measures.probes import Material, Reading, best, erased, material, read
from counterpoise.measures.unit_agreement import gap
from counterpoise.record import Measurement
from counterpoise.representation import alignment as pairs
from counterpoise.representation.layers import features

HIDDEN: frozenset[str] = frozenset({"hidden"})


@dataclass(frozen=True)
class Rows:
    """Training and test rows at one place, and their hidden classes: computed once an outcome."""

    at: str

    def __call__(self, outcome: Outcome) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows and classes, of the training and of the test images."""
        task, found = outcome.task, []
        label = task.to_hide("a probe of the hidden class")
        for images, released, logits in (
            (task.train, outcome.released_train, outcome.train_logits),
            (task.test, outcome.released_test, outcome.test_logits),
        ):
            if self.at == "images":
                rows = released.flatten(1)
            elif self.at == "predictions":
                rows = logits.softmax(1)
            else:
                rows = features(outcome.trained.model, self.at, released)
            found += [rows, images.labels[label]]
        return found[0], found[1], found[2], found[3]


@dataclass(frozen=True)
class Balanced:
    """The probes' material at one place."""

    at: str

    def __call__(self, outcome: Outcome) -> Material:
        """Computed once an outcome."""
        return material(*outcome.once(Rows(self.at)))


@dataclass(frozen=True)
class Readings:
    """What every family of readers tells at one place."""

    at: str

    def __call__(self, outcome: Outcome) -> dict[str, Reading]:
        """Computed once an outcome."""
        return read(outcome.once(Balanced(self.at)))


@dataclass(frozen=True)
class Clustering:
    """The untaught probe at one place, on the test images."""

    at: str

    def __call__(self, outcome: Outcome) -> Clusters:
        """Computed once an outcome."""
        _, _, rows, classes = outcome.once(Rows(self.at))
        return clusters(rows, classes)


@dataclass(frozen=True)
class ClassLeak(Taught):
    """(acc - 1/C) / (1 - 1/C) of the best probe of the hidden class on balanced, unseen images: linear, kNN or MLP.

    The best on held-out training images is asked, so trying several flatters none. Where the target itself tells of
    the hidden class, hiding it wholly would cost the task: compare with the baseline's predictions. Unit: share above
    chance. Lower is better; around 0 where nothing is read. Interval: bootstrap over test images. A lower bound: other
    readers may read more.
    """

    name: ClassVar[str] = "class_leak"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The best reader's."""
        return best(candidate.once(Readings(self.at))).leak


@dataclass(frozen=True)
class LinearLeak(Taught):
    """(acc - 1/C) / (1 - 1/C) of logistic regression on the rows. Unit: share above chance. Lower is better.

    Interval: bootstrap over test images. It reads what lies along a direction, and nothing else.
    """

    name: ClassVar[str] = "linear_leak"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The linear reader's."""
        return candidate.once(Readings(self.at))["linear"].leak


@dataclass(frozen=True)
class NeighbourLeak(Taught):
    """(acc - 1/C) / (1 - 1/C) of the 10 nearest neighbours. Unit: share above chance. Lower is better.

    Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "knn_leak"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The neighbours'."""
        return candidate.once(Readings(self.at))["knn"].leak


@dataclass(frozen=True)
class NetworkLeak(Taught):
    """(acc - 1/C) / (1 - 1/C) of a network with one hidden layer of 128. Unit: share above chance. Lower is better.

    Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "mlp_leak"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The network's."""
        return candidate.once(Readings(self.at))["mlp"].leak


@dataclass(frozen=True)
class LeakAfterErasure(Taught):
    """The best probe's (acc - 1/C) / (1 - 1/C) on the rows after LEACE took all that is linear: the linear floor.

    Belrose et al. 2023. Far above 0, the class is written in a way that no linear erasure removes. Unit: share above
    chance. Lower is better. Interval: bootstrap over test images.
    """

    name: ClassVar[str] = "leak_after_leace"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share above chance"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """All readers anew, on erased rows."""
        return best(read(erased(candidate.once(Balanced(self.at))))).leak


@dataclass(frozen=True)
class LeakChance(Taught):
    """p-value of "the rows tell nothing": how often permuted test classes are met as well by the best probe.

    999 permutations, so .001 at least. Unit: probability. Higher is better (small: the class is told). Exact, given the
    permutations: a p-value needs no interval.
    """

    name: ClassVar[str] = "leak_p_value"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Of the best reader."""
        return Measurement.exact(best(candidate.once(Readings(self.at))).p_value)


@dataclass(frozen=True)
class CodeLength(Taught):
    """Bits an image of the online code of the hidden class given the rows, over log2 C.

    Voita and Titov 2020. Near 0 where the class is told at once, 1 or above where the rows are of no use. Unit: share
    of log2 C. Higher is better. Interval: bootstrap over training images.
    """

    name: ClassVar[str] = "code_length"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of log2 C"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Of the balanced training rows."""
        return code_length.bits(candidate.once(Balanced(self.at)))


@dataclass(frozen=True)
class ClusterMatch(Placed):
    """Share of test images in the k-means cluster that best matches their hidden class (PCA to 95 %, K = C).

    Tartaglione and Grangetto 2020. Unit: share of images. Lower is better. Interval: bootstrap over test images,
    clusters kept.
    """

    name: ClassVar[str] = "cluster_match"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Hits of the matching."""
        return bootstrap(candidate.once(Clustering(self.at)).hits)


@dataclass(frozen=True)
class ClusterInformation(Placed):
    """Normalised mutual information of k-means clusters and hidden classes. Unit: share. Lower is better.

    Interval: over halves of the test images, clusters fitted anew to each from where they are; its lower end allows for
    misplaced images that happened not to be among these. Of 60 samples of 200 images it held a true value of .17 in 54,
    of .56 in 55 and of .97 in 59.
    """

    name: ClassVar[str] = "cluster_nmi"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "share"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Of the test images' clusters."""
        return information(candidate.once(Clustering(self.at)))


@dataclass(frozen=True)
class PrincipalAxes(Placed):
    """How many principal axes hold 95 % of the energy of the rows. Tartaglione and Grangetto 2020.

    Unit: axes. Higher is better: rows that lie along few axes are few kinds of rows. It asks for no class, so it says
    less than any reader. Interval: bootstrap over test images, axes kept.
    """

    name: ClassVar[str] = "principal_axes"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "axes"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Of the test rows."""
        return axes_needed(candidate.once(Clustering(self.at)).squares)


@dataclass(frozen=True)
class AgreementGap(Placed):
    """On/off agreement of units within hidden classes minus between them. Tartaglione and Grangetto 2020, eq. 13.

    Unit: difference of two rates. Lower is better. Around 0 where which units are on does not tell the class. Interval:
    bootstrap over test images of each image's part in it.
    """

    name: ClassVar[str] = "agreement_gap"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "difference of two rates"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Mean of the diagonal minus mean of the rest."""
        _, _, rows, classes = candidate.once(Rows(self.at))
        return gap(rows, classes)


@dataclass(frozen=True)
class Alignment(Placed):
    """R = mean over classes of |mean cosine of pairs of test images of one hidden class| (the weak form).

    Tartaglione and Grangetto 2020. What `non-discriminatory` makes small. Unit: cosine. Lower is better. Interval:
    bootstrap over test images of each image's part in it, classes kept. R = 0 does not mean that the class is
    hidden: see `class_leak`.
    """

    name: ClassVar[str] = "alignment"
    level: ClassVar[Level] = "training"
    unit: ClassVar[str] = "cosine"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = HIDDEN
    at: str = ""

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """Each image's mean cosine with the others of its class, averaged class by class."""
        _, _, rows, classes = candidate.once(Rows(self.at))
        own = [pairs.unit(rows[group]).double() for group in pairs.groups(classes) if len(group) > 1]
        parts = [_twice((units @ units.sum(0) - units.square().sum(1)) / (len(units) - 1)) for units in own]
        width = len(own)
        table = np.zeros((sum(map(len, own)), 2 * width))
        number = np.repeat(np.arange(width), [len(units) for units in own])
        table[np.arange(len(table)), number] = torch.cat(parts).numpy()
        table[np.arange(len(table)), width + number] = 1

        def mean_over_classes(means: Values) -> Values:
            found: Values = abs(means[..., :width] / means[..., width:].clip(min=1e-12)).mean(-1)
            return found

        return bootstrap(table, mean_over_classes)


def _twice(means: Tensor) -> Tensor:
    """Each image's mean over pairs, twice as far from theirs: what it moves, being in its own pairs and in others'."""
    return 2 * means - means.mean()
