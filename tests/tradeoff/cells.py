"""Small results made of numbers, for the trade-off's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from counterpoise.grid import DegreeKind, Grid
from counterpoise.record import Explained, Guarantee, Measurement, Party, Record, Release, Results

NOISE = DegreeKind("noise", "up")
CODE = DegreeKind("code_ratio", "down", Decimal("0.01"), Decimal(1))


def about(value: float, half: float = 0.01) -> Measurement:
    return Measurement(value, value - half, value + half, 100, "images")


def cell_values(privacy: float, loss: float, level: float) -> dict[str, float]:
    return {"privacy": privacy, "loss": loss, "explanation": level * (1 - loss)}


def record(
    party: str,
    degree: Decimal,
    levels: Sequence[Decimal],
    value: Callable[[Decimal, Decimal], Mapping[str, float]],
    mechanism: str = "dp-sgd",
    kind: DegreeKind = NOISE,
    seed: int = 0,
    epsilon: float | None = None,
) -> Record:
    """One training; `value(degree, level)` gives privacy, loss and explanation, used for both modes."""
    first = value(degree, levels[0])
    measured = {
        "privacy_gain": about(first["privacy"]),
        "membership_privacy": about(first["privacy"]),
        "utility_loss": about(first["loss"]),
        "task_loss": about(first["loss"]),
    }
    cells = tuple(
        Explained(
            level,
            {
                name: about(value(degree, level)["explanation"])
                for name in ("explainability_gain", "explanation_quality")
            },
        )
        for level in levels
    )
    guarantees: tuple[Guarantee, ...] = ()
    if epsilon is not None:
        guarantees = (Guarantee("dp", epsilon, 1e-5, releases=(Release("gaussian", float(degree), 0.1, 10),)),)
    digest = f"{party}-{mechanism}-{degree}-{seed}"
    return Record(digest, party, mechanism, kind, degree, seed, measured, cells, guarantees)


def simple(parties: Sequence[Party], degrees: Grid | None = None, levels: Grid | None = None) -> Results:
    """Privacy grows with the degree, explanation with the level; loss .1 from the first noise on."""
    degrees, levels = degrees or Grid.span(0, 2, "0.5"), levels or Grid.span(0, 1, "0.5")

    def value(degree: Decimal, level: Decimal) -> dict[str, float]:
        return cell_values(float(degree) / 2, 0.1 if degree else 0.0, float(level))

    records = [
        record(party.name, degree, levels.values, value, epsilon=1 / float(degree) if degree else None)
        for degree in degrees
        for party in parties
    ]
    return Results("simple", tuple(parties), tuple(records))
