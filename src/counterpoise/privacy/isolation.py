"""Whether one example can change another's gradient. If it can, clipping bounds nothing, and training is refused.

Found out by trying, not by the names of layers: one example of a probe is changed, and every other example's output
and gradient must stay as they were. That catches BatchNorm and its subclasses, `F.batch_norm`, `x - x.mean(0)`,
a loss that compares examples, and a batch that is not in the first dimension.
"""

from __future__ import annotations

import copy
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.privacy.recording import Loss, cross_entropies, per_example_losses

_ADVICE = "; counterpoise.privacy.convert(model) replaces BatchNorm by GroupNorm, which looks at one example alone."
_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)


def check_isolation(
    model: nn.Module, images: Tensor, targets: Tensor, loss: Loss = cross_entropies, *, seed: int = 0
) -> None:
    """Raise, naming the layer, unless every example's gradient depends on that example alone.

    The images only probe: any of the right shape will do, and private ones need not be looked at. Two at least.
    """
    if len(images) < 2:
        raise InputError(f"images: a probe of {len(images)} cannot show whether examples mix; give at least two.")
    twin = copy.deepcopy(model).train(model.training)
    changed = images.clone()
    changed[0] = images[0].flip(-1) + 0.5 if images.is_floating_point() else images[1]
    buffers = {name: buffer.clone() for name, buffer in twin.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        one, other = (_trace(twin, some, seed) for some in (images, changed))
    _check_layers(one, other, len(images))
    kept = [name for name, buffer in twin.named_buffers() if not torch.equal(buffer, buffers[name])]
    if kept:
        raise InputError(f"{kept[0]}: keeps statistics of the images, which no noise hides" + _ADVICE)
    with torch.random.fork_rng(devices=[]):
        _check_gradients(twin, images, changed, targets, loss, seed)


def _trace(model: nn.Module, images: Tensor, seed: int) -> list[tuple[str, nn.Module, Tensor]]:
    """Every layer's output, in the order of their ends, so that the first that mixes is the one to blame."""
    outputs: list[tuple[str, nn.Module, Tensor]] = []
    names = {module: name for name, module in model.named_modules()}

    def keep(module: nn.Module, arguments: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            outputs.append((names[module] or "the model", module, output.detach().clone()))

    handles = [module.register_forward_hook(keep) for module in model.modules()]
    torch.manual_seed(seed)  # dropout draws the same both times
    try:
        with torch.no_grad():
            model(images)
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def _check_layers(one: list[tuple[str, nn.Module, Tensor]], other: list[tuple[str, nn.Module, Tensor]], n: int) -> None:
    for (name, module, before), (_, _, after) in zip(one, other, strict=True):
        if before.shape[:1] != (n,):
            continue  # not by example here; the gradients will tell
        if not _close(before[1:], after[1:]):
            kind = type(module).__name__
            raise InputError(f"{name} ({kind}): lets one image change what another's output is" + _ADVICE)


def _check_gradients(model: nn.Module, images: Tensor, changed: Tensor, targets: Tensor, loss: Loss, seed: int) -> None:
    """The loss of all examples but the first must have the same gradient, whatever the first one is."""
    weights = [p for p in model.parameters() if p.requires_grad]
    gradients, losses = [], []
    for some in (images, changed):
        torch.manual_seed(seed)
        each = per_example_losses(loss, model(some), targets)
        losses.append(each.detach()[1:])
        rest = each[1:].sum()
        gradients.append(torch.autograd.grad(rest, weights, allow_unused=True) if rest.requires_grad else ())
    if not _close(*losses):
        raise InputError(
            "loss: compares examples with each other, so no example has a gradient of its own;"
            " take a loss of one example, such as cross-entropy."
        )
    for before, after in zip(*gradients, strict=True):
        if before is not None and after is not None and not _close(before, after):
            raise InputError("model: one image changes another's gradient" + _ADVICE)


def _close(before: Tensor, after: Tensor) -> bool:
    """Equal up to rounding: libraries may add in another order."""
    if not before.is_floating_point():
        return torch.equal(before, after)
    scale = float(before.abs().max()) if before.numel() else 0.0
    return bool(torch.allclose(before, after, rtol=1e-4, atol=1e-5 * scale + 1e-12, equal_nan=True))


def convert(model: nn.Module) -> nn.Module:
    """A copy of the model in which no layer mixes examples: GroupNorm in the place of BatchNorm, its scales kept.

    The non-private baseline must use the same network, or the cost of privacy is confused with that of the layer.
    """
    twin = copy.deepcopy(model)
    if isinstance(twin, _BATCH_NORMS):
        return _group_norm(twin)
    for name, module in list(twin.named_modules()):
        if isinstance(module, _BATCH_NORMS):
            parent, _, local = name.rpartition(".")
            setattr(twin.get_submodule(parent), local, _group_norm(module))
        elif isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return twin


def _group_norm(layer: nn.modules.batchnorm._BatchNorm) -> nn.GroupNorm:
    """At most 32 groups. One alone on vectors: a group of one number would be normalised to zero."""
    channels = layer.num_features
    groups = 1 if isinstance(layer, nn.BatchNorm1d) else gcd(32, channels)
    norm = nn.GroupNorm(groups, channels, layer.eps, affine=layer.affine)
    if layer.affine:
        norm.weight, norm.bias = layer.weight, layer.bias
    return norm.train(layer.training)
