"""Convolutions in one and two dimensions: any stride, padding, dilation and grouping.

A convolution is a linear layer on patches, so all that is said about linear layers on sequences holds; but patches
overlap, and to write them out costs `kernel` times the image. Three ways, the cheapest of which is taken:

- `written`: patches of some examples at a time, and one small matrix product an example: for small layers.
- `Native`: the library's own weight gradient, called for one example after the other: for middle ones.
- `Gram`: norms from the Gram matrix of patches, summed from shifted copies of that of pixels, then one call of the
  library's weight gradient with weighted signals: for layers of many channels on small maps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from counterpoise.privacy.layers.per_example import (
    Kept,
    Norm,
    PerExample,
    gram_product,
    positions_last,
    some_at_a_time,
    sum_from_above,
)

Pair = tuple[int, int]


@dataclass(frozen=True)
class Patches:
    """A convolution's input [n, c, h, w], its signals [n, out, h', w'], and how patches lie."""

    inputs: Tensor
    signals: Tensor
    weight: Tensor
    stride: Pair
    dilation: Pair
    padding: Pair
    groups: int

    def __getitem__(self, part: slice) -> Patches:
        return replace(self, inputs=self.inputs[part], signals=self.signals[part])

    def __len__(self) -> int:
        return len(self.inputs)

    def padded(self) -> Tensor:
        """The input as the kernel meets it."""
        down, right = self.padding
        return functional.pad(self.inputs, (right, right, down, down)) if down or right else self.inputs

    def rows(self) -> Tensor:
        """The patches written out, rows before positions: [n, c * kernel, h' * w']. Runs along the map's width."""
        return self._windows(self.padded().contiguous(), (0, 1, 4, 5, 2, 3)).flatten(4).flatten(1, 3)

    def columns(self) -> Tensor:
        """Positions before rows: [n, h' * w', kernel * c]. Runs along the channels, so quick where these are many."""
        image = self.padded().contiguous(memory_format=torch.channels_last)
        return self._windows(image, (0, 2, 3, 4, 5, 1)).flatten(3).flatten(1, 2)

    def _windows(self, image: Tensor, order: tuple[int, ...]) -> Tensor:
        """A view [n, c, h', w', kernel, kernel] in the given order."""
        (n, channels), (up, across), (high, wide) = image.shape[:2], self.signals.shape[2:], self.weight.shape[2:]
        a, b, c, d = image.stride()
        size = (n, channels, up, across, high, wide)
        step = (a, b, c * self.stride[0], d * self.stride[1], c * self.dilation[0], d * self.dilation[1])
        return image.as_strided([size[i] for i in order], [step[i] for i in order])

    def weight_gradient(self, signals: Tensor) -> Tensor:
        """The library's own sum over these examples."""
        mask = (False, True, False)
        shape = (self.stride, self.padding, self.dilation, False, (0, 0), self.groups)
        gradient: Tensor = torch.ops.aten.convolution_backward(signals, self.inputs, self.weight, None, *shape, mask)[1]
        return gradient


def written(patches: Patches) -> PerExample:
    """All gradients, by one small matrix product an example and group."""
    n, groups, (out, per_group, high, wide) = len(patches), patches.groups, patches.weight.shape
    if groups == 1 and per_group * wide > patches.signals.shape[3]:
        each = patches.signals.new_empty(n, out, high * wide * per_group)
        for part in some_at_a_time(n, patches.signals[0, 0].numel() * high * wide * per_group):
            torch.bmm(positions_last(patches.signals[part]), patches[part].columns(), out=each[part])
        return Kept(each, arrange=lambda flat: flat.view(out, high, wide, per_group).permute(0, 3, 1, 2))
    each = patches.signals.new_empty(n * groups, out // groups, per_group * high * wide)
    for part in some_at_a_time(n, patches.signals[0, 0].numel() * per_group * groups * high * wide):
        rows = patches[part].rows()
        rows = rows.view(len(rows) * groups, -1, rows.shape[2])
        signals = positions_last(patches.signals[part]).reshape(len(rows), -1, rows.shape[2])
        torch.bmm(signals, rows.transpose(1, 2), out=each[part.start * groups : part.stop * groups])
    return Kept(each.view(n, *patches.weight.shape))


@dataclass(frozen=True)
class Native:
    """All gradients, one after the other; apart, because to gather them in one tensor takes as long as to sum them."""

    gradients: list[Tensor]

    @classmethod
    def of(cls, patches: Patches) -> Native:
        """From the library, which is faster than a matrix product once layers are large."""
        return cls([patches[i : i + 1].weight_gradient(patches.signals[i : i + 1]) for i in range(len(patches))])

    def powers(self, norm: Norm) -> Tensor:
        """By definition."""
        return torch.stack([torch.linalg.vector_norm(gradient, norm) for gradient in self.gradients]) ** norm

    def total(self, weights: Tensor) -> Tensor:
        """Added up."""
        total = torch.zeros_like(self.gradients[0])
        for gradient, weight in zip(self.gradients, weights.tolist(), strict=True):
            total.add_(gradient, alpha=weight)
        return total

    def each(self) -> Tensor:
        """Gathered."""
        return torch.stack(self.gradients)


@dataclass(frozen=True)
class Gram:
    """No gradient is written out."""

    patches: Patches

    def powers(self, norm: Norm) -> Tensor:
        """sum_pq (signal_p . signal_q)(patch_p . patch_q), some examples at a time."""
        if norm == 1:
            return Kept(self.each()).powers(norm)
        squares = [
            self._squares(self.patches[part]) for part in some_at_a_time(len(self.patches), _gram_size(self.patches))
        ]
        return torch.cat(squares)

    def _squares(self, some: Patches) -> Tensor:
        signals = positions_last(some.signals)
        if some.stride != (1, 1):
            return gram_product(some.columns(), signals.transpose(1, 2))
        image = some.padded()
        (n, _, high, wide), (up, across), pixels = image.shape, some.signals.shape[2:], positions_last(image)
        between = torch.bmm(pixels.transpose(1, 2), pixels).view(n, high, wide, high, wide)
        gram = between.new_zeros(n, up, across, up, across)
        for i in range(0, some.weight.shape[2] * some.dilation[0], some.dilation[0]):
            for j in range(0, some.weight.shape[3] * some.dilation[1], some.dilation[1]):
                gram += between[:, i : i + up, j : j + across, i : i + up, j : j + across]
        return sum_from_above(gram.flatten(3).flatten(1, 2).mul_(torch.bmm(signals.transpose(1, 2), signals)))

    def total(self, weights: Tensor) -> Tensor:
        """One call of the library, of weighted signals."""
        return self.patches.weight_gradient(self.patches.signals * weights[:, None, None, None])

    def each(self) -> Tensor:
        """As `written`."""
        return written(self.patches).each()


def _pixels(patches: Patches) -> int:
    (high, wide), (down, right) = patches.inputs.shape[2:], patches.padding
    return int((high + 2 * down) * (wide + 2 * right))


def _gram_size(patches: Patches) -> int:
    places = patches.signals[0, 0].numel()
    if patches.stride == (1, 1):
        return _pixels(patches) ** 2 + places**2
    return places * (patches.weight[0].numel() + places)


def cheapest(patches: Patches, norm: Norm) -> PerExample:
    """By nanoseconds an example, measured on one core; a wrong guess costs time and nothing else."""
    row, out = patches.weight[0].numel(), len(patches.weight)
    places, pixels = patches.signals[0, 0].numel(), _pixels(patches)
    products = places * row * out
    ways = {
        written: products / 47 + 0.25 * row * patches.groups * places + 0.3 * row * out,
        Native.of: 40_000 + products / 95 + 1.5 * row * out,
    }
    if norm == 2 and patches.groups == 1:
        if patches.stride == (1, 1):
            gram = (pixels**2 * len(patches.inputs[0]) + places**2 * out) / 47 + 0.5 * places**2 * patches.weight[
                0, 0
            ].numel()
        else:
            gram = places**2 * (row + out) / 47 + 0.25 * row * places
        ways[Gram] = 2_000 + gram + products / 95
    return min(ways, key=lambda way: ways[way])(patches)


def convolution_rule(
    layer: nn.Conv1d | nn.Conv2d, inputs: Tensor, signals: Tensor, norm: Norm
) -> dict[str, PerExample]:
    """Weight: a sum over positions of signal times patch. Bias: the signals' sum."""
    weight, padding = layer.weight.detach(), layer.padding
    if isinstance(padding, str) or layer.padding_mode != "zeros":
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        inputs, padding = functional.pad(inputs, layer._reversed_padding_repeated_twice, mode), (0,) * len(layer.stride)
    shape = (_pair(layer.stride, 1), _pair(layer.dilation, 1), _pair(padding, 0), layer.groups)
    if isinstance(layer, nn.Conv1d):  # a line is an image of height 1
        line = Patches(inputs.unsqueeze(2), signals.unsqueeze(2), weight.unsqueeze(2), *shape)
        shares: dict[str, PerExample] = {"weight": Kept(written(line).each().squeeze(3))}
    else:
        shares = {"weight": cheapest(Patches(inputs, signals, weight, *shape), norm)}
    if layer.bias is not None:
        shares["bias"] = Kept(positions_last(signals).sum(2))
    return shares


def _pair(values: tuple[int, ...], missing: int) -> Pair:
    return (missing, values[0]) if len(values) == 1 else (values[0], values[1])
