"""Does the top of the map stay when somebody moves the image on purpose? Certified, and tried.

Both cost, so they are taken where a party requires them, or where the study lists them among its measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.interface import Again, Explaining, Level, Outcome
from counterpoise.measures._explained import explain_again, explained
from counterpoise.measures._interval import bootstrap
from counterpoise.measures.map_attack import MapAttack, most_important, overlap
from counterpoise.record import Measurement
from counterpoise.training import generator


@dataclass(frozen=True)
class CertifiedRadius:
    """Mean over images of the radius below which no move of the image can replace the map's top k.

    Unit: pixels, in the norm, k and beta of the explainer's certificates. Higher is better. Interval: bootstrap over
    images; each certificate has its own confidence besides. An image whose certificate abstains counts as 0. It is
    about moves of the image, not about training data, and says nothing of whether the map is right.
    """

    name: ClassVar[str] = "certified_radius"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "pixels"
    higher_is_better: ClassVar[bool] = True
    needs_certificates: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the radii."""
        certificates = explained(candidate, self.name).explanation.certificates
        if certificates is None:
            raise InputError(f"{self.name} needs an explainer that certifies its maps, such as robust-topk.")
        if any(certificate is not None and not certificate.sound for certificate in certificates):
            raise InputError(
                f"{self.name} is not measured with bound='published', which certifies too much: take bound='best'."
            )
        return bootstrap([0.0 if certificate is None else certificate.radius for certificate in certificates])


@dataclass(frozen=True)
class AttackedOverlap:
    """Mean over images of |top of the map and top of the attacked image's map| / k, with k a `share` of the pixels.

    The attack of `map_attack`, within `radius` in the l2 norm of [0, 1] pixels, keeping the predicted class: once
    against the plain gradient, once through the explainer's own noise; the worse of the two counts, explained again
    with fresh noise. Unit: share, in [0, 1]. Higher is better. Interval: bootstrap over images. It is what these
    attacks reach: a stronger one may reach more, and only `certified_radius` says what none can.
    """

    radius: float = 0.5
    share: float = 0.25
    steps: int = 12
    draws: int = 8

    name: ClassVar[str] = "attacked_overlap"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "share"
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check.positive(radius=self.radius)
        _check.inside(0, 1, share=self.share)
        _check.at_least(1, steps=self.steps, draws=self.draws)

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the images' smaller shares."""
        explaining, again = explained(candidate, self.name), explain_again(candidate, self.name)
        maps = explaining.explanation.maps
        k = max(1, round(self.share * maps[0].numel()))
        attacks = [MapAttack(self.radius, steps=self.steps)]
        if (noise := _noise(explaining)) > 0:
            attacks.append(MapAttack(self.radius, steps=self.steps, noise=noise, draws=self.draws))
        kept = [self._kept(attack, candidate, again, k) for attack in attacks]
        return bootstrap(torch.stack(kept).amin(0).double().numpy())

    def _kept(self, attack: MapAttack, candidate: Outcome, again: Again, k: int) -> Tensor:
        explaining, model = explained(candidate, self.name), candidate.trained.model
        maps = explaining.explanation.maps
        rng = generator(candidate.seed, self.name, attack.noise)
        moved = attack(model, explaining.images, explaining.target, most_important(maps, k), rng)
        return overlap(maps, again(model, moved, "attacked").maps, k)


def _noise(explaining: Explaining) -> float:
    """The noise that a sampled map is smoothed by: what its certificates say, else its degree."""
    explanation = explaining.explanation
    for certificate in explanation.certificates or ():
        if certificate is not None:
            return certificate.noise
    return float(explaining.degree) if explanation.samples is not None else 0.0
