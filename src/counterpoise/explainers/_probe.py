"""One image sent through a network, to learn what makes explaining it fast and where its feature maps are.

Everything is decided from the network alone and not by a clock, so that a run repeats to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.training import channels_last

FAST = 3 * 2**20
"""Activation values in one pass. Fewer, and the cost of calling every layer shows; more, and they leave the caches."""
ENOUGH = 32
"""Rows that share one reading of a large network's weights, although its activations leave the caches."""
MOST = 2**26
"""Activation values that are never exceeded by more than one row: a quarter of a gigabyte."""


@dataclass(frozen=True)
class Place:
    """One call of one module: a module that is used several times has several outputs."""

    name: str
    call: int


@dataclass(frozen=True)
class Probe:
    """`values` activations an image, `arrange` brings images into the fast layout, `places` give feature maps.

    The model tells `classes` apart.
    """

    values: int
    arrange: Callable[[Tensor], Tensor]
    places: tuple[Place, ...]
    classes: int

    @property
    def rows(self) -> int:
        """How many images to send through at a time."""
        return max(1, FAST // self.values, min(ENOUGH, MOST // self.values))

    def check(self, target: Tensor) -> None:
        """Raise unless the model has every class asked about."""
        if int(target.max()) >= self.classes:
            raise InputError(
                f"target must hold class indices below {self.classes}, as the model has, not {int(target.max())}."
            )

    def counts(self, total: int) -> list[int]:
        """So many images or samples in even parts of at most `rows`."""
        return even(total, self.rows)


def even(total: int, most: int) -> list[int]:
    """`total` in as few parts of at most `most` as it takes, no two of which differ by more than one."""
    parts = -(-total // most)
    return [total // parts + (index < total % parts) for index in range(parts)]


_KNOWN: WeakKeyDictionary[nn.Module, tuple[object, Probe]] = WeakKeyDictionary()
"""The last probe of a model, and of what: the same parts on images of the same kind need no second look."""


def probe(model: nn.Module, images: Tensor) -> Probe:
    """Look at the first image's way through a borrowed model.

    Channels beside each other make convolutions and pooling up to twice as fast on a processor, but group
    normalisation slower than that gains. A network with it, and one that asks for a `view` of its maps, which it then
    cannot have, keep the usual layout.
    """
    parts = tuple((name, type(module)) for name, module in model.named_modules())
    asked = (parts, images.shape[1:], images.dtype, images.device)
    known = _KNOWN.get(model)
    if known is not None and known[0] == asked:
        return known[1]
    grouped = any(isinstance(module, nn.GroupNorm) for module in model.modules())
    try:
        found = _look(model, images[:1], _as_it_is if grouped else channels_last)
    except RuntimeError:  # torch's word for a view that does not exist, or for an image of another size
        found = _taken(model, images[:1])
    _KNOWN[model] = (asked, found)
    return found


def _taken(model: nn.Module, image: Tensor) -> Probe:
    try:
        return _look(model, image, _as_it_is)
    except RuntimeError as problem:
        channels, height, width = image.shape[1:]
        raise InputError(
            f"the model does not take images of {channels} channels and {width} x {height} pixels"
            f" ({str(problem).splitlines()[0].rstrip('.')}); give it images of the size it was made for."
        ) from problem


def _as_it_is(images: Tensor) -> Tensor:
    return images


def _look(model: nn.Module, image: Tensor, arrange: Callable[[Tensor], Tensor]) -> Probe:
    """How many values the layers give, and every module call that gives a feature map, as they finish.

    Only what comes after a first convolution counts as one: the normalised image is no feature map.
    """
    values, convolved = image.numel(), False
    places: list[Place] = []
    calls: dict[str, int] = {}

    def look(name: str, leaf: bool, module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal values, convolved
        call = calls[name] = calls.get(name, -1) + 1
        convolved = convolved or isinstance(module, nn.Conv2d)
        if isinstance(output, Tensor):
            values += output.numel() if leaf else 0
            if convolved and output.ndim == 4 and output.shape[2:].numel() > 1:
                places.append(Place(name, call))

    modules = [(name, module) for name, module in model.named_modules() if name]
    handles = [m.register_forward_hook(partial(look, name, next(m.children(), None) is None)) for name, m in modules]
    try:
        with torch.no_grad():
            answer = model(arrange(image))
    finally:
        for handle in handles:
            handle.remove()
    return Probe(values, arrange, tuple(places), answer.shape[-1])
