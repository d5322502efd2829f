"""Where in a network a probe asks, and what can be told to be missing for it before any training."""

from __future__ import annotations

import torch

from counterpoise.interface import Task
from counterpoise.measures.probes import readable
from counterpoise.representation.layers import LAST, find

PLACES = (LAST, "images", "predictions")
"""What `at` may be besides a layer's name."""


class Placed:
    """Asked about one place in a network: a place that is none is told before training."""

    at: str

    def check_task(self, task: Task) -> None:
        """The layer is there."""
        if self.at not in PLACES:
            find(task.new_model(torch.Generator()), self.at)


class Taught(Placed):
    """Asks readers that are taught: too few images of the hidden classes are told before training, too."""

    def check_task(self, task: Task) -> None:
        """The layer is there, and so are images to learn from and to be asked about."""
        super().check_task(task)
        hidden = task.to_hide("a probe of the hidden class")
        readable(task.train.labels[hidden], task.test.labels[hidden])
