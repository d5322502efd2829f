"""What a named layer of any network puts out, heard by a hook that is taken off again.

The empty name stands for what goes into the last linear layer: the last representation before the answer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from counterpoise._check import InputError

LAST = ""


def names(model: nn.Module) -> list[str]:
    """The layers that can be named, in the order in which they were made."""
    return [name for name, _ in model.named_modules() if name]


@contextmanager
def listening(model: nn.Module, at: str) -> Iterator[list[Tensor]]:
    """Inside, each pass through the model leaves what the layer put out, as the list's last entry."""
    heard: list[Tensor] = []

    def keep_output(module: nn.Module, given: object, output: Tensor) -> None:
        heard[:] = [output]

    def keep_input(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        heard[:] = [given[0]]

    if at == LAST:
        hook = last_linear(model).register_forward_pre_hook(keep_input)
    else:
        hook = find(model, at).register_forward_hook(keep_output)
    try:
        yield heard
    finally:
        hook.remove()


def find(model: nn.Module, at: str) -> nn.Module:
    """The layer of that name, or a sentence with the names there are."""
    known: dict[str, nn.Module] = dict(model.named_modules())
    if at and at in known:
        return known[at]
    near = difflib.get_close_matches(at, names(model), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"name one of: {', '.join(names(model))}."
    raise InputError(f"at={at!r}: the model has no layer of that name; {hint}")


@torch.no_grad()
def features(model: nn.Module, at: str, pixels: Tensor, chunk: int = 512) -> Tensor:
    """What the layer puts out for all images, one row an image, in evaluation mode; the mode is put back."""
    was_training = model.training
    model.eval()
    rows = []
    try:
        with listening(model, at) as heard:
            for part in torch.split(pixels, chunk):
                model(part)
                rows.append(heard[-1].flatten(1).clone())
    finally:
        model.train(was_training)
    return torch.cat(rows)


def size(model: nn.Module, at: str, shape: tuple[int, int, int]) -> int:
    """How many numbers the layer puts out for one image of this shape."""
    return features(model, at, torch.zeros(1, *shape)).shape[1]


def last_linear(model: nn.Module) -> nn.Linear:
    """The linear layer that answers."""
    found = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise InputError(f"at='': the model has no linear layer; name one of: {', '.join(names(model))}.")
    return found[-1]
