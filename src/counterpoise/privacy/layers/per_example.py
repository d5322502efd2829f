"""One parameter's gradients of all examples, each in the form that is cheapest to take norms and sums of.

A gradient that is a product of two small matrices never has to be written out: its norm follows from their
Gram matrices, and the weighted sum over examples is one product of two tall ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

Norm = Literal[1, 2]

_CHUNK = 2**18
"""How many numbers fit into the cache (1 MB): larger temporaries cost more time than their arithmetic."""


def some_at_a_time(n: int, size: int) -> Iterator[slice]:
    """Slices of n examples of so many numbers each, such that a temporary for one of them stays in the cache."""
    step = max(1, _CHUNK // max(1, size))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def positions_last(maps: Tensor) -> Tensor:
    """[n, c, ...] as [n, c, positions], without a copy whether channels or positions lie together in memory."""
    if maps.is_contiguous() or maps.ndim != 4:
        return maps.reshape(*maps.shape[:2], -1)
    image = maps.contiguous(memory_format=torch.channels_last)
    return image.permute(0, 2, 3, 1).flatten(1, 2).transpose(1, 2)


class PerExample(Protocol):
    """The gradients of n examples with respect to one parameter."""

    def powers(self, norm: Norm) -> Tensor:
        """Each example's sum of |gradient|^norm: [n]."""

    def total(self, weights: Tensor) -> Tensor:
        """The sum over examples of weight * gradient, in the parameter's shape."""

    def each(self) -> Tensor:
        """All gradients written out: [n, *shape]."""


@dataclass(frozen=True)
class Kept:
    """Gradients written out, flat or not; `arrange` brings a flat one into the parameter's shape."""

    gradients: Tensor
    arrange: Callable[[Tensor], Tensor] | None = None

    def powers(self, norm: Norm) -> Tensor:
        """By definition."""
        norms: Tensor = torch.linalg.vector_norm(self.gradients.flatten(1), norm, 1)
        return norms if norm == 1 else norms.square()

    def total(self, weights: Tensor) -> Tensor:
        """One pass over them."""
        flat = weights @ self.gradients.flatten(1)
        return flat.view(self.gradients.shape[1:]) if self.arrange is None else self.arrange(flat)

    def each(self) -> Tensor:
        """They are at hand."""
        if self.arrange is None:
            return self.gradients
        return torch.stack([self.arrange(flat) for flat in self.gradients])


@dataclass(frozen=True)
class Outer:
    """Sums over positions of outer products: `signals` [n, p, out] with `inputs` [n, p, in] give [out, in]."""

    inputs: Tensor
    signals: Tensor

    def powers(self, norm: Norm) -> Tensor:
        """At one position, the product of two vectors' norms; at several, the product of two Gram matrices."""
        if self.inputs.shape[1] == 1:
            inputs, signals = self.inputs[:, 0], self.signals[:, 0]
            return Kept(inputs).powers(norm) * Kept(signals).powers(norm)
        if norm == 1:
            return Kept(self.each()).powers(norm)
        return gram_product(self.inputs, self.signals)

    def total(self, weights: Tensor) -> Tensor:
        """One matrix product over examples and positions together."""
        weighted = self.signals * weights[:, None, None]
        return weighted.flatten(0, 1).t() @ self.inputs.flatten(0, 1)

    def each(self) -> Tensor:
        """One matrix product an example."""
        return torch.bmm(self.signals.transpose(1, 2), self.inputs)


def outer(inputs: Tensor, signals: Tensor, norm: Norm) -> PerExample:
    """The cheaper form of a sum of outer products."""
    product = Outer(inputs, signals)
    positions, wide, high = inputs.shape[1], inputs.shape[2], signals.shape[2]
    by_gram = positions**2 * (wide + high + 25)
    if positions == 1 or (norm == 2 and by_gram < 50 * wide * high):
        return product
    return Kept(product.each())


def gram_product(inputs: Tensor, signals: Tensor) -> Tensor:
    """The squared norms of sum_p signal_p x input_p: sum_pq (signal_p . signal_q)(input_p . input_q)."""
    gram = torch.bmm(inputs, inputs.transpose(1, 2))
    gram *= torch.bmm(signals, signals.transpose(1, 2))
    return sum_from_above(gram)


def sum_from_above(gram: Tensor) -> Tensor:
    """The sums of Gram matrices [n, p, p], never below the truth.

    Where positions cancel, the sum is as uncertain as single precision of the largest value it could have had. A norm
    that is too small would let a gradient through that is too large, so this uncertainty is added.
    """
    largest = gram.diagonal(dim1=1, dim2=2).clamp_min(0).sqrt().sum(1).square()
    return gram.flatten(1).sum(1).clamp_min(0) + 1e-6 * largest


@dataclass(frozen=True)
class Rows:
    """Gradients that touch few rows of a table: position p of example i adds `signals[i, p]` to row `rows[i, p]`."""

    rows: Tensor
    signals: Tensor
    size: int

    def powers(self, norm: Norm) -> Tensor:
        """Positions count together where they touch the same row."""
        if norm == 1:
            return Kept(self.each()).powers(norm)
        same = (self.rows[:, :, None] == self.rows[:, None, :]).to(self.signals.dtype)
        same *= torch.bmm(self.signals, self.signals.transpose(1, 2))
        return sum_from_above(same)

    def total(self, weights: Tensor) -> Tensor:
        """Scattered into one table."""
        weighted = (self.signals * weights[:, None, None]).flatten(0, 1)
        table = weighted.new_zeros(self.size, weighted.shape[1])
        return table.index_add_(0, self.rows.flatten(), weighted)

    def each(self) -> Tensor:
        """One table an example."""
        n, _, wide = self.signals.shape
        tables = self.signals.new_zeros(n * self.size, wide)
        rows = self.rows + self.size * torch.arange(n)[:, None]
        return tables.index_add_(0, rows.flatten(), self.signals.flatten(0, 1)).view(n, self.size, wide)
