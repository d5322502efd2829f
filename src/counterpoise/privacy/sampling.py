"""Which images a step sees. The sampler also says what an accountant may assume, so the two cannot differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.privacy.noise import secure_uniform


def _check_sizes(n: int, batch: int) -> None:
    _check.at_least(1, n=n, batch=batch)
    if batch > n:
        raise InputError(f"batch={batch} must be at most the {n} images there are: the sample rate would exceed 1.")


@dataclass(frozen=True)
class Poisson:
    """Every image joins every step by its own coin, of chance batch / n. Batches vary in size and may be empty."""

    n: int
    batch: int
    name: ClassVar[Literal["poisson"]] = "poisson"

    def __post_init__(self) -> None:
        _check_sizes(self.n, self.batch)

    @property
    def rate(self) -> float:
        """The chance of one image to be in a step."""
        return self.batch / self.n

    def steps(self, epochs: float) -> int:
        """How many steps use every image `epochs` times on average."""
        return max(1, round(epochs * self.n / self.batch))

    def draw(self, index: int, rng: torch.Generator | None) -> Tensor:
        """The indices of one step. Coins are doubles: single precision would round the chance.

        Without a generator they come from the operating system: who guesses the coins undoes the sampling.
        """
        if rng is None:
            return torch.from_numpy(secure_uniform(self.n) <= self.rate).nonzero().flatten()
        return (torch.rand(self.n, generator=rng, dtype=torch.float64) < self.rate).nonzero().flatten()


@dataclass(frozen=True)
class FullBatch:
    """Every step sees all images."""

    n: int
    name: ClassVar[Literal["full"]] = "full"
    rate: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check.at_least(1, n=self.n)

    @property
    def batch(self) -> int:
        """All of them."""
        return self.n

    def steps(self, epochs: float) -> int:
        """One step an epoch."""
        return max(1, round(epochs))

    def draw(self, index: int, rng: torch.Generator | None) -> Tensor:
        """All indices."""
        return torch.arange(self.n)


@dataclass(frozen=True)
class Shuffled:
    """Batches of a fresh shuffle each pass, as ordinary training has them.

    Nothing is gained from the shuffle in the accounts: each pass is one full use of every image.
    """

    n: int
    batch: int
    name: ClassVar[Literal["shuffle"]] = "shuffle"

    def __post_init__(self) -> None:
        _check_sizes(self.n, self.batch)

    @property
    def rate(self) -> float:
        """The share of a pass that one step is: the reciprocal of the number of its batches."""
        return 1 / -(-self.n // self.batch)

    def steps(self, epochs: float) -> int:
        """As many batches as the passes have."""
        return max(1, round(epochs * -(-self.n // self.batch)))

    def draw(self, index: int, rng: torch.Generator | None) -> Tensor:
        """The indices of batch `index`. The order of a pass is drawn anew from the generator's seed and the pass."""
        epoch, position = divmod(index, -(-self.n // self.batch))
        seed = ((rng.initial_seed() if rng else 0) + 0x9E3779B97F4A7C15 * (epoch + 1)) % 2**63
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(seed))
        return order[position * self.batch : (position + 1) * self.batch]


Sampling = Poisson | FullBatch | Shuffled
