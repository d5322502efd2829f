"""Anonymising images by passing them through a small code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from math import cos, pi, prod
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from counterpoise._check import at_least, positive
from counterpoise.grid import DegreeKind
from counterpoise.interface import Mechanism, Progress, Task, Trained
from counterpoise.mechanisms._codec import Codec
from counterpoise.mechanisms.plain import Plain
from counterpoise.training import State, apply, derive, fit, generator, shuffled_batch, steps_per_epoch


@dataclass(frozen=True)
class Autoencoder:
    """Fits an autoencoder to the training images and trains `then` on their reconstructions.

    `code_ratio` is the size of the code as a share of the image's numbers: .25 of 28 x 28 are 196 units.
    Abbasi, Mori and Saracino, "Trading-Off Privacy, Utility, and Explainability", IEEE TDSC 2025.
    """

    name: ClassVar[str] = "autoencoder"
    kind: ClassVar[DegreeKind] = DegreeKind("code_ratio", "down", Decimal("0.000001"), Decimal(1))
    needs: ClassVar[frozenset[str]] = frozenset()
    privacy_gain: ClassVar[str] = "code_share"
    utility_loss: ClassVar[str] = "pooled_emd"
    code_ratio: Decimal
    then: Mechanism = Plain()  # noqa: RUF009 - frozen
    steps: int = 500
    batch: int = 64
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        self.kind.check(self.code_ratio)
        at_least(0, steps=self.steps)
        at_least(1, batch=self.batch)
        positive(learning_rate=self.learning_rate)

    def units(self, shape: tuple[int, int, int]) -> int:
        """The size of the code for images of this shape, at least 1."""
        return max(1, int((self.code_ratio * prod(shape)).to_integral_value(ROUND_HALF_UP)))

    def blank(self, task: Task) -> Trained:
        """The untrained autoencoder before the untrained network."""
        inner = self.then.blank(task)
        codec = Codec(task.train.shape, self.units(task.train.shape), torch.Generator()).requires_grad_(False).eval()
        return replace(inner, release=nn.Sequential(codec, inner.release), guarantees=())

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """First the reconstruction, by mean squared error; then the inner mechanism on the reconstructed images."""
        seed = derive(rng.initial_seed(), "autoencoder")
        theirs = task.recipe.epochs * steps_per_epoch(len(task.train), task.recipe.batch)
        share = self.steps / (self.steps + theirs) if self.steps else 0.0
        codec = self._fit_codec(task, seed, _part(task.progress, 0, share))
        released = apply(codec, task.train.pixels)
        mse = float(nn.functional.mse_loss(released, task.train.pixels))
        inner_task = replace(
            task, train=replace(task.train, pixels=released), progress=_part(task.progress, share, 1 - share)
        )
        inner = self.then.train(inner_task, generator(seed, "then"))
        if task.checkpoint is not None:
            _own_checkpoint(task.checkpoint).unlink(missing_ok=True)
        # The codec was fitted to the private images and is part of what is released. Whatever the inner mechanism
        # proves holds for its input, the reconstructions, and says nothing about the images the codec has seen.
        return Trained(
            inner.model,
            nn.Sequential(codec, inner.release),
            guarantees=(),
            facts={**inner.facts, "code_units": float(codec.units), "reconstruction_mse": mse},
        )

    def _fit_codec(self, task: Task, seed: int, progress: Progress) -> Codec:
        pixels = task.train.pixels
        rng = generator(seed, "codec")
        codec = Codec(task.train.shape, self.units(task.train.shape), rng)
        codec.start(pixels, rng)
        optimiser = torch.optim.Adam([weight for weight in codec.parameters() if weight.requires_grad])

        def step(index: int) -> None:
            batch = pixels[shuffled_batch(len(pixels), self.batch, seed, index)]
            # A rate that falls to zero: a code that is nearly perfect from the start must not be left shaken.
            for group in optimiser.param_groups:
                group["lr"] = self.learning_rate * (1 + cos(pi * index / self.steps)) / 2
            optimiser.zero_grad()
            loss: Tensor = nn.functional.mse_loss(codec(batch), batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

        checkpoint = None if task.checkpoint is None else _own_checkpoint(task.checkpoint)
        state: State = {"codec": codec, "optimiser": optimiser}
        fit(step, self.steps, state, progress=progress, checkpoint=checkpoint)
        return codec.requires_grad_(False).eval()


def _part(progress: Progress, start: float, width: float) -> Progress:
    """Reports a stage's progress as a part of the whole."""
    return lambda done: progress(min(1.0, start + width * done))


def _own_checkpoint(path: Path) -> Path:
    """Beside the inner mechanism's, so that neither overwrites the other."""
    return path.with_name(f"{path.name}.codec")
