"""Sanity of maps: does a map depend on the model, does it point where the answer was planted, is it concentrated?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.interface import Level, Outcome
from counterpoise.measures._explained import explain_again, explained
from counterpoise.measures._interval import bootstrap_scored
from counterpoise.measures._maps import Of, blank, check_of, floor_maps
from counterpoise.measures.agreement import spearman
from counterpoise.record import Measurement
from counterpoise.training import generator

SEED = 0


@dataclass(frozen=True)
class RandomisationCheck:
    """Mean of |Spearman(map, map of the same network with random weights)|, over several random networks.

    Adebayo et al. 2018, all layers at once. A map that does not change when the model forgets everything is about the
    image, not about the model. Unit: rank correlation, in [0, 1]. Lower is better. Interval: bootstrap over images
    whose map is not blank; a blank map of a random network counts as unlike.
    """

    networks: int = 3

    name: ClassVar[str] = "randomisation_check"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "rank correlation"
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.at_least(1, networks=self.networks)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean over networks and images."""
        asked, again = explained(candidate, self.name), explain_again(candidate, self.name)
        maps = asked.explanation.maps
        alike = []
        for index in range(self.networks):
            forgetful = candidate.task.new_model(generator(SEED, "forgetful", index)).eval()
            alike.append(spearman(maps, again(forgetful, asked.images, f"forgetful {index}").maps).abs())
        return bootstrap_scored(torch.stack(alike).mean(0).numpy(), ~blank(maps).numpy(), unknown=(1, 0, 1))


@dataclass(frozen=True)
class PointingAccuracy:
    """Share of maps whose largest value lies on the planted evidence; among equal largest values, the share of them.

    Zhang et al. 2016 (the pointing game), on images whose evidence is known because it was planted, such as `dots`.
    Unit: share of maps. Higher is better; its floor, `pointing_accuracy_of_random`, is the evidence's share of the
    image. Interval: bootstrap over images whose map is not blank.
    """

    of: Of = "map"

    name: ClassVar[str] = "pointing_accuracy"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "share of maps"
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_of(self.of)
        object.__setattr__(self, "name", type(self).name + ("" if self.of == "map" else f"_of_{self.of}"))

    @property
    def beside(self) -> tuple[Any, ...]:
        """The floors that matter here: a map that points anywhere, and one that points at edges."""
        return (PointingAccuracy("random"), PointingAccuracy("edges")) if self.of == "map" else ()

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the hits."""
        asked = explained(candidate, self.name)
        evidence = candidate.task.test.evidence
        if evidence is None or asked.chosen is None:
            raise InputError(
                f"{self.name} needs images whose evidence is known; {candidate.task.test.name!r} has none:"
                " take data such as 'dots', or leave the measure out."
            )
        planted = evidence[asked.chosen]
        scored = ~blank(asked.explanation.maps)
        if self.of == "random":  # its expectation: no draw is needed
            hits = planted.double().mean((1, 2))
        else:
            hits = pointing(asked.explanation.maps if self.of == "map" else floor_maps(self.of, asked.images), planted)
        return bootstrap_scored(hits.numpy(), scored.numpy(), unknown=(0, 0, 1))


def pointing(maps: Tensor, planted: Tensor) -> Tensor:
    """Of the pixels with the map's largest value, the share that lies on the planted ones, [n]."""
    flat = maps.flatten(1)
    largest = flat == flat.amax(1, keepdim=True)
    return (largest & planted.flatten(1)).sum(1).double() / largest.sum(1)


@dataclass(frozen=True)
class Sparsity:
    """Gini coefficient of the map's absolute values: sum over ranks i = 1..N of (2i - N - 1) v_i / (N sum of v).

    Hurley and Rickard 2009; for maps, Chalasani et al. 2020. Unit: none; 0 for an even map, (N - 1) / N for a single
    pixel. Higher is better where a short answer is wanted; it says nothing of whether the answer is right. Interval:
    bootstrap over images whose map is not blank.
    """

    name: ClassVar[str] = "sparsity"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the coefficients."""
        maps = explained(candidate, self.name).explanation.maps
        return bootstrap_scored(gini(maps).numpy(), ~blank(maps).numpy(), unknown=(0, 0, 1))


def gini(maps: Tensor) -> Tensor:
    """The Gini coefficient of each map's absolute values, float64 [n]; 0 for a map of zeros."""
    values = maps.double().flatten(1).abs().sort(1).values
    n = values.shape[1]
    weights = 2 * torch.arange(1, n + 1, dtype=torch.float64) - n - 1
    total = values.sum(1)
    return (values * weights).sum(1) / (n * total).where(total > 0, 1)
