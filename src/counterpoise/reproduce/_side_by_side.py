"""Plain SmoothGrad, Sparsified SmoothGrad and ours on one model, at equal numbers of samples."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from scipy.special import ndtri
from torch import Tensor, nn

from counterpoise import training
from counterpoise.explainers import RobustTopK, SmoothGrad
from counterpoise.interface import Explainer, Explaining, Explanation, Images, Outcome, Task, Trained
from counterpoise.measures import Deletion
from counterpoise.measures.map_attack import MapAttack, overlap
from counterpoise.mechanisms.plain import Plain
from counterpoise.reproduce._deck_pairs import BLOCK, Pairs, blocks, mask

SAMPLES = (20, 50, 200, 2000)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Compared:
    """One method at one number of samples; means over images. A radius of None: the method certifies nothing."""

    method: str
    samples: int
    radius: float | None
    certified: float | None
    attacked_overlap: float
    deletion: float
    seconds: float


def sparsified_radius(shares: Tensor, samples: int, k: int, beta: float, noise: float) -> float:
    """The radius of Sparsified SmoothGrad (Levine, Singla and Feizi 2019, theorem 1), as its authors' code has it.

    `shares` are how often each unit was in the top k. With e = sqrt(ln(2n / (1 - confidence)) / (2 samples)) for n
    units, rank i = ceil(beta k) is safe below noise / 2 times the gap between the probits of share[i] - e and of
    share[2k - i + 1] + e.
    """
    ranked = shares.flatten().double().sort(descending=True).values.numpy()
    slack = math.sqrt(math.log(2 * len(ranked) / (1 - CONFIDENCE)) / (2 * samples))
    rank = math.ceil(beta * k - 1e-9)
    held, taken = ranked[rank - 1] - slack, ranked[2 * k - rank] + slack
    if held <= taken:
        return 0.0
    return float(noise / 2 * (ndtri(np.clip(held, 0, 1)) - ndtri(np.clip(taken, 0, 1))))


def compare(
    model: nn.Module, images: Images, label: str, settings: Pairs, seed: int, counts: Sequence[int] = SAMPLES
) -> list[Compared]:
    """Every method at every number of samples, attacked by the same adaptive attack on its own map."""
    target = training.apply(model, images.pixels).argmax(1)
    found = []
    for count in counts:
        ours = {
            "ours, step": RobustTopK(settings.noise, count, settings.k, 0.5, block=BLOCK),
            "ours, sigmoid": RobustTopK(settings.noise, count, settings.k, 0.5, "sigmoid", block=BLOCK),
        }
        methods: dict[str, Explainer] = {"SmoothGrad": SmoothGrad(settings.noise, count), **ours}
        for name, explainer in methods.items():
            started = time.process_time()
            explanation = explainer.explain(model, images.pixels, target, training.generator(seed, "compare"))
            seconds = (time.process_time() - started) / len(images)
            maps, k = explanation.maps, settings.k
            attack = MapAttack(settings.radius, steps=settings.steps, noise=settings.noise, draws=settings.draws)
            moved = attack(model, images.pixels, target, mask(maps, k), training.generator(seed, "attack"))
            again = explainer.explain(model, moved, target, training.generator(seed, "compared again")).maps
            kept = float(overlap(blocks(maps), blocks(again), k).mean())
            deletion = _deletion(model, images, label, target, explanation.maps)
            radii = [c.radius for c in explanation.certificates or () if c is not None]
            radius = float(np.mean(radii)) if radii else None
            certified = float(np.mean([r > 0 for r in radii])) if radii else None
            found.append(Compared(name, count, radius, certified, kept, deletion, seconds))
            if name == "ours, step":  # the same maps: Sparsified SmoothGrad differs in what it certifies of them
                theirs = [sparsified_radius(blocks(m[None])[0] * k, count, k, 0.5, settings.noise) for m in maps]
                mean, share = float(np.mean(theirs)), float(np.mean([r > 0 for r in theirs]))
                found.append(Compared("Sparsified SmoothGrad", count, mean, share, kept, deletion, seconds))
    return found


def _deletion(model: nn.Module, images: Images, label: str, target: Tensor, maps: Tensor) -> float:
    """The area under the deletion curve, by the measure of that name."""
    logits = training.apply(model, images.pixels)
    explaining = Explaining(Decimal(0), images.pixels, target, Explanation(maps), images.pixels, Explanation(maps))
    outcome = Outcome(
        Task(images, images, label, lambda shape, classes, rng: model),
        Plain(),
        Decimal(0),
        Trained(model, nn.Identity()),
        images.pixels,
        images.pixels,
        logits,
        logits,
        logits,
        seed=0,
        explaining=explaining,
    )
    return Deletion()(outcome, outcome).value
