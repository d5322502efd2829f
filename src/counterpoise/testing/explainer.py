"""What every explainer promises."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import Tensor, nn

from counterpoise.grid import text
from counterpoise.interface import Explainer, Explanation, SharesDraws, Trained
from counterpoise.testing import _bed as bed
from counterpoise.testing._bed import hold
from counterpoise.training import generator


def check_explainer(explainer: Explainer) -> None:
    """Explain a small network's decisions on grey and on colour images, and hold it to what `Explainer` promises."""
    name = bed.named(Explainer, explainer)
    hold(hasattr(explainer, explainer.degree_field), f"{name}: it has no field {explainer.degree_field!r} (its degree)")
    for shape in bed.SHAPES:
        images, target = torch.rand(5, *shape, generator=generator(1)), torch.tensor([0, 1, 0, 1, 1])
        model = bed.network(shape, 2, generator(0))
        original = images.clone()
        first = bed.explain(explainer, model, images, target)
        hold(torch.equal(images, original), f"{name}: it changed the images it was to explain")
        _check_maps(name, first, (5, *shape[1:]))
        again = bed.explain(explainer, Trained(model, nn.Identity()), images, target)
        hold(torch.equal(first.maps, again.maps), f"{name}: one seed gives two maps; use rng.initial_seed()")
        alone = [bed.explain(explainer, model, images[i : i + 1], target[i : i + 1]).maps for i in range(5)]
        turned = bed.explain(explainer, model, images.flip(0), target.flip(0)).maps.flip(0)
        hold(
            bed.close(first.maps, torch.cat(alone)) and bed.close(first.maps, turned),
            f"{name}: a map depends on the images it shares a batch with, or on its place among them",
        )
        _check_degrees(name, explainer, model, images, target)
        _check_given_back(name, explainer, images, target)


def _check_maps(name: str, explanation: Explanation, shape: tuple[int, ...]) -> None:
    maps = explanation.maps
    hold(
        maps.shape == shape and maps.dtype == torch.float32,
        f"{name}: maps must be float32 {list(shape)}, not {maps.dtype} {list(maps.shape)}",
    )
    hold(bool(maps.isfinite().all()), f"{name}: maps must be finite")
    errors = explanation.stderr
    if errors is not None:
        hold(
            errors.shape == shape and bool((errors >= 0).all()),
            f"{name}: stderr must be {list(shape)} and nowhere negative",
        )


def _check_degrees(name: str, explainer: Explainer, model: nn.Module, images: Tensor, target: Tensor) -> None:
    if not isinstance(explainer, SharesDraws):
        return
    low, high = explainer.kind.low, explainer.kind.high
    degrees = [low, (low + high) / 2 if high is not None else low + 1]
    together = explainer.explain_degrees(degrees, model, images, target, torch.Generator().manual_seed(3))
    for degree, found in zip(degrees, together, strict=True):
        one = bed.at(explainer, explainer.degree_field, degree)
        hold(
            one is None or bed.close(bed.explain(one, model, images, target).maps, found.maps),
            f"{name}: explain_degrees gives another map than explain at {explainer.degree_field}={text(degree)}",
        )


def _check_given_back(name: str, explainer: Explainer, images: Tensor, target: Tensor) -> None:
    channels, height, width = images.shape[1:]
    model = bed.network((channels, height, width), 2, generator(0))
    layers = list(model.modules())
    layers[1].eval()
    next(layers[1].parameters()).requires_grad_(False)
    state, weights = bed.state(model), bed.copies(model)
    bed.explain(explainer, model, images, target)
    given = state == bed.state(model) and bed.same(weights, bed.copies(model))
    hold(given, f"{name}: the model was not given back as it was found (modes, gradients, hooks, weights)")
    errors: list[bed.ModelError] = []
    model.register_forward_hook(lambda *call: bed.fail(errors))
    state = bed.state(model)
    with suppress(bed.ModelError):
        bed.explain(explainer, model, images, target)
        hold(not errors, f"{name}: it hid an error of the model")
    hold(state == bed.state(model), f"{name}: after an error, the model was not given back as it was found")
