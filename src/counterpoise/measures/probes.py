"""Probes: fresh readers that try to tell a class from rows of numbers, whatever the rows are.

The rows may be a layer's features, released images or predictions; nothing here knows how they came about. Readers
learn from training images, as many of every class as of any other, and are asked about unseen test images, balanced
likewise: so guessing is right once in C times, and a class's share tells nothing. A quarter of the training images
chooses between readers; the test images are asked once. Whoever reads nothing may have tried too little: a reading is
a lower bound on what the rows tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Recipe
from counterpoise.measures._interval import Values, bootstrap
from counterpoise.record import Measurement
from counterpoise.representation.erasure import Eraser
from counterpoise.training import apply, fit_classifier, generator, kept_aside, seeded, steps_per_epoch

SEED = 20_251
MOST_TRAIN, MOST_TEST = 4000, 2000
LEAST_TRAIN, LEAST_TEST = 8, 2
"""Images of a class below which it is left out: nothing could be learned, or asked, about it."""
WIDEST = 3000
"""Columns above which rows are turned onto the axes that the rows to learn from span."""
NEIGHBOURS = 10
HIDDEN = 128
PERMUTATIONS = 999
BATCH = 64


@dataclass(frozen=True)
class Draw:
    """Which images are used, equally many of every class: to learn from, to choose by, and to be asked about.

    Classes are numbered anew, 0 ... count - 1; `kept` are their old numbers.
    """

    kept: tuple[int, ...]
    learn: Tensor
    learn_classes: Tensor
    choose: Tensor
    choose_classes: Tensor
    ask: Tensor
    ask_classes: Tensor

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.kept)


@dataclass(frozen=True)
class Material:
    """Balanced, standardised rows: to learn from, to choose by, and to be asked about. Classes are 0 ... count - 1.

    `turned` tells that the columns are axes that the rows to learn from have made.
    """

    learn: Tensor
    learn_classes: Tensor
    choose: Tensor
    choose_classes: Tensor
    ask: Tensor
    ask_classes: Tensor
    count: int
    turned: bool = False


@dataclass(frozen=True)
class Reading:
    """What one reader told: its share of hits while choosing, and its answers on the test images."""

    name: str
    chosen_by: float
    answers: NDArray[np.int64]
    classes: NDArray[np.int64]
    count: int

    @property
    def accuracy(self) -> Measurement:
        """Share of the balanced test images told rightly."""
        return bootstrap((self.answers == self.classes).astype(np.float64))

    @property
    def leak(self) -> Measurement:
        """(accuracy - 1/C) / (1 - 1/C): 0 for guessing, 1 where every image is told."""
        chance = 1 / self.count

        def above(means: Values) -> Values:
            return (means[..., 0] - chance) / (1 - chance)

        return bootstrap((self.answers == self.classes).astype(np.float64), above)

    @property
    def p_value(self) -> float:
        """How often the true classes in random order would be met as well: an exact test of "the rows tell nothing".

        The reader never saw the test images, so under that hypothesis every order of their classes is equally likely.
        """
        rng = np.random.default_rng(SEED)
        seen = (self.answers == self.classes).mean()
        null = [(self.answers == rng.permutation(self.classes)).mean() for _ in range(PERMUTATIONS)]
        return float(1 + sum(value >= seen for value in null)) / (1 + PERMUTATIONS)


def draw(train_classes: Tensor, test_classes: Tensor) -> Draw:
    """Balanced indices; classes with too few images are left out."""
    enough = tuple(readable(train_classes, test_classes))
    fitted, wanted = _draw(train_classes, enough, MOST_TRAIN, 1)
    asked, truth = _draw(test_classes, enough, MOST_TEST, 2)
    held = len(fitted) // 4
    return Draw(enough, fitted[held:], wanted[held:], fitted[:held], wanted[:held], asked, truth)


def draw_apart(train_classes: Tensor, test_classes: Tensor) -> Draw:
    """The same, but chosen by images that a filter that was trained on the others has never seen."""
    learned, aside = kept_aside(len(train_classes))
    readable(train_classes, test_classes)
    enough = tuple(readable(train_classes[aside], test_classes, least=LEAST_TEST))
    parts = [
        _draw(classes, enough, most, purpose)
        for classes, most, purpose in (
            (train_classes[learned], MOST_TRAIN, 1),
            (train_classes[aside], MOST_TRAIN // 4, 3),
            (test_classes, MOST_TEST, 2),
        )
    ]
    (learn, learn_classes), (choose, choose_classes), (ask, ask_classes) = parts
    return Draw(enough, learned[learn], learn_classes, aside[choose], choose_classes, ask, ask_classes)


def material(train: Tensor, train_classes: Tensor, test: Tensor, test_classes: Tensor) -> Material:
    """The rows of a balanced draw, standardised by the training rows."""
    return rows_of(draw(train_classes, test_classes), train, test)


def rows_of(drawn: Draw, train: Tensor, test: Tensor) -> Material:
    """What was drawn, as rows standardised by the training rows."""
    held = len(drawn.choose)
    fitted = torch.cat([drawn.choose, drawn.learn])
    rows, unseen = train[fitted].flatten(1).float(), test[drawn.ask].flatten(1).float()
    mean, spread = rows.mean(0), rows.std(0)
    spread = torch.where(spread > 1e-6 * spread.max().clamp(min=1e-12), spread, torch.ones(()))
    rows, unseen = (rows - mean) / spread, (unseen - mean) / spread
    parts, wide = (rows[held:], rows[:held], unseen), rows.shape[1] > WIDEST
    learn, choose, ask = turn(*parts) if wide else parts
    return Material(learn, drawn.learn_classes, choose, drawn.choose_classes, ask, drawn.ask_classes, drawn.count, wide)


def readable(train_classes: Tensor, test_classes: Tensor, least: int = LEAST_TRAIN) -> list[int]:
    """The classes that a reader can learn and be asked about; a sentence where they are not two."""
    enough = [
        label
        for label in range(int(max(train_classes.max(), test_classes.max())) + 1)
        if int((train_classes == label).sum()) >= least and int((test_classes == label).sum()) >= LEAST_TEST
    ]
    if len(enough) < 2:
        raise InputError(
            f"probes need at least two hidden classes with {least} training and {LEAST_TEST} test images each,"
            f" not {len(enough)}; take more images, or hide another label."
        )
    return enough


def read(given: Material) -> dict[str, Reading]:
    """What each family of readers tells."""
    found = {}
    for name, fit in FAMILIES.items():
        score = fit(given)
        by = float((score(given.choose).argmax(1) == given.choose_classes).float().mean())
        answers = score(given.ask).argmax(1).numpy()
        found[name] = Reading(name, by, answers, given.ask_classes.numpy(), given.count)
    return found


def best(readings: dict[str, Reading]) -> Reading:
    """The reader that told most of the images it was chosen by: the test images do not choose."""
    return max(readings.values(), key=lambda reading: reading.chosen_by)


def erased(given: Material) -> Material:
    """The same rows after LEACE, fitted to the training rows: what no linear reader can tell any more."""
    eraser = Eraser(given.learn.shape[1]).fit(given.learn, given.learn_classes)
    learn, choose, ask = (apply(eraser, rows) for rows in (given.learn, given.choose, given.ask))
    return replace(given, learn=learn, choose=choose, ask=ask)


Score = Callable[[Tensor], Tensor]
"""Rows to one number a class; the largest is what the reader says."""


def linear(given: Material) -> Score:
    """Logistic regression."""
    return fitted(nn.Linear(given.learn.shape[1], given.count), given.learn, given.learn_classes)


def multilayer(given: Material) -> Score:
    """One hidden layer of 128 units."""
    with seeded(generator(SEED, "mlp")):
        network = nn.Sequential(
            nn.Linear(given.learn.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(0.2), nn.Linear(HIDDEN, given.count)
        )
    return fitted(network, given.learn, given.learn_classes)


def nearest(given: Material) -> Score:
    """The most frequent class of the 10 nearest training rows, by log(votes + 1/C); ties go to the nearer sum."""

    def score(rows: Tensor) -> Tensor:
        distances, near = torch.cdist(rows, given.learn).topk(min(NEIGHBOURS, len(given.learn)), largest=False)
        votes = torch.zeros(len(rows), given.count)
        # Nearness breaks ties, and is too small to outvote a neighbour.
        weights = 1 - 1e-3 * distances / distances.amax(1, keepdim=True).clamp(min=1e-12)
        return (votes.scatter_add(1, given.learn_classes[near], weights).double() + 1 / given.count).log()

    return score


def fitted(network: nn.Module, rows: Tensor, classes: Tensor, least: int = 600, epochs: int = 30) -> Score:
    """Trained by Adam with a little weight decay, for at least so many steps; a linear reader starts at zero."""
    if isinstance(network, nn.Linear):
        nn.init.zeros_(network.weight)
        nn.init.zeros_(network.bias)
    longer = max(epochs, -(-least // steps_per_epoch(len(rows), BATCH)))
    recipe = Recipe(longer, BATCH, learning_rate=2e-3, optimiser="adam", weight_decay=1e-4)
    fit_classifier(network, rows, classes, recipe, SEED)
    return lambda asked: apply(network, asked)


FAMILIES: dict[str, Callable[[Material], Score]] = {"linear": linear, "knn": nearest, "mlp": multilayer}


def _draw(classes: Tensor, kept: tuple[int, ...], most: int, purpose: int) -> tuple[Tensor, Tensor]:
    """Indices of equally many images of each kept class, shuffled, and their classes renumbered."""
    sizes = [int((classes == label).sum()) for label in kept]
    size = min(*sizes, most // len(kept))
    chosen, numbers = [], []
    for number, label in enumerate(kept):
        members = torch.nonzero(classes == label).flatten()
        order = torch.randperm(len(members), generator=generator(SEED, purpose, label))[:size]
        chosen.append(members[order])
        numbers.append(torch.full((size,), number))
    shuffle = torch.randperm(size * len(kept), generator=generator(SEED, purpose, "order"))
    return torch.cat(chosen)[shuffle], torch.cat(numbers)[shuffle]


def turn(learn: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Rows as coordinates in the space that the rows to learn from span, all on one scale.

    Distances to those rows keep their order. No other row may have a part in the axes: on axes of its own making, what
    is learned from the rest tells it wrongly, and a reader that tells nothing would be chosen. No square matrix of the
    width is made.
    """
    values, axes = torch.linalg.eigh(learn @ learn.T)
    kept = values > 1e-6 * values[-1]
    scale = (values[kept].mean() / len(learn)).sqrt()
    found = axes[:, kept] / values[kept].sqrt() / scale
    # Turned at random: Adam would take equal steps along principal axes, the least of which are noise.
    anyhow = torch.linalg.qr(torch.randn(2 * found.shape[1:], generator=generator(SEED, "turn"))).Q
    onto = learn.T @ (found @ anyhow)
    return learn @ onto, *(rows @ onto for rows in others)
