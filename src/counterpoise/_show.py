"""What the command line prints: previews, decisions and lists as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from counterpoise.catalogue import Entry
from counterpoise.grid import text
from counterpoise.plan import Preview, Row, describe
from counterpoise.tradeoff import Budget, Choice, Decision, Infeasible, Shake, Standing


def table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that wraps its last column first."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        shown.add_column(column, overflow="fold", no_wrap=index < len(columns) - 1)
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))  # Text: names of users are never read as markup
    console.print(shown)


def say(console: Console, words: str, style: str = "") -> None:
    """A sentence, as it stands."""
    console.print(Text(words, style), soft_wrap=True)


def preview(console: Console, plan: Preview, workers: int) -> None:
    """The plan of a study."""
    table(
        console,
        "Mechanisms",
        ("name", "trainings", "cells", "degrees"),
        [(row.name, str(row.trainings), str(row.cells), row.refusal or describe(row)) for row in plan.rows],
    )
    levels = plan.explainabilities.values
    say(
        console,
        f"Explainability {text(levels[0])} to {text(levels[-1])}, {len(levels)} degrees; explaining never retrains.",
    )
    say(console, f"In all: {plan.trainings} trainings for {plan.cells} cells.")
    say(console, "Training images: " + ", ".join(f"{name} {count}" for name, count in plan.images.items()) + ".")
    for row in plan.rows:
        if any(map(math.isfinite, row.epsilons.values())):
            _epsilons(console, row)
    for sentence in plan.conflicts:
        say(console, f"Conflict: {sentence}", "bold")
    if not plan.conflicts:
        say(console, "No conflict between the requirements on degrees, epsilon and explainability.")
    for note in plan.notes:
        say(console, f"Note: {note}")
    if plan.seconds:
        say(console, f"Estimate from a few timed steps: {duration(plan.seconds / workers)} with {workers} workers.")


def _epsilons(console: Console, row: Row) -> None:
    pairs = [(text(degree), number(epsilon)) for degree, epsilon in row.epsilons.items()]
    table(
        console,
        f"Epsilon of every degree ({row.name}, the largest over the parties)",
        (row.degree_name, "epsilon"),
        pairs,
    )


def decision(console: Console, decided: Decision) -> None:
    """A decision: the sentence, the runners-up, what it means to each party."""
    say(console, decided.sentence(), "bold")
    say(console, f"Policy {decided.policy}, mode {decided.mode}." + _quorum(decided))
    shown = [decided.best] if decided.best is not None else list(decided.outcomes.values())
    for outcome in shown:
        if isinstance(outcome, Choice):
            _choice(console, outcome)
    for outcome in decided.outcomes.values():
        if isinstance(outcome, Infeasible):
            say(console, outcome.sentence)


def _quorum(decided: Decision) -> str:
    return f" At least {decided.quorum} of {len(decided.parties)} parties allow it." if decided.quorum else ""


def _choice(console: Console, choice: Choice) -> None:
    winner = choice.winner
    say(console, f"\n{winner}: epsilon {number(winner.epsilon)}, utility loss {winner.utility_loss:.3f}")
    margin = f"{choice.flip_margin:.4f}" if math.isfinite(choice.flip_margin) else "infinite: no other cell is feasible"
    contested = " A runner-up's interval reaches the winner's, so the order is not settled." if choice.contested else ""
    say(console, f"Flip margin {margin}.{contested} {choice.feasible} feasible cells.")
    runners = [(f"{s.score:.4f}", f"{s.low:.4f} to {s.high:.4f}", str(s)) for s in choice.runners_up]
    if runners:
        table(console, "Runners-up", ("score", "95 % interval", "setting"), runners)
    views = [
        (v.party, f"{v.score:.4f}", number(v.best, 4), number(v.regret, 4), "yes" if v.allows else "; ".join(v.forbids))
        for v in choice.parties
    ]
    table(console, "Parties", ("party", "score here", "own best", "regret", "allows it (or what forbids it)"), views)


def shakes(console: Console, found: Sequence[Shake], winner: Standing) -> None:
    """Whether the winner stays when one measured input of one party moves by 10 %."""
    flipped = [s for s in found if s.winner is None or str(s.winner) != str(winner)]
    stays = f"the winner stays in {len(found) - len(flipped)} of {len(found)} cases."
    say(console, f"One measured input of one party moved by 10 %: {stays}")
    for s in flipped:
        say(console, f"  {s.party}'s {s.quantity} x {s.factor:.1f}: {s.winner or 'nothing is feasible'}")


def budgets(console: Console, found: Sequence[Budget]) -> None:
    """Both budgets, in sentences."""
    for budget in found:
        say(console, budget.sentence())


def entries(console: Console, room: str, found: Sequence[Entry]) -> None:
    """One room of the catalogue."""
    table(console, room, ("name", "origin", "what it is"), [(e.name, e.origin, e.summary) for e in found])


def files(console: Console, paths: Sequence[Path]) -> None:
    """Where things were written, the page first."""
    say(console, f"Report: {paths[0]}", "bold")
    say(console, f"and {len(paths) - 1} more files beside it.")


def number(value: float, digits: int = 3) -> str:
    """A number for people; infinity by its name."""
    if math.isinf(value):
        return "infinite"
    return "none" if math.isnan(value) else f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Seconds in the unit one would say."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
