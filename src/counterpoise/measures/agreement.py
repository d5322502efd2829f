"""How alike two maps of one image are: of a private model and its baseline, or of an image and a nearby one.

The first (`other="baseline"`) is the private-against-non-private comparison: the same images, the same classes, one
degree; on the images that both models classify rightly. The second (`other="nearby"`) asks whether a map stays when its
image moves a little. A pair with a blank map is not scored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from scipy.stats import rankdata
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.interface import Level, Outcome
from counterpoise.measures._explained import explain_again, explained, right_by_both
from counterpoise.measures._interval import bootstrap_scored
from counterpoise.measures._maps import as_masks, blank
from counterpoise.measures.image_distance import similarity
from counterpoise.record import Measurement

Other = Literal["baseline", "nearby"]


def top_k_overlap(first: Tensor, second: Tensor, k: float = 0.1) -> Tensor:
    """Share of the k most important pixels two maps share, [n]. Of equal values the first in reading order counts."""
    count = max(1, round(k * first[0].numel()))
    chosen = [torch.zeros(maps.flatten(1).shape, dtype=torch.bool) for maps in (first, second)]
    for mask, maps in zip(chosen, (first, second), strict=True):
        order = maps.flatten(1).argsort(dim=1, descending=True, stable=True)[:, :count]
        mask.scatter_(1, order, True)
    shared: Tensor = (chosen[0] & chosen[1]).sum(1).double() / count
    return shared


def cosine(first: Tensor, second: Tensor) -> Tensor:
    """<a, b> / (|a| |b|), [n]; 0 where a map is 0 everywhere."""
    a, b = first.double().flatten(1), second.double().flatten(1)
    lengths = a.norm(dim=1) * b.norm(dim=1)
    found: Tensor = ((a * b).sum(1) / lengths.where(lengths > 0, 1)).clamp(-1, 1)
    return found


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """Pearson's correlation of the ranks, equal values sharing their mean rank, [n]; 0 where a map is flat."""
    ranks = [torch.from_numpy(rankdata(maps.flatten(1).double().numpy(), axis=1)) for maps in (first, second)]
    return cosine(*(rank - rank.mean(1, keepdim=True) for rank in ranks))


def ssim(first: Tensor, second: Tensor) -> Tensor:
    """Structural similarity of the two maps, each spread over [0, 1], [n]."""
    return similarity(as_masks(first.double())[:, None], as_masks(second.double())[:, None])


@dataclass(frozen=True)
class _Agreement:
    other: Other = "baseline"
    only_right: bool = True

    name: ClassVar[str]
    level: ClassVar[Level] = "explanation"
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check.one_of(get_args(Other), other=self.other)
        object.__setattr__(self, "name", type(self).name + ("" if self.other == "baseline" else f"_{self.other}"))

    def _measured(
        self, baseline: Outcome, candidate: Outcome, alike: Callable[[Tensor, Tensor], Tensor]
    ) -> Measurement:
        here, there = explained(candidate, self.name).explanation.maps, self._others(baseline, candidate)
        scored = ~(blank(here) | blank(there))
        if self.only_right and self.other == "baseline":
            scored &= right_by_both(baseline, candidate)
        lowest = 0.0 if type(self) is TopKOverlap else -1.0
        return bootstrap_scored(alike(here, there).numpy(), scored.numpy(), unknown=(lowest, lowest, 1))

    def _others(self, baseline: Outcome, candidate: Outcome) -> Tensor:
        explaining = explained(candidate, self.name)
        if self.other == "nearby":
            return explaining.nearby_explanation.maps
        explain = explain_again(candidate, self.name)
        kept: dict[nn.Module, Tensor] = candidate.once(_baseline_maps)
        model = baseline.trained.model
        if model not in kept:
            kept[model] = explain(model, explaining.images, "baseline").maps
        return kept[model]


def _baseline_maps(candidate: Outcome) -> dict[nn.Module, Tensor]:
    return {}


@dataclass(frozen=True)
class TopKOverlap(_Agreement):
    """|top-k(map) and top-k(baseline's map)| / k, k a tenth of the pixels.

    Ghorbani et al. 2019. Unit: share of the top pixels. Higher is better: the private model looks at the same places;
    two unrelated maps share a tenth. Interval: bootstrap over images.
    """

    k: float = 0.1

    name: ClassVar[str] = "top_k_overlap"
    unit: ClassVar[str] = "share of the top pixels"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check.inside(0, 1, k=self.k)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean overlap."""
        return self._measured(baseline, candidate, lambda first, second: top_k_overlap(first, second, self.k))


@dataclass(frozen=True)
class MapCosine(_Agreement):
    """<a, b> / (|a| |b|) of the map and the baseline's map.

    Unit: cosine, in [-1, 1]. Higher is better. Maps without negative values are never below 0, and two unrelated ones
    are well above it: look at `map_spearman` beside it. Interval: bootstrap over images.
    """

    name: ClassVar[str] = "map_cosine"
    unit: ClassVar[str] = "cosine"

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean cosine."""
        return self._measured(baseline, candidate, cosine)


@dataclass(frozen=True)
class MapSpearman(_Agreement):
    """Spearman's rank correlation, over the pixels, of the map and the baseline's map.

    Unit: correlation, in [-1, 1]. Higher is better; 0 for unrelated maps. Interval: bootstrap over images.
    """

    name: ClassVar[str] = "map_spearman"
    unit: ClassVar[str] = "rank correlation"

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean correlation."""
        return self._measured(baseline, candidate, spearman)


@dataclass(frozen=True)
class MapSSIM(_Agreement):
    """Structural similarity of the map and the baseline's map, each spread over [0, 1]; windows as for `ssim`.

    Wang et al. 2004; for maps, Adebayo et al. 2018. Unit: similarity in [-1, 1]. Higher is better. Interval: bootstrap
    over images.
    """

    name: ClassVar[str] = "map_ssim"
    unit: ClassVar[str] = "similarity in [-1, 1]"

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean similarity."""
        return self._measured(baseline, candidate, ssim)
