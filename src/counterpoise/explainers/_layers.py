"""Which layer of a network a class activation map is made of, and what the class score says there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers._probe import Place, probe


def find_layer(model: nn.Module, images: Tensor, name: str | None = None) -> Place:
    """The layer of that name; without a name, the last to finish whose output still has more than one position.

    One image is run through the model to see the shapes, because a module does not know where it is used.
    """
    if name is not None and name not in dict(model.named_modules()):
        near = difflib.get_close_matches(name, [known for known, _ in model.named_modules() if known], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "see model.named_modules() for the names."
        raise InputError(f"layer={name!r} is not a part of the model; {hint}")
    found = [place for place in probe(model, images).places if name in (None, place.name)]
    if found:
        return found[-1]
    if name is not None:
        raise InputError(f"layer={name!r} gives no feature map (channels, height and width) of which to make a map.")
    raise InputError("the model has no convolution whose output has more than one position; use SmoothGrad instead.")


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
