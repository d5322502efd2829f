"""Which layer of a network a class activation map is made of, and what the class score says there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers._borrowed import borrowed
from counterpoise.explainers._probe import Place, probe

MOST_NAMES = 12
"""Layers that a sentence names."""


def find_layer(model: nn.Module, images: Tensor, name: str | None = None) -> Place:
    """The layer of that name; without a name, the last to finish whose output still has more than one position.

    One image is run through the model to see the shapes, because a module does not know where it is used.
    """
    places = probe(model, images).places
    found = [place for place in places if name in (None, place.name)]
    if found:
        return found[-1]
    names = list(dict.fromkeys(place.name for place in places))
    if not names:
        raise InputError(
            "the model has no convolution whose output has more than one position; use SmoothGrad instead."
        )
    wrong = "gives no feature map" if name in dict(model.named_modules()) else "is not a part of the model"
    raise InputError(f"layer={name!r} {wrong}; {_advice(str(name), names)}")


def check_layer(model: nn.Module, shape: tuple[int, int, int], name: str | None) -> None:
    """Raise unless an untrained model has the layer, on images of this shape."""
    with borrowed(model) as inner:
        find_layer(inner, torch.zeros(1, *shape), name)


def _advice(name: str, names: list[str]) -> str:
    """The layers to choose from: of a deep network the last ones, of which most maps are made."""
    shown = ", ".join(names[-MOST_NAMES:])
    if len(names) > MOST_NAMES:
        shown += f", and {len(names) - MOST_NAMES} before these"
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r} (to choose from: {shown})?" if near else f"choose from: {shown}."


def activation_and_gradient(model: nn.Module, place: Place, images: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The layer's output and d logit of the target class / d output, both [n, k, h, w]. `model` is a borrowed one.

    No graph is recorded before the layer: its output starts one. What follows gets a copy, so that an activation
    which works in place changes neither.
    """
    with torch.enable_grad(), _starting_at(model, place) as kept:
        score = model(images).gather(1, target[:, None]).sum()
        (gradient,) = torch.autograd.grad(score, kept(), allow_unused=True) if score.requires_grad else (None,)
    if gradient is None:
        raise InputError(f"layer={place.name!r} has no influence on the class score; name a layer that has.")
    return kept().detach(), gradient


@contextmanager
def _starting_at(model: nn.Module, place: Place) -> Iterator[Callable[[], Tensor]]:
    """Inside, gradients start at this output; what is given returns it after the model was called."""
    kept: list[Tensor] = []
    calls = 0

    def cut(module: nn.Module, inputs: Any, output: Tensor) -> Tensor | None:
        nonlocal calls
        calls += 1
        if calls != place.call + 1:
            return None
        kept.append(output.detach().requires_grad_(True))
        return kept[0].clone()

    handle = model.get_submodule(place.name).register_forward_hook(cut)
    try:
        yield lambda: kept[0]
    finally:
        handle.remove()
