"""A fixed division into training and test images, the same on every machine."""

from __future__ import annotations

import torch
from torch import Tensor

from counterpoise._check import inside
from counterpoise.training import generator


def stratified(labels: Tensor, test_share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of the training and of the test images, in increasing order.

    Each class gives the same share to the test, and keeps at least one image on each side where it has two.
    """
    inside(0, 1, test_share=test_share)
    test = torch.zeros(len(labels), dtype=torch.bool)
    for label in sorted(set(labels.tolist())):
        members = torch.nonzero(labels == label).flatten()
        order = torch.randperm(len(members), generator=generator(seed, "split", label))
        wanted = min(max(round(test_share * len(members)), 1), len(members) - 1)
        test[members[order[:wanted]]] = True
    return torch.nonzero(~test).flatten(), torch.nonzero(test).flatten()


def subset(n: int, limit: int | None) -> Tensor:
    """All indices, or `limit` of them drawn once and for all, in increasing order."""
    if limit is None or limit >= n:
        return torch.arange(n)
    return torch.randperm(n, generator=generator(0, "limit"))[:limit].sort().values
