"""Tartaglione and Grangetto (2020) on MNIST: even or odd is the task, the ten digits are hidden at conv1 or at fc1."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import torch
from torch import Tensor, nn

from counterpoise.datasets.idx import Mnist
from counterpoise.interface import Recipe, Task
from counterpoise.mechanisms.non_discrimination import NonDiscriminatory
from counterpoise.models.lenet5 import lenet5_caffe
from counterpoise.reproduce._hiding_table import Row, finish
from counterpoise.reproduce._judging import judge
from counterpoise.reproduce._kept import Numbers, kept
from counterpoise.reproduce.settings import Settings
from counterpoise.training import generator, one_thread

LAYERS = {"conv1": "2", "fc1": "7"}
"""The first convolution after its pooling, 2880 numbers; the first dense layer after its ReLU, 500."""

PUBLISHED = {
    "conv1": {
        "0": (99.32, 0.54),
        "0.001": (99.33, 0.50),
        "0.01": (98.94, 0.22),
        "0.1": (97.41, 0.07),
        "1": (95.54, 0.04),
    },
    "fc1": {
        "0": (99.32, 0.61),
        "0.001": (99.36, 0.34),
        "0.01": (99.30, 0.19),
        "0.1": (99.15, 0.11),
        "1": (93.23, 0.03),
    },
}
"""Table I: accuracy in percent, and R."""


@dataclass(frozen=True)
class Schedule:
    """How much is trained; `images` None is all."""

    images: int | None
    gammas: tuple[str, ...]
    recipe: Recipe

    def sentence(self) -> str:
        """In words."""
        images = "all images" if self.images is None else f"{self.images} images"
        r = self.recipe
        rate = f"{r.learning_rate:g} falling to 0" if r.falling else f"{r.learning_rate:g}"
        optimiser = f"Adam {rate}" if r.optimiser == "adam" else f"SGD {rate}, momentum {r.momentum:g}"
        return f"{images}, {r.epochs} epochs, {optimiser}, weight decay {r.weight_decay:g}, batch {r.batch}"


ALL = ("0", "0.1", "1", "0.01", "0.001")
"""The published gammas; first those that a stopped run should have."""
SHORT = Recipe(4, 100, 0.02, 0.9, weight_decay=1e-5)
FALLING = Recipe(10, 100, 0.002, optimiser="adam", weight_decay=1e-5, falling=True)
"""Chosen at gammas 0 and .1 on the last 10,000 training images, held out; the test images had no part in it."""
SCHEDULES = {
    ("quick", "conv1"): Schedule(1500, ("0", "0.1"), Recipe(2, 100, 0.02, 0.9, weight_decay=1e-5)),
    ("quick", "fc1"): Schedule(6000, ("0", "0.1"), Recipe(3, 100, 0.02, 0.9, weight_decay=1e-5)),
    ("cpu", "conv1"): Schedule(15_000, ALL, SHORT),
    ("cpu", "fc1"): Schedule(None, ALL, FALLING),
    ("paper", "conv1"): Schedule(None, ALL, Recipe(500, 100, 0.01, weight_decay=1e-5)),
    ("paper", "fc1"): Schedule(None, ALL, Recipe(500, 100, 0.01, weight_decay=1e-5)),
}


class OneOutput(nn.Module):
    """One number z as the logits (0, z): cross-entropy of the two is the binary cross-entropy of z."""

    def forward(self, z: Tensor) -> Tensor:
        """The pair."""
        return torch.cat([torch.zeros_like(z), z], 1)


def network(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    """LeNet-5 of the Caffe examples with one output."""
    lenet = lenet5_caffe(shape, 1, rng)
    assert isinstance(lenet, nn.Sequential)
    return nn.Sequential(*lenet, OneOutput())


def tartaglione_mnist_fc1(settings: Settings) -> str:
    """Hiding the ten digits at fc1 of LeNet-5 that tells even from odd: five gammas, Table I beside ours, probes."""
    return reproduce("fc1", settings)


def tartaglione_mnist_conv1(settings: Settings) -> str:
    """Hiding the ten digits at conv1 of LeNet-5 that tells even from odd: five gammas, Table I beside ours, probes."""
    return reproduce("conv1", settings)


def reproduce(layer: str, settings: Settings) -> str:
    """Train every gamma, probe it, and lay out the table and the figures."""
    schedule = SCHEDULES[settings.scale, layer]
    root = None if settings.data is None else str(settings.data)
    train, test = Mnist(root=root, limit=schedule.images).load()
    task = Task(train, test, "parity", network, schedule.recipe, hidden="digit")
    rows = []
    for gamma in schedule.gammas:
        configuration = {"source": "tartaglione-mnist", "layer": layer, "gamma": gamma, "schedule": schedule.sentence()}
        numbers = kept(settings.out, {**configuration, "seed": 0}, lambda gamma=gamma: train_one(task, layer, gamma))  # type: ignore[misc]
        rows.append(Row(f"gamma {gamma}", PUBLISHED[layer].get(gamma), numbers))
    rows.sort(key=lambda row: Decimal(row.name.removeprefix("gamma ")))
    title = f"MNIST even/odd, digits hidden at {layer}, scale {settings.scale} ({schedule.sentence()}), seed 0"
    return finish(f"tartaglione-mnist-{layer}", title, rows, settings)


def train_one(task: Task, layer: str, gamma: str) -> Numbers:
    """One training with its probes."""
    at = LAYERS[layer]
    with one_thread():
        model = NonDiscriminatory(Decimal(gamma), at, batches="shuffled").train(task, generator(0, "tartaglione")).model
        return judge(model, at, task)
