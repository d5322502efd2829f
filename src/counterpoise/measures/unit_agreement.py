"""How often two images switch the same units on: within a class, and between classes.

Tartaglione and Grangetto 2020, eq. 13, which they call mutual information; it is a rate of agreement.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from counterpoise.measures._interval import bootstrap
from counterpoise.record import Measurement


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


def gap(rows: Tensor, classes: Tensor) -> Measurement:
    """Within minus between, with an interval over images.

    A mean over pairs moves with an image through all the pairs that it is in, twice its own mean (Hoeffding 1948). Each
    image's share in the gap, so counted, is drawn again; drawing the images themselves again would pair an image
    with itself.
    """
    rates = agreement(rows, classes)
    within, between = within_and_between(rates)
    on = (rows.flatten(1) > 0).double()
    present = classes.bincount().nonzero().flatten()
    own = classes[:, None] == present
    sizes, count = own.sum(0).double(), len(present)
    means = torch.stack([on[own[:, c]].mean(0) for c in range(count)])
    each = (on @ means.T + (1 - on) @ (1 - means).T) / on.shape[1]
    size = sizes[own.int().argmax(1)]
    several = int((sizes > 1).sum())
    itself = torch.where(size > 1, (each[own] * size - 1) / (size - 1).clamp(min=1), torch.nan)
    centre = torch.from_numpy(rates)[own.int().argmax(1)]
    inside = torch.nan_to_num(2 * (itself - centre[own])) / several
    outside = 2 * torch.where(own, 0, each - centre).sum(1) / (count * (count - 1))
    shares = (inside - outside) * len(on) / size
    return bootstrap((within - between + shares).numpy())
