"""Linear layers, on vectors and on sequences of any shape."""

from __future__ import annotations

from torch import Tensor, nn

from counterpoise.privacy.layers.per_example import Kept, Norm, PerExample, outer


def linear_rule(layer: nn.Linear, inputs: Tensor, signals: Tensor, norm: Norm) -> dict[str, PerExample]:
    """Weight: signal times input, summed over positions. Bias: the signals' sum."""
    inputs = inputs.reshape(len(inputs), -1, layer.in_features)
    signals = signals.reshape(len(signals), -1, layer.out_features)
    shares: dict[str, PerExample] = {"weight": outer(inputs, signals, norm)}
    if layer.bias is not None:
        shares["bias"] = Kept(signals.sum(1) if signals.shape[1] > 1 else signals[:, 0])
    return shares
