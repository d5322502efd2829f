"""Does a map foretell what happens when the image changes, and does it hold still when little changes?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.interface import Explaining, Level, Outcome
from counterpoise.measures._explained import explain_again, explained
from counterpoise.measures._interval import bootstrap_scored
from counterpoise.measures._maps import FLOORS, Of, blank, check_of, floor_maps
from counterpoise.record import Measurement
from counterpoise.training import apply, generator

SEED = 0


@dataclass(frozen=True)
class Infidelity:
    """E (b * <I, map> - (f(x) - f(x_I)))^2 / E (f(x) - f(x_I))^2: the share of the changes that the map misses.

    Yeh et al. 2019. f is the class's logit; I a random square patch, x_I the image with its mean colour there; <I, map>
    the map's sum over the patch. b is the best factor for each image, so that a map's scale does not count, and the
    division makes models of different slopes comparable: 0 foretells every change, 1 none. Unit: share of the squared
    change. Lower is better. Interval: bootstrap over images whose map is not blank and whose score changes at all.
    A map that has not looked at the model foretells some change too: it brings its floors, `infidelity_of_edges` and so
    on, on the same patches and images.
    """

    patches: int = 50
    side: float = 0.25
    of: Of = "map"

    name: ClassVar[str] = "infidelity"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "share of the squared change"
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.at_least(2, patches=self.patches)
        _check.inside(0, 1, side=self.side)
        check_of(self.of)
        object.__setattr__(self, "name", type(self).name + ("" if self.of == "map" else f"_of_{self.of}"))

    @property
    def beside(self) -> tuple[Any, ...]:
        """The floors."""
        return tuple(type(self)(self.patches, self.side, of) for of in FLOORS) if self.of == "map" else ()

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of each image's share."""
        asked = explained(candidate, self.name)
        maps = asked.explanation.maps
        where, changed = self._seen(candidate, asked)
        told = (maps if self.of == "map" else floor_maps(self.of, asked.images)).double()
        foretold = (told[:, None] * where).sum((2, 3))
        errors, whole = squared_errors(foretold, changed), changed.square().mean(1)
        scored = ~blank(maps) & (whole > 0)
        return bootstrap_scored((errors / whole.where(whole > 0, 1)).numpy(), scored.numpy(), unknown=(1, 0, 1))

    def _seen(self, candidate: Outcome, asked: Explaining) -> tuple[Tensor, Tensor]:
        """The patches, and what each did to the score: asked of the model once, whatever maps are held against it."""
        known, key = candidate.once(_patched), (self.patches, self.side)
        if key not in known:
            where = patches(asked.images, self.patches, self.side)
            known[key] = where, _changes(candidate.trained.model, asked.images, asked.target, where)
        return known[key]


def _patched(candidate: Outcome) -> dict[tuple[int, float], tuple[Tensor, Tensor]]:
    return {}


def patches(images: Tensor, count: int, side: float) -> Tensor:
    """Which pixels each patch takes, bool [n, count, height, width]; the same patches for every model."""
    n, _, height, width = images.shape
    rng = generator(SEED, "patches")
    marks = []
    for length in (height, width):
        size = max(1, round(side * length))
        start = torch.randint(length - size + 1, (n, count, 1), generator=rng)
        places = torch.arange(length)
        marks.append((places >= start) & (places < start + size))
    return marks[0][..., None] & marks[1][..., None, :]


def _changes(model: nn.Module, images: Tensor, target: Tensor, where: Tensor) -> Tensor:
    """f(x) - f(x_I) of the target's logit, float64 [n, patches]."""
    fill = images.mean((2, 3), keepdim=True)

    def said(pixels: Tensor, classes: Tensor) -> Tensor:
        return apply(model, pixels).double().gather(1, classes[:, None]).squeeze(1)

    whole = said(images, target)
    without = [
        said(torch.where(marks[:, None], color, image), goal.expand(len(marks)))
        for image, marks, color, goal in zip(images, where, fill, target, strict=True)
    ]
    return whole[:, None] - torch.stack(without)


def squared_errors(foretold: Tensor, changed: Tensor, scaled: bool = True) -> Tensor:
    """Mean over perturbations of (b * foretold - changed)^2, [n]; b the least-squares factor where `scaled`, else 1."""
    factor = torch.ones_like(foretold[:, :1])
    if scaled:
        power = foretold.square().sum(1, keepdim=True)
        factor = (foretold * changed).sum(1, keepdim=True) / power.where(power > 0, 1)
    return (factor * foretold - changed).square().mean(1)


@dataclass(frozen=True)
class SensitivityMax:
    """max over draws of |map(x + d) - map(x)| / |map(x)|, d uniform in [-radius, radius] in every pixel value.

    Yeh et al. 2019; Euclidean lengths. The largest of so many draws is a lower bound on the largest there is. A map
    that ignores its image has 0, so look at `faithfulness` beside it. Unit: share of the map's length. Lower is better.
    Interval: bootstrap over images whose map is not blank.
    """

    draws: int = 5
    radius: float = 0.02

    name: ClassVar[str] = "sensitivity_max"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "share of the map's length"
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.at_least(1, draws=self.draws)
        _check.positive(radius=self.radius)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of each image's largest move."""
        asked, again = explained(candidate, self.name), explain_again(candidate, self.name)
        maps = asked.explanation.maps
        others = []
        for draw in range(self.draws):
            noise = torch.rand(asked.images.shape, generator=generator(SEED, "move", draw), dtype=asked.images.dtype)
            moved = (asked.images + self.radius * (2 * noise - 1)).clamp(0, 1)
            others.append(again(candidate.trained.model, moved, f"sensitivity {draw}").maps)
        found = largest_moves(maps, torch.stack(others))
        return bootstrap_scored(found.numpy(), ~blank(maps).numpy(), unknown=(math.inf, 0, math.inf))


def largest_moves(maps: Tensor, others: Tensor) -> Tensor:
    """Of [n, h, w] and [draws, n, h, w]: the largest distance over the map's length, [n]; 0 lengths count as 1."""
    lengths = maps.double().flatten(1).norm(dim=1)
    moves: Tensor = (others.double() - maps.double()).flatten(2).norm(dim=2).amax(0)
    share: Tensor = moves / lengths.where(lengths > 0, 1)
    return share
