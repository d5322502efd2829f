"""A model whose smoothed gradients, variances and path integrals are known exactly."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SIDE = 3
PIXELS = SIDE * SIDE


def rng(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Quadratic(nn.Module):
    """Two logits; the second is 0.5 x'Ax + b'x, whose gradient Ax + b is positive on [0, 1] where b is 9."""

    def __init__(self, b: float = 9.0) -> None:
        super().__init__()
        root = torch.randn(PIXELS, PIXELS, generator=rng(1), dtype=torch.float64)
        self.a = nn.Parameter(root @ root.T / PIXELS + 0.2 * torch.eye(PIXELS, dtype=torch.float64))
        self.b = nn.Parameter(torch.full((PIXELS,), b, dtype=torch.float64))

    def forward(self, images: Tensor) -> Tensor:
        x = images.flatten(1)
        score = 0.5 * ((x @ self.a) * x).sum(1) + x @ self.b
        logits: Tensor = torch.stack([torch.zeros_like(score), score], dim=1)
        return logits

    def gradient(self, images: Tensor) -> Tensor:
        """Ax + b."""
        found: Tensor = images.flatten(1) @ self.a.detach() + self.b.detach()
        return found
