"""The filters of the synthetic case: a linear map, or a small network, of two numbers; and N(0, I) on what comes out.

Rows come in units of that noise: 0 and 1 are UNIT apart, so a filter that changes nothing is nearly a copy, and one
network can be the provider's for raw and for filtered rows. The noise at the end is fixed. A filter that may make it
small can write the secret where the attackers' networks are too coarse to look, and the game ends in a copy that looks
private; here what lies closer than 1 is lost to everybody.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise.mechanisms.filters import Filter

UNIT = 6.0
"""Standard deviations of the noise between 0 and 1 of a raw row."""
HIDDEN = 64
INNER = 2
"""Numbers by chance that the network is given beside the row."""


class Mixing(Filter):
    """q = c(x, y) + z, with y and z standard normal: given c, a Gaussian."""

    inner = 0

    def noise_shape(self, rows: Tensor) -> tuple[int, ...]:
        """y, then z."""
        return len(rows), self.inner + 2

    def centres(self, rows: Tensor, chance: Tensor) -> Tensor:
        """c(x, y)."""
        raise NotImplementedError

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        """The filtered rows."""
        return self.centres(rows, noise[:, : self.inner]) + noise[:, self.inner :]


class Linear(Mixing):
    """c = M x + b, at first x."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(2, 2)
        with torch.no_grad():
            self.map.weight.copy_(torch.eye(2))
            self.map.bias.zero_()

    def centres(self, rows: Tensor, chance: Tensor) -> Tensor:
        """The mapped rows."""
        mapped: Tensor = self.map(rows)
        return mapped


class Dense(Mixing):
    """c = x + UNIT f(x / UNIT, y), f with two hidden layers, its last one zero at first."""

    inner = INNER

    def __init__(self) -> None:
        super().__init__()
        self.learned = nn.Sequential(
            nn.Linear(2 + INNER, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(), nn.Linear(HIDDEN, 2)
        )
        for weight in self.learned[-1].parameters():
            nn.init.zeros_(weight)

    def centres(self, rows: Tensor, chance: Tensor) -> Tensor:
        """The moved rows."""
        moved: Tensor = rows + UNIT * self.learned(torch.cat([rows / UNIT, chance], 1))
        return moved


FILTERS: dict[str, type[Mixing]] = {"linear": Linear, "MLP": Dense}
