"""The whole of the trade-off paper's example on MNIST: three parties of 20,000, 63 private trainings, 693 cells.

Ours is the study as a user runs it, in two worker processes. The straightforward way is a script of good libraries:
Opacus (the faster of its hooks and ghost modes, its own Poisson loader), captum's SmoothGrad in chunks of 10, and one
cell after the other, in one process with all threads. Both make the same maps and curves: 100 images, 25 samples, the
image and one nearby, deletion and insertion in 21 steps; ours also measures what the script does not (attacks,
intervals, floors, earth mover's distance).

Both are timed on a slice, alternately, in processes of their own, and extrapolated by count. The pruned campaign, which
proves its optimum (`run --prove`), is not extrapolated: it is run.
"""

from __future__ import annotations

import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.table import Options, Table
from counterpoise.grid import Grid
from counterpoise.interface import Images
from counterpoise.models.tanh_cnn import tanh_cnn
from counterpoise.prepare import BASELINE, prepare
from counterpoise.proving import Search
from counterpoise.reproduce.abbasi_example import PARTIES
from counterpoise.reproduce.abbasi_sweeps import MNIST, REDUCTIONS, sweep_study
from counterpoise.running import run as run_study
from counterpoise.store import Store
from counterpoise.study import Study
from counterpoise.work import Worker

EPOCHS, NOISES, LEVELS, WORKERS = 15, 21, 11, 2
TRAININGS, CELLS = NOISES * len(PARTIES), NOISES * len(PARTIES) * LEVELS
OPACUS = ("hooks", "ghost")
NEARBY, STEPS, SAMPLES, CHUNK = 0.02, 21, 25, 10

Seconds = dict[str, float]


def run(options: Options) -> Table:
    rounds = 1 if options.quick else 3
    ours, script = [], []
    for _ in range(rounds):
        ours += in_own_processes("ours", WORKERS, 1)
        script += in_own_processes("script", 1, os.cpu_count() or 1)
    mine, theirs = medians(ours), medians(script)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        search = Search("unanimous", "paper")
        results = run_study(study(1 if options.quick else EPOCHS), folder, order=search)
        pruned = time.perf_counter() - start
    trained = sum(record.mechanism != BASELINE for record in results)
    print(" ".join(search.sentences), flush=True)
    rest = mine["rest"] * TRAININGS / WORKERS
    grid = (EPOCHS * (mine["epoch"] * TRAININGS + mine["plain epoch"] * len(PARTIES))) / WORKERS
    best = min(theirs[mode] for mode in OPACUS)
    plain = EPOCHS * theirs["plain epoch"] * len(PARTIES)
    trainings = EPOCHS * best * TRAININGS + plain
    cells = theirs["cell"] * CELLS
    whole, straight = mine["start"] + grid + rest, theirs["start"] + trainings + theirs["logits"] * TRAININGS + cells
    every = theirs["start"] + plain + (EPOCHS * best + theirs["logits"] + theirs["cell"]) * CELLS
    rows = [
        row("a private epoch of 20,000 images, one process", mine["epoch"], best),
        row("all trainings (63 private, 3 not)", grid, trainings),
        row("all explanations and measurements (693 cells)", rest, cells + theirs["logits"] * TRAININGS),
        row("the whole, everything trained", whole, straight),
        row(f"the whole, {trained} of {TRAININGS} trained, the optimum proved", pruned, straight),
        row("the whole, against a script that trains anew for every cell", whole, every),
    ]
    return Table(
        "The trade-off paper's three parties on MNIST; seconds, extrapolated by count but for the pruned", rows
    )


def row(part: str, ours: float, script: float) -> dict[str, str | float]:
    return {"part": part, "counterpoise s": ours, "script s": script, "script / counterpoise": script / ours}


def study(epochs: int) -> Study:
    """The example of the paper at its own configuration, but for the epochs."""
    root = Path(os.environ.get("COUNTERPOISE_DATA", "data"))
    whole = sweep_study(MNIST, "dp", REDUCTIONS["paper", "dp"], root)
    return whole.model_copy(
        update={"parties": PARTIES, "training": whole.training.model_copy(update={"epochs": epochs})}
    )


def in_own_processes(way: str, count: int, threads: int) -> list[Seconds]:
    """So many at once, as the real thing has it; each tells its seconds."""
    command = [sys.executable, "-m", "benchmarks.campaign", way, str(threads)]
    root = Path(__file__).parent.parent
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(count)]
    told = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"benchmarks.campaign {way} failed; see above.")
    return [json.loads(text.splitlines()[-1]) for text in told]


def medians(timed: list[Seconds]) -> Seconds:
    return {part: statistics.median(seconds[part] for seconds in timed) for part in timed[0]}


def ours() -> Seconds:
    """One party's baseline and one private training of one epoch, by a worker of the study."""
    start = time.perf_counter()
    slice_ = study(1)
    noise = slice_.mechanisms[0].model_copy(update={"degrees": Grid.of([2])})
    prepared = prepare(slice_.model_copy(update={"mechanisms": (noise,)}))
    seconds = {"start": time.perf_counter() - start}
    with tempfile.TemporaryDirectory() as folder:
        work = Worker(prepared.study, Store.create(Path(folder)), prepared)
        for job in (job for job in prepared.jobs if job.party == PARTIES[0].name):
            start = time.perf_counter()
            trained: list[float] = []
            work(job, lambda share, trained=trained: trained.append(time.perf_counter()))  # type: ignore[misc]
            epoch, rest = ("plain epoch", "plain rest") if job.mechanism == BASELINE else ("epoch", "rest")
            seconds[epoch] = trained[-1] - start
            seconds[rest] = time.perf_counter() - trained[-1]
    return seconds


def script() -> Seconds:
    """One epoch of each kind of training, the logits every cell of a training needs, and one cell."""
    start = time.perf_counter()
    prepared = prepare(study(1))
    train, test = prepared.data[PARTIES[0].name], prepared.test
    seconds = {"start": time.perf_counter() - start}
    seconds["plain epoch"] = timed(lambda: epoch_plain(train))
    for mode in OPACUS:
        seconds[mode] = timed(lambda mode=mode: epoch_opacus(train, mode))  # type: ignore[misc]
    model = tanh_cnn(train.shape, 10, torch.Generator().manual_seed(0)).eval()
    seconds["logits"] = timed(lambda: [logits(model, images.pixels) for images in (train, test)])
    seconds["cell"] = timed(lambda: cell(model, test.pixels[prepared.explained], 0.5))
    return seconds


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def epoch_plain(train: Images) -> None:
    model = tanh_cnn(train.shape, 10, torch.Generator().manual_seed(0))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    data = torch.utils.data.TensorDataset(train.pixels, train.labels["digit"])
    for images, targets in torch.utils.data.DataLoader(data, batch_size=250, shuffle=True):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(images), targets).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def epoch_opacus(train: Images, mode: str) -> None:
    from opacus import PrivacyEngine

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    model = tanh_cnn(train.shape, 10, torch.Generator().manual_seed(0))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    data = torch.utils.data.TensorDataset(train.pixels, train.labels["digit"])
    parts: Any = PrivacyEngine().make_private(
        module=model,
        optimizer=optimiser,
        criterion=nn.CrossEntropyLoss(),
        data_loader=torch.utils.data.DataLoader(data, batch_size=250),
        noise_multiplier=2.0,
        max_grad_norm=1.0,
        grad_sample_mode=mode,
    )
    private, private_optimiser, loader = parts[0], parts[1], parts[-1]
    criterion: Any = parts[2] if mode == "ghost" else nn.CrossEntropyLoss()
    for images, targets in loader:
        private_optimiser.zero_grad()
        criterion(private(images), targets).backward()
        private_optimiser.step()


def logits(model: nn.Module, pixels: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([model(part) for part in torch.split(pixels, 1000)])


def cell(model: nn.Module, images: Tensor, level: float) -> tuple[float, float, float]:
    """SmoothGrad of the images and of their neighbours, cosine of the two, deletion and insertion areas."""
    from captum.attr import NoiseTunnel, Saliency

    target = logits(model, images).argmax(1)
    tunnel = NoiseTunnel(Saliency(model))

    def maps(these: Tensor) -> Tensor:
        found: Tensor = tunnel.attribute(
            these,
            nt_type="smoothgrad",
            nt_samples=SAMPLES,
            nt_samples_batch_size=CHUNK,
            stdevs=level,
            target=target,
            abs=False,
        )
        return found.abs().sum(1).flatten(1).detach()

    here, there = maps(images), maps((images + NEARBY * torch.randn_like(images)).clamp(0, 1))
    cosine = nn.functional.cosine_similarity(here, there).mean()
    areas = [both_areas(model, image, label, order) for image, label, order in zip(images, target, here, strict=True)]
    deletion, insertion = torch.tensor(areas).mean(0)
    return float(cosine), float(deletion), float(insertion)


def both_areas(model: nn.Module, image: Tensor, label: Tensor, importance: Tensor) -> tuple[float, float]:
    rank = importance.argsort(descending=True).argsort().view(1, *image.shape[1:])
    gone = torch.stack([rank < share * importance.numel() for share in torch.linspace(0, 1, STEPS)])
    blank = image.mean().expand_as(image)
    curves = []
    for taken in (gone, ~gone):
        curves.append(logits(model, torch.where(taken, blank, image)).softmax(1)[:, label])
    return float(torch.trapezoid(curves[0], dx=1 / (STEPS - 1))), float(torch.trapezoid(curves[1], dx=1 / (STEPS - 1)))


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps({"ours": ours, "script": script}[sys.argv[1]]()))
