"""Per-example gradients, each scaled down to a norm of at most `clip`, and their sum.

Book-keeping (Bu, Wang, Zha and Karypis, ICML 2023): one pass forward and one backward keep every layer's input and
signal; the norms follow layer by layer from the cheaper form, and one weighted sum ends it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from counterpoise import _check
from counterpoise.privacy.layers import Kept, Norm, PerExample
from counterpoise.privacy.recording import Loss, cross_entropies, per_example_losses, record

MICROBATCH = 128
"""How many examples are in memory at once; smaller ones cost time, larger ones memory, and the result is the same."""


@dataclass(frozen=True)
class Flat:
    """Each example's whole gradient g becomes g * min(1, bound / |g|)."""

    bound: float = 1.0
    norm: Norm = 2
    by_layer: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.positive(clip=self.bound)
        _check.one_of(("1", "2"), norm=str(self.norm))

    def weights(self, norms: Tensor) -> Tensor:
        """The factor of each gradient, from its norm."""
        return (self.bound / norms.clamp_min(1e-30)).clamp_max(1)


@dataclass(frozen=True)
class Automatic:
    """Each example's gradient becomes bound * g / (|g| + stability): no bound to tune.

    Bu, Wang, Zha and Karypis, "Automatic clipping", NeurIPS 2023.
    """

    bound: float = 1.0
    stability: float = 0.01
    norm: Norm = 2
    by_layer: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check.positive(clip=self.bound, stability=self.stability)

    def weights(self, norms: Tensor) -> Tensor:
        """The factor of each gradient, from its norm."""
        return self.bound / (norms + self.stability)


@dataclass(frozen=True)
class PerLayer:
    """Each layer's gradient is clipped on its own, to equal shares that together keep the bound."""

    bound: float = 1.0
    norm: Norm = 2
    by_layer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check.positive(clip=self.bound)

    def weights(self, norms: Tensor) -> Tensor:
        """The factors of each layer's gradients, from norms [layers, n]; a layer may have bound / layers^(1/norm)."""
        return Flat(self.bound / len(norms) ** (1 / self.norm), self.norm).weights(norms)


Clip = Flat | Automatic | PerLayer


@dataclass(frozen=True)
class ClippedGradient:
    """The sum over a batch of clipped per-example gradients, by parameter name, and the norms before clipping."""

    gradients: dict[str, Tensor]
    norms: Tensor


def clipped_gradient(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    clip: float | Clip = 1.0,
    norm: Literal[1, 2] = 2,
    *,
    loss: Loss = cross_entropies,
    microbatch: int = MICROBATCH,
) -> ClippedGradient:
    """The sum of the examples' gradients, each clipped, and their norms before.

    `loss(outputs, targets)` gives one value an example. An example whose gradient is not finite adds nothing (its norm
    says so). Microbatches bound the memory and change nothing else.
    """
    if len(images) != len(targets):
        raise _check.InputError(f"images and targets must pair up, but there are {len(images)} and {len(targets)}.")
    rule = Flat(clip, norm) if isinstance(clip, int | float) else clip
    total: dict[str, Tensor] = {}
    norms = []
    _check.at_least(1, microbatch=microbatch)
    for start in range(0, len(images), microbatch):
        part = slice(start, start + microbatch)
        norms.append(_add_clipped(total, model, images[part], targets[part], rule, loss))
    every = {name: p for name, p in model.named_parameters() if p.requires_grad}
    gradients = {name: total[name] if name in total else torch.zeros_like(p) for name, p in every.items()}
    return ClippedGradient(gradients, torch.cat(norms) if norms else torch.zeros(0))


def _add_clipped(
    total: dict[str, Tensor], model: nn.Module, images: Tensor, targets: Tensor, clip: Clip, loss: Loss
) -> Tensor:
    """Add one microbatch's clipped gradients to `total` and return the norms."""
    recording = record(model, images, targets, loss, clip.norm)
    shares = {name: _joined(uses) for name, uses in recording.shares.items()}
    if recording.missed:
        shares.update(_by_transform(model, images, targets, loss, recording.missed))
    with torch.no_grad():
        layers = list(dict.fromkeys(_layer(name) for name in shares))
        powers = next(model.parameters()).new_zeros(len(layers), len(images))
        for name, share in shares.items():
            powers[layers.index(_layer(name))] += share.powers(clip.norm)
        root = torch.sqrt if clip.norm == 2 else torch.abs
        norms = root(powers.sum(0))
        sound = norms.isfinite()
        if not bool(sound.all()):
            # No factor makes an infinite or undefined gradient small: 0 * inf is NaN, and tells that the example is
            # there. Without it the sum moves by less than the clip.
            if bool(sound.any()):
                with torch.enable_grad():
                    _add_clipped(total, model, images[sound], targets[sound], clip, loss)
            return norms
        weights = clip.weights(root(powers)) if clip.by_layer else clip.weights(norms).expand(len(layers), -1)
        for name in list(shares):
            part = shares.pop(name).total(weights[layers.index(_layer(name))])
            total[name] = total[name].add_(part) if name in total else part
    return norms


def _layer(parameter: str) -> str:
    return parameter.rpartition(".")[0]


def _joined(uses: list[PerExample]) -> PerExample:
    """A parameter used several times has the sum of the gradients of its uses; norms do not add up."""
    if len(uses) == 1:
        return uses[0]
    total = uses[0].each().clone()
    for use in uses[1:]:
        total += use.each()
    return Kept(total)


def _by_transform(
    model: nn.Module, images: Tensor, targets: Tensor, loss: Loss, names: Iterable[str]
) -> dict[str, PerExample]:
    """The gradients of any parameters of any model, by `torch.func`; one example at a time where that gives up."""
    free = {name: p.detach() for name, p in model.named_parameters() if name in set(names)}

    def example_loss(weights: dict[str, Tensor], image: Tensor, target: Tensor) -> Tensor:
        outputs: Tensor = functional_call(model, weights, (image[None],))
        return per_example_losses(loss, outputs, target[None]).sum()

    gradient: Callable[..., dict[str, Tensor]] = grad(example_loss)
    try:
        with warnings.catch_warnings():  # that it is slow is why layers have rules
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            each = vmap(gradient, in_dims=(None, 0, 0), randomness="different")(free, images, targets)
    except RuntimeError:  # a layer that has no batching rule, or control flow that depends on the data
        rows = [gradient(free, image, target) for image, target in zip(images, targets, strict=True)]
        each = {name: torch.stack([row[name] for row in rows]) for name in free}
    return {name: Kept(gradients) for name, gradients in each.items()}
