"""What a whole sweep reveals of the images that all its trainings share, and the cheaper honest ways to choose.

A sweep publishes a number of every training, so its epsilon is that of all of them together. The source states the
chosen model's alone. Nothing is trained here: an epsilon follows from noise, sampling and steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from counterpoise.grid import text
from counterpoise.privacy import compose, select_cost
from counterpoise.record import Release
from counterpoise.reproduce.abbasi_example import BATCH, DELTA, EPOCHS, IMAGES, NOISES
from counterpoise.reproduce.settings import Settings

LEAST_NOISES = (Decimal("1.5"), Decimal("1.0"), Decimal("0.5"))
"""Where shorter sweeps begin: what a careful party could have kept to."""


@dataclass(frozen=True)
class Way:
    """One way to come to a model, and the epsilon of all that it publishes."""

    what: str
    epsilon: float

    def __str__(self) -> str:
        return f"{self.what:<66} {_plain(self.epsilon):>12}"


def ways(releases: Mapping[Decimal, Release], delta: float) -> tuple[Way, ...]:
    """The chosen model alone, the sweeps that contain it, and what would have cost less; by the RDP accountant.

    Repeat-and-select draws a degree for each of a random number of trials. A trial is then no dearer than its least
    noisy degree, and the best of them about twice as dear: less than the sweep only where all are noisy.
    """
    noises = sorted(releases)
    last = noises[-1]
    alone = Way(f"the model of noise {text(last)} alone", compose([releases[last]], delta, "rdp"))
    found = [alone]
    for least in (*LEAST_NOISES, Decimal("0.1"), Decimal(0)):
        swept = [noise for noise in noises if noise >= least]
        if least in releases and least < last:
            name = f"all {len(swept)} trainings of noise {text(least)} to {text(last)}"
            found.append(Way(name, compose([releases[noise] for noise in swept], delta, "rdp")))
    found.append(Way("degree chosen on public images, then one private training", alone.epsilon))
    for least in LEAST_NOISES:
        count = sum(noise >= least for noise in noises)
        if least in releases and least < last:
            name = f"best of a Poisson number of trials, mean {count}, of noise {text(least)} or more"
            found.append(Way(name, select_cost([releases[least]], delta, mean=count)))
    return tuple(found)


def ledger(releases: Mapping[Decimal, Release], delta: float) -> str:
    """The ways as a table, and what they assume."""
    return "\n".join(
        [
            f"{f'what is published (delta {delta:g}, RDP accountant)':<66} {'epsilon':>12}",
            *map(str, ways(releases, delta)),
            "Trials are compared on images that are not the private ones; only the best of them is ever published.",
        ]
    )


def abbasi_campaign(settings: Settings) -> str:
    """What the trade-off paper's sweep reveals as a whole, and cheaper ways to choose; nothing is trained."""
    steps = EPOCHS * IMAGES // BATCH
    return ledger({noise: Release("gaussian", float(noise), BATCH / IMAGES, steps) for noise in NOISES}, DELTA)


def _plain(epsilon: float) -> str:
    return f"{epsilon:,.2f}" if epsilon < 100 else f"{epsilon:,.0f}"
