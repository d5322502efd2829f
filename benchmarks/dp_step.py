"""A full training step: forward, clip, noise, update. Ordinary SGD, counterpoise, and Opacus in three modes.

Times are of interleaved steps in one process, so that all suffer the same neighbours: each round runs every way
once, and the ratio to SGD is the median over rounds. Memory is the peak of a process of its own, less what it held
before it made the model. Noise 1, clip 1, SGD without momentum; images are random.
"""

from __future__ import annotations

import json
import logging
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.table import Options, Table
from counterpoise.models.lenet5 import lenet5_caffe
from counterpoise.models.resnet import resnet18
from counterpoise.models.tanh_cnn import tanh_cnn
from counterpoise.models.vgg import vgg16
from counterpoise.privacy import Gaussian, Plan, Poisson, private_gradient
from counterpoise.training import channels_last

Step = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A network and what it is measured with. Opacus' hooks keep batch * weights numbers, which bounds the batch."""

    make: Callable[..., nn.Module]
    shape: tuple[int, int, int]
    batch: int
    rounds: int
    quick_batch: int


CASES = {
    "(a) tanh CNN, 26k": Case(tanh_cnn, (1, 28, 28), 256, 40, 256),
    "(b) LeNet-5 (Caffe), 431k": Case(lenet5_caffe, (1, 28, 28), 256, 20, 256),
    "(c) ResNet-18 GroupNorm, 11.2M": Case(resnet18, (3, 32, 32), 64, 3, 16),
    "(d) VGG-16 at 32 x 32, 14.7M": Case(vgg16, (3, 32, 32), 64, 3, 16),
}
WAYS = ("sgd", "sgd, channels last", "counterpoise", "opacus hooks", "opacus functorch", "opacus ghost")


def run(options: Options) -> Table:
    rows: list[dict[str, str | float]] = []
    for name, case in CASES.items():
        batch = case.quick_batch if options.quick else case.batch
        rounds = max(3, case.rounds // 6) if options.quick else case.rounds
        times = interleaved(case, batch, rounds, options.seed)
        peaks = {way: peak_in_own_process(name, way, batch, options) for way in WAYS}
        for way in WAYS:
            ratios = [mine / plain for mine, plain in zip(times[way], times["sgd"], strict=True)]
            rows.append(
                {
                    "model": name,
                    "way": way,
                    "batch": batch,
                    "images/s": batch / statistics.median(times[way]),
                    "time / sgd": statistics.median(ratios),
                    "peak MB": peaks[way],
                    "peak / sgd": peaks[way] / peaks["sgd"],
                }
            )
            print("  ".join(f"{v}" if isinstance(v, str) else f"{v:.4g}" for v in rows[-1].values()), flush=True)
    return Table("A full training step (noise 1, clip 1); ratios are medians over interleaved rounds", rows)


def interleaved(case: Case, batch: int, rounds: int, seed: int) -> dict[str, list[float]]:
    steps = {way: make_step(way, case, batch, seed) for way in WAYS}
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for index in range(rounds + 1):
        for way, step in steps.items():
            start = time.perf_counter()
            step()
            if index:  # the first round warms caches
                times[way].append(time.perf_counter() - start)
    return times


def make_step(way: str, case: Case, batch: int, seed: int) -> Step:
    rng = torch.Generator().manual_seed(seed)
    model = case.make(case.shape, 10, rng).train()
    images, targets = torch.rand(batch, *case.shape, generator=rng), torch.randint(10, (batch,), generator=rng)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    if way.startswith("sgd"):
        return plain(model, channels_last(images) if "last" in way else images, targets, optimiser)
    if way == "counterpoise":
        return ours(model, images, targets, optimiser, rng)
    return opacus(way.split()[1], model, images, targets, optimiser)


def plain(model: nn.Module, images: Tensor, targets: Tensor, optimiser: torch.optim.Optimizer) -> Step:
    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(images), targets).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def ours(
    model: nn.Module, images: Tensor, targets: Tensor, optimiser: torch.optim.Optimizer, rng: torch.Generator
) -> Step:
    plan = Plan(Gaussian(1.0), Poisson(60_000, len(images)), steps=1000, delta=1e-5)

    def step() -> None:
        optimiser.zero_grad()
        released = private_gradient(model, channels_last(images), targets, plan, rng)
        for name, weight in model.named_parameters():
            weight.grad = released[name]
        optimiser.step()

    return step


def opacus(mode: str, model: nn.Module, images: Tensor, targets: Tensor, optimiser: torch.optim.Optimizer) -> Step:
    from opacus import PrivacyEngine

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    data = torch.utils.data.TensorDataset(images, targets)
    parts: Any = PrivacyEngine().make_private(
        module=model,
        optimizer=optimiser,
        criterion=nn.CrossEntropyLoss(),
        data_loader=torch.utils.data.DataLoader(data, batch_size=len(images)),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    private, private_optimiser = parts[0], parts[1]
    criterion: Any = parts[2] if mode == "ghost" else nn.CrossEntropyLoss()

    def step() -> None:
        criterion(private(images), targets).backward()
        private_optimiser.step()
        private_optimiser.zero_grad()  # at the end, or its gradients of every example would wait for the next round

    return step


def peak_in_own_process(name: str, way: str, batch: int, options: Options) -> float:
    """Megabytes."""
    arguments = [name, way, str(batch), str(options.seed), str(options.threads)]
    command = [sys.executable, "-m", "benchmarks.dp_step", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    return float(json.loads(done.stdout.splitlines()[-1]))


def own_peak(name: str, way: str, batch: int, seed: int) -> float:
    """Three steps' peak in megabytes; Linux lets a process reset its own high-water mark."""
    make_step(way, CASES["(a) tanh CNN, 26k"], 2, seed)()  # what libraries load once is not the step's
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    step = make_step(way, CASES[name], batch, seed)
    for _ in range(3):
        step()
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    """Kilobytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[5]))
    print(json.dumps(own_peak(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
