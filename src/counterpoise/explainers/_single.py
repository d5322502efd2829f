"""Explainers that have no degree to tune: their one degree, and how they go through the images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise.explainers._borrowed import borrowed, check_request
from counterpoise.explainers._probe import probe
from counterpoise.grid import DegreeKind
from counterpoise.interface import Explanation, Progress, Trained

SINGLE = DegreeKind("explainability", "up", Decimal(1), Decimal(1))
"""One point of the explainability axis, its top: such an explainer is used, or it is not."""


@dataclass(frozen=True)
class Single(ABC):
    """An explainer with the one degree; `explainability` is there because studies make parts from their degree."""

    explainability: Decimal = field(default=Decimal(1), kw_only=True)

    kind: ClassVar[DegreeKind] = SINGLE
    degree_field: ClassVar[str] = SINGLE.name
    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        self.kind.check(self.explainability)

    def explain(
        self,
        trained: Trained | nn.Module,
        images: Tensor,
        target: Tensor,
        rng: torch.Generator,
        *,
        progress: Progress = lambda done: None,
    ) -> Explanation:
        """The map of each image for its target class; `progress` hears the share that is done."""
        check_request(images, target)
        parts: list[Explanation] = []
        done = 0
        with borrowed(trained) as model:
            probed = probe(model, images)
            probed.check(target)
            chunks = probed.counts(len(images))  # memory stays the same however many images there are
            for x, y in zip(torch.split(images, chunks), torch.split(target, chunks), strict=True):
                parts.append(self._explain(model, probed.arrange(x), y, rng.initial_seed()))
                done += len(x)
                progress(done / len(images))
        return joined(parts)

    @abstractmethod
    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        """The maps of one chunk by a borrowed model."""


def joined(parts: list[Explanation]) -> Explanation:
    """The explanations of consecutive chunks as one."""
    errors = [part.stderr for part in parts if part.stderr is not None]
    maps = torch.cat([part.maps for part in parts]).float()
    return Explanation(maps, torch.cat(errors).float() if errors else None, parts[0].samples)
