"""The deck's trainings: VGG-16 and a plain CNN, with and without privacy, by each schedule; and what they cost."""

from __future__ import annotations

import json
import math
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from counterpoise import store, training
from counterpoise._files import replacing
from counterpoise.fingerprint import images_digest, versions
from counterpoise.interface import Images
from counterpoise.models import BUILTIN as MODELS
from counterpoise.privacy import Flat, Gaussian, Plan, Poisson, private_gradient
from counterpoise.training import channels_last

NOISE, CLIP, BATCH, DELTA = 1.1, 1.0, 250, 1e-5
"""The deck's settings (R02)."""


@dataclass(frozen=True)
class Rate:
    """first * factor ** (step / every): exponential decay, without stairs; constant where the factor is 1."""

    first: float
    factor: float = 1.0
    every: int = 5000

    def at(self, step: int) -> float:
        """The learning rate of a step."""
        return float(self.first * self.factor ** (step / self.every))

    def __str__(self) -> str:
        return f"{self.first:g}" if self.factor == 1 else f"{self.first:g}, x {self.factor:g} every {self.every} steps"


SMALL, DECAYING = Rate(0.001), Rate(0.5, 0.9)


@dataclass(frozen=True)
class Arm:
    """One training of the comparison."""

    name: str
    model: str
    private: bool
    rate: Rate
    optimiser: str = "sgd"
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A trained model, its accuracy after each epoch, and what it cost."""

    arm: Arm
    key: str
    model: nn.Module
    accuracies: tuple[float, ...]
    cpu_seconds: float
    peak_mib: float
    weights: int
    push: float

    @property
    def accuracy(self) -> float:
        """After the last epoch."""
        return self.accuracies[-1]


def plan_for(n: int, epochs: int) -> Plan:
    """The deck's plan for so many images."""
    sampling = Poisson(n, min(BATCH, n))
    return Plan(Gaussian(NOISE), sampling, sampling.steps(epochs), DELTA, Flat(CLIP))


def train(arm: Arm, train: Images, test: Images, label: str, epochs: int, seed: int, folder: Path) -> Trial:
    """Train the arm, or load it from the folder if it was trained by the same settings and code on the same images.

    Seconds are of processor time, an epoch on average, without testing; memory is the process's peak in the training.
    `push` is how far the noise alone moves the weights in one step: rate * clip * noise * sqrt(weights) / batch.
    """
    model = MODELS[arm.model](train.shape, len(train.classes[label]), training.generator(seed, "deck"), **arm.options)
    weights = sum(weight.numel() for weight in model.parameters())
    push = arm.rate.first * CLIP * NOISE * math.sqrt(weights) / min(BATCH, len(train)) if arm.private else 0.0
    key = store.digest(
        [
            [arm.model, dict(arm.options), arm.private, str(arm.rate), arm.optimiser, epochs, seed],
            [NOISE, CLIP, BATCH, DELTA],
            [label, images_digest(train, test)],
            versions(),
        ]
    )
    path = folder / f"{key}.safetensors"
    kept = _load(model, path)
    if kept is None:
        kept = _run(arm, model, train, test, label, epochs, seed)
        with replacing(path) as beside:
            tensors = {name: value.contiguous() for name, value in model.state_dict().items()}
            save_file(tensors, beside, metadata={"facts": json.dumps(kept)})
    model.eval()
    return Trial(arm, key, model, tuple(kept["accuracies"]), kept["cpu_seconds"], kept["peak_mib"], weights, push)


def _run(arm: Arm, model: nn.Module, train: Images, test: Images, label: str, epochs: int, seed: int) -> dict[str, Any]:
    plan = plan_for(len(train), epochs)
    rngs = [training.generator(seed, "deck", purpose) for purpose in ("batches", "noise")]
    optimiser = (torch.optim.Adam if arm.optimiser == "adam" else torch.optim.SGD)(
        model.parameters(), lr=arm.rate.first
    )
    pixels, labels = train.pixels, train.labels[label]
    each, accuracies, seconds = plan.sampling.steps(1), [], 0.0
    _forget_peak()
    for epoch in range(epochs):
        started = time.process_time()
        model.train()
        for index in range(epoch * each, (epoch + 1) * each):
            batch = plan.sampling.draw(index, rngs[0])
            optimiser.zero_grad()
            images, targets = channels_last(pixels[batch]), labels[batch]
            if arm.private:
                released = private_gradient(model, images, targets, plan, rngs[1])
                for name, weight in model.named_parameters():
                    weight.grad = released[name]
            else:
                nn.functional.cross_entropy(model(images), targets).backward()  # type: ignore[no-untyped-call]
            for group in optimiser.param_groups:
                group["lr"] = arm.rate.at(index)
            optimiser.step()
        seconds += time.process_time() - started
        right = training.apply(model, test.pixels).argmax(1) == test.labels[label]
        accuracies.append(float(right.float().mean()))
    return {"accuracies": accuracies, "cpu_seconds": seconds / epochs, "peak_mib": _peak()}


def _load(model: nn.Module, path: Path) -> dict[str, Any] | None:
    try:
        with safe_open(path, framework="pt") as file:
            facts: dict[str, Any] = json.loads((file.metadata() or {})["facts"])
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (FileNotFoundError, SafetensorError, KeyError):  # not there, or damaged: trained again
        return None
    model.load_state_dict(tensors)
    return facts


def _forget_peak() -> None:
    """Let the peak start from now, where the system can (Linux); elsewhere it is that of the whole process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> float:
    """The peak of resident memory, in MiB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
