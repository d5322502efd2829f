"""Does the class show by itself, without a reader that was taught? Principal axes, k-means, and what they find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SEED = 0
ENERGY = 0.95


@dataclass(frozen=True)
class Clusters:
    """Tartaglione and Grangetto's probe: PCA to 95 % of the energy, then k-means with as many clusters as classes.

    `energy` is the cumulative share of the principal axes, `components` how many reach 95 %. `distances` [C, C] are
    between the class centroids (rows) and the cluster centroids in the order of the best matching (columns).
    `matched` is the share of images whose cluster is matched to their class (Hungarian method); `information` is the
    normalised mutual information of clusters and classes.
    """

    energy: NDArray[np.float64]
    components: int
    distances: NDArray[np.float64]
    hits: NDArray[np.float64]
    information: float

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
        float(normalized_mutual_info_score(labels, found.labels_)),
    )


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
