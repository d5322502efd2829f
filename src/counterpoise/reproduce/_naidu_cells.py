"""The trainings of both reproductions of Naidu et al.: which there are, how each is made, and where it is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from counterpoise import catalogue, store, training
from counterpoise._files import write
from counterpoise.fingerprint import versions
from counterpoise.interface import Images, Mechanism, Recipe, Task, Trained
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.mechanisms.local_noise import LocalNoise
from counterpoise.mechanisms.plain import Plain
from counterpoise.privacy.local import gaussian_delta, least_gaussian
from counterpoise.work import weights

Way = Literal["gaussian", "laplace", "local gaussian, image", "local gaussian, pixel", "local laplace, pixel"]
"""Global DP by two noises; local DP with epsilon about a whole image, and about one pixel value as others state it."""
GAUSSIAN, LAPLACE, LOCAL_IMAGE, LOCAL_PIXEL, LOCAL_LAPLACE = Way.__args__  # type: ignore[attr-defined]
LOCAL = (LOCAL_IMAGE, LOCAL_PIXEL, LOCAL_LAPLACE)


@dataclass(frozen=True)
class Network:
    """A network by its name in the catalogue, with options, and the name to print."""

    part: str
    title: str
    options: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Case:
    """One data set at one scale. Plain training has a recipe of its own: what suits one does not suit the other."""

    data: str
    target: str
    size: int
    networks: tuple[Network, ...]
    plain: Recipe
    private: Recipe
    sweeps: tuple[tuple[Way, tuple[float, ...]], ...]
    clips: tuple[float, ...]
    seeds: int
    delta: float = 1e-4
    limit: int | None = None
    explained: int = 100
    laplace: Recipe | None = None

    def cells(self) -> list[Cell]:
        """Every training once. The smaller networks are trained by the first sweep only."""
        found = []
        for seed in range(self.seeds):
            for network in self.networks:
                sweeps = self.sweeps if network == self.networks[0] else self.sweeps[:1]
                found.append(Cell(network, GAUSSIAN, math.inf, seed))
                for way, epsilons in sweeps:
                    found += [Cell(network, way, epsilon, seed) for epsilon in epsilons]
            found += [Cell(self.networks[0], GAUSSIAN, 1.0, seed, clip) for clip in self.clips if clip != 1]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Cell:
    """One training."""

    network: Network
    way: Way
    epsilon: float
    seed: int
    clip: float = 1.0

    def __str__(self) -> str:
        clip = "" if self.clip == 1 else f", clip {self.clip:g}"
        return f"{self.network.title}, {self.way}, epsilon {self.epsilon:g}{clip}, seed {self.seed}"


@dataclass(frozen=True)
class Bench:
    """A case with its images, and the folder its trainings are kept in."""

    case: Case
    train: Images
    test: Images
    folder: Path
    _noises: dict[tuple[Way, float, float], Decimal] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, case: Case, root: Path | None, folder: Path) -> Bench:
        """Load the images."""
        make = catalogue.find("datasets", case.data)
        train, test = make(root=None if root is None else str(root), size=case.size, limit=case.limit).load()
        return cls(case, train, test, folder)

    @property
    def delta(self) -> float:
        """The source's 1e-4; half of 1/n where that allows to give one image away whole."""
        return min(self.case.delta, 0.5 / len(self.train))

    def task(self, cell: Cell) -> Task:
        """What the cell trains on."""
        case, network = self.case, cell.network
        recipe = case.private if math.isfinite(cell.epsilon) and cell.way not in LOCAL else case.plain
        if cell.way == LAPLACE and math.isfinite(cell.epsilon):
            recipe = case.laplace or case.private
        make = catalogue.find("models", network.part)
        options = dict(network.options)

        def model(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
            made: nn.Module = make(shape, classes, rng, **options)
            return made

        return Task(self.train, self.test, case.target, model, recipe, self.delta)

    def mechanism(self, cell: Cell) -> Mechanism:
        """What protects the cell's training."""
        if math.isinf(cell.epsilon):
            return Plain()
        if cell.way in LOCAL:
            kind = "laplace" if cell.way == LOCAL_LAPLACE else "gaussian"
            epsilon = self.of_image(cell.way, cell.epsilon)
            return LocalNoise(Decimal(f"{epsilon:.6f}"), distribution=kind)  # type: ignore[arg-type]
        noise = "laplace" if cell.way == LAPLACE else "gaussian"
        key = (cell.way, cell.epsilon, cell.clip)
        if key not in self._noises:
            draft = DPSGD(Decimal(1), clip=cell.clip, distribution=noise)  # type: ignore[arg-type]
            plan = draft.plan(self.task(cell)).calibrate(cell.epsilon)
            least = Decimal(plan.noise.multiplier)
            self._noises[key] = least.quantize(Decimal("0.00001"), ROUND_UP)
        return DPSGD(self._noises[key], clip=cell.clip, distribution=noise)  # type: ignore[arg-type]

    def of_image(self, way: Way, epsilon: float) -> float:
        """What an epsilon about one pixel value is about a whole image, whose values can all differ."""
        numbers = self.train.pixels[0].numel()
        if way == LOCAL_LAPLACE:
            return epsilon * numbers
        if way == LOCAL_IMAGE:
            return epsilon
        return epsilon_of(least_gaussian(epsilon, self.delta).multiplier / math.sqrt(numbers), self.delta)

    def path(self, cell: Cell) -> Path:
        """The cell's file: its name is the digest of all that decides its bits."""
        task = self.task(cell)
        whole = {
            "cell": str(cell),
            "case": [self.case.data, self.case.target, self.case.size, self.case.limit, self.delta],
            "network": [cell.network.part, [list(option) for option in cell.network.options]],
            "recipe": vars(task.recipe),
            "images": [len(self.train), len(self.test)],
            "versions": versions(),
        }
        return self.folder / "trainings" / f"{store.digest(json.loads(json.dumps(whole, default=str)))}.safetensors"

    def train_cell(self, cell: Cell) -> None:
        """Train it, unless that was done before."""
        path = self.path(cell)
        if path.is_file():
            return
        with training.one_thread():
            rng = training.generator(cell.seed, "naidu", str(cell))
            trained = self.mechanism(cell).train(self.task(cell), rng)
        write(path, save(weights(trained), metadata={"cell": str(cell)}))

    def trained(self, cell: Cell) -> Trained:
        """The kept training."""
        blank = self.mechanism(cell).blank(self.task(cell))
        try:
            with safe_open(self.path(cell), framework="pt") as file:
                table = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError):
            self.path(cell).unlink(missing_ok=True)
            self.train_cell(cell)
            return self.trained(cell)
        for part, module in (("model", blank.model), ("release", blank.release)):
            prefix = f"{part}."
            module.load_state_dict({k.removeprefix(prefix): v for k, v in table.items() if k.startswith(prefix)})
            module.eval()
        return blank


def epsilon_of(multiplier: float, delta: float) -> float:
    """The epsilon of Gaussian noise at this delta: the analytic calibration the other way round."""
    from scipy.optimize import brentq

    high = 1.0
    while gaussian_delta(high, multiplier) > delta:
        high *= 2
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, multiplier) - delta, 0, high))


def train_all(
    case: Case, root: Path | None, folder: Path, cells: Sequence[Cell], workers: int, say: Callable[[str], None]
) -> None:
    """Every cell, in so many worker processes (1: here)."""
    bench = Bench.of(case, root, folder)
    todo = [cell for cell in cells if not bench.path(cell).is_file()]
    say(f"{len(todo)} trainings to do, {len(cells) - len(todo)} done.")
    if workers == 1 or len(todo) < 2:
        for cell in todo:
            bench.train_cell(cell)
            say(f"  {cell}")
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start, (case, root, folder)) as pool:
        running = {pool.submit(_work, cell): cell for cell in todo}
        for done in as_completed(running):
            done.result()
            say(f"  {running[done]}")


_bench: Bench | None = None


def _start(case: Case, root: Path | None, folder: Path) -> None:
    global _bench
    torch.set_num_threads(1)
    _bench = Bench.of(case, root, folder)


def _work(cell: Cell) -> None:
    assert _bench is not None, "the pool's initialiser has run"
    _bench.train_cell(cell)
