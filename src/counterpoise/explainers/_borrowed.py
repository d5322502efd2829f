"""Borrow a model for gradients with respect to its input, and give it back as it was found."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Trained


@contextmanager
def borrowed(trained: Trained | nn.Module) -> Iterator[nn.Module]:
    """The model in evaluation mode with frozen parameters, so that only input gradients are computed.

    Every submodule's mode and every parameter's `requires_grad` are put back, also after an exception;
    `.grad`, buffers and hooks are never touched, but for those of `_unwrapped`.
    """
    with _unwrapped(trained.model if isinstance(trained, Trained) else trained) as model:
        modes = [(module, module.training) for module in model.modules()]
        wanted = [(weight, weight.requires_grad) for weight in model.parameters()]
        try:
            model.eval()
            for weight, _ in wanted:
                weight.requires_grad_(False)
            yield model
        finally:
            for weight, requires_grad in wanted:
                weight.requires_grad_(requires_grad)
            for module, mode in modes:
                module.training = mode


@contextmanager
def _unwrapped(model: nn.Module) -> Iterator[nn.Module]:
    """The network inside an Opacus wrapper, without the wrapper's hooks; another model as it is.

    The wrapper's hooks collect gradients for every example, and fail in evaluation mode; the kind they are also makes
    views of each layer's output, which activations that work in place may not change.
    """
    inner = getattr(model, "_module", None)
    # By its origin: somebody else's wrapper may prepare the image before it calls its network.
    from_opacus = any(kind.__module__.split(".")[0] == "opacus" for kind in type(model).__mro__)
    if not (from_opacus and isinstance(inner, nn.Module)):
        yield model
        return
    enabled = getattr(model, "hooks_enabled", None)
    hooks = [(module, module._backward_hooks) for module in inner.modules()]
    try:
        if enabled is not None:
            setattr(model, "hooks_enabled", False)  # noqa: B010
        for module, _ in hooks:
            module._backward_hooks = OrderedDict()
        yield inner
    finally:
        for module, kept in hooks:
            module._backward_hooks = kept
        if enabled is not None:
            setattr(model, "hooks_enabled", enabled)  # noqa: B010


def input_gradient(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    """d logit of the target class / d pixel, for each image on its own. `model` is a borrowed one."""
    with torch.enable_grad():
        pixels = images.detach().requires_grad_(True)
        score = model(pixels).gather(1, target[:, None]).sum()
        (gradient,) = torch.autograd.grad(score, pixels)
    return gradient


def check_request(images: Tensor, target: Tensor) -> None:
    """Raise unless the images are a batch of finite pixels with one class index each."""
    if images.ndim != 4 or not images.is_floating_point() or not len(images):
        raise InputError(
            "images must be at least one, and floating point"
            f" [n, channels, height, width], not {images.dtype} {list(images.shape)}."
        )
    finite = images.flatten(1).isfinite().all(1)
    if not bool(finite.all()):
        raise InputError(
            f"images[{int(finite.int().argmin())}] has a pixel that is no finite number; leave the image out."
        )
    if target.shape != images.shape[:1] or target.dtype != torch.int64:
        raise InputError(
            f"target must hold one int64 class index for each of the {len(images)} images,"
            f" not {target.dtype} {list(target.shape)}."
        )
    if bool((target < 0).any()):
        raise InputError(f"target must hold class indices, 0 or above, not {int(target.min())}.")
