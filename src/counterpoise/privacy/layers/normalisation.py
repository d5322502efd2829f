"""Layers that normalise within an example and then scale and shift: GroupNorm, LayerNorm, InstanceNorm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.privacy.layers.per_example import Kept, Norm, PerExample, some_at_a_time


def group_norm(layer: nn.GroupNorm, inputs: Tensor, signals: Tensor, norm: Norm) -> dict[str, PerExample]:
    """Scale: the signal times the normalised input, summed over pixels. Shift: the signals' sum."""
    return _channelwise(inputs, signals, layer.num_groups, layer.eps, layer.bias is not None)


def instance_norm(
    layer: nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d, inputs: Tensor, signals: Tensor, norm: Norm
) -> dict[str, PerExample]:
    """A GroupNorm of one channel a group."""
    if layer.track_running_stats:
        raise InputError(
            "An InstanceNorm with track_running_stats keeps averages of the private images;"
            " make it with track_running_stats=False."
        )
    return _channelwise(inputs, signals, layer.num_features, layer.eps, layer.bias is not None)


def _channelwise(inputs: Tensor, signals: Tensor, groups: int, eps: float, shifts: bool) -> dict[str, PerExample]:
    """Without writing out the normalised input: sum(s (x - m)) r = (sum(s x) - m sum(s)) r for each channel."""
    n, channels = inputs.shape[:2]
    x, s = inputs.reshape(n, channels, -1), signals.reshape(n, channels, -1)
    scale, shift = s.new_empty(n, channels), s.new_empty(n, channels)
    for part in some_at_a_time(n, x[0].numel()):
        torch.sum(s[part], 2, out=shift[part])
        variance, mean = torch.var_mean(x[part].unflatten(1, (groups, -1)).flatten(2), 2, correction=0)
        mean, rate = (each.repeat_interleave(channels // groups, 1) for each in (mean, torch.rsqrt(variance + eps)))
        scale[part] = ((s[part] * x[part]).sum(2) - mean * shift[part]) * rate
    return {"weight": Kept(scale), "bias": Kept(shift)} if shifts else {"weight": Kept(scale)}


def layer_norm(layer: nn.LayerNorm, inputs: Tensor, signals: Tensor, norm: Norm) -> dict[str, PerExample]:
    """As GroupNorm, with one scale a normalised number, summed over positions."""
    shape = tuple(layer.normalized_shape)
    normal = nn.functional.layer_norm(inputs, shape, None, None, layer.eps)
    shares: dict[str, PerExample] = {"weight": Kept((signals * normal).reshape(len(inputs), -1, *shape).sum(1))}
    if layer.bias is not None:
        shares["bias"] = Kept(signals.reshape(len(inputs), -1, *shape).sum(1))
    return shares
