"""How the game of the filter stands: what was seen at every check, and the best players so far."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Point:
    """The game at one check: information in nats as its networks see it, on rows kept aside.

    `secret`, about I(S;Q), is what the attackers can use: H(S) - cross-entropy, summed over secrets. `lost`, about
    I(U;X|Q), is the mean KL(p(u|x) || p(u|q)). They are estimates by these networks, and bound nothing.
    """

    step: int
    alpha: float
    secret: float
    lost: float
    loss: float


class Monitor(nn.Module):
    """What was seen at every check, and the best players so far; a module, so that it is saved with the rest."""

    points: Tensor
    least: Tensor

    def __init__(self, players: nn.Module, checks: int) -> None:
        super().__init__()
        self.best = copy.deepcopy(players)
        self.register_buffer("points", torch.full((checks, 5), torch.nan, dtype=torch.float64))
        self.register_buffer("least", torch.tensor(torch.inf, dtype=torch.float64))

    def restart(self, players: nn.Module, *, go_on: bool) -> None:
        """Another alpha: the players go on from the best so far, which nobody is compared with any more."""
        if go_on:
            players.load_state_dict(self.best.state_dict())
        self.least.fill_(torch.inf)

    def note(self, row: int, point: Point, players: nn.Module) -> None:
        """Keep the point, and the players if they are the best."""
        values = (point.step, point.alpha, point.secret, point.lost, point.loss)
        self.points[row] = torch.tensor(values, dtype=torch.float64)
        if point.loss <= float(self.least):
            self.least.fill_(point.loss)
            self.best.load_state_dict(players.state_dict())

    def trajectory(self) -> tuple[Point, ...]:
        """All points, in order."""
        return tuple(Point(int(row[0]), *row[1:]) for row in self.points.tolist())
