"""Batches with equally many images of every hidden class, so that each class has pairs in every step."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.representation.alignment import groups
from counterpoise.training import generator

LEAST = 2
"""Images of a class in a batch: one has no pair."""


class BalancedBatches:
    """`batches(step)` gives indices. A step's batch depends on its index alone, so a resumed run sees the same ones.

    The places of all batches, numbered through, go to the classes in turn; each class walks its own images in shuffled
    order, again and again. So rare classes are seen more often than they are: all hidden classes count alike.
    """

    def __init__(self, classes: Tensor, batch: int, seed: int) -> None:
        self.groups = groups(classes)
        self.batch = min(batch, len(classes))
        if self.batch < LEAST * len(self.groups):
            raise InputError(
                f"batch={batch} must be at least {LEAST * len(self.groups)}: {LEAST} images of each of the"
                f" {len(self.groups)} hidden classes, which are hidden pair by pair."
            )
        # A permutation serves for many steps.
        self._order = lru_cache(2 * len(self.groups))(
            lambda group, walk: self.groups[group][
                torch.randperm(len(self.groups[group]), generator=generator(seed, group, walk))
            ]
        )

    def __call__(self, step: int) -> Tensor:
        """The indices of this step, class by class."""
        first, last, turns = step * self.batch, (step + 1) * self.batch, len(self.groups)
        parts = []
        for group, members in enumerate(self.groups):
            # Of the places first ... last - 1, every turns-th is this group's: its own places from here to there.
            place, end = (-(-(edge - group) // turns) for edge in (first, last))
            while place < end:
                walk, within = divmod(place, len(members))
                some = min(end - place, len(members) - within)
                parts.append(self._order(group, walk)[within : within + some])
                place += some
        return torch.cat(parts)
