"""Average Drop, Increase in Confidence, and the score of what a map leaves of an image; with the floors beside them.

All three reward a map of ones, which leaves the image as it is, and an unsure model, whose score a black surround can
only raise. So they are taken on images that the candidate and its baseline both classify rightly, and a study that
asks for one also gets it of four maps that have not looked at the model, the share of blank maps, and the mean score
of the whole images. See `deletion` and `insertion` for numbers that a map of ones cannot win.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from counterpoise.interface import Level, Outcome
from counterpoise.measures._explained import explained, right_by_both
from counterpoise.measures._interval import bootstrap, bootstrap_scored
from counterpoise.measures._maps import FLOORS, Of, blank
from counterpoise.measures._masked import LIKE, Masked, Match, Question, drops, increases
from counterpoise.record import Measurement


@dataclass(frozen=True)
class _MaskedInput:
    """Options of all three: `of` which map, `fill` where it is 0, and `match` for a library's own number instead.

    A floor is called by its own name, `average_drop_of_edges`; so is a library's, `average_drop_as_torch_cam`.
    """

    of: Of = "map"
    fill: float = 0.0
    match: Match = "source"
    only_right: bool = True

    name: ClassVar[str]
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "percent"

    def __post_init__(self) -> None:
        self._question.check()
        suffix = "" if self.of == "map" else f"_of_{self.of}"
        suffix += "" if self.match == "source" else f"_as_{self.match.replace('-', '_')}"
        object.__setattr__(self, "name", type(self).name + suffix)
        if not LIKE[self.match].percent:
            object.__setattr__(self, "unit", "share" if LIKE[self.match].relative else "logit")

    @property
    def beside(self) -> tuple[Any, ...]:
        """The floors, and what says how far the number can be trusted."""
        if self.of != "map":
            return ()
        floors = (type(self)(of, self.fill, self.match, self.only_right) for of in FLOORS)
        return (*floors, BlankMaps(), WholeScore(self.only_right))

    @property
    def _question(self) -> Question:
        return Question(self.of, self.fill, self.match, self.only_right)

    def _asked(self, baseline: Outcome, candidate: Outcome) -> Masked:
        return self._question.ask(baseline, candidate)


@dataclass(frozen=True)
class AverageDrop(_MaskedInput):
    """100 / N * sum of max(0, Y - O) / Y: how much of the score is lost with what the map leaves out.

    Chattopadhay et al. 2018; Naidu et al. 2021. Y is the softmax probability of the explained class for the image, O
    for image * mask, the mask being the map without its negative values, spread over [0, 1]; black elsewhere, in [0, 1]
    pixels. Unit: percent. Lower is better; compare with the floors, of which ones is 0. Interval: bootstrap over the
    images that both models classify rightly and whose map is not blank. Where there is none, nothing is known: the
    worst value, with n = 0.
    """

    name: ClassVar[str] = "average_drop"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the drops."""
        whole, masked, scored = self._asked(baseline, candidate)
        return bootstrap_scored(drops(whole, masked, LIKE[self.match]), scored, unknown=(100, 0, 100))


@dataclass(frozen=True)
class ConfidenceIncrease(_MaskedInput):
    """100 / N * sum of [Y < O]: how often the map's part alone is surer than the whole image.

    Chattopadhay et al. 2018; Naidu et al. 2021. Y, O and images as for `average_drop`. Unit: percent. Higher is better;
    compare with the floors: black surrounds raise an unsure model's score whatever is left. Interval: bootstrap over
    images.
    """

    name: ClassVar[str] = "confidence_increase"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The share of increases."""
        whole, masked, scored = self._asked(baseline, candidate)
        return bootstrap_scored(increases(whole, masked, LIKE[self.match]), scored, unknown=(0, 0, 100))


@dataclass(frozen=True)
class MaskedScore(_MaskedInput):
    """100 / N * sum of O: the score of what the map leaves.

    Naidu et al. 2021, whose "normalised score" is read as the softmax probability. O and images as for `average_drop`.
    Unit: percent. Higher is better; compare with the floors. Interval: bootstrap over images.
    """

    name: ClassVar[str] = "masked_score"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the masked scores."""
        _, masked, scored = self._asked(baseline, candidate)
        scale = 100 if LIKE[self.match].percent else 1
        return bootstrap_scored(scale * masked, scored, unknown=(0, 0, 100))


@dataclass(frozen=True)
class WholeScore:
    """100 / N * sum of Y: how sure the model is of the explained class before anything is masked.

    Unit: percent. Higher is better, where it is deserved. Interval: bootstrap over the images that both models classify
    rightly. Where it is near chance, drops and increases say little.
    """

    only_right: bool = True

    name: ClassVar[str] = "whole_score"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "percent"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the whole images' scores."""
        asked = explained(candidate, self.name)
        said = LIKE["source"].said(candidate.trained.model, asked.images, asked.target)
        counted = right_by_both(baseline, candidate).numpy() if self.only_right else slice(None)
        return bootstrap_scored(100 * said, counted, unknown=(0, 0, 100))


@dataclass(frozen=True)
class BlankMaps:
    """Share of the explained images whose map has no value above 0: they are counted here, and scored nowhere.

    Unit: share of images. Lower is better. Interval: bootstrap over images.
    """

    name: ClassVar[str] = "blank_maps"
    level: ClassVar[Level] = "explanation"
    unit: ClassVar[str] = "share of images"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        """The mean of the blanks."""
        return bootstrap(blank(explained(candidate, self.name).explanation.maps).double().numpy())
