"""What a model still says when pixels are taken away, or given back, in the order of a map."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from counterpoise.interface import Outcome
from counterpoise.measures._explained import explained
from counterpoise.measures._maps import Of, floor_maps
from counterpoise.training import apply

STEPS = 20
SEED = 0
CHUNK_VALUES = 2**18


class Areas(NamedTuple):
    """The area under each image's deletion and insertion curve, both [n]."""

    deletion: NDArray[np.float64]
    insertion: NDArray[np.float64]


def areas_of(outcome: Outcome, of: Of) -> Areas:
    """Areas in the order of the maps, or of a floor; each computed once, a floor once for all degrees."""
    if of == "map":
        return outcome.once(map_areas)
    seen = explained(outcome, "deletion and insertion")
    return outcome.once(_FLOOR_AREAS[of], outcome.trained.model, seen.images, seen.target)


def map_areas(outcome: Outcome) -> Areas:
    """Areas in the order of the candidate's maps, the most important pixel first."""
    return _ranked(outcome, explained(outcome, "deletion and insertion").explanation.maps.flatten(1))


def _ranked(outcome: Outcome, maps: Tensor) -> Areas:
    # Equal values follow a random order, not the reading order: a blank map is then worth what a random one is.
    shuffled = _random_order(maps)
    ranked = maps.gather(1, shuffled).argsort(dim=1, descending=True, stable=True)
    return _areas(outcome, shuffled.gather(1, ranked))


def random_areas(outcome: Outcome) -> Areas:
    """Areas in a random order, the same for every degree and mechanism: the floor. It needs no map."""
    return _areas(outcome, _random_order(explained(outcome, "deletion and insertion").explanation.maps.flatten(1)))


def _ones_areas(outcome: Outcome) -> Areas:
    """A flat map follows the random order."""
    return random_areas(outcome)


def _centre_areas(outcome: Outcome) -> Areas:
    return _ranked(outcome, floor_maps("centre", explained(outcome, "deletion and insertion").images).flatten(1))


def _edges_areas(outcome: Outcome) -> Areas:
    return _ranked(outcome, floor_maps("edges", explained(outcome, "deletion and insertion").images).flatten(1))


_FLOOR_AREAS: dict[Of, Callable[[Outcome], Areas]] = {
    "ones": _ones_areas,
    "random": random_areas,
    "centre": _centre_areas,
    "edges": _edges_areas,
}


def _random_order(maps: Tensor) -> Tensor:
    keys = np.random.default_rng(SEED).random(tuple(maps.shape))
    return torch.from_numpy(keys.argsort(axis=1))


def _areas(outcome: Outcome, order: Tensor) -> Areas:
    """Both areas for pixels taken, or given, in this order [n, pixels]."""
    explaining = explained(outcome, "deletion and insertion")
    images = explaining.images
    counts = step_counts(order.shape[1])
    rank = order.argsort(dim=1).view(len(images), 1, *images.shape[2:])
    per_pass = max(1, CHUNK_VALUES // (images[0].numel() * 2 * len(counts)))
    curves = [
        _curves(outcome.trained.model, x, r, y, counts)
        for x, r, y in zip(
            torch.split(images, per_pass),
            torch.split(rank, per_pass),
            torch.split(explaining.target, per_pass),
            strict=True,
        )
    ]
    taken = counts.double().numpy() / order.shape[1]
    deletion, insertion = (np.concatenate(parts) for parts in zip(*curves, strict=True))
    return Areas(np.trapezoid(deletion, taken, axis=1), np.trapezoid(insertion, taken, axis=1))


def step_counts(pixels: int) -> Tensor:
    """How many pixels are gone at each step, 0 and all included, and the same seen from both ends."""
    half = np.round(np.linspace(0, pixels / 2, STEPS // 2 + 1)).astype(np.int64)
    return torch.from_numpy(np.union1d(half, pixels - half))


def _curves(
    model: nn.Module, images: Tensor, rank: Tensor, target: Tensor, counts: Tensor
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probability of the target class after each step, [n, steps], for deletion and for insertion.

    A pixel that is away shows its image's mean colour, which needs no training image and is not dark by nature.
    """
    fill = images.mean((2, 3), keepdim=True)
    gone = rank[:, None] < counts.view(1, -1, 1, 1, 1)
    without = torch.where(gone, fill[:, None], images[:, None])
    # Full and blank images end both curves: they are asked about once.
    only = torch.where(gone[:, 1:-1], images[:, None], fill[:, None])
    asked = torch.cat([without, only], dim=1)
    logits = apply(model, asked.flatten(0, 1), chunk=len(asked) * asked.shape[1])
    said = logits.double().softmax(1).view(*asked.shape[:2], -1)
    chosen = said.gather(2, target.view(-1, 1, 1).expand(-1, said.shape[1], 1)).squeeze(2).numpy()
    deletion = chosen[:, : len(counts)]
    insertion = np.concatenate([deletion[:, -1:], chosen[:, len(counts) :], deletion[:, :1]], axis=1)
    return deletion, insertion
