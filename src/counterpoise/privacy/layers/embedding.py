"""Embedding tables."""

from __future__ import annotations

from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.privacy.layers.per_example import Norm, PerExample, Rows


def embedding_rule(layer: nn.Embedding, inputs: Tensor, signals: Tensor, norm: Norm) -> dict[str, PerExample]:
    """Each looked-up row receives the signal at its place."""
    if layer.scale_grad_by_freq or layer.max_norm is not None:
        raise InputError(
            "An Embedding with scale_grad_by_freq or max_norm lets one example change another's gradient;"
            " make it without these."
        )
    rows = inputs.reshape(len(inputs), -1)
    signals = signals.reshape(*rows.shape, layer.embedding_dim)
    if layer.padding_idx is not None:
        signals = signals * (rows != layer.padding_idx).unsqueeze(2)
    return {"weight": Rows(rows, signals, layer.num_embeddings)}
