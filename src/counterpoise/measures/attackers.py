"""Attackers who want the hidden label from released images, after the release is final: who they are, what they told.

They learn from released training images (as many of every class), are calibrated and chosen on a fifth that is kept
aside, which a learned filter has not seen either, and are asked about released test images. The strongest on what is
kept aside and on one half of the test images is asked about the other half: what tells most is found, and trying many
flatters none. What it tells is a lower bound on the leak.

- `linear`, `knn`, `mlp`: the probes, on pixels.
- `cnn`: the study's network, fresh.
- `fixed`: the same network trained on raw images, which has never seen a released one: what a naive test would ask.
- `cotrained`: the network that the release was trained against, where there is one; `continued`: trained on.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise.interface import Outcome, Recipe
from counterpoise.measures import probes
from counterpoise.measures._calibration import calibrated
from counterpoise.measures._interval import bootstrap
from counterpoise.measures.probes import SEED, Draw, Reading
from counterpoise.record import Measurement
from counterpoise.training import apply, fit_classifier, generator, steps_per_epoch

NOT_FRESH = frozenset({"fixed", "cotrained"})
"""Attackers who have not learned from released images since the release is final."""
EPOCHS, STEPS, BATCH, RATE = (12, 60), 1000, 64, 2e-3
"""A thousand steps, unless that is fewer epochs than the first or more than the second number."""


@dataclass(frozen=True)
class Attack:
    """What one attacker told: its answers, and its calibrated posteriors (log, [n, classes]) of the asked images.

    `chosen_by` is its calibrated cross-entropy, in nats, on the images kept aside; `aside` is how many they are.
    """

    reading: Reading
    chosen_by: float
    posterior: Tensor
    classes: Tensor
    aside: int

    @property
    def misses(self) -> Tensor:
        """1 where an asked image is told wrongly."""
        return torch.from_numpy(self.reading.answers != self.reading.classes).double()

    @property
    def costs(self) -> Tensor:
        """Cross-entropy of each asked image, in nats."""
        return nn.functional.nll_loss(self.posterior, self.classes, reduction="none")

    @property
    def information(self) -> Measurement:
        """ln C - cross-entropy, in nats: what it can use. Below 0 where it is wrong more surely than guessing."""
        return bootstrap((math.log(self.reading.count) - self.costs).double().numpy())

    @property
    def moves(self) -> Tensor:
        """How far each asked image moves the posterior from guessing, in total variation."""
        return (self.posterior.exp() - 1 / self.reading.count).abs().sum(1) / 2


@dataclass(frozen=True)
class Attacks:
    """All attackers of one outcome; `raw` is the network that was trained on raw images."""

    raw: nn.Module

    def __call__(self, outcome: Outcome) -> dict[str, Attack]:
        """Computed once an outcome."""
        drawn = outcome.once(draw)
        train, test = outcome.released_train, outcome.released_test
        learn, choose, ask = train[drawn.learn], train[drawn.choose], test[drawn.ask]
        rows = probes.rows_of(drawn, train, test)
        found = {}
        for name, fit in probes.FAMILIES.items():
            score = fit(rows)
            found[name] = _attack(name, drawn, score(rows.choose), score(rows.ask))
        networks = {"cnn": self.raw, "fixed": self.raw}
        if train is not outcome.task.train.pixels:
            networks["cnn"] = _taught(_fresh(outcome, drawn), learn, drawn.learn_classes)
        if outcome.trained.adversary is not None:
            opponent = _Chosen(outcome.trained.adversary, drawn.kept)
            networks["cotrained"] = opponent
            networks["continued"] = _taught(copy.deepcopy(opponent), learn, drawn.learn_classes)
        for name, network in networks.items():
            found[name] = _attack(name, drawn, apply(network, choose), apply(network, ask))
        return found


def attacks(baseline: Outcome, candidate: Outcome) -> dict[str, Attack]:
    """What every attacker told of the candidate; the raw network is the baseline's, shared by all candidates."""
    return candidate.once(Attacks(baseline.once(raw_network)))


def strongest(found: dict[str, Attack], *, fresh: bool = False) -> Attack:
    """The attacker with the fewest misses; of those only who learned from the final release, where `fresh`."""
    attacks = [attack for name, attack in found.items() if not (fresh and name in NOT_FRESH)]
    return _crossed(attacks, [(1 - attack.reading.chosen_by, attack.misses) for attack in attacks])


def surest(found: dict[str, Attack]) -> Attack:
    """The attacker whose calibrated posteriors cost least."""
    attacks = list(found.values())
    return _crossed(attacks, [(attack.chosen_by, attack.costs) for attack in attacks])


def _crossed(attacks: list[Attack], costs: list[tuple[float, Tensor]]) -> Attack:
    """For each half of the test images, the attacker that costs least on what is kept aside and on the other half."""
    first = attacks[0]
    half = len(first.classes) // 2
    halves = (slice(0, half), slice(half, None))
    chosen = []
    for other in halves[::-1]:
        totals = [mean * first.aside + float(each[other].sum()) for mean, each in costs]
        chosen.append(attacks[int(np.argmin(totals))])
    if chosen[0] is chosen[1]:
        return chosen[0]
    both = list(zip(chosen, halves, strict=True))
    answers = np.concatenate([attack.reading.answers[part] for attack, part in both])
    posterior = torch.cat([attack.posterior[part] for attack, part in both])
    name = " and ".join(attack.reading.name for attack in chosen)
    by = sum(attack.reading.chosen_by for attack in chosen) / 2
    reading = replace(first.reading, name=name, chosen_by=by, answers=answers)
    return Attack(reading, sum(attack.chosen_by for attack in chosen) / 2, posterior, first.classes, first.aside)


def draw(outcome: Outcome) -> Draw:
    """Which images the attackers learn from and are asked about."""
    label = outcome.task.to_hide("an attacker")
    return probes.draw_apart(outcome.task.train.labels[label], outcome.task.test.labels[label])


def raw_network(outcome: Outcome) -> nn.Module:
    """The study's network, trained to tell the hidden label from raw images."""
    drawn = outcome.once(draw)
    return _taught(_fresh(outcome, drawn), outcome.task.train.pixels[drawn.learn], drawn.learn_classes)


class _Chosen(nn.Module):
    """A network whose outputs for classes that are left out are dropped."""

    def __init__(self, network: nn.Module, kept: tuple[int, ...]) -> None:
        super().__init__()
        self.network, self.kept = network, list(kept)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of the kept classes."""
        logits: Tensor = self.network(images)[:, self.kept]
        return logits


def _fresh(outcome: Outcome, drawn: Draw) -> nn.Module:
    return outcome.task.make_model(outcome.task.train.shape, drawn.count, generator(SEED, "cnn"))


def _taught(network: nn.Module, images: Tensor, classes: Tensor) -> nn.Module:
    """Trained by Adam; few images are shown many times."""
    network.requires_grad_(True)
    wanted = -(-STEPS // steps_per_epoch(len(images), BATCH))
    recipe = Recipe(sorted((*EPOCHS, wanted))[1], BATCH, learning_rate=RATE, optimiser="adam", weight_decay=1e-4)
    fit_classifier(network, images, classes, recipe, SEED)
    return network


def _attack(name: str, drawn: Draw, choosing: Tensor, asking: Tensor) -> Attack:
    """Calibrate on the images it is chosen by, and note what it says."""
    posterior = calibrated(choosing, drawn.choose_classes)
    costs = nn.functional.nll_loss(posterior(choosing), drawn.choose_classes)
    by = float((choosing.argmax(1) == drawn.choose_classes).double().mean())
    answers, truth = asking.argmax(1).numpy().astype(np.int64), drawn.ask_classes
    reading = Reading(name, by, answers, truth.numpy(), drawn.count)
    return Attack(reading, float(costs), posterior(asking), truth, len(choosing))
