"""One forward and one backward pass, in which every layer's input and signal are kept.

A signal is the gradient of the summed losses with respect to a layer's output: what the chain rule hands to the
layer. With its input it gives the layer's gradient for each example, so no second backward pass is needed. The
pass stops at the signals: the library's own sums over the batch are not computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils.hooks import RemovableHandle

from counterpoise._check import InputError
from counterpoise.privacy.layers import Norm, PerExample, rule_for

Loss = Callable[[Tensor, Tensor], Tensor]
"""`loss(outputs, targets)` gives one value an example."""

_BATCH_FIRST = (nn.modules.conv._ConvNd, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)


@dataclass
class _Call:
    """One use of one layer. `inputs` is let go as soon as it has served."""

    layer: nn.Module
    inputs: Tensor | None
    edge: GradientEdge | None
    first: bool
    hook: RemovableHandle | None = None

    def release(self) -> None:
        """Let go of the graph, which holds the hook that holds this call: a ring that no collector sees."""
        if self.hook is not None:
            self.hook.remove()
        self.edge = self.inputs = None


@dataclass
class Recording:
    """The gradients of a batch: `shares[parameter]` has one entry for each use of the parameter.

    `missed` are the parameters that were used in a way the layers did not show.
    """

    shares: dict[str, list[PerExample]] = field(default_factory=dict)
    missed: set[str] = field(default_factory=set)


def record(model: nn.Module, images: Tensor, targets: Tensor, loss: Loss, norm: Norm) -> Recording:
    """Run the model once forward and once backward, and take every layer's share."""
    calls: list[_Call] = []
    recording = Recording()
    names = {p: name for name, p in model.named_parameters() if p.requires_grad}

    def take(call: _Call, signal: Tensor) -> None:
        inputs, call.inputs = call.inputs, None
        own = {local: names[p] for local, p in _own(call.layer).items()}
        if inputs is None or recording.missed.issuperset(own.values()):
            return
        for local, share in rule_for(call.layer)(call.layer, inputs, signal, norm).items():
            if own.get(local, "") not in recording.missed | {""}:
                recording.shares.setdefault(own[local], []).append(share)

    try:
        with torch.enable_grad(), _listening(model, calls, len(images), take):
            losses = per_example_losses(loss, model(images.detach()), targets)
        counted = Counter(p for call in calls for p in _own(call.layer).values())
        used = _uses(losses)
        recording.missed = {name for p, name in names.items() if used[p] != counted[p]}
        # The pass must reach every layer and compute no parameter's gradient: it ends at the layers that come
        # first, and at the few parameters that were missed.
        ends: list[Any] = [call.edge for call in calls if call.first]
        ends += [p for p, name in names.items() if name in recording.missed]
        if ends:
            torch.autograd.grad(losses.sum(), ends, allow_unused=True)
    finally:
        for call in calls:
            call.release()
    return recording


def cross_entropies(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy of each example."""
    return nn.functional.cross_entropy(logits, targets, reduction="none")


def per_example_losses(loss: Loss, outputs: Tensor, targets: Tensor) -> Tensor:
    """One loss an example; a loss that has averaged over the batch already is refused."""
    losses = loss(outputs, targets)
    if losses.shape[:1] != outputs.shape[:1]:
        raise InputError(
            f"loss: must give one value an example, but {len(outputs)} examples gave shape {list(losses.shape)};"
            ' make it with reduction="none".'
        )
    return losses


@contextmanager
def _listening(model: nn.Module, calls: list[_Call], n: int, take: Callable[[_Call, Tensor], None]) -> Iterator[None]:
    """Keep a call of every layer that has trainable parameters of its own and treats the batch example by example."""

    def listen(layer: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        if len(arguments) != 1 or not isinstance(arguments[0], Tensor) or not isinstance(output, Tensor):
            return
        inputs = arguments[0]
        by_example = inputs.shape[:1] == (n,) == output.shape[:1] and not _ambiguous(layer, inputs, n)
        if by_example and output.requires_grad:
            # The edge and a hook: both keep meaning this output, also when an activation then changes it in place.
            call = _Call(layer, inputs.detach(), get_gradient_edge(output), not inputs.requires_grad)
            call.hook = output.register_hook(partial(take, call))  # type: ignore[no-untyped-call]
            calls.append(call)

    for name, layer in model.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and (layer.training or not layer.track_running_stats):
            raise InputError(
                f"{name or 'the model'} ({type(layer).__name__}): mixes the images of a batch, so no image has a"
                " gradient of its own; counterpoise.privacy.convert(model) replaces it by GroupNorm."
            )
    handles = [layer.register_forward_hook(listen) for layer in model.modules() if _own(layer) and _alone(layer)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _ambiguous(layer: nn.Module, inputs: Tensor, n: int) -> bool:
    """A sequence as long as the batch: which of the two comes first cannot be told, so no rule may be trusted."""
    if isinstance(layer, _BATCH_FIRST):
        return False
    return inputs.ndim >= (2 if isinstance(layer, nn.Embedding) else 3) and inputs.shape[1] == n


def _own(layer: nn.Module) -> dict[str, nn.Parameter]:
    return {local: p for local, p in layer._parameters.items() if p is not None and p.requires_grad}


def _alone(layer: nn.Module) -> bool:
    """Whether no parameters but the layer's own are inside it, so that its input and output tell all."""
    return not any(p.requires_grad for child in layer.children() for p in child.parameters())


def _uses(losses: Tensor) -> Counter[Tensor]:
    """How often the graph uses each parameter: the arrows into its gradient's place."""
    counted: Counter[Tensor] = Counter()
    waiting, seen = [losses.grad_fn], {losses.grad_fn}
    while waiting:
        node = waiting.pop()
        for following, _ in node.next_functions if node is not None else ():
            if following is None:
                continue
            if hasattr(following, "variable"):
                counted[following.variable] += 1
            elif following not in seen:
                seen.add(following)
                waiting.append(following)
    return counted
