"""The deck's study as tables, in the words of the documentation page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from counterpoise.reproduce._deck_accounts import Spending
from counterpoise.reproduce._deck_pairs import Pairs
from counterpoise.reproduce._deck_training import BATCH, DELTA, NOISE, Trial
from counterpoise.reproduce._private_heads import Level
from counterpoise.reproduce._side_by_side import Compared

QUOTED_ACCURACY = 0.0954


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of n (Wilson 1927)."""
    z = 1.959964
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return centre - half, centre + half


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def epsilons(rows: Sequence[Spending], within: Mapping[str, int], n: int) -> str:
    """What the training reveals, by each accountant."""
    title = (
        f"**Training epsilon, {n:,} images, batch {min(BATCH, n)}, noise {NOISE}, delta {DELTA:g}** (computed; Poisson"
        " sampling, add-remove adjacency):"
    )
    body = [[str(row.epochs), *(f"{value:.3f}" for value in (row.pld, row.rdp, row.strong))] for row in rows]
    found = f"{title}\n\n{_table(['epochs', 'PLD', 'RDP', 'strong composition'], body)}"
    if within:
        told = "; ".join(f"epsilon {name}: {count}" for name, count in within.items())
        found += f"\n\nWhole epochs that stay within the quoted epsilons: {told}."
    return found


def accuracies(trials: Sequence[Trial], tests: int, spent: Spending | None) -> str:
    """Accuracy against the deck's, with what the noise does to the weights."""
    body = []
    for trial in trials:
        low, high = wilson(trial.accuracy, tests)
        epsilon = "none" if not trial.arm.private else "" if spent is None else f"{spent.pld:.2f} / {spent.rdp:.2f}"
        push = f"{trial.push:.3f}" if trial.arm.private else ""
        cells = [
            trial.arm.name,
            str(trial.arm.rate),
            epsilon,
            f"{100 * trial.accuracy:.1f} ({100 * low:.1f} to {100 * high:.1f})",
        ]
        body.append([*cells, "yes" if low > 0.1 else "no", f"{trial.weights:,}", push])
    heads = ["training", "learning rate", "epsilon PLD / RDP", "accuracy %, 95 % interval", "above chance", "weights"]
    return (
        f"**Accuracy on {tests:,} test images** (measured; the deck's is {100 * QUOTED_ACCURACY:.2f}, chance is 10)."
        " Push is how far noise alone moves the weights in one step.\n\n" + _table([*heads, "push"], body)
    )


def heads(levels: Sequence[Level], n: int) -> str:
    """What works at the quoted and at the computed epsilons."""
    body = []
    for level in levels:
        mean = sum(level.accuracies) / len(level.accuracies)
        body.append([f"{level.epsilon:.3f}", f"{mean:.1f} ± {level.spread:.1f}", str(len(level.accuracies))])
    return (
        f"**What works at these epsilons** (measured; linear head on whitened scattering, {n:,} images, PLD):\n\n"
        + _table(["epsilon", "accuracy %", "seeds"], body)
    )


def costs(trials: Sequence[Trial]) -> str:
    """Time and memory."""
    body = [[trial.arm.name, f"{trial.cpu_seconds:.1f}", f"{trial.peak_mib:,.0f}"] for trial in trials]
    return "**Cost** (measured on a busy machine; the data are in the memory too):\n\n" + _table(
        ["training", "CPU-seconds an epoch", "peak memory, MiB"], body
    )


def pairs(rows: Mapping[str, Mapping[str, float]], settings: Pairs, sign: Mapping[str, float]) -> str:
    """Original and attacked images, model by model."""
    names = ("prediction_cosine", "plain_cosine", "plain_overlap", "smoothed_cosine", "smoothed_overlap")
    body = [
        [
            name,
            *(f"{row[key]:.3f}" for key in names),
            f"{row['certified_radius']:.3f}",
            f"{100 * row['abstained']:.0f} %",
            str(row["contradicted"]),
        ]
        for name, row in rows.items()
    ]
    heads_ = ["model", "cosine of predictions", "plain map: cosine", f"top-{settings.k} kept", "smoothed map: cosine"]
    heads_ += [f"top-{settings.k} kept", "certified l2 radius", "abstained", "certificates contradicted"]
    return (
        f"**Original and attacked pairs** (measured; attack of l2 radius {settings.radius:g} that keeps the label, maps"
        f" in 4 x 4 blocks, noise {settings.noise:g}, {settings.samples} samples; certificate for half of the top"
        f" {settings.k}, 95 %):\n\n"
        + _table(heads_, body)
        + f"\n\nThe cosine of a map with itself is {sign['similarity']:.3f}; written as a loss, with the sign that"
        f" makes it a minimum, it is {sign['as_a_loss']:.3f}. No map here has a negative value, so no true cosine is"
        " below 0."
    )


def side_by_side(rows: Sequence[Compared], settings: Pairs, model: str) -> str:
    """The three methods at equal samples."""
    body = []
    for row in rows:
        radius = "none" if row.radius is None else f"{row.radius:.3f}"
        share = "" if row.certified is None else f"{100 * row.certified:.0f} %"
        numbers = [f"{row.attacked_overlap:.3f}", f"{row.deletion:.3f}", f"{row.seconds:.2f}"]
        body.append([row.method, str(row.samples), radius, share, *numbers])
    heads_ = ["method", "samples", "certified l2 radius", "images certified", f"top-{settings.k} kept under attack"]
    return f"**Side by side on {model}** (measured; adaptive attack of l2 radius {settings.radius:g}):\n\n" + _table(
        [*heads_, "deletion area (lower is better)", "CPU-seconds an image"], body
    )
