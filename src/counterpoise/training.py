"""The only training loop, and what it stands on: derived seeds, batches, evaluation, exact checkpoints.

A step is a function of its index and of the state handed to `fit`; so a run that was killed and resumed
from a checkpoint gives the same weights, bit for bit, as one that was not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise._files import replacing
from counterpoise.interface import Penalty, Progress, Recipe
from counterpoise.representation.layers import listening

State = Mapping[str, nn.Module | torch.optim.Optimizer | torch.Generator]
"""Everything that changes while training, by name: networks, optimisers, generators."""


def derive(seed: int, *labels: object) -> int:
    """A seed for one purpose, independent of every other purpose's: a hash of the seed and the labels."""
    words = repr([str(label) for label in (seed, *labels)])
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *labels: object) -> torch.Generator:
    """A fresh generator for one purpose: `generator(seed, "epoch", 3)`."""
    return torch.Generator().manual_seed(derive(seed, *labels))


@contextmanager
def seeded(rng: torch.Generator) -> Iterator[None]:
    """Inside, what torch draws from its global generator (first weights, dropout) comes from `rng`.

    Afterwards the global generator is as it was.
    """
    seed = int(torch.randint(2**62, (), generator=rng))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes with one thread: trainings beside each other would only wait for each other's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def shuffled_batch(n: int, batch: int, seed: int, index: int) -> Tensor:
    """The indices of step `index`: epochs of shuffled batches, the last of an epoch possibly smaller."""
    epoch, position = divmod(index, steps_per_epoch(n, batch))
    order = torch.randperm(n, generator=generator(seed, "epoch", epoch))
    return order[position * batch : (position + 1) * batch]


def steps_per_epoch(n: int, batch: int) -> int:
    """How many shuffled batches cover n images."""
    return max(1, -(-n // batch))


def kept_aside(n: int) -> tuple[Tensor, Tensor]:
    """Indices of n training images to learn from, and of the fifth of them that is kept aside to choose by.

    The same ones for everybody: by what a filter has not seen, its attackers can be chosen without flattering either.
    """
    order = torch.randperm(n, generator=generator(0, "kept aside", n))
    count = min(max(1, n // 5), n)
    return order[count:].sort().values, order[:count].sort().values


def make_optimiser(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The recipe's optimiser over the model's trainable parameters."""
    weights = [p for p in model.parameters() if p.requires_grad]
    if recipe.optimiser == "adam":
        return torch.optim.Adam(weights, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(weights, lr=recipe.learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay)


def fit(
    step: Callable[[int], None],
    steps: int,
    state: State,
    *,
    progress: Progress = lambda done: None,
    checkpoint: Path | None = None,
    every: int = 100,
) -> None:
    """Call `step(0) … step(steps - 1)`, saving `state` every so many steps and starting from what is saved."""
    first = 0 if checkpoint is None else restore(state, checkpoint)
    for index in range(first, steps):
        step(index)
        progress((index + 1) / steps)
        if checkpoint is not None and (index + 1) % every == 0 and index + 1 < steps:
            save(state, index + 1, checkpoint)


def fit_classifier(
    model: nn.Module,
    pixels: Tensor,
    labels: Tensor,
    recipe: Recipe,
    seed: int,
    *,
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy,
    penalty: Penalty | None = None,
    batches: Callable[[int], Tensor] | None = None,
    progress: Progress = lambda done: None,
    checkpoint: Path | None = None,
) -> None:
    """Ordinary cross-entropy training on shuffled batches, or on those chosen, with a penalty where one is given.

    `loss(outputs, labels)` is another one, where the labels are not one class an image.
    """
    state: dict[str, nn.Module | torch.optim.Optimizer | torch.Generator] = {"model": model}
    if penalty is not None and penalty.learns is not None:
        state["penalty"] = penalty.learns
    learning = model if len(state) == 1 else nn.ModuleList([model, state["penalty"]])  # type: ignore[list-item]
    state["optimiser"] = optimiser = make_optimiser(learning, recipe)
    arrange = fast_layout(model, pixels)
    steps = recipe.epochs * steps_per_epoch(len(pixels), recipe.batch)

    def step(index: int) -> None:
        batch = shuffled_batch(len(pixels), recipe.batch, seed, index) if batches is None else batches(index)
        if recipe.falling:  # a function of the index, so a resumed training has the same rate
            for group in optimiser.param_groups:
                group["lr"] = recipe.learning_rate * (1 - index / steps)
        optimiser.zero_grad()
        with seeded(generator(seed, "dropout", index)):
            total = _loss(model, arrange(pixels[batch]), labels[batch], loss, penalty, batch)
        total.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    learning.train()
    fit(step, steps, state, progress=progress, checkpoint=checkpoint)
    learning.eval()


def _loss(
    model: nn.Module,
    pixels: Tensor,
    labels: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    penalty: Penalty | None,
    batch: Tensor,
) -> Tensor:
    if penalty is None:
        return loss(model(pixels), labels)
    with listening(model, penalty.at) as heard:
        total = loss(model(pixels), labels)
        return total + penalty.of(heard[-1], batch)


def channels_last(images: Tensor) -> Tensor:
    """The images with the channels of a pixel beside each other, also where there is one channel only.

    On a processor, convolutions and pooling are up to three times as fast on that layout; the values are the same.
    """
    _, channels, high, wide = images.shape
    strides = (channels * high * wide, 1, wide * channels, channels)
    return torch.empty_strided(images.shape, strides, dtype=images.dtype, device=images.device).copy_(images)


def fast_layout(model: nn.Module, images: Tensor) -> Callable[[Tensor], Tensor]:
    """`channels_last`, or nothing for a model that asks for a `view` of its maps: found out on one blank image.

    The model is evaluated, so that no statistic moves; its mode and torch's generator are put back.
    """
    if images.ndim != 4 or not len(images):
        return lambda part: part
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            model(channels_last(torch.zeros_like(images[:1])))
    except RuntimeError:  # torch's word for a view that does not exist
        return lambda part: part
    finally:
        for module, mode in modes:
            module.training = mode
    return channels_last


@torch.no_grad()
def apply(module: nn.Module, pixels: Tensor, chunk: int = 512) -> Tensor:
    """The module's output on all images, in evaluation mode and in chunks; the mode is put back."""
    was_training = module.training
    module.eval()
    try:
        arrange = fast_layout(module, pixels)
        return torch.cat([module(arrange(part)).contiguous() for part in torch.split(pixels, chunk)])
    finally:
        module.train(was_training)


def save(state: State, step: int, path: Path) -> None:
    """Write the state atomically. The file holds generator states, so treat it as the private data."""
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, float | int | bool] = {}
    for name, part in state.items():
        for key, value in _flatten(part).items():
            if isinstance(value, Tensor):
                tensors[f"{name}/{key}"] = value.detach().clone().contiguous()
            else:
                scalars[f"{name}/{key}"] = value
    with replacing(path) as part_file:
        save_file(tensors, part_file, metadata={"step": str(step), "scalars": json.dumps(scalars)})


def restore(state: State, path: Path) -> int:
    """Load a saved state in place and return its step; 0 where nothing is saved."""
    if not path.exists():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            saved: dict[str, Tensor | float | int | bool] = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        saved.update(json.loads(metadata["scalars"]))
        for name, part in state.items():
            prefix = f"{name}/"
            _unflatten(part, {k.removeprefix(prefix): v for k, v in saved.items() if k.startswith(prefix)})
        return int(metadata["step"])
    except (SafetensorError, KeyError, ValueError, RuntimeError) as problem:
        why = " ".join(str(problem).split()).rstrip(".")
        raise InputError(
            f"{path}: this checkpoint does not fit the training ({why}); delete it to start anew."
        ) from None


def _flatten(
    part: nn.Module | torch.optim.Optimizer | torch.Generator,
) -> dict[str, Tensor | float | int | bool]:
    if isinstance(part, torch.Generator):
        return {"state": part.get_state()}
    if isinstance(part, nn.Module):
        return dict(part.state_dict())
    flat: dict[str, Tensor | float | int | bool] = {}
    for index, slots in part.state_dict()["state"].items():
        for key, value in slots.items():
            if value is not None:
                flat[f"{index}/{key}"] = value
    return flat


def _unflatten(
    part: nn.Module | torch.optim.Optimizer | torch.Generator, flat: dict[str, Tensor | float | int | bool]
) -> None:
    if isinstance(part, torch.Generator):
        part.set_state(flat["state"])  # type: ignore[arg-type]
    elif isinstance(part, nn.Module):
        part.load_state_dict(flat)
    else:
        whole = part.state_dict()
        slots: dict[int, dict[str, object]] = {}
        for key, value in flat.items():
            index, slot = key.split("/", 1)
            slots.setdefault(int(index), {})[slot] = value
        whole["state"] = slots
        part.load_state_dict(whole)
