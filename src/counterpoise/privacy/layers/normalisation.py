"""Layers that normalise within an example and then scale and shift: GroupNorm, LayerNorm, InstanceNorm."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.privacy.layers.per_example import Kept, Norm, PerExample, positions_last, some_at_a_time


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
    scale, shift = signals.new_empty(n, channels), signals.new_empty(n, channels)
    size = inputs[0, 0].numel()
    for part in some_at_a_time(n, channels * size):
        some = inputs[part]
        _, mean, rate = torch.native_group_norm(some, None, None, len(some), channels, size, groups, eps)
        mean, rate = (each.repeat_interleave(channels // groups, 1) for each in (mean, rate))
        x, s = positions_last(some), positions_last(signals[part])
        shift[part] = s.sum(2)
        scale[part] = ((s * x).sum(2) - mean * shift[part]) * rate
    return {"weight": Kept(scale), "bias": Kept(shift)} if shifts else {"weight": Kept(scale)}


def layer_norm(layer: nn.LayerNorm, inputs: Tensor, signals: Tensor, norm: Norm) -> dict[str, PerExample]:
    """As GroupNorm, with one scale a normalised number, summed over positions."""
    shape = tuple(layer.normalized_shape)
    normal = nn.functional.layer_norm(inputs, shape, None, None, layer.eps)
    shares: dict[str, PerExample] = {"weight": Kept((signals * normal).reshape(len(inputs), -1, *shape).sum(1))}
    if layer.bias is not None:
        shares["bias"] = Kept(signals.reshape(len(inputs), -1, *shape).sum(1))
    return shares
