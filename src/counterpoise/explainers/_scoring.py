"""How a noisy map is scored: the j-th largest unit gets v_j, v_1 >= v_2 >= … >= 0, with sum 1.

The sum makes a mean of scored maps a distribution: it is the chance that "draw noise, rank, pick rank j with chance
v_j" picks a unit. That is what the Rényi certificate is about.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

STEEPNESS = 10.0
"""The sigmoid falls from .92 to .08 of its height while the rank goes from .75 k to 1.25 k."""


def step(k: int, units: int) -> NDArray[np.float64]:
    """v_j = 1/k for the k first, 0 after: a unit's score is how often it is in the top k, over k."""
    scores = np.zeros(units)
    scores[:k] = 1 / k
    return scores


def sigmoid(k: int, units: int) -> NDArray[np.float64]:
    """v_j ~ 1 / (1 + exp(10 (j - k - 1/2) / k)): ranks near k count by how near they are."""
    ranks = np.arange(1, units + 1)
    raised = 1 / (1 + np.exp(np.minimum(STEEPNESS * (ranks - k - 0.5) / k, 700)))
    scores: NDArray[np.float64] = raised / raised.sum()
    return scores


SCORINGS = {"step": step, "sigmoid": sigmoid}


def scored(maps: Tensor, scores: Tensor) -> Tensor:
    """The maps [..., units] with every value replaced by the score of its rank; of equal values the first is higher."""
    order = maps.argsort(dim=-1, descending=True, stable=True)
    return torch.empty_like(maps, dtype=scores.dtype).scatter_(-1, order, scores.expand(order.shape))


def top(values: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The indices of the k largest values, in increasing order; of equal values the first is higher."""
    return np.sort(np.argsort(-values, kind="stable")[:k]).astype(np.int64)
