"""The rules by which each kind of layer gives its per-example gradients; one family a file.

A rule takes the layer, its input, the gradient of the losses with respect to its output (the signals), and the
norm that will be asked for; it returns the gradients by parameter name. A new rule is a function and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from counterpoise.privacy.layers.convolution import convolution_rule
from counterpoise.privacy.layers.embedding import embedding_rule
from counterpoise.privacy.layers.linear import linear_rule
from counterpoise.privacy.layers.normalisation import group_norm, instance_norm, layer_norm
from counterpoise.privacy.layers.per_example import Kept, Norm, PerExample
from counterpoise.privacy.layers.replay import replay_rule

Rule = Callable[[Any, Tensor, Tensor, Norm], dict[str, PerExample]]

RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear_rule,
    nn.Conv1d: convolution_rule,
    nn.Conv2d: convolution_rule,
    nn.GroupNorm: group_norm,
    nn.LayerNorm: layer_norm,
    nn.InstanceNorm1d: instance_norm,
    nn.InstanceNorm2d: instance_norm,
    nn.InstanceNorm3d: instance_norm,
    nn.Embedding: embedding_rule,
}


def rule_for(layer: nn.Module) -> Rule:
    """The layer's own rule; `replay_rule` for one that only looks like it, such as a subclass that does more."""
    for kind, own in RULES.items():
        if isinstance(layer, kind):
            plain = type(layer).forward is kind.forward and set(layer._parameters) <= {"weight", "bias"}
            return own if plain and not is_parametrized(layer) else replay_rule
    return replay_rule


__all__ = ["RULES", "Kept", "Norm", "PerExample", "replay_rule", "rule_for"]
