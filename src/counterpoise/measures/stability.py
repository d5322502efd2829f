"""Does the explanation stay when the image moves a little?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from counterpoise.interface import Level, Outcome
from counterpoise.measures._explained import explained
from counterpoise.measures._interval import bootstrap
from counterpoise.record import Measurement


@dataclass(frozen=True)
class Stability:
    """Mean over images of cos(map of x, map of x'), x' a nearby image explained for the same class.

    Unit: cosine, in [-1, 1]; maps of absolute values are never below 0. Higher is better. Interval: bootstrap over
    images. A blank map, all 0, points nowhere: it counts as 0. A map that ignores the image is perfectly stable,
    so look at `faithfulness` beside it.
    """

    name: ClassVar[str] = "stability"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "cosine"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the cosines."""
        return bootstrap(candidate.once(cosines))


def cosines(outcome: Outcome) -> NDArray[np.float64]:
    """The cosine of each image's map and its nearby image's; 0 where a map is blank."""
    explaining = explained(outcome, Stability.name)
    here = explaining.explanation.maps.double().flatten(1)
    near = explaining.nearby_explanation.maps.double().flatten(1)
    lengths = here.norm(dim=1) * near.norm(dim=1)
    found: NDArray[np.float64] = ((here * near).sum(1) / lengths.where(lengths > 0, 1)).clamp(-1, 1).numpy()
    return found
