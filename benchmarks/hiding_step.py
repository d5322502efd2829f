"""What NDR costs beside plain training: time of a step of LeNet, and memory at a layer of 967,872 numbers.

Times are processor time of interleaved steps in one process, batches drawn as training draws them; the ratio is the
median over rounds. Memory is the peak of a process of its own: the stem of Inception-v3 at 299 x 299 up to its
192 x 71 x 71 numbers (the source's 968,000), batch 50, forward, R, backward, one SGD step.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.table import Options, Table
from counterpoise.mechanisms._balanced import BalancedBatches
from counterpoise.models.inception_v3 import stem
from counterpoise.models.lenet5 import lenet5_caffe
from counterpoise.representation.alignment import Form, alignment
from counterpoise.representation.layers import listening
from counterpoise.training import shuffled_batch

IMAGES, BATCH, ROUNDS = 60_000, 100, 60
WIDE_BATCH = 50


def run(options: Options) -> Table:
    rows: list[dict[str, str | float]] = []
    for at, layer in (("2", "conv1, 2880"), ("7", "fc1, 500")):
        times = interleaved(at, ROUNDS // 4 if options.quick else ROUNDS, options.seed)
        for way, found in times.items():
            ratios = [mine / plain for mine, plain in zip(found, times["plain"], strict=True)]
            rows.append(
                {
                    "case": f"LeNet, {layer}",
                    "way": way,
                    "batch": BATCH,
                    "time / plain": statistics.median(ratios),
                    "peak MB": "-",
                }
            )
    for way in ("plain", "weak", "strong"):
        batch = 10 if options.quick else WIDE_BATCH
        rows.append(
            {
                "case": "Inception-v3 stem, 967872", "way": way, "batch": batch, "time / plain": "-",
                "peak MB": peak_in_own_process(way, batch, options),
            }
        )  # fmt: skip
    return Table("A training step that hides a class, beside a plain one; peaks are of whole processes", rows)


def interleaved(at: str, rounds: int, seed: int) -> dict[str, list[float]]:
    ways = {way: step(way, at, seed) for way in ("plain", "weak", "strong")}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for index in range(rounds + 2):
        for way, take in ways.items():
            start = time.process_time()
            take(index)
            if index > 1:  # the first rounds warm caches
                times[way].append(time.process_time() - start)
    return times


def step(way: str, at: str, seed: int) -> Callable[[int], None]:
    """One step as training takes it, the drawing of the batch included."""
    rng = torch.Generator().manual_seed(seed)
    pixels, hidden = torch.rand(2000, 1, 28, 28, generator=rng), torch.randint(10, (IMAGES,), generator=rng)
    model, balanced = lenet5_caffe((1, 28, 28), 2, rng).train(), BalancedBatches(hidden, BATCH, seed)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)

    def take(index: int) -> None:
        batch = shuffled_batch(IMAGES, BATCH, seed, index) if way == "plain" else balanced(index)
        optimiser.zero_grad()
        loss(model, way, at, pixels[batch % 2000], hidden[batch] % 2, hidden[batch]).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return take


def loss(model: nn.Module, way: str, at: str, images: Tensor, target: Tensor, hidden: Tensor) -> Tensor:
    if way == "plain":
        return nn.functional.cross_entropy(model(images), target)
    form: Form = "weak" if way == "weak" else "strong"
    with listening(model, at) as heard:
        return nn.functional.cross_entropy(model(images), target) + 0.1 * alignment(heard[-1], hidden, form)


def peak_in_own_process(way: str, batch: int, options: Options) -> float:
    command = [sys.executable, "-m", "benchmarks.hiding_step", way, str(batch), str(options.seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    return float(json.loads(done.stdout.splitlines()[-1]))


def wide_step(way: str, batch: int, seed: int) -> float:
    """Peak megabytes of this process, libraries included."""
    rng = torch.Generator().manual_seed(seed)
    model = nn.Sequential(stem(rng), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 2)).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    images, hidden = torch.rand(batch, 3, 299, 299, generator=rng), torch.arange(batch) % 5
    loss(model, way, "0", images, hidden % 2, hidden).backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(wide_step(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
