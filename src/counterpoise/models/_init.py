"""What every architecture starts with: weights drawn from one generator (`seeded`), and pixels moved around zero."""

from __future__ import annotations

from torch import Tensor, nn

from counterpoise.training import seeded

__all__ = ["Centre", "seeded"]


class Centre(nn.Module):
    """Pixels in [0, 1] to [-1, 1]. Fixed, not fitted: statistics of the private images would be another release."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Twice the distance from mid-grey."""
        return 2 * pixels - 1
