"""Original and attacked pairs on one model: what its predictions and its maps do, plain and smoothed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib import colormaps
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from counterpoise import training
from counterpoise._files import replacing
from counterpoise.explainers import RobustTopK, SmoothGrad
from counterpoise.measures.map_attack import MapAttack, most_important, overlap

BLOCK = 4
"""Maps are compared in blocks of 4 x 4 pixels: 64 of a 32 x 32 image."""


@dataclass(frozen=True)
class Pairs:
    """How a pair is made and judged. `k` counts blocks."""

    k: int = 16
    radius: float = 0.5
    noise: float = 0.25
    samples: int = 400
    steps: int = 12
    draws: int = 8

    def explainer(self) -> RobustTopK:
        """The smoothed explainer of the comparison."""
        return RobustTopK(noise=self.noise, samples=self.samples, k=self.k, beta=0.5, block=BLOCK)


@dataclass(frozen=True)
class Seen:
    """Maps of originals and of attacked images, and what was certified, image by image.

    `plain` and `smoothed` are [2, n, high, wide], in blocks: the maps of the originals, then those of the attacked.
    """

    images: Tensor
    attacked_plain: Tensor
    attacked_smoothed: Tensor
    plain: Tensor
    smoothed: Tensor
    radii: Tensor
    predictions: Tensor
    labels_kept: Tensor
    contradicted: Tensor

    def row(self, k: int) -> dict[str, float]:
        """One line of the table, all means over images."""
        return {
            "prediction_cosine": float(self.predictions.mean()),
            "labels_kept": float(self.labels_kept.float().mean()),
            "plain_cosine": float(cosine(self.plain[0], self.plain[1]).mean()),
            "plain_overlap": float(overlap(self.plain[0], self.plain[1], k).mean()),
            "smoothed_cosine": float(cosine(self.smoothed[0], self.smoothed[1]).mean()),
            "smoothed_overlap": float(overlap(self.smoothed[0], self.smoothed[1], k).mean()),
            "certified_radius": float(self.radii.mean()),
            "abstained": float((self.radii == 0).double().mean()),
            "contradicted": int(self.contradicted.sum()),
        }


def kept_pairs(path: Path, model: nn.Module, images: Tensor, settings: Pairs, seed: int) -> Seen:
    """The pairs from the file, which is named by all that they depend on; made, and kept there, where it is missing."""
    try:
        return Seen(**load_file(path))
    except (FileNotFoundError, SafetensorError, TypeError):  # not there, or damaged: made again
        seen = pairs_of(model, images, settings, seed)
    with replacing(path) as beside:
        save_file({name: value.contiguous() for name, value in vars(seen).items()}, beside)
    return seen


def pairs_of(model: nn.Module, images: Tensor, settings: Pairs, seed: int) -> Seen:
    """Attack plain saliency and the smoothed map, each with the attack made for it, and explain both again."""
    target = training.apply(model, images).argmax(1)
    plain = SmoothGrad(noise=0)
    robust = settings.explainer()
    rng = training.generator(seed, "pairs")
    clean = plain.explain(model, images, target, rng).maps
    found = robust.explain(model, images, target, rng)
    certificates = [certificate for certificate in found.certificates or () if certificate is not None]
    by_plain = MapAttack(settings.radius, steps=settings.steps)(model, images, target, mask(clean, settings.k), rng)
    adaptive = MapAttack(settings.radius, steps=settings.steps, noise=settings.noise, draws=settings.draws)
    by_noise = adaptive(model, images, target, mask(found.maps, settings.k), rng)
    # Fresh noise for the attacked images: an attack must not be judged by the draws it could have learned.
    again = [
        robust.explain(model, moved, target, training.generator(seed, "again")).maps for moved in (by_plain, by_noise)
    ]
    worse = overlap(blocks(found.maps), blocks(again[0]), settings.k) < overlap(
        blocks(found.maps), blocks(again[1]), settings.k
    )
    moved_maps = torch.where(worse[:, None, None], again[0], again[1])
    distance = (by_plain - images).flatten(1).norm(dim=1).where(worse, (by_noise - images).flatten(1).norm(dim=1))
    kept = overlap(blocks(found.maps), blocks(moved_maps), settings.k)
    radii = torch.tensor([certificate.radius for certificate in certificates], dtype=torch.float64)
    promised = torch.tensor([float(certificate.beta) for certificate in certificates], dtype=torch.float64)
    before, after = (training.apply(model, x).softmax(1) for x in (images, by_plain))
    return Seen(
        images,
        by_plain,
        torch.where(worse[:, None, None, None], by_plain, by_noise),
        torch.stack([blocks(clean), blocks(plain.explain(model, by_plain, target, rng).maps)]),
        torch.stack([blocks(found.maps), blocks(moved_maps)]),
        radii,
        (before * after).sum(1) / (before.norm(dim=1) * after.norm(dim=1)),
        training.apply(model, by_plain).argmax(1) == target,
        (kept < promised) & (distance < radii),
    )


def blocks(maps: Tensor) -> Tensor:
    """The mean of each block."""
    return nn.functional.avg_pool2d(maps[:, None], BLOCK)[:, 0]


def cosine(one: Tensor, two: Tensor) -> Tensor:
    """Of whole maps; in [0, 1], as no map here is negative. 0 where a map is blank."""
    a, b = one.double().flatten(1), two.double().flatten(1)
    return torch.nn.functional.cosine_similarity(a, b, dim=1, eps=1e-300)


def mask(maps: Tensor, k: int) -> Tensor:
    """True on the pixels of the k largest blocks."""
    return most_important(blocks(maps), k).repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)


def gallery(rows: Sequence[Seen], count: int) -> NDArray[np.uint8]:
    """A row a model and image: image, attacked, plain map of both; attacked for the smoothed map, its maps of both."""

    def heat(values: Tensor) -> NDArray[np.uint8]:
        big = values.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        scaled = (big / big.max().clamp(min=1e-20)).numpy()
        coloured: NDArray[np.uint8] = (colormaps["inferno"](scaled)[..., :3] * 255).astype(np.uint8)
        return coloured

    def photo(pixels: Tensor) -> NDArray[np.uint8]:
        picture: NDArray[np.uint8] = (pixels.permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
        return picture

    lines = []
    for seen in rows:
        for i in range(min(count, len(seen.images))):
            tiles = [
                photo(seen.images[i]),
                photo(seen.attacked_plain[i]),
                heat(seen.plain[0][i]),
                heat(seen.plain[1][i]),
            ]
            tiles += [photo(seen.attacked_smoothed[i]), heat(seen.smoothed[0][i]), heat(seen.smoothed[1][i])]
            lines.append(np.concatenate([np.pad(t, ((1, 1), (1, 1), (0, 0)), constant_values=255) for t in tiles], 1))
    return np.concatenate(lines).repeat(4, 0).repeat(4, 1)
