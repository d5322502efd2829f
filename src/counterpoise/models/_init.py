"""What every architecture starts with: weights drawn from one generator (`seeded`), and pixels moved around zero."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise.training import seeded

__all__ = ["Centre", "Standardise", "normalisation", "seeded"]


class Centre(nn.Module):
    """Pixels in [0, 1] to [-1, 1]. Fixed, not fitted: statistics of the private images would be another release."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Twice the distance from mid-grey."""
        return 2 * pixels - 1


class Standardise(nn.Module):
    """(pixel - mean) / std, channel by channel: what somebody else's weights were trained behind."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, pixels: Tensor) -> Tensor:
        """The standardised pixels."""
        mean, std = (torch.tensor(v, dtype=pixels.dtype, device=pixels.device) for v in (self.mean, self.std))
        return (pixels - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)


def normalisation(norm: str, channels: int) -> list[nn.Module]:
    """The layer of that name, or none; private training needs 'group', as batch statistics mix the examples."""
    if norm == "group":
        return [nn.GroupNorm(min(32, channels), channels)]
    return [nn.BatchNorm2d(channels)] if norm == "batch" else []
