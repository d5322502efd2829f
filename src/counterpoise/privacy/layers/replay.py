"""Any other layer, by running it once more for each example inside `torch.func.vmap`."""

from __future__ import annotations

from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from counterpoise.privacy.layers.per_example import Kept, Norm, PerExample


def replay_rule(layer: nn.Module, inputs: Tensor, signals: Tensor, norm: Norm) -> dict[str, PerExample]:
    """Right for every layer that treats its batch example by example, and slower than a rule of its own."""
    free = {name: p.detach() for name, p in layer.named_parameters(recurse=False) if p.requires_grad}

    def pull_back(example: Tensor, signal: Tensor) -> dict[str, Tensor]:
        def forward(weights: dict[str, Tensor]) -> Tensor:
            output: Tensor = functional_call(layer, weights, (example[None],))
            return output[0]

        gradients: dict[str, Tensor] = vjp(forward, free)[1](signal)[0]
        return gradients

    each = vmap(pull_back, randomness="different")(inputs, signals)
    return {name: Kept(gradients) for name, gradients in each.items()}
