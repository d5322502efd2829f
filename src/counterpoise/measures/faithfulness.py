"""Do the pixels a map calls important carry the decision? Deletion and insertion, with a random map as floor.

The score is the softmax probability of one fixed class: the candidate's own prediction on the whole image. Pixels
are taken away (deletion) or given to a blank image (insertion) in about 20 steps, the most important first; a
pixel that is away shows its image's mean colour. The area is under the probability against the share of pixels
(trapezoids). Petsiuk et al. 2018. Equal map values follow a random order, so a blank map scores what a random
one does. No area, and no difference of areas, can exceed what the model says of the whole image: an unsure model has
small ones. So maps of one model compare directly; between models, look at their floors as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from counterpoise.interface import Level, Outcome
from counterpoise.measures._interval import Values, bootstrap
from counterpoise.measures._maps import FLOORS, Of, check_of
from counterpoise.measures._occlusion import areas_of, map_areas
from counterpoise.measures.stability import cosines
from counterpoise.record import Measurement


@dataclass(frozen=True)
class Deletion:
    """Area under the target's probability while the map's pixels are taken away, the most important first.

    Unit: probability, in [0, 1]. Lower is better; above `random_deletion`, the map is worse than none. Interval:
    bootstrap over images.
    """

    of: Of = "map"

    name: ClassVar[str] = "deletion"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_of(self.of)
        object.__setattr__(self, "name", type(self).name + ("" if self.of == "map" else f"_of_{self.of}"))

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the images' areas."""
        return bootstrap(areas_of(candidate, self.of).deletion)


@dataclass(frozen=True)
class Insertion:
    """Area under the target's probability while the map's pixels are given back, the most important first.

    Unit: probability, in [0, 1]. Higher is better; below `random_insertion`, the map is worse than none. Interval:
    bootstrap over images.
    """

    of: Of = "map"

    name: ClassVar[str] = "insertion"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_of(self.of)
        object.__setattr__(self, "name", type(self).name + ("" if self.of == "map" else f"_of_{self.of}"))

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the images' areas."""
        return bootstrap(areas_of(candidate, self.of).insertion)


@dataclass(frozen=True)
class RandomDeletion:
    """`deletion` in a random order, fixed once for all degrees and mechanisms: the floor of a map's deletion.

    Unit: probability, in [0, 1]. Lower is better. Interval: bootstrap over images.
    """

    name: ClassVar[str] = "random_deletion"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the images' areas."""
        return bootstrap(areas_of(candidate, "random").deletion)


@dataclass(frozen=True)
class RandomInsertion:
    """`insertion` in a random order, fixed once for all degrees and mechanisms: the floor of a map's insertion.

    Unit: probability, in [0, 1]. Higher is better. Interval: bootstrap over images.
    """

    name: ClassVar[str] = "random_insertion"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the images' areas."""
        return bootstrap(areas_of(candidate, "random").insertion)


@dataclass(frozen=True)
class Faithfulness:
    """insertion - deletion, image by image: how much better the map's order is than a random one.

    Unit: probability, in [-1, 1]. Higher is better; 0 is a random map. No floor is subtracted, because it is 0
    exactly: giving pixels in an order is taking them in the reverse order, and the reverse of a random order is
    as likely as the order itself, so a random map's two areas have one expectation. A sampled floor would only
    add its noise. Interval: bootstrap over images, paired.
    """

    of: Of = "map"

    name: ClassVar[str] = "faithfulness"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_of(self.of)
        object.__setattr__(self, "name", type(self).name + ("" if self.of == "map" else f"_of_{self.of}"))

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the images' differences."""
        areas = areas_of(candidate, self.of)
        return bootstrap(areas.insertion - areas.deletion)


@dataclass(frozen=True)
class FaithfulnessMargin:
    """faithfulness - the largest of the floors' (random, centre, edges): what looking at the model adds.

    A map that only finds the middle of the picture, or its edges, can be faithful; above 0, the explainer's is more so.
    Unit: probability, in [-2, 1]. Higher is better. Interval: bootstrap over images, paired. The floors' own numbers
    come with it: `faithfulness_of_edges` and so on. Ones is left out: a flat map follows a random order.
    """

    name: ClassVar[str] = "faithfulness_margin"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "probability"
    higher_is_better: ClassVar[bool] = True

    @property
    def beside(self) -> tuple[Any, ...]:
        """The floors."""
        return tuple(Faithfulness(of) for of in FLOORS if of != "ones")

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The difference of the means."""
        all_areas = [areas_of(candidate, of) for of in ("map", *(of for of in FLOORS if of != "ones"))]
        columns = np.stack([areas.insertion - areas.deletion for areas in all_areas], axis=1)
        return bootstrap(columns, lambda means: means[..., 0] - means[..., 1:].max(axis=-1))


@dataclass(frozen=True)
class ExplanationQuality:
    """max(0, faithfulness) * max(0, stability): the measured twin of `explainability_gain`.

    Unit: none, in [0, 1]. Higher is better. A map must carry the decision and stay when the image moves a little:
    either alone earns nothing. Interval: bootstrap over images, both measured on the same redrawn images.
    """

    name: ClassVar[str] = "explanation_quality"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "none"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The product of the two means."""
        areas = candidate.once(map_areas)
        columns = np.stack([areas.insertion - areas.deletion, candidate.once(cosines)], axis=1)
        return bootstrap(columns, _product)


def _product(means: Values) -> Values:
    product: Values = np.maximum(means, 0).prod(axis=-1)
    return product
