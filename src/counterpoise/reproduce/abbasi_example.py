"""The worked example of Abbasi, Mori and Saracino (2025): three parties, 21 x 11 settings, one agreed optimum.

Nothing is trained. Epsilon of every noise comes from the accountant at the declared configuration, the utility loss is
the one the paper's quoted scores imply, and everything else is what the trade-off does with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from counterpoise.grid import DegreeKind, Grid
from counterpoise.privacy import account
from counterpoise.record import Explained, Measurement, Party, Record, Results
from counterpoise.reproduce.settings import Settings
from counterpoise.tradeoff import POLICIES, Choice, choose, weights

NOISES = Grid.span(0, 2, "0.1")
LEVELS = Grid.span(0, 1, "0.1")
PARTIES = (
    Party("party 1", ("noise > 1.7", "explainability > 0.6")),
    Party("party 2", ("noise > 1.5", "explainability > 0.6")),
    Party("party 3"),
)
IMAGES, BATCH, EPOCHS, DELTA = 60_000, 250, 15, 1e-5
"""The declared configuration; the source leaves it open, and its quoted scores fit this one."""

LOSS = 0.055
"""The utility loss that the quoted T(1.0, 0) = .32 and T(1.0, 1) = .78 imply; none without noise."""


def example() -> Results:
    """The 693 cells of the example."""
    kind = DegreeKind("noise", "up")
    records = []
    for noise in NOISES:
        steps = EPOCHS * IMAGES // BATCH
        epsilon = account(noise=float(noise), sample_rate=BATCH / IMAGES, steps=steps, delta=DELTA, accountant="rdp")
        loss = LOSS if noise else 0.0
        measured = {
            "privacy_gain": Measurement.exact(0.0 if math.isinf(epsilon) else 1 / epsilon),
            "utility_loss": Measurement.exact(loss),
        }
        cells = tuple(
            Explained(level, {"explainability_gain": Measurement.exact(float(level) * (1 - loss))}) for level in LEVELS
        )
        for party in PARTIES:
            records.append(Record(f"{party.name} {noise}", party.name, "dp-sgd", kind, noise, 0, measured, cells))
    return Results("worked example", PARTIES, tuple(records))


@dataclass(frozen=True)
class Line:
    """One published value beside ours."""

    what: str
    published: str
    ours: str

    def __str__(self) -> str:
        mark = "same" if self.published == self.ours else "differs"
        return f"{self.what:<44} {self.published:>18} {self.ours:>18}  {mark}"


def compare() -> tuple[Line, ...]:
    """Every number the source gives of its example, and ours."""
    results = example()
    decision = choose(results, policy="paper", mode="paper")
    panel = decision.panels["dp-sgd"]
    counts = [int(count) for count in panel.possible.sum(("privacy", "explainability"))]
    total, filled = panel.possible.size, sum(counts)
    shares = weights(panel.possible)
    lines = [
        Line("cells of the three matrices", "693", str(total)),
        *(
            Line(f"possible cells of {party.name}", published, str(count))
            for party, published, count in zip(PARTIES, ("12", "20", "231"), counts, strict=True)
        ),
        Line("filled cells", "263", str(filled)),
        Line("empty cells", "430", str(total - filled)),
        Line("cells all three allow", "12", str(int(panel.possible.all("party").sum()))),
        Line("weights at (1.0, 0.5)", "(0, 0, 1)", _vector(shares.sel(privacy="1", explainability="0.5").values)),
        Line(
            "weights at (1.8, 0.7)", "(1/3, 1/3, 1/3)", _vector(shares.sel(privacy="1.8", explainability="0.7").values)
        ),
    ]
    for name in POLICIES:
        best = choose(results, policy=name, mode="paper").best
        lines.append(Line(f"optimum, policy {name}", "(2.0, 1.0)", _cell(best)))
    return tuple(lines)


def abbasi_example(settings: Settings) -> str:
    """The worked example of the trade-off paper: counts, weights and optimum; nothing is trained."""
    lines = compare()
    same = sum(line.published == line.ours for line in lines)
    head = f"{'':<44} {'published':>18} {'ours':>18}"
    rest = "The source states its optimum for its own policy; the other four are ours and agree."
    return "\n".join([head, *map(str, lines), f"{same} of {len(lines)} agree. {rest}"])


def _cell(choice: Choice | None) -> str:
    return "none" if choice is None else f"({choice.winner.degree:.1f}, {choice.winner.explainability:.1f})"


def _vector(values: object) -> str:
    names = {0.0: "0", 1.0: "1", 0.5: "1/2", 1 / 3: "1/3"}
    numbers = [float(value) for value in values]  # type: ignore[attr-defined]
    return "(" + ", ".join(names.get(number, f"{number:.3f}") for number in numbers) + ")"
