"""Grad-CAM on every model of one comparison, and what its masks leave: on images that all of them classify rightly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from counterpoise.explainers.grad_cam import GradCAM
from counterpoise.interface import Explaining, Outcome
from counterpoise.measures._maps import FLOORS, blank, floor_maps
from counterpoise.measures._masked import drops, increases, masked_scores
from counterpoise.measures._occlusion import areas_of
from counterpoise.measures.comparison import right_by_all
from counterpoise.reproduce._naidu_cells import Bench, Cell
from counterpoise.training import apply, generator, one_thread

FEWEST = 10
"""Images below which nothing is said of maps."""
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Looked:
    """One model's accuracy, the share of its maps that are blank, and every quantity an image (NaN: not scored)."""

    cell: Cell
    accuracy: float
    blank: float
    values: dict[str, Numbers]


@dataclass(frozen=True)
class Group:
    """Models that are compared with each other, and the images they share."""

    title: str
    images: Tensor
    looked: tuple[Looked, ...]

    @property
    def decidable(self) -> bool:
        """Whether there are images enough to speak of maps."""
        return len(self.images) >= FEWEST

    def of(self, epsilon: float, clip: float = 1.0) -> list[Looked]:
        """The models of one setting, a seed each."""
        return [one for one in self.looked if one.cell.epsilon == epsilon and one.cell.clip == clip]

    def table(self, name: str, epsilon: float, clip: float = 1.0) -> Numbers:
        """[seeds, images] of one quantity."""
        return np.stack([one.values[name] for one in self.of(epsilon, clip)])


def look(bench: Bench, title: str, cells: Sequence[Cell]) -> Group:
    """Load, select, explain, mask."""
    with one_thread():
        return _look(bench, title, cells)


def _look(bench: Bench, title: str, cells: Sequence[Cell]) -> Group:
    truth = bench.test.labels[bench.case.target]
    models = [bench.trained(cell) for cell in cells]
    released = [apply(trained.release, bench.test.pixels) for trained in models]
    logits = [apply(trained.model, images) for trained, images in zip(models, released, strict=True)]
    shared = right_by_all(logits, truth)[: bench.case.explained]
    looked = []
    for cell, trained, images, said in zip(cells, models, released, logits, strict=True):
        right = float((said.argmax(1) == truth).float().mean())
        if len(shared) < FEWEST:
            looked.append(Looked(cell, right, float("nan"), {}))
            continue
        maps = GradCAM().explain(trained.model, images[shared], truth[shared], generator(0, "maps"))
        explaining = Explaining(Decimal(1), images[shared], truth[shared], maps, images[shared], maps)
        made = Outcome(
            bench.task(cell),
            bench.mechanism(cell),
            Decimal(0),
            trained,
            released_train=images[:0],
            released_test=images,
            train_logits=said[:0],
            test_logits=said,
            raw_test_logits=said,
            seed=cell.seed,
            explaining=explaining,
        )
        looked.append(Looked(cell, right, float(blank(maps.maps).double().mean()), measured(made)))
    return Group(title, shared, tuple(looked))


def measured(made: Outcome) -> dict[str, Numbers]:
    """Every quantity of each image; the masked scores in percent, areas as probabilities."""
    explaining = made.explaining
    assert explaining is not None
    model, images, target = made.trained.model, explaining.images, explaining.target
    maps = explaining.explanation.maps
    lost = blank(maps).numpy()
    found: dict[str, Numbers] = {}
    for of in ("map", *FLOORS):
        shown = maps if of == "map" else floor_maps(of, images)
        whole, masked = masked_scores(model, images, target, shown)
        suffix = "" if of == "map" else f"_of_{of}"
        found |= {
            "whole_score": 100 * whole,
            f"average_drop{suffix}": drops(whole, masked),
            f"confidence_increase{suffix}": increases(whole, masked),
            f"masked_score{suffix}": 100 * masked,
        }
        if of not in ("ones", "random"):  # both are a random order, whose insertion - deletion is 0 by symmetry
            areas = areas_of(made, of)
            found |= {f"deletion{suffix}": areas.deletion, f"insertion{suffix}": areas.insertion}
            found[f"faithfulness{suffix}"] = areas.insertion - areas.deletion
    return {name: np.where(lost, np.nan, values) if name != "whole_score" else values for name, values in found.items()}
