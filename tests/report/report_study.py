"""A made study for the report's tests: three parties, three mechanisms, eleven explainability degrees, both modes.

The values follow the shapes that real runs have (epsilon falls with noise, loss jumps at the first noise); they are
no measurement, and appear in no example.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np

from counterpoise.grid import DegreeKind, Grid, text
from counterpoise.record import Explained, Guarantee, Measurement, Party, Record, Release, Results
from counterpoise.report import Gallery
from counterpoise.tradeoff import Budget

NOISE = DegreeKind("noise", "up")
CODE = DegreeKind("code_ratio", "down", Decimal("0.01"), Decimal(1))
NONE = DegreeKind("protection", "up", Decimal(0), Decimal(0))
PARTIES = (
    Party("north clinic", ("noise > 1.1", "code_ratio <= 0.6", "explainability > 0.4"), ("dp-sgd", "autoencoder")),
    Party("south clinic", ("explainability > 0.4", "utility_loss <= 0.12")),
    Party("research lab"),
)
LEVELS = Grid.span(0, 1, "0.1")
VERSIONS = {"counterpoise": "0.1.0", "torch": "2.13.0"}


def about(value: float, half: float = 0.01, n: int = 400) -> Measurement:
    return Measurement(value, value - half, value + half, n, "images")


def epsilon(noise: float) -> float:
    return math.inf if noise == 0 else 1.54 * noise**-1.57 + 90 * math.exp(-5 * noise)


def training(
    shift: float, privacy: Measurement, paper_loss: float, loss: float, emd: float, bound: float
) -> dict[str, Measurement]:
    accuracy = 0.956 - loss + shift
    advantage = max(0.005, 0.16 * bound + shift)
    return {
        "privacy_gain": privacy,
        "utility_loss": about(paper_loss, 0.004 if paper_loss else 0.0),
        "membership_advantage": about(advantage, 0.02),
        "membership_privacy": about(1 - advantage, 0.02),
        "advantage_bound": Measurement.exact(bound),
        "task_loss": about(loss, 0.012),
        "raw_task_loss": about(loss + 0.03, 0.02),
        "accuracy": about(accuracy, 0.012),
        "pooled_emd": about(emd, 0.002),
        "emd_per_image": about(1.6 * emd, 0.003),
        "ssim": about(1 - 4 * emd, 0.01),
        "mse": about(emd / 2, 0.002),
    }


def explained(loss: float, shift: float) -> tuple[Explained, ...]:
    cells = []
    for level in LEVELS:
        x = float(level)
        deletion, insertion = 0.32 + 0.2 * loss - 0.1 * x * (1 - x) - shift, 0.61 - loss + 0.5 * x * (0.9 - x)
        faithfulness = insertion - deletion
        stability = 0.55 + 0.4 * x
        cells.append(
            Explained(
                level,
                {
                    "explainability_gain": about(x * (1 - loss), 0.005 * x),
                    "deletion": about(deletion, 0.015),
                    "insertion": about(insertion, 0.015),
                    "random_deletion": about(0.44, 0.01),
                    "random_insertion": about(0.45, 0.01),
                    "faithfulness": about(faithfulness, 0.02),
                    "stability": about(stability, 0.02),
                    "explanation_quality": about(max(faithfulness, 0) * stability, 0.015),
                },
            )
        )
    return tuple(cells)


def dp_record(index: int, party: str, noise: Decimal, seed: int = 0) -> Record:
    sigma, shift = float(noise), 0.004 * index + 0.001 * seed
    eps = epsilon(sigma)
    loss = 0.0 if sigma == 0 else 0.045 + 0.02 * sigma + shift
    bound = 1.0 if sigma == 0 else min(1.0, math.tanh(eps / 2) + 1e-5)
    proved = (Guarantee("dp", eps, 1e-5, releases=(Release("gaussian", sigma, 0.1, 300),)),) if sigma else ()
    return Record(
        digest=f"dp{index}{text(noise)}{seed}",
        party=party,
        mechanism="dp-sgd",
        kind=NOISE,
        degree=noise,
        seed=seed,
        measurements=training(shift, Measurement.exact(0 if sigma == 0 else 1 / eps), loss, loss, 0.0, bound),
        explained=explained(loss, shift),
        guarantees=proved,
        configuration={"model": "lenet5", "epochs": 15, "clip": 1.0},
        versions=VERSIONS,
    )


def code_record(index: int, party: str, ratio: Decimal) -> Record:
    share, shift = float(ratio), 0.003 * index
    emd = 0.02 * (1 - share) + 0.001
    loss = 0.3 * (1 - share) ** 3 + shift
    return Record(
        digest=f"ae{index}{text(ratio)}",
        party=party,
        mechanism="autoencoder",
        kind=CODE,
        degree=ratio,
        seed=0,
        measurements=training(shift, Measurement.exact(1 - share), emd, loss, emd, 1.0),
        explained=explained(loss, shift),
        configuration={"model": "lenet5", "epochs": 15},
        versions=VERSIONS,
    )


def plain_record(index: int, party: str) -> Record:
    return Record(
        digest=f"plain{index}",
        party=party,
        mechanism="plain",
        kind=NONE,
        degree=Decimal(0),
        seed=0,
        measurements=training(0.0, Measurement.exact(0.0), 0.0, 0.0, 0.0, 1.0),
        explained=explained(0.0, 0.0),
        versions=VERSIONS,
    )


def results(parties: tuple[Party, ...] = PARTIES) -> Results:
    records: list[Record] = []
    for index, party in enumerate(parties):
        records.append(plain_record(index, party.name))
        records += [dp_record(index, party.name, noise) for noise in Grid.span(0, 2, "0.2")]
        records += [code_record(index, party.name, ratio) for ratio in Grid.of(["0.1", "0.25", "0.5", "0.75"])]
    refused = Record(
        "refused", parties[-1].name, "dp-sgd", NOISE, Decimal("2.2"), 0,
        refusal="dp-sgd needs per-example gradients, which batch normalisation has not; use group normalisation.",
    )  # fmt: skip
    return Results("two clinics and a lab", parties, (*records, refused), "0123abcd", ("Made numbers, for tests.",))


def smaller(found: Results) -> Results:
    """Fewer degrees of the same study, for tests that loop over every cell."""
    kept = [r for r in found if r.mechanism != "dp-sgd" or r.degree in {Decimal(d) for d in ("0", "0.6", "2", "2.2")}]
    return replace(found, records=tuple(replace(record, explained=record.explained[::2]) for record in kept))


def tiny(found: Results) -> Results:
    """One mechanism with two degrees: enough for whatever does not look at the numbers."""
    kept = [r for r in found if r.mechanism == "autoencoder" and r.degree in {Decimal("0.25"), Decimal("0.5")}]
    records = tuple(replace(record, explained=record.explained[::5]) for record in kept)
    return replace(found, records=records, parties=tuple(Party(party.name) for party in found.parties))


def budgets(found: Results) -> tuple[Budget, ...]:
    return tuple(Budget(party.name, 0.52, 812.5, 1e-5, 16, 6) for party in found.parties)


def galleries(found: Results, side: int = 12, images: int = 4) -> tuple[Gallery, ...]:
    """Blurred blobs in place of images, and maps that sharpen with the degree."""
    grid = np.linspace(-1, 1, side)
    made = []
    for record in found:
        if record.refusal:
            continue
        shift = np.linspace(-0.4, 0.4, images)[:, None, None]
        blob = np.exp(-3 * ((grid[None, :, None] - shift) ** 2 + grid[None, None, :] ** 2))
        original = (255 * blob).astype(np.uint8)[..., None]
        released = (original * (0.4 + 0.6 * float(record.degree) / 2)).astype(np.uint8)
        maps = np.stack([np.cos((2 + 6 * float(level)) * blob) * blob for level in LEVELS]).astype(np.float64)
        made.append(
            Gallery(
                mechanism=record.mechanism,
                party=record.party,
                degree=record.degree,
                levels=LEVELS.values,
                images=released,
                originals=original,
                maps=maps,
                labels=tuple(str(i) for i in range(images)),
                predictions=tuple(str(i) for i in range(images)),
            )
        )
    return tuple(made)
