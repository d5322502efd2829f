"""Whom a filter is trained against: the study's network, and two small ones on the pixels.

All see every pixel standardised. A filter fools a network alone by making a secret faint, which is as clear as before
and takes longer to learn, or by moving it to where that network does not look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from counterpoise.interface import Task
from counterpoise.training import generator, seeded

OPPONENTS = ("network", "linear", "dense")
HIDDEN = 128
"""Units of the dense opponent's one hidden layer."""


class Standardised(nn.Module):
    """Every pixel by the mean and the deviation it had lately, mean 0 and deviation 1."""

    mean: Tensor
    variance: Tensor

    def __init__(self, shape: tuple[int, int, int], memory: float = 0.9) -> None:
        super().__init__()
        self.memory = memory
        self.register_buffer("mean", torch.full(shape, 0.5))
        self.register_buffer("variance", torch.full(shape, 0.1))

    def forward(self, rows: Tensor) -> Tensor:
        """The standardised rows; rows that are learned from move mean and deviation."""
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(rows.mean(0), 1 - self.memory)
                self.variance.lerp_((rows - self.mean).square().mean(0), 1 - self.memory)
        standard: Tensor = (rows - self.mean) / (self.variance + 1e-10).sqrt()
        return standard


class _AroundHalf(nn.Module):
    """Standardised pixels as numbers around .5, as images are."""

    def forward(self, standard: Tensor) -> Tensor:
        """For a network that expects an image."""
        return 0.5 + 0.25 * standard


def opponents(names: Sequence[str], task: Task, outputs: int, seed: int) -> dict[str, nn.Module]:
    """The networks of these names, untrained, each with so many outputs."""
    shape = task.train.shape
    numbers = math.prod(shape)
    made: dict[str, nn.Module] = {}
    for name in names:
        rng = generator(seed, "attackers", name)
        if name == "network":
            reads: list[nn.Module] = [_AroundHalf(), task.make_model(shape, outputs, rng)]
        else:
            with seeded(rng):
                reads = [nn.Flatten()]
                if name == "dense":
                    reads += [nn.Linear(numbers, HIDDEN), nn.ReLU()]
                reads.append(nn.Linear(HIDDEN if name == "dense" else numbers, outputs))
        made[name] = nn.Sequential(Standardised(shape), *reads)
    return made
