"""What both reproductions of private training do: train a head per privacy level and seed, and lay out the numbers."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from torch import Tensor

from counterpoise import store, training
from counterpoise._files import write
from counterpoise.privacy import Flat, Gaussian, Plan, Poisson
from counterpoise.reproduce._linear_head import accuracy, fit_linear

DELTA = 1e-5
TUNING_RUNS = 10


@dataclass(frozen=True)
class Head:
    """How the head of one privacy level is trained, and what it is compared with (accuracies in percent)."""

    epsilon: float
    batch: int
    epochs: int
    clip: float
    step: float
    average: float
    published: str
    prototype: str

    def plan(self, n: int) -> Plan:
        """Poisson batches, the least Gaussian noise that keeps epsilon, accounted by PLD under add-remove."""
        sampling = Poisson(n, min(self.batch, n))
        plan = Plan(Gaussian(1.0), sampling, sampling.steps(self.epochs), DELTA, Flat(self.clip))
        return plan.calibrate(self.epsilon)


@dataclass(frozen=True)
class Fixed:
    """Training and test features, which no training changes, and their labels."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor


@dataclass(frozen=True)
class Level:
    """The results of one privacy level: an accuracy a seed, in percent."""

    head: Head
    noise: float
    epsilon: float
    steps: int
    accuracies: tuple[float, ...]
    cpu_seconds: float
    epsilon_with_tuning: float

    @property
    def spread(self) -> float:
        """The standard deviation over seeds; NaN for one."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else float("nan")


def train_levels(data: Fixed, heads: Sequence[Head], seeds: Sequence[int], classes: int = 10) -> list[Level]:
    """Every level with every seed. Seconds are of processor time, a training on average."""
    levels = []
    for head in heads:
        plan = head.plan(len(data.train))
        started, found = time.process_time(), []
        for seed in seeds:
            rng = training.generator(seed, "private head", head.epsilon)
            weights = fit_linear(
                data.train, data.train_labels, classes, plan, rng, step=head.step, average=head.average
            )
            found.append(round(100 * accuracy(weights, data.test, data.test_labels), 2))
        seconds = (time.process_time() - started) / len(seeds)
        spent = plan.spent().epsilon
        noise = plan.noise.multiplier
        tuned = epsilon_with_tuning(plan)
        levels.append(Level(head, noise, spent, plan.steps, tuple(found), round(seconds, 1), tuned))
    return levels


def epsilon_with_tuning(plan: Plan, runs: float = TUNING_RUNS) -> float:
    """What the plan would cost had its settings been the best of a random number of trainings, `runs` on average.

    The number is logarithmically distributed; Papernot and Steinke, "Hyperparameter tuning with Rényi differential
    privacy", ICLR 2022. By Rényi moments: no tighter accountant covers it.
    """
    from dp_accounting import dp_event, rdp

    step = dp_event.PoissonSampledDpEvent(plan.sampling.rate, dp_event.GaussianDpEvent(plan.noise.multiplier))
    chosen = dp_event.RepeatAndSelectDpEvent(dp_event.SelfComposedDpEvent(step, plan.steps), mean=runs, shape=0)
    return float(rdp.RdpAccountant().compose(chosen).get_epsilon(plan.delta))


def table(title: str, levels: Sequence[Level], seeds: int, notes: Sequence[str]) -> str:
    """One line a privacy level, and what to know when reading it."""
    lines = [title, f"{'epsilon':>8} {'accuracy %':>15} {'seeds':>6} {'CPU-s':>6}  {'prototype':<14} published"]
    for level in levels:
        mean = statistics.fmean(level.accuracies)
        shown = f"{mean:.2f}" if seeds == 1 else f"{mean:.2f} +- {level.spread:.2f}"
        ours = f"{level.epsilon:>8.3f} {shown:>15} {seeds:>6} {level.cpu_seconds:>6.1f}"
        lines.append(f"{ours}  {level.head.prototype:<14} {level.head.published}")
    tuned = ", ".join(f"{level.epsilon_with_tuning:.2f} instead of {level.head.epsilon:g}" for level in levels)
    lines += [
        f"Epsilon: PLD, delta {DELTA:g}, Poisson sampling, add-remove adjacency; one image is the unit.",
        "Tuned on a held-out part of the training images; this is not in epsilon."
        f" As the best of {TUNING_RUNS} trainings on average, chosen privately, it would be {tuned} (RDP).",
        *notes,
    ]
    return "\n".join(lines)


def write_json(path: Path, levels: Sequence[Level], seeds: Sequence[int], configuration: dict[str, object]) -> None:
    """Everything needed to repeat the numbers."""
    whole = {**configuration, "delta": DELTA, "heads": [asdict(level.head) for level in levels]}
    content = {
        "configuration": whole,
        "digest": store.digest(whole),
        "seeds": list(seeds),
        "levels": [
            {
                "epsilon": level.epsilon,
                "noise": level.noise,
                "steps": level.steps,
                "accuracies": level.accuracies,
                "mean": round(statistics.fmean(level.accuracies), 3),
                "deviation": round(level.spread, 3) if len(seeds) > 1 else None,
                "cpu_seconds": level.cpu_seconds,
                "epsilon_with_tuning": level.epsilon_with_tuning,
            }
            for level in levels
        ],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("counterpoise", "torch", "dp-accounting")},
        },
    }
    write(path, json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")
