"""Published statements beside our numbers, each marked 'seen', 'not seen' or 'not decidable at this scale'."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from counterpoise.record import Results
from counterpoise.report import Claim, Verdict
from counterpoise.tradeoff import PAPER, build, choose, score

CLOSE = 0.05
"""How far a score may lie from the formula at the measured utility loss and still count as the same."""


def table(claims: Sequence[Claim]) -> str:
    """The claims as aligned text."""
    rows = [
        ("statement", "published", "ours", "verdict"),
        *((c.statement, c.published, c.ours, c.verdict) for c in claims),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def dp_claims(title: str, results: Results, whole: bool) -> tuple[Claim, ...]:
    """What the source states of DP-SGD on this data set; its scores hold for the `whole` data and schedule only."""
    matrix = build(results, "dp-sgd").isel(party=0)
    scores = score(build(results, "dp-sgd"), PAPER)["value"].isel(party=0)
    loss = matrix["utility_loss"].isel(explainability=0)
    found = [_optimum(results, "dp-sgd", "(2, 1)"), _jump(loss)]
    if title == "FER2013":
        worst = float(loss.max())
        found.append(Claim("largest utility loss", "below .48", f"{worst:.3f}", "seen" if worst < 0.48 else "not seen"))
    if title == "MNIST":
        for privacy, level, published in (("0", "0.5", 0.2), ("2", "0.5", 1.3), ("1", "0", 0.32), ("1", "1", 0.78)):
            found += _quoted(matrix, scores, privacy, level, published, whole)
    return tuple(found)


def autoencoder_claims(title: str, results: Results) -> tuple[Claim, ...]:
    """What the source states of the autoencoder on this data set."""
    matrix = build(results, "autoencoder").isel(party=0)
    emd = matrix["utility_loss"].isel(explainability=0)
    worst = float(emd.max())
    found = [
        Claim(
            "U (earth mover's distance) near 0 everywhere",
            "near 0",
            f"at most {worst:.3f}",
            "seen" if worst < 0.05 else "not seen",
        )
    ]
    found.append(_optimum(results, "autoencoder", "(0.003472, 1)" if title == "FER2013" else "not stated"))
    task = float(matrix["task_loss"].isel(explainability=0).max())
    found.append(
        Claim("what that U does not see: accuracy lost", "not measured", f"up to {task:.3f}", "for comparison")
    )
    if "pixel-shuffle" in results.mechanisms:
        control = build(results, "pixel-shuffle").isel(party=0, privacy=-1, explainability=0)
        emd_there, task_there = float(control["utility_loss"]), float(control["task_loss"])
        found.append(
            Claim(
                "the same for images whose pixels are shuffled",
                "not measured",
                f"U {emd_there:.3f}, accuracy lost {task_there:.3f}",
                "for comparison",
            )
        )
    return tuple(found)


def _optimum(results: Results, mechanism: str, published: str) -> Claim:
    best = choose(results, "paper", "paper").outcomes[mechanism]
    winner = best.winner if hasattr(best, "winner") else None
    ours = "none" if winner is None else f"({winner.degree.normalize()}, {winner.explainability.normalize()})"
    verdict: Verdict = "for comparison" if published == "not stated" else "seen" if ours == published else "not seen"
    return Claim("optimum of the paper's score", published, ours, verdict)


def _jump(loss: xr.DataArray) -> Claim:
    """U jumps at the first noise and is then flat: the first step is larger than the whole range after it."""
    values = [float(value) for value in loss.values]
    first, later = values[1] - values[0], max(values[1:]) - min(values[1:])
    decidable = str(loss["privacy"].values[1]) == "0.1" and len(values) > 5
    verdict: Verdict = "seen" if first > later else "not seen"
    ours = f"first step {first:.3f}, then within {later:.3f}"
    return Claim(
        "U jumps at the first noise, then flat", "stated", ours, verdict if decidable else "not decidable at this scale"
    )


def _quoted(
    matrix: xr.Dataset, scores: xr.DataArray, privacy: str, level: str, published: float, whole: bool
) -> list[Claim]:
    """One quoted score: ours, and the formula at our privacy gain and utility loss."""
    if privacy not in scores["privacy"].values:
        return [Claim(f"T({privacy}, {level})", f"{published:.2f}", "not trained", "not decidable at this scale")]
    ours = float(scores.sel(privacy=privacy, explainability=level))
    cell = matrix.sel(privacy=privacy, explainability=level)
    gain, loss = float(cell["privacy_gain"]), float(cell["utility_loss"])
    formula = (gain + float(level) * (1 - loss)) / (2 + loss)
    same: Verdict = "seen" if abs(ours - formula) < CLOSE else "not seen"
    near: Verdict = "seen" if abs(ours - published) < CLOSE else "not seen"
    return [
        Claim(
            f"T({privacy}, {level})",
            f"{published:.2f}",
            f"{ours:.3f}",
            near if whole else "not decidable at this scale",
        ),
        Claim("  the formula at our PG and U", f"{formula:.3f}", f"PG {gain:.3f}, U {loss:.3f}", same),
    ]
