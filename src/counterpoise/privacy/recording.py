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
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from counterpoise._check import InputError
from counterpoise.privacy.layers import Norm, PerExample, replay, rule

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class _Call:
    """One use of one layer."""

    layer: nn.Module
    inputs: Tensor
    edge: GradientEdge


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
    names = {p: name for name, p in model.named_parameters() if p.requires_grad}
    with torch.enable_grad(), _listening(model, calls, len(images)):
        losses = per_example_losses(loss, model(images), targets)
    used = _uses(losses)
    counted = Counter(p for call in calls for p in _own(call.layer))
    recording = Recording()
    recording.missed = {name for p, name in names.items() if used[p] != counted[p] and (used[p] or counted[p])}
    recording.missed |= {
        names[p] for call in calls if rule(call.layer) is replay and not _alone(call.layer) for p in _own(call.layer)
    }
    signals = torch.autograd.grad(losses.sum(), [call.edge for call in calls], allow_unused=True) if calls else ()
    with torch.no_grad():
        left = list(zip(calls, signals, strict=True))
        calls.clear()
        while left:  # popped, so that what a layer no longer needs is freed
            call, signal = left.pop()
            if signal is None or all(names[p] in recording.missed for p in _own(call.layer)):
                continue
            for local, share in rule(call.layer)(call.layer, call.inputs, signal, norm).items():
                name = names.get(call.layer._parameters[local])  # type: ignore[arg-type]
                if name is not None and name not in recording.missed:
                    recording.shares.setdefault(name, []).append(share)
    return recording


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
def _listening(model: nn.Module, calls: list[_Call], n: int) -> Iterator[None]:
    """Keep a call of every layer that has trainable parameters of its own and treats the batch example by example."""

    def listen(layer: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        if len(arguments) != 1 or not isinstance(arguments[0], Tensor) or not isinstance(output, Tensor):
            return
        if arguments[0].shape[:1] == (n,) == output.shape[:1] and output.requires_grad:
            # The edge and not the tensor: an activation in place would change what the tensor is the output of.
            calls.append(_Call(layer, arguments[0].detach(), get_gradient_edge(output)))

    handles = [layer.register_forward_hook(listen) for layer in model.modules() if any(True for _ in _own(layer))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _own(layer: nn.Module) -> Iterator[nn.Parameter]:
    return (p for p in layer._parameters.values() if p is not None and p.requires_grad)


def _alone(layer: nn.Module) -> bool:
    """Whether all of the layer's parameters are its own, so that running it again gives all there is."""
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
