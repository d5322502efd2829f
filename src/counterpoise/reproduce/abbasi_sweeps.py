"""The six sweeps of Abbasi, Mori and Saracino (2025): MNIST, FER2013, CIFAR-10, by DP-SGD and by the autoencoder.

The source's configuration is the declared one: batch 250, 15 epochs, delta 1e-5, clip 1, 25 samples. Its network is not
named; here it is tanh-cnn throughout. Every reduction of a smaller scale is in `REDUCTIONS`, and is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from pathlib import Path

from counterpoise.grid import Grid
from counterpoise.prepare import Job
from counterpoise.publish import publish
from counterpoise.record import Party, Results
from counterpoise.report import write_claims
from counterpoise.reproduce.abbasi_campaign import ledger
from counterpoise.reproduce.claims import autoencoder_claims, dp_claims, table
from counterpoise.reproduce.settings import Settings
from counterpoise.running import run
from counterpoise.store import Store
from counterpoise.study import Study, Sweep, Training, Use
from counterpoise.tradeoff import choose

NOISES = Grid.span(0, 2, "0.1")
LEVELS = Grid.span(0, 1, "0.1")
CONTROL = Sweep("pixel-shuffle", degrees=[1])


@dataclass(frozen=True)
class Data:
    """One data set of the source, with the sizes of the codes it was swept over."""

    name: str
    title: str
    target: str
    shape: tuple[int, int, int]
    codes: tuple[int, ...]


MNIST = Data("mnist", "MNIST", "digit", (1, 28, 28), (8, 16, 32, 64, 96, 128, 192, 256, 320, 392, 504, 616))
FER = Data("fer2013", "FER2013", "emotion", (1, 48, 48), (8, 16, 64, 144, 288, 576, 864, 1152, 1440, 1728, 2064))
CIFAR = Data("cifar10", "CIFAR-10", "object", (3, 32, 32), (256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2304, 2560))


@dataclass(frozen=True)
class Reduction:
    """What a scale leaves out: images (None: all), noises, how many codes, epochs, explained images."""

    images: int | None
    noises: Grid
    codes: int
    epochs: int
    explained: int
    samples: int

    def sentence(self, sweep: str) -> str:
        """The reduction in words."""
        images = "all images" if self.images is None else f"the first {self.images} images"
        degrees = f"{len(self.noises)} noises" if sweep == "dp" else f"{self.codes} code sizes"
        return (
            f"{images}, {degrees}, {len(LEVELS)} explainability degrees, {self.epochs} epochs,"
            f" {self.samples} samples, {self.explained} explained images"
        )


REDUCTIONS = {
    ("paper", "dp"): Reduction(None, NOISES, 99, 15, 100, 25),
    ("paper", "autoencoder"): Reduction(None, NOISES, 99, 15, 100, 25),
    ("cpu", "dp"): Reduction(10_000, NOISES, 99, 10, 24, 25),
    ("cpu", "autoencoder"): Reduction(10_000, NOISES, 8, 5, 24, 25),
    ("quick", "dp"): Reduction(4_000, Grid.of([0, "0.1", 1, 2]), 99, 5, 12, 10),
    ("quick", "autoencoder"): Reduction(2_000, NOISES, 3, 3, 12, 10),
}
OF_MNIST = {("cpu", "dp"): REDUCTIONS["paper", "dp"]}
"""Where MNIST, the smallest images, needs no reduction."""


def reduction_of(data: Data, mechanism: str, scale: str) -> Reduction:
    """What a scale leaves out of one sweep."""
    special = OF_MNIST if data is MNIST else {}
    return special.get((scale, mechanism), REDUCTIONS[scale, mechanism])


def sweep_study(data: Data, mechanism: str, reduction: Reduction, root: Path | None) -> Study:
    """One sweep as a study with a single party, who requires nothing."""
    options = {"limit": reduction.images, "root": None if root is None else str(root)}
    if mechanism == "dp":
        # The source's accountant: its quoted scores fit Rényi moments, not the tighter distribution of losses.
        swept = [Sweep("dp-sgd", degrees=reduction.noises, options={"accountant": "rdp"})]
    else:
        chosen = _spread(data.codes, reduction.codes)
        # The control is ours: its images keep their histograms, and so have a U of 0, whatever else they lose.
        swept = [Sweep("autoencoder", degrees=[ratio(code, data.shape) for code in chosen]), CONTROL]
    return Study(
        name=f"{data.title}, {swept[0].name}",
        data=Use(data.name, options={key: value for key, value in options.items() if value is not None}),
        target=data.target,
        model=Use("tanh-cnn"),
        training=Training(epochs=reduction.epochs, batch=250, learning_rate=0.5),
        mechanisms=swept,
        explainer=Sweep("smoothgrad", degrees=LEVELS, options={"samples": reduction.samples}),
        explained_images=reduction.explained,
        parties=[Party("everyone")],
    )


def ratio(code: int, shape: tuple[int, int, int]) -> Decimal:
    """A code's size as the degree, to six digits: the autoencoder rounds it back to the same number of units."""
    return (Decimal(code) / prod(shape)).quantize(Decimal("0.000001"))


def _spread(codes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The smallest, the largest, and others evenly between."""
    if count >= len(codes):
        return codes
    return tuple(codes[round(i * (len(codes) - 1) / (count - 1))] for i in range(count))


def reproduce(data: Data, mechanism: str, settings: Settings) -> str:
    """Run the sweep, write its report, and compare with what the source states."""
    reduction = reduction_of(data, mechanism, settings.scale)
    study = sweep_study(data, mechanism, reduction, settings.data)
    results = run(study, settings.out, report=report_lines, started=report_start)
    whole = reduction.images is None and reduction.epochs == 15
    claims = dp_claims(data.title, results, whole) if mechanism == "dp" else autoencoder_claims(data.title, results)
    write_claims(
        settings.out,
        claims,
        {
            "reproduction": study.name,
            "scale": f"{settings.scale} ({reduction.sentence(mechanism)})",
            "seeds": list(study.seeds),
            "configuration": results.digest,
            "versions": dict(results.records[0].versions),
        },
    )
    paths = publish(Store.open(settings.out), results, choose(results, "paper", "paper"))
    lines = [f"{study.name}, scale {settings.scale}: {reduction.sentence(mechanism)}.", table(claims)]
    if mechanism == "dp":
        lines.append(campaign(results))
    return "\n".join([*lines, f"Report: {paths[0]}"])


def campaign(results: Results) -> str:
    """What the sweep's trainings reveal together, and what would have cost less."""
    proved = {record.degree: g for record in results for g in record.guarantees}
    return ledger({degree: g.releases[0] for degree, g in proved.items()}, max(g.delta for g in proved.values()))


def report_start(todo: Sequence[Job], done: Sequence[Job]) -> None:
    """Say how much there is to do."""
    print(f"{len(todo)} trainings to do, {len(done)} done.", file=sys.stderr)


def report_lines(job: Job, share: float) -> None:
    """One line a finished training."""
    if share == 1.0:
        print(f"  {job}", file=sys.stderr)


def abbasi_mnist_dp(settings: Settings) -> str:
    """The trade-off paper's sweep of DP-SGD on MNIST: 21 noises x 11 explainability degrees."""
    return reproduce(MNIST, "dp", settings)


def abbasi_mnist_autoencoder(settings: Settings) -> str:
    """The trade-off paper's sweep of the autoencoder on MNIST: codes of 8 to 616 of 784 numbers."""
    return reproduce(MNIST, "autoencoder", settings)


def abbasi_fer_dp(settings: Settings) -> str:
    """The trade-off paper's sweep of DP-SGD on FER2013 (emotion recognition: mind the law where you are)."""
    return reproduce(FER, "dp", settings)


def abbasi_fer_autoencoder(settings: Settings) -> str:
    """The trade-off paper's sweep of the autoencoder on FER2013: codes of 8 to 2064 of 2304 numbers."""
    return reproduce(FER, "autoencoder", settings)


def abbasi_cifar_dp(settings: Settings) -> str:
    """The trade-off paper's sweep of DP-SGD on CIFAR-10: 21 noises x 11 explainability degrees."""
    return reproduce(CIFAR, "dp", settings)


def abbasi_cifar_autoencoder(settings: Settings) -> str:
    """The trade-off paper's sweep of the autoencoder on CIFAR-10: codes of 256 to 2560 of 3072 numbers."""
    return reproduce(CIFAR, "autoencoder", settings)
