"""Bertran et al., the synthetic case: what learned filters reach beside the best that any filter can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from counterpoise.information.discrete import information, synthetic
from counterpoise.information.frontier import frontier
from counterpoise.mechanisms.filtering import Players, Rows, Rules, play
from counterpoise.reproduce._bertran_filters import FILTERS, Mixing
from counterpoise.reproduce._bertran_judging import draw, judged
from counterpoise.reproduce._bertran_tables import Cell, finish
from counterpoise.reproduce._kept import Numbers, kept
from counterpoise.reproduce.settings import Settings
from counterpoise.training import generator, one_thread, seeded

KS, ALPHAS = (1.0, 0.4, 0.0), (0.1, 0.5, 0.8)
HIDDEN = 64
SHOWN = 400
SEED = 0
ATTACKERS = 3
"""One alone is led astray: a filter then hides from it what the others would read."""


@dataclass(frozen=True)
class Scale:
    """How much is trained, on how many rows; how finely filters are judged, and the oracle's grid."""

    rows: int
    grid: int
    outer: int
    inner: int
    rules: Mapping[str, Rules]

    def sentence(self) -> str:
        """In words."""
        each = "; ".join(
            f"{name}: {r.steps} steps, batch {r.batch}, rate {r.learning_rate:g}, {r.adversary_steps} attacker steps"
            for name, r in self.rules.items()
        )
        return f"{self.rows} rows; {ATTACKERS} attackers, alpha coming down from 1; {each}"


def _scale(rows: int, grid: int, outer: int, inner: int, rules: Rules) -> Scale:
    return Scale(
        rows, grid, outer, inner, {"linear": rules, "MLP": replace(rules, learning_rate=rules.learning_rate / 2.5)}
    )


CPU = Rules(steps=1200, batch=256, adversary_steps=6, learning_rate=5e-3, adversary_rate=5e-3)
SCALES = {
    "quick": _scale(2000, 16, 1000, 400, replace(CPU, steps=60, check_every=20, refresh=10)),
    "cpu": _scale(20_000, 60, 8000, 2000, CPU),
    "paper": _scale(100_000, 100, 40_000, 4000, replace(CPU, steps=20_000, check_every=200)),
}
"""The source gives no schedule: all three are ours."""


def bertran_synthetic(settings: Settings) -> str:
    """Filters of two numbers that keep U and hide S: three dependences, three alphas, two filters, and the optimum."""
    scale = SCALES[settings.scale]
    fronts = {k: frontier(synthetic(k), scale.grid) for k in KS}
    cells = []
    for k in KS:
        for kind in FILTERS:
            for alpha in ALPHAS:
                made_from = {"source": "bertran-synthetic", "k": k, "filter": kind, "alpha": alpha, "seed": SEED,
                             "rows": scale.rows, "judged": [scale.outer, scale.inner],
                             "attackers": ATTACKERS, "alphas": [1.0, alpha],
                             "rules": asdict(scale.rules[kind])}  # fmt: skip
                numbers = kept(settings.out, made_from, partial(train, k, kind, alpha, scale))
                cells.append(Cell(k, kind, alpha, numbers))
    title = f"Synthetic case of Bertran et al., scale {settings.scale} ({scale.sentence()}), seed {SEED}"
    return finish(title, cells, fronts, settings)


def train(k: float, kind: str, alpha: float, scale: Scale) -> Numbers:
    """One filter: trained, then judged by integration."""
    joint = synthetic(k)
    rows, u, s = draw(joint, scale.rows, SEED, "train")
    with one_thread():
        with seeded(generator(SEED, "filter", kind)):
            filter: Mixing = FILTERS[kind]()
        attackers = [_network(f"attackers {number}") for number in range(ATTACKERS)]
        players = Players(filter, _network("provider"), *attackers)
        # From a copy, both labels are so clear that a little less tells as much, and nothing leads away from there.
        points = play(players, Rows(rows, u, (s,), (2,)), [1.0, alpha], scale.rules[kind], SEED)
        found = judged(filter, joint, scale.outer, scale.inner, SEED)
        shown, shown_u, shown_s = draw(joint, SHOWN, SEED, "shown")
        with torch.no_grad():
            outputs = filter.run(shown, torch.randn(filter.noise_shape(shown), generator=generator(SEED, "shown")))
    return {
        **found,
        "least": information(joint),
        "estimated": estimated(u, s),
        "trajectory": [[point.step, point.secret, point.lost] for point in points],
        "shown": [[*pair, int(a), int(b)] for pair, a, b in zip(outputs.tolist(), shown_u, shown_s, strict=True)],
    }


def estimated(u: Tensor, s: Tensor) -> float:
    """I(U;S) from the labels drawn: of their frequencies, less the bias 1 / (2 n) of a 2 x 2 table (Miller 1955)."""
    counts = torch.bincount(2 * u + s, minlength=4).reshape(2, 2).double() / len(u)
    return information(counts.numpy()) - 1 / (2 * len(u))


def _network(purpose: str) -> nn.Module:
    """Two numbers to two logits."""
    with seeded(generator(SEED, purpose)):
        return nn.Sequential(
            nn.Linear(2, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2)
        )
