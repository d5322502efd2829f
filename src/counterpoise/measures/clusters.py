"""Does the class show by itself, without a reader that was taught? Principal axes, k-means, and what they find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from counterpoise.measures._interval import RESAMPLES, Values, bootstrap, half_samples
from counterpoise.record import Measurement

SEED = 0
ENERGY = 0.95
NEARLY_ALL = 0.999
"""Axes behind this share of the energy are counted as one: they cannot matter to where 95 % lies."""


@dataclass(frozen=True)
class Clusters:
    """Tartaglione and Grangetto's probe: PCA to 95 % of the energy, then k-means with as many clusters as classes.

    `energy` is the cumulative share of the principal axes, `components` how many reach 95 %. `distances` [C, C] are
    between the class centroids (rows) and the cluster centroids in the order of the best matching (columns).
    `matched` is the share of images whose cluster is matched to their class (Hungarian method); `information` is the
    normalised mutual information of clusters and classes. `scores` are the coordinates on the first `components` axes,
    `squares` those of all axes squared, and `centres` the clusters'.
    """

    energy: NDArray[np.float64]
    components: int
    distances: NDArray[np.float64]
    hits: NDArray[np.float64]
    information: float
    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    centres: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def matched(self) -> float:
        """Share of images in the cluster of their class."""
        return float(self.hits.mean())


def clusters(rows: Tensor, classes: Tensor) -> Clusters:
    """The probe on these rows; nothing is learned from the classes."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans
    from sklearn.metrics import normalized_mutual_info_score

    scores, shares = principal(rows.flatten(1).double())
    energy = np.cumsum(shares)
    components = int(np.searchsorted(energy, ENERGY - 1e-12) + 1)
    few, labels = scores[:, :components], classes.numpy()
    present = np.unique(labels)
    found = KMeans(len(present), n_init=10, random_state=SEED).fit(few)
    counts = np.array([[((labels == c) & (found.labels_ == k)).sum() for k in range(len(present))] for c in present])
    of_class, of_cluster = linear_sum_assignment(-counts)
    matched = dict(zip(of_cluster, present[of_class], strict=True))
    centroids = np.stack([few[labels == c].mean(0) for c in present])
    ordered = found.cluster_centers_[of_cluster]
    return Clusters(
        energy,
        components,
        np.linalg.norm(centroids[:, None] - ordered[None], axis=2),
        np.array([float(matched[k] == c) for k, c in zip(found.labels_, labels, strict=True)]),
        min(1.0, float(normalized_mutual_info_score(labels, found.labels_))),  # rounding makes it 1 + 2e-16
        few,
        labels,
        found.cluster_centers_,
        axis_squares(scores, energy),
    )


def information(found: Clusters) -> Measurement:
    """The mutual information with its interval: over halves of the images, clusters fitted anew from where they are.

    The bootstrap would be wrong here: an image that is drawn twice agrees with itself. The axes are kept. Where next to
    no image is misplaced the halves have none to lose either, so the interval reaches down to what `unseen` says.
    """
    from sklearn.metrics import normalized_mutual_info_score

    def again(half: NDArray[np.int64]) -> float:
        return float(normalized_mutual_info_score(found.labels[half], settled(found.scores[half], found.centres)))

    whole = half_samples(found.information, again, len(found.labels))
    low, high = min(whole.low, unseen(found)), min(1.0, whole.high)
    return Measurement(whole.value, max(0.0, low), high, whole.n, whole.over)


def unseen(found: Clusters) -> float:
    """The lower 2.5 % of the information where pairs of class and cluster that were not seen may still occur.

    Their shares are drawn from the Dirichlet posterior of the counts with one image's prior weight spread evenly over
    all pairs (Perks, "Some observations on inverse probability", 1947).
    """
    classes, own = np.unique(found.labels, return_inverse=True)[1], nearest(found.scores, found.centres)
    count = len(found.centres)
    table = np.bincount(classes * count + own, minlength=count**2)
    drawn = np.random.default_rng(SEED).dirichlet(table + 1 / count**2, RESAMPLES).reshape(-1, count, count)
    apart, together = entropy(drawn.sum(1)) + entropy(drawn.sum(2)), entropy(drawn.reshape(len(drawn), -1))
    return float(np.quantile(2 * (apart - together) / apart, 0.025))


def entropy(shares: Values) -> Values:
    """In nats, of each row."""
    found: Values = -(shares * np.log(shares.clip(min=1e-300))).sum(1)
    return found


def nearest(rows: Values, centres: Values) -> NDArray[np.int64]:
    """The centre that each row is next to."""
    own: NDArray[np.int64] = ((centres**2).sum(1) - 2 * rows @ centres.T).argmin(1)
    return own


def settled(rows: Values, centres: Values, rounds: int = 50) -> NDArray[np.int64]:
    """The cluster of each row after Lloyd's rounds from these centres; a centre that loses all rows stays."""
    own = np.full(len(rows), -1)
    for _ in range(rounds):
        before, own = own, nearest(rows, centres)
        if (own == before).all():
            break
        members = np.eye(len(centres))[own]
        sizes = members.sum(0)[:, None]
        centres = np.where(sizes > 0, members.T @ rows / sizes.clip(min=1), centres)
    return own


def share_of_energy(squares: Values, first: int) -> Measurement:
    """The share of the energy on the first axes: a ratio of two means over images, axes kept, by the bootstrap."""
    table = np.stack([squares[:, :first].sum(1), squares.sum(1)], 1)
    return bootstrap(table, lambda means: means[..., 0] / means[..., 1].clip(min=1e-300))


def axes_needed(squares: Values) -> Measurement:
    """How many axes reach 95 %, with the middle 95 % of what images drawn again say, axes kept."""

    def count(means: Values) -> Values:
        reached = np.cumsum(means, -1) / means.sum(-1, keepdims=True).clip(min=1e-300)
        number: Values = (reached < ENERGY - 1e-12).sum(-1) + 1.0
        return number

    return bootstrap(squares, count)


def axis_squares(scores: Values, energy: Values) -> Values:
    """Each image's energy on each axis; the last column is that of all the axes that hold next to nothing."""
    few = int(np.searchsorted(energy, NEARLY_ALL) + 1)
    squares = scores**2
    return np.concatenate([squares[:, :few], squares[:, few:].sum(1, keepdims=True)], 1)


def principal(rows: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coordinates on the principal axes, and each axis' share of the energy; by the smaller of the two squares."""
    centred = rows - rows.mean(0)
    if rows.shape[0] <= rows.shape[1]:
        values, axes = torch.linalg.eigh(centred @ centred.T)
        scores = axes * values.clamp(min=0).sqrt()
    else:
        values, axes = torch.linalg.eigh(centred.T @ centred)
        scores = centred @ axes
    values = values.clamp(min=0).flip(0)
    return scores.flip(1).numpy(), (values / values.sum().clamp(min=1e-300)).numpy()
