"""Networks without convolutions: the linear classifier, and one hidden layer."""

from __future__ import annotations

import math

import torch
from torch import nn

from counterpoise.models._init import Centre, seeded

HIDDEN = 64


def linear(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """Logistic regression on the pixels."""
    with seeded(rng):
        return nn.Sequential(Centre(), nn.Flatten(), nn.Linear(math.prod(shape), classes))


def mlp(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """One hidden layer of 64 units with tanh."""
    with seeded(rng):
        return nn.Sequential(
            Centre(),
            nn.Flatten(),
            nn.Linear(math.prod(shape), HIDDEN),
            nn.Tanh(),
            nn.Linear(HIDDEN, classes),
        )
