"""How often two images switch the same units on: within a class, and between classes.

Tartaglione and Grangetto 2020, eq. 13, which they call mutual information; it is a rate of agreement.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def agreement(rows: Tensor, classes: Tensor) -> NDArray[np.float64]:
    """[C, C]: over pairs of one image of class a and another of class b, the mean share of units both on or both off.

    From each unit's on-rate p in each class: p_a p_b + (1 - p_a)(1 - p_b); within a class an image is not paired with
    itself. A class with one image has no rate within (NaN).
    """
    on = (rows.flatten(1) > 0).double()
    groups = [on[classes == label] for label in classes.bincount().nonzero().flatten()]
    rates = torch.stack([group.mean(0) for group in groups])
    both = (rates @ rates.T + (1 - rates) @ (1 - rates).T) / rates.shape[1]
    sizes = torch.tensor([len(group) for group in groups], dtype=torch.float64)
    within = (both.diagonal() * sizes - 1) / (sizes - 1)
    both[range(len(groups)), range(len(groups))] = torch.where(sizes > 1, within, torch.nan)
    found: NDArray[np.float64] = both.numpy()
    return found


def within_and_between(rates: NDArray[np.float64]) -> tuple[float, float]:
    """The mean of the diagonal, and of what is off it: near each other, where the units do not tell the class."""
    own = np.eye(len(rates), dtype=bool)
    return float(np.nanmean(rates[own])), float(rates[~own].mean())
