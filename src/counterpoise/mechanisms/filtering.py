"""The game that trains a filter: a provider who wants U, attackers who want S, and the filter between them.

Works on anything with rows: images, or plain numbers. Bertran et al., "Learning data-derived privacy preserving
representations from information metrics". The filter Q minimises

    (1 - alpha) E[KL(p(u|x) || p(u|q))]^2 + alpha sum_s E[KL(p(s|q) || p(s))]^2

in which the provider's network says p(u|.), and the attackers' p(s|.); the square is of the batch's mean. Where there
are several attackers, the one to whom s tells most counts: what it reads, hiding it from another is no use.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, at_least, in_range, one_of, positive
from counterpoise.interface import Progress
from counterpoise.mechanisms._monitor import Monitor, Point
from counterpoise.mechanisms.filters import Filter
from counterpoise.training import (
    State,
    channels_last,
    derive,
    fast_layout,
    fit,
    generator,
    kept_aside,
    seeded,
    shuffled_batch,
)

LEARNS = {1: (True, True), 2: (False, True), 3: (False, False)}
"""Which networks learn beside the filter, by the paper's algorithms: the provider's, the attackers'."""
LARGEST_CHECK = 1000
__all__ = ["LEARNS", "Players", "Point", "Rows", "Rules", "divergences", "logits_by_secret", "play", "usable"]


@dataclass(frozen=True)
class Rules:
    """How the game is played.

    `algorithm` 1: all learn; 2: the provider's network stays as it is; 3: the attackers' too. `divergence` 'full'
    compares whole distributions; 'plug-in' is the paper's mean log-ratio at the true class, which can be negative, so
    that its square rewards leaking. Each step of the filter follows `adversary_steps` of the attackers' and one of the
    provider's; gradients longer than 1 are cut, and the filter's rate falls to 0, so that the others catch up. Every
    `check_every` steps, attackers who start anew (for those in the game may have been led astray) and a copy of the
    provider's network learn for `refresh` steps on the filter as it is, and judge it on rows kept aside: the
    best filter so far is kept. `shift` moves each batch of images by up to so many pixels, and `flip` mirrors half of
    them: few images are otherwise learned by heart, and the filter hides what nobody would read of others.
    """

    algorithm: int = 1
    divergence: Literal["full", "plug-in"] = "full"
    steps: int = 600
    batch: int = 64
    adversary_steps: int = 3
    learning_rate: float = 1e-3
    adversary_rate: float = 1e-3
    check_every: int = 100
    refresh: int = 200
    shift: int = 0
    flip: bool = False

    def __post_init__(self) -> None:
        if self.algorithm not in LEARNS:
            raise InputError(
                f"algorithm={self.algorithm!r} must be 1 (all learn), 2 (fixed provider) or 3 (both fixed)."
            )
        one_of(("full", "plug-in"), divergence=self.divergence)
        at_least(1, steps=self.steps, adversary_steps=self.adversary_steps, check_every=self.check_every)
        at_least(2, batch=self.batch)
        at_least(0, refresh=self.refresh, shift=self.shift)
        positive(learning_rate=self.learning_rate, adversary_rate=self.adversary_rate)


class Players(nn.Module):
    """The filter, the provider's network (logits of U), and the attackers': one or several, a head for each secret."""

    def __init__(self, filter: Filter, provider: nn.Module, *attackers: nn.Module) -> None:
        super().__init__()
        self.filter, self.provider, self.attackers = filter, provider, nn.ModuleList(attackers)


@dataclass(frozen=True)
class Rows:
    """What the game is played on: rows, the class of U, and of every secret; and how many classes each secret has."""

    rows: Tensor
    utility: Tensor
    secrets: tuple[Tensor, ...]
    sizes: tuple[int, ...]

    def take(self, chosen: Tensor) -> Rows:
        """The chosen rows."""
        secrets = tuple(secret[chosen] for secret in self.secrets)
        return replace(self, rows=self.rows[chosen], utility=self.utility[chosen], secrets=secrets)


def play(
    players: Players,
    given: Rows,
    alphas: Sequence[float],
    rules: Rules,
    seed: int,
    *,
    newcomers: Sequence[nn.Module] | None = None,
    progress: Progress = lambda done: None,
    checkpoint: Path | None = None,
) -> tuple[Point, ...]:
    """Train the players in place, and leave them as they were at the best check of the last alpha.

    `newcomers` are the attackers that judge, as they start at every check; by default the game's as they are now.
    With several alphas each goes on from the best filter of the one before: a sweep that climbs.
    """
    for alpha in alphas:
        in_range(0, 1, alpha=alpha)
    learned, kept = (given.take(part) for part in kept_aside(len(given.rows)))
    kept = kept.take(torch.arange(min(LARGEST_CHECK, len(kept.rows))))
    if not len(learned.rows):
        raise InputError(f"a filter cannot be trained on {len(given.rows)} rows: one part is kept aside to judge it.")
    first = copy.deepcopy(players.attackers) if newcomers is None else nn.ModuleList(newcomers)
    game = _Game(players, learned, kept, rules, seed, first)
    checks = -(-rules.steps // rules.check_every)
    monitor = Monitor(players, len(alphas) * checks)

    def step(index: int) -> None:
        stage, here = divmod(index, rules.steps)
        if here == 0:
            monitor.restart(players, go_on=index > 0)
        for group in game.filter_optimiser.param_groups:  # it ends where the others can keep up with it
            group["lr"] = rules.learning_rate * (1 - here / rules.steps)
        game.turn(index, alphas[stage])
        if (here + 1) % rules.check_every == 0 or here + 1 == rules.steps:
            row = stage * checks + -(-(here + 1) // rules.check_every) - 1
            refreshed = game.refreshed(index)
            monitor.note(row, game.judge(refreshed, alphas[stage], index + 1), refreshed)

    state: State = {
        "players": players,
        "monitor": monitor,
        "filter_optimiser": game.filter_optimiser,
        "others_optimiser": game.others_optimiser,
    }
    fit(step, len(alphas) * rules.steps, state, progress=progress, checkpoint=checkpoint)
    players.load_state_dict(monitor.best.state_dict())
    return monitor.trajectory()


def logits_by_secret(attacker: nn.Module, rows: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """An attacker's output, cut into one head a secret."""
    return torch.split(attacker(rows), list(sizes), 1)


def divergences(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) of each row of log-probabilities, in nats."""
    return (p.exp() * (p - q)).sum(1)


def usable(logits: Tensor, prior: Tensor, classes: Tensor) -> float:
    """Nats about the classes that whoever gives these logits has over the prior (log): H - cross-entropy, at least 0.

    The log-posteriors are first drawn towards the prior as far as costs least, for networks are surer than right.
    """
    posterior = logits.log_softmax(1)
    costs = [
        nn.functional.cross_entropy(prior + share * (posterior - prior), classes) for share in torch.linspace(0, 1, 51)
    ]
    return float(costs[0] - min(costs))


class _Game:
    """The moves: a step of the others, a step of the filter, and the judging."""

    def __init__(
        self, players: Players, learned: Rows, kept: Rows, rules: Rules, seed: int, newcomers: nn.ModuleList
    ) -> None:
        self.players, self.learned, self.rules, self.seed = players, learned, rules, seed
        networks = (players.filter, players.provider, *players.attackers)
        fast = all(fast_layout(network, learned.rows) is channels_last for network in networks)
        self.arrange = channels_last if fast else lambda rows: rows
        self.kept = replace(kept, rows=self.arrange(kept.rows))
        self.sizes = learned.sizes
        # A class that only the rows kept aside have is taken for rare, not for impossible.
        counts = [torch.bincount(s, minlength=n).clamp(min=1) for s, n in zip(learned.secrets, self.sizes, strict=True)]
        self.priors = [(count / count.sum()).log() for count in counts]
        self.filter_weights = [p for p in players.filter.parameters() if p.requires_grad]
        self.filter_optimiser = torch.optim.Adam(self.filter_weights, lr=rules.learning_rate, betas=(0.5, 0.999))
        self.others_optimiser = self._optimiser(players)
        self.newcomers = newcomers

    def _optimiser(self, players: Players) -> torch.optim.Optimizer:
        learns = LEARNS[self.rules.algorithm]
        weights = [
            weight
            for network, learning in zip((players.provider, players.attackers), learns, strict=True)
            for weight in network.requires_grad_(learning).parameters()
            if learning
        ]
        # An optimiser must hold something, also where nothing learns.
        return torch.optim.Adam(weights or [nn.Parameter(torch.zeros(()))], lr=self.rules.adversary_rate)

    def turn(self, index: int, alpha: float) -> None:
        """The others' steps, then the filter's."""
        for move in range(self.rules.adversary_steps):
            number = index * self.rules.adversary_steps + move
            self._others(self.players, self.others_optimiser, number, "others", provider_too=move == 0)
        batch = self._batch("filter", index)
        self._modes(self.players, training=False)
        with seeded(generator(self.seed, "chance", "filter", index)):
            loss = self._loss(self.players, batch, self._noise(batch.rows, "filter", index), alpha)[0]
        gradients = torch.autograd.grad(loss, self.filter_weights, allow_unused=True)
        for weight, gradient in zip(self.filter_weights, gradients, strict=True):
            weight.grad = gradient
        nn.utils.clip_grad_norm_(self.filter_weights, 1.0)
        self.filter_optimiser.step()

    def refreshed(self, index: int) -> Players:
        """A copy in which the provider's network, and attackers who start anew, have learned from this filter."""
        players = copy.deepcopy(self.players)
        if LEARNS[self.rules.algorithm][1]:  # else newcomers would judge without having learned anything
            players.attackers = copy.deepcopy(self.newcomers)
        optimiser = self._optimiser(players)
        for move in range(self.rules.refresh):
            self._others(players, optimiser, index * self.rules.refresh + move, "refresh")
        return players

    @torch.no_grad()
    def judge(self, players: Players, alpha: float, step: int) -> Point:
        """The loss and its parts on the rows kept aside."""
        self._modes(players, training=False)
        noise = self._noise(self.kept.rows, "judge", 0)
        with seeded(generator(self.seed, "chance", "judge", 0)):  # a first filter may draw too
            lost = self._loss(players, self.kept, noise, alpha)[1]
            filtered = players.filter.run(self.kept.rows, noise)
        read = [logits_by_secret(attacker, filtered, self.sizes) for attacker in players.attackers]
        told = [
            max(usable(logits, prior, secret) for logits in heads)
            for heads, prior, secret in zip(zip(*read, strict=True), self.priors, self.kept.secrets, strict=True)
        ]
        loss = (1 - alpha) * float(lost) ** 2 + alpha * sum(value**2 for value in told)
        return Point(step, alpha, sum(told), float(lost), loss)

    def _others(
        self,
        players: Players,
        optimiser: torch.optim.Optimizer,
        number: int,
        purpose: str,
        *,
        provider_too: bool = True,
    ) -> None:
        """One step of whoever learns beside the filter, by cross-entropy on what the filter makes now."""
        provider_learns, attackers_learn = LEARNS[self.rules.algorithm]
        provider_learns = provider_learns and provider_too
        if not (provider_learns or attackers_learn):
            return
        batch = self._batch(purpose, number)
        self._modes(players, training=True)
        optimiser.zero_grad()
        cross = nn.functional.cross_entropy
        loss = torch.zeros(())
        with seeded(generator(self.seed, "chance", purpose, number)):
            with torch.no_grad():
                filtered = players.filter.run(batch.rows, self._noise(batch.rows, purpose, number))
            if attackers_learn:
                for attacker in players.attackers:
                    heads = logits_by_secret(attacker, filtered, self.sizes)
                    loss = loss + sum(cross(*pair) for pair in zip(heads, batch.secrets, strict=True))
            if provider_learns:  # the same network for raw and for filtered rows
                for rows in (batch.rows, filtered):
                    loss = loss + cross(players.provider(rows), batch.utility)
        loss.backward()  # type: ignore[no-untyped-call]
        for network in (players.provider, *players.attackers):  # each by itself: one that errs must not slow the others
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()

    def _loss(self, players: Players, batch: Rows, noise: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
        """The filter's loss; I(U;X|Q) and I(S;Q) as the others see them, the latter summed over secrets."""
        filtered = players.filter.run(batch.rows, noise)
        with torch.no_grad():
            raw = players.provider(batch.rows).log_softmax(1)
        seen = players.provider(filtered).log_softmax(1)
        if self.rules.divergence == "full":
            lost = divergences(raw, seen).mean()
        else:
            lost = _at(raw - seen, batch.utility).mean()
        told = torch.stack([self._told(attacker, filtered, batch.secrets) for attacker in players.attackers]).amax(0)
        return (1 - alpha) * lost.square() + alpha * told.square().sum(), lost, told.sum()

    def _told(self, attacker: nn.Module, filtered: Tensor, secrets: Sequence[Tensor]) -> Tensor:
        """I(S;Q) of each secret, as this attacker sees it."""
        read = [head.log_softmax(1) for head in logits_by_secret(attacker, filtered, self.sizes)]
        if self.rules.divergence == "full":
            told = [divergences(head, prior.expand_as(head)) for head, prior in zip(read, self.priors, strict=True)]
        else:
            told = [_at(head - prior, s) for head, prior, s in zip(read, self.priors, secrets, strict=True)]
        return torch.stack([value.mean() for value in told])

    def _batch(self, purpose: str, number: int) -> Rows:
        size = len(self.learned.rows)
        batch = self.learned.take(shuffled_batch(size, self.rules.batch, derive(self.seed, purpose), number))
        moved = self._moved(batch.rows, generator(self.seed, "moved", purpose, number))
        return replace(batch, rows=self.arrange(moved))

    def _moved(self, rows: Tensor, rng: torch.Generator) -> Tensor:
        """Shifted by a few pixels, the edge repeated, and mirrored, as the rules say."""
        if self.rules.flip:
            mirrored = torch.rand(len(rows), generator=rng) < 0.5
            rows = torch.where(mirrored[:, None, None, None], rows.flip(3), rows)
        if not (most := self.rules.shift):
            return rows
        down, right = torch.randint(2 * most + 1, (2,), generator=rng).tolist()
        padded = nn.functional.pad(rows, (most, most, most, most), mode="replicate")
        return padded[:, :, down : down + rows.shape[2], right : right + rows.shape[3]]

    def _noise(self, rows: Tensor, purpose: str, number: int) -> Tensor:
        shape = self.players.filter.noise_shape(rows)
        return torch.randn(shape, generator=generator(self.seed, "noise", purpose, number))

    def _modes(self, players: Players, *, training: bool) -> None:
        provider_learns, attackers_learn = LEARNS[self.rules.algorithm]
        players.filter.eval()  # nothing in a filter behaves otherwise while it trains
        players.provider.train(training and provider_learns)
        players.attackers.train(training and attackers_learn)


def _at(table: Tensor, classes: Tensor) -> Tensor:
    """Each row's value at its class."""
    return table.gather(1, classes[:, None])[:, 0]
