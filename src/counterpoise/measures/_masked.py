"""What a model still says of an image of which only the important part is left.

A masked image is image * mask + fill * (1 - mask), in the [0, 1] pixels outside the model: black where a fill of 0
leaves nothing, as in Naidu et al. 2021. Three libraries print three other numbers under the same names; `LIKE` says
what each does, so that a reader can get theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from counterpoise import _check
from counterpoise.interface import Outcome
from counterpoise.measures._explained import explained, right_by_both
from counterpoise.measures._maps import Of, as_masks, blank, check_of, floor_maps
from counterpoise.training import apply

Match = Literal["source", "torch-cam", "grad-cam", "xplique"]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Like:
    """How one library goes about it. `scaled`: what is done to a map before it is a mask."""

    scaled: Literal["positive", "absolute", "as it is"]
    score: Literal["probability", "logit"]
    relative: bool
    percent: bool
    added: float = 0.0
    """To the denominator of the drop."""

    def masks(self, maps: Tensor) -> Tensor:
        """The maps as this library multiplies them."""
        if self.scaled == "as it is":
            return maps
        return as_masks(maps.abs() if self.scaled == "absolute" else maps)

    def said(self, model: nn.Module, images: Tensor, target: Tensor) -> Values:
        """The score of each image's class, [n]."""
        logits = apply(model, images).double()
        scores = logits.softmax(1) if self.score == "probability" else logits
        found: Values = scores.gather(1, target[:, None]).squeeze(1).numpy()
        return found


LIKE: dict[Match, Like] = {
    "source": Like("positive", "probability", relative=True, percent=True),
    "torch-cam": Like("as it is", "probability", relative=True, percent=False, added=1e-7),
    "grad-cam": Like("as it is", "logit", relative=False, percent=False),
    "xplique": Like("absolute", "probability", relative=True, percent=False, added=1e-8),
}
"""torch-cam 0.5 with softmax as its `logits_fn`; grad-cam 1.5 with `ClassifierOutputTarget`, whose drop is not divided
by anything; xplique 2.0 with softmax. The first two scale a map where it is made, before it is enlarged."""


class Masked(NamedTuple):
    """Each image's score whole (Y) and masked (O), and which images are scored."""

    whole: Values
    masked: Values
    scored: NDArray[np.bool_]


@dataclass(frozen=True)
class Question:
    """Which maps mask the images, what is shown where they do not, and whose conventions count."""

    of: Of = "map"
    fill: float = 0.0
    match: Match = "source"
    only_right: bool = True

    def check(self) -> None:
        """Raise unless it can be asked."""
        check_of(self.of)
        _check.in_range(0, 1, fill=self.fill)
        _check.one_of(get_args(Match), match=self.match)

    def ask(self, baseline: Outcome, candidate: Outcome) -> Masked:
        """Scores on the candidate's explained images, once a question; who is scored depends on both models."""
        asked: dict[Question, Masked] = candidate.once(_answers)
        if self not in asked:
            explaining = explained(candidate, "a masked-input measure")
            maps, like = explaining.explanation.maps, LIKE[self.match]
            scored = ~blank(like.masks(maps)).numpy()
            if self.of != "map":
                maps = floor_maps(self.of, explaining.images)
            model, images, target = candidate.trained.model, explaining.images, explaining.target
            asked[self] = Masked(*masked_scores(model, images, target, maps, like, self.fill), scored)
        found = asked[self]
        return (
            found._replace(scored=found.scored & right_by_both(baseline, candidate).numpy())
            if self.only_right
            else found
        )


def _answers(candidate: Outcome) -> dict[Question, Masked]:
    return {}


def masked_scores(
    model: nn.Module, images: Tensor, target: Tensor, maps: Tensor, like: Like = LIKE["source"], fill: float = 0.0
) -> tuple[Values, Values]:
    """Y and O: the score of the whole and of the masked images."""
    masks = like.masks(maps)[:, None]
    return like.said(model, images, target), like.said(model, images * masks + fill * (1 - masks), target)


def drops(whole: Values, masked: Values, like: Like = LIKE["source"]) -> Values:
    """max(0, Y - O) / Y an image; in percent where the convention has it so."""
    lost = np.maximum(0, whole - masked)
    share = lost / (whole + like.added) if like.relative else lost
    return 100 * share if like.percent else share


def increases(whole: Values, masked: Values, like: Like = LIKE["source"]) -> Values:
    """[Y < O] an image; in percent where the convention has it so."""
    return np.where(whole < masked, 100.0 if like.percent else 1.0, 0.0)
