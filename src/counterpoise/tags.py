"""Facts a network provides, which mechanisms and explainers may need; compared before any training."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

# Their statistics mix the images of a batch, so one image's gradient depends on the others.
_MIXING = (nn.modules.batchnorm._BatchNorm,)

ADVICE = {
    "per-example": "needs each image's own gradient, but the model has batch normalisation, which mixes images: "
    "choose a model with group normalisation",
    "spatial": "needs feature maps, but the model has no convolution: choose a convolutional model, or SmoothGrad",
    "hidden": "needs to know what is to be hidden: set hidden to one of the images' labels",
}
"""What to say when a need is not provided."""


def provides(model: nn.Module) -> frozenset[str]:
    """The tags of a network: 'per-example' (no batch statistics), 'spatial' (has a convolution)."""
    modules = list(model.modules())
    tags = set()
    if not any(isinstance(module, _MIXING) for module in modules):
        tags.add("per-example")
    if any(isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in modules):
        tags.add("spatial")
    return frozenset(tags)


def refusal(part: str, needs: frozenset[str], model: nn.Module, given: frozenset[str] = frozenset()) -> str:
    """One sentence with advice for the first need that is not provided; empty where all are.

    `given` is what the study provides besides the model: 'hidden' (it names a label to hide).
    """
    for need in sorted(needs - provides(model) - given):
        return f"{part} {ADVICE.get(need, f'needs a model that provides {need!r}')}."
    return ""


def uncertified(measures: Mapping[str, object], explainer: object) -> str:
    """One sentence where a measure needs certificates and the explainer gives none, or unsound ones; empty else."""
    for name, measure in measures.items():
        if not getattr(measure, "needs_certificates", False):
            continue
        if getattr(explainer, "bound", None) == "published":
            return f"{name} is not measured with bound='published', which certifies too much: take bound='best'."
        if not getattr(explainer, "certifies", False):
            return (
                f"{name} needs an explainer that certifies its maps, and {getattr(explainer, 'name', '')!r} does not:"
                " choose 'robust-topk', or drop what requires it."
            )
    return ""
