"""SmoothGrad and Grad-CAM against captum, torch-cam, and what the network's own gradients cost.

All contestants of a group take turns in one process, so that all suffer the same neighbours: each round runs every
one once, and a ratio is the median over rounds of ratios within a round, by the clock and by the processor time of this
process, which neighbours disturb less. The limit is one forward and one
backward pass to the input, with frozen weights, at the best of several batch sizes and both memory layouts. captum
runs at the best of several chunk sizes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import torch
from captum.attr import NoiseTunnel, Saliency
from torch import Tensor, nn
from torchcam.methods import GradCAM as TorchGradCAM

from benchmarks.table import Options, Table
from counterpoise.explainers import GradCAM, SmoothGrad
from counterpoise.models.lenet5 import lenet5_caffe
from counterpoise.models.resnet import resnet18
from counterpoise.training import channels_last

NOISE = 0.3
DEGREES = tuple(Decimal(step) / 10 for step in range(11))
Job = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A network, how many images are explained with how many samples, and which sizes the others may choose from."""

    make: Callable[..., nn.Module]
    shape: tuple[int, int, int]
    images: int
    samples: int
    batches: Sequence[int]
    chunks: Sequence[int]
    rounds: int
    cams: int

    @property
    def gradients(self) -> int:
        return self.images * self.samples


CASES = {
    "LeNet-5 (Caffe), 431k": Case(lenet5_caffe, (1, 28, 28), 16, 50, (50, 100, 200, 400), (2, 5, 10, 50), 15, 256),
    "ResNet-18 GroupNorm, 11.2M": Case(resnet18, (3, 32, 32), 4, 16, (8, 16, 32, 64), (2, 4, 8, 16), 5, 32),
}


def run(options: Options) -> Table:
    rows: list[dict[str, str | float]] = []
    for name, case in CASES.items():
        rounds = max(3, case.rounds // 3) if options.quick else case.rounds
        rng = torch.Generator().manual_seed(options.seed)
        model = case.make(case.shape, 10, rng).eval()
        images = torch.rand(case.images, *case.shape, generator=rng)
        target = torch.randint(10, (case.images,), generator=rng)
        for group in (smoothing(model, images, target, case), sweeping(model, images, target, case)):
            rows += compared(name, group, rounds)
        rows += compared(name, activating(model, case, rng), 2 * rounds)
        for row in rows[-sum(row["model"] == name for row in rows) :]:
            print("  ".join(f"{v}" if isinstance(v, str) else f"{v:.4g}" for v in row.values()), flush=True)
    return Table("Explaining; ratios to the group's first line are medians over interleaved rounds", rows)


@dataclass(frozen=True)
class Group:
    """What takes turns: jobs by name, each with how many maps or gradients it makes; the first is ours."""

    unit: str
    jobs: dict[str, tuple[Job, int]]
    best_of: tuple[str, ...] = ()
    """Beginnings of names: of the jobs that share one, only the fastest is shown."""


def compared(model: str, group: Group, rounds: int) -> list[dict[str, str | float]]:
    """Interleaved rounds, after one that warms caches."""
    times: dict[str, list[float]] = {way: [] for way in group.jobs}
    efforts: dict[str, list[float]] = {way: [] for way in group.jobs}
    for index in range(rounds + 1):
        for way, (job, count) in group.jobs.items():
            start, effort = time.perf_counter(), time.process_time()
            job()
            if index:
                times[way].append((time.perf_counter() - start) / count)
                efforts[way].append((time.process_time() - effort) / count)
    shown = [way for way in times if not way.startswith(group.best_of or "\0")]
    for beginning in group.best_of:
        alike = [way for way in times if way.startswith(beginning)]
        shown += dict.fromkeys(min(alike, key=lambda w: statistics.median(of[w])) for of in (times, efforts))
    ours = next(iter(times))
    return [
        {
            "model": model,
            "way": way,
            "unit": group.unit,
            "a second": 1 / statistics.median(times[way]),
            "our speed / this": ratio(times[way], times[ours]),
            "its processor time / ours": ratio(efforts[way], efforts[ours]),
        }
        for way in shown
    ]


def ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    return statistics.median(t / mine for t, mine in zip(theirs, ours, strict=True))


def smoothing(model: nn.Module, images: Tensor, target: Tensor, case: Case) -> Group:
    """SmoothGrad at one level."""
    explainer = SmoothGrad(noise=NOISE, samples=case.samples)
    jobs: dict[str, tuple[Job, int]] = {
        "SmoothGrad": (lambda: explainer.explain(model, images, target, torch.Generator()), case.gradients)
    }
    for chunk in case.chunks:
        jobs[f"captum, chunks of {chunk}"] = (captum(model, images, target, case.samples, chunk), case.gradients)
    for batch in case.batches:
        for layout in ("usual layout", "channels last"):
            jobs[f"limit, batches of {batch}, {layout}"] = (limit(model, case, batch, layout), batch)
    return Group("gradients", jobs, ("captum", "limit"))


def sweeping(model: nn.Module, images: Tensor, target: Tensor, case: Case) -> Group:
    """All 11 levels from one set of draws, and as many gradients without any of that. Level 0 needs one a image."""
    samples = max(4, case.samples // 5)
    count = case.images * (1 + 10 * samples)
    explainer = SmoothGrad(samples=samples)
    jobs: dict[str, tuple[Job, int]] = {
        "sweep of 11 levels": (
            lambda: explainer.explain_degrees(DEGREES, model, images, target, torch.Generator()),
            count,
        )
    }
    for batch in case.batches:
        jobs[f"its gradients, batches of {batch}"] = (limit(model, case, batch, "channels last"), batch)
    return Group("gradients", jobs, ("its gradients",))


def activating(model: nn.Module, case: Case, rng: torch.Generator) -> Group:
    """Grad-CAM, each with its automatic choice of the layer, made once by torch-cam and at each call by us."""
    images = torch.rand(case.cams, *case.shape, generator=rng)
    target = torch.randint(10, (case.cams,), generator=rng)
    theirs = TorchGradCAM(model, input_shape=case.shape)

    def torch_cam() -> object:
        for weight in model.parameters():
            weight.requires_grad_(True)
        maps = theirs(target.tolist(), model(images), normalized=False)
        return nn.functional.interpolate(maps[0][:, None], case.shape[1:], mode="bilinear")

    ours = GradCAM()
    return Group(
        "maps",
        {
            "Grad-CAM": (lambda: ours.explain(model, images, target, torch.Generator()), case.cams),
            "torch-cam": (torch_cam, case.cams),
        },
    )


def captum(model: nn.Module, images: Tensor, target: Tensor, samples: int, chunk: int) -> Job:
    """As its documentation has it, with the weights frozen, which spares it their gradients."""
    tunnel = NoiseTunnel(Saliency(model))

    def attribute() -> object:
        for weight in model.parameters():
            weight.requires_grad_(False)
        pixels = images.clone().requires_grad_(True)
        return tunnel.attribute(
            pixels, nt_samples=samples, nt_samples_batch_size=chunk, stdevs=NOISE, target=target, abs=False
        )

    return attribute


def limit(model: nn.Module, case: Case, batch: int, layout: str) -> Job:
    """One forward and one backward pass to the input."""
    images = torch.rand(batch, *case.shape)
    if layout == "channels last":
        images = channels_last(images)
    labels = torch.zeros(batch, 1, dtype=torch.int64)

    def passes() -> object:
        for weight in model.parameters():
            weight.requires_grad_(False)
        pixels = images.detach().requires_grad_(True)
        return torch.autograd.grad(model(pixels).gather(1, labels).sum(), pixels)

    return passes
