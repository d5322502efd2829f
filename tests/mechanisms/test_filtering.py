"""The game: its loss by hand, who learns in which algorithm, what is kept, and the same bits after a kill."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.mechanisms.filtering import Players, Point, Rows, Rules, _Game, divergences, play, usable
from counterpoise.mechanisms.filters import DenseFilter, Filter, LinearFilter, Staged
from counterpoise.training import generator, one_thread


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def rows(n: int = 400, secrets: int = 1, classes: int = 2) -> Rows:
    """A number a label, with a little noise: X = (U, S_1, …)."""
    rng = generator(0, "rows")
    labels = [torch.randint(classes, (n,), generator=rng) for _ in range(1 + secrets)]
    x = torch.stack(labels, 1) + 0.05 * torch.randn(n, 1 + secrets, generator=rng)
    return Rows(x, labels[0], tuple(labels[1:]), (classes,) * secrets)


def network(inputs: int, outputs: int, *, norm: bool = False) -> nn.Module:
    """With `norm` it reads a row as well when somebody makes it ten times smaller."""
    with torch.random.fork_rng():
        torch.manual_seed(inputs + outputs)
        first = [nn.BatchNorm1d(inputs)] if norm else []
        return nn.Sequential(*first, nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs))


def players(given: Rows, filter: Filter | None = None, *, norm: bool = False) -> Players:
    size = given.rows.shape[1]
    filter = LinearFilter(size, 0.3) if filter is None else filter
    classes = given.sizes[0]
    return Players(filter, network(size, classes, norm=norm), network(size, sum(given.sizes), norm=norm))


def state(module: nn.Module) -> Tensor:
    return torch.cat([value.double().flatten() for value in module.state_dict().values()])


QUICK = Rules(steps=6, batch=32, adversary_steps=2, check_every=3, refresh=4, learning_rate=0.02, adversary_rate=0.02)


class Says(nn.Module):
    """Logits that are looked up: of row i, table[i]; of a filtered row (shifted by 100), the other table's."""

    def __init__(self, raw: list[list[float]], filtered: list[list[float]]) -> None:
        super().__init__()
        self.tables = torch.tensor(raw).log(), torch.tensor(filtered).log()

    def forward(self, x: Tensor) -> Tensor:
        index, moved = x[:, 0] % 100, x[:, 0] >= 100
        raw, filtered = (table[index.long()] for table in self.tables)
        return torch.where(moved[:, None], filtered, raw)


class Shift(LinearFilter):
    """Adds 100: tells a filtered row from a raw one."""

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        return rows + 100 + 0 * self.of_rows.bias


def game(u: Says, s: Says, secret: list[int], rules: Rules = QUICK, prior: float = 0.5) -> tuple[_Game, Rows]:
    n = len(secret)
    given = Rows(torch.arange(float(n))[:, None], torch.zeros(n, dtype=torch.int64), (torch.tensor(secret),), (2,))
    made = _Game(Players(Shift(1), u, s), given, given, rules, 0, nn.ModuleList())
    made.priors = [torch.tensor([1 - prior, prior]).log()]
    return made, given


P, Q = [[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.5, 0.5]]
R = [[0.8, 0.2], [0.3, 0.7]]


def kl(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def test_the_full_loss_by_hand_with_the_square_outside_the_mean() -> None:
    made, given = game(Says(P, Q), Says(R, R), [0, 1], prior=0.4)
    lost = [kl(*pair) for pair in zip(P, Q, strict=True)]
    told = [kl(r, [0.6, 0.4]) for r in R]
    for alpha in (0.0, 0.3, 1.0):
        loss, b, a = made._loss(made.players, given, torch.zeros(2, 1), alpha)
        assert float(b) == pytest.approx(sum(lost) / 2, rel=1e-5)
        assert float(a) == pytest.approx(sum(told) / 2, rel=1e-5)
        right = (1 - alpha) * (sum(lost) / 2) ** 2 + alpha * (sum(told) / 2) ** 2
        assert float(loss) == pytest.approx(right, rel=1e-5)
        inside = (1 - alpha) * sum(v**2 for v in lost) / 2 + alpha * sum(v**2 for v in told) / 2
        assert float(loss) < inside * 0.99
    backwards = sum(kl(q, p) for p, q in zip(P, Q, strict=True)) / 2
    assert abs(backwards - sum(lost) / 2) > 0.005  # the reverse divergence is another number


def test_the_plug_in_loss_by_hand_and_how_its_square_rewards_leaking() -> None:
    """Mean log-ratios at the true class. Sure of the wrong class, they are negative, and the square goes up again."""
    rules = replace(QUICK, divergence="plug-in")
    made, given = game(Says(P, Q), Says(R, R), [0, 1], rules, prior=0.4)
    _, b, a = made._loss(made.players, given, torch.zeros(2, 1), 0.5)
    assert float(b) == pytest.approx((math.log(0.9 / 0.7) + math.log(0.6 / 0.5)) / 2, rel=1e-5)
    assert float(a) == pytest.approx((math.log(0.8 / 0.6) + math.log(0.7 / 0.4)) / 2, rel=1e-5)
    losses = {}
    for name, right in (("told", 0.6), ("nothing", 0.5), ("misled", 0.2), ("more misled", 0.1)):
        said = [[right, 1 - right], [1 - right, right]]
        for divergence in ("plug-in", "full"):
            made, given = game(Says(P, P), Says(said, said), [0, 1], replace(rules, divergence=divergence))
            loss, _, told = made._loss(made.players, given, torch.zeros(2, 1), 1.0)
            losses[name, divergence] = float(loss)
            assert divergence == "plug-in" or float(told) >= -1e-7
    assert losses["nothing", "plug-in"] == pytest.approx(0, abs=1e-9)
    # Misled, it is below zero, and would be the most private of all without the square.
    assert losses["more misled", "plug-in"] > losses["misled", "plug-in"] > losses["told", "plug-in"]
    assert losses["told", "full"] > losses["nothing", "full"]


def test_the_plug_in_gradient_leaks_where_the_attacker_is_misled() -> None:
    """Below zero, a smaller square is an attacker *surer of the truth*: the filter is paid to leak."""
    right = torch.tensor(0.3, requires_grad=True)
    ratio = (right / 0.5).log()
    ratio.square().backward()  # type: ignore[no-untyped-call]
    assert float(ratio.detach()) < 0
    assert right.grad is not None
    assert float(right.grad) < 0  # a step against the gradient raises the probability of the true class


def test_divergences_are_kullback_and_leibler_s() -> None:
    p, q = torch.tensor(P).log(), torch.tensor(Q).log()
    assert divergences(p, q).tolist() == pytest.approx([kl(*pair) for pair in zip(P, Q, strict=True)], rel=1e-5)
    assert divergences(p, p).abs().max() < 1e-7


@torch.no_grad()
def test_several_secrets_are_squared_each() -> None:
    given = rows(8, secrets=2)
    made = _Game(players(given, LinearFilter(3, 0.0)), given, given, QUICK, 0, nn.ModuleList())
    loss, _, told = made._loss(made.players, given, torch.zeros(8, 3), 1.0)
    heads = made.players.attackers[0](given.rows).split(2, 1)  # without noise an untaught filter is a copy
    each = [
        float(divergences(head.log_softmax(1), prior.expand_as(head)).mean())
        for head, prior in zip(heads, made.priors, strict=True)
    ]
    assert float(told) == pytest.approx(sum(each), rel=1e-3)
    assert float(loss) == pytest.approx(each[0] ** 2 + each[1] ** 2, rel=1e-3)
    assert float(loss) != pytest.approx(sum(each) ** 2, rel=1e-3)


def test_usable_information_of_known_readers() -> None:
    rng = generator(3)
    classes = torch.randint(3, (3000,), generator=rng)
    prior = (torch.bincount(classes) / 3000).log()
    entropy = float(-(prior.exp() * prior).sum())
    sure = 20 * nn.functional.one_hot(classes, 3).float()
    noise = torch.randn(3000, 3, generator=rng)
    assert usable(sure, prior, classes) == pytest.approx(entropy, abs=1e-3)
    assert 0 <= usable(noise, prior, classes) < 0.005
    assert 0 <= usable(50 * noise, prior, classes) < 0.005  # surer, and no more right
    assert float(nn.functional.cross_entropy(50 * noise, classes)) > 10
    assert usable(prior.expand(3000, 3), prior, classes) == pytest.approx(0, abs=1e-6)
    half = torch.where(torch.rand(3000, generator=rng)[:, None] < 0.5, sure, prior.expand(3000, 3))
    assert usable(half, prior, classes) == pytest.approx(entropy / 2, abs=0.03)
    assert usable(sure.roll(1, 1), prior, classes) == 0.0  # always wrong: nothing, for it is not turned round


@pytest.mark.parametrize("norm", [False, True], ids=["plain", "batch-norm"])
@pytest.mark.parametrize(
    ("algorithm", "moving"), [(1, "filter provider attackers"), (2, "filter attackers"), (3, "filter")]
)
def test_an_algorithm_changes_the_networks_that_it_may(algorithm: int, moving: str, *, norm: bool) -> None:
    given = rows(200)
    playing = players(given, norm=norm)
    before = {name: state(part).clone() for name, part in playing.named_children()}
    play(playing, given, [0.5], replace(QUICK, algorithm=algorithm), 0)
    moved = {name for name, part in playing.named_children() if not torch.equal(state(part), before[name])}
    assert moved == set(moving.split())


def test_a_frozen_first_filter_that_draws_stays_and_is_drawn_anew_from_the_seed() -> None:
    given = rows(200)
    ends = []
    for _ in range(2):
        torch.rand(3)  # the global generator is somewhere else
        first = LinearFilter(2, 0.3)
        playing = players(given, Staged(first, DenseFilter(2, 8)))
        with torch.random.fork_rng():
            torch.manual_seed(1)
            for weight in playing.filter.second.parameters():  # type: ignore[union-attr]
                nn.init.normal_(weight, std=0.1)
        before = state(first).clone()
        play(playing, given, [0.5], QUICK, 0)
        assert torch.equal(state(first), before)
        ends.append(state(playing))
    assert torch.equal(*ends)


RULES = Rules(steps=150, batch=64, check_every=50, refresh=100, learning_rate=0.03, adversary_rate=0.02)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_game_sees_the_secret_go_and_weakens_it_far_more_than_the_utility(classes: int) -> None:
    """Independent labels, so both can be had. It need not be gone: what one class moves was .6 to 4.7 times its noise
    with three seeds (two classes), while the game saw next to nothing. Its own estimate is no evidence of secrecy."""
    given = rows(900, classes=classes)
    playing = players(given, LinearFilter(2, 0.3), norm=True)
    nothing = play(copy.deepcopy(playing), given, [0.0], replace(RULES, steps=50), 0)[-1]
    best = min(play(playing, given, [0.8], RULES, 0), key=lambda point: point.loss)
    assert nothing.secret > 0.5 * math.log(classes)
    assert best.secret < 0.25 * nothing.secret
    assert best.lost < 0.4 * math.log(classes)
    assert signal(playing, 1) < 0.1 * signal(playing, 0)


def signal(playing: Players, place: int) -> float:
    """What one class more moves a number, over its noise."""
    weights, noise = (getattr(playing.filter, name).weight.detach() for name in ("of_rows", "of_noise"))
    return float(weights[place, place].abs() / noise[place].norm())


def test_readers_that_do_not_normalise_are_fooled_by_making_it_small() -> None:
    """Then nothing is hidden: noise that is smaller still leaves the secret as clear as before."""
    given = rows(900, classes=4)
    playing = players(given, LinearFilter(2, 0.3))
    assert min(play(playing, given, [0.8], RULES, 0), key=lambda point: point.loss).secret < 0.1
    assert signal(playing, 1) > 3


def test_two_secrets_are_both_hidden() -> None:
    given = rows(900, secrets=2)
    playing = players(given, LinearFilter(3, 0.3), norm=True)
    start = play(copy.deepcopy(playing), given, [0.0], replace(RULES, steps=50), 0)[-1].secret
    assert start > 1.0  # of 2 ln 2 = 1.39
    points = play(playing, given, [0.8], RULES, 0)
    assert min(points, key=lambda point: point.loss).secret < 0.3 * start


@pytest.mark.parametrize(("steps", "every", "killed"), [(150, 50, [120]), (100, 40, [199, 101]), (60, 20, [110])])
def test_killed_anywhere_it_ends_with_the_same_bits(steps: int, every: int, killed: list[int], tmp_path: Path) -> None:
    """Within a stage, right after the first step of a stage, between stages; of two alphas."""

    class KilledError(Exception):
        pass

    given = rows(100)
    rules = replace(QUICK, steps=steps, check_every=every, batch=16, adversary_steps=1, refresh=2)
    alphas = [0.2, 0.8]
    whole = players(given, norm=True)
    expected = play(whole, given, alphas, rules, 3)
    path = tmp_path / "game"
    for at in killed:

        def kill(done: float, at: int = at) -> None:
            if done * 2 * steps > at:
                raise KilledError

        with pytest.raises(KilledError):
            play(players(given, norm=True), given, alphas, rules, 3, progress=kill, checkpoint=path)
    assert path.exists()
    resumed = players(given, norm=True)
    steps_left: list[float] = []
    found = play(resumed, given, alphas, rules, 3, progress=steps_left.append, checkpoint=path)
    assert len(steps_left) == 2 * steps - 100
    assert found == expected
    assert torch.equal(state(resumed), state(whole))


class Breaks(LinearFilter):
    """Loses everything once it has moved."""

    def run(self, rows: Tensor, noise: Tensor) -> Tensor:
        whole = float((self.of_rows.weight.detach() - torch.eye(rows.shape[1])).abs().max()) < 0.3
        return super().run(rows, noise) * float(whole)


def test_the_best_filter_is_kept_when_it_gets_worse() -> None:
    """A huge rate: after some steps all is lost that the provider could read."""
    given = rows(300)
    playing = players(given)
    play(playing, given, [0.0], replace(RULES, steps=60, check_every=60), 0)  # the provider can read now
    playing.filter = Breaks(2, 0.3)
    rules = replace(QUICK, steps=12, check_every=1, refresh=0, algorithm=3, learning_rate=0.1)
    points = play(playing, given, [0.5], rules, 0)
    best = min(points, key=lambda point: point.loss)
    assert points[-1].loss > 2 * best.loss
    kept = play(playing, given, [0.5], replace(rules, steps=1, learning_rate=1e-9), 0)[0]
    assert kept.loss == pytest.approx(best.loss, rel=1e-3)


def test_a_climb_starts_where_the_alpha_before_ended() -> None:
    given = rows(200)
    alone, climbed = players(given), players(given)
    first = play(alone, given, [0.2], QUICK, 0)
    both = play(climbed, given, [0.2, 0.8], replace(QUICK), 0)
    assert [point.alpha for point in both] == [0.2, 0.2, 0.8, 0.8]
    assert [point.step for point in both] == [3, 6, 9, 12]
    assert both[:2] == first
    frozen = replace(QUICK, learning_rate=1e-12)
    moved, still = players(given), players(given)
    play(moved, given, [0.2], QUICK, 0)
    ended = state(moved.filter).clone()
    play(moved, given, [0.8], frozen, 0)
    assert torch.allclose(state(moved.filter), ended, atol=1e-6)
    play(still, given, [0.8], frozen, 0)
    assert not torch.allclose(state(still.filter), ended, atol=1e-3)


def test_the_fixed_attacker_is_fooled_and_the_one_who_starts_anew_is_not() -> None:
    """Algorithm 3 needs to move the secret where this one network does not look; another one learns to look there."""
    given = rows(900)
    playing = players(given, LinearFilter(2, 0.05), norm=True)
    play(playing, given, [0.0], replace(RULES, steps=60, check_every=60), 0)  # both can read rows near the raw ones
    fixed = min(play(playing, given, [1.0], replace(RULES, algorithm=3), 0), key=lambda point: point.loss)
    anew = replace(RULES, steps=1, refresh=300, learning_rate=1e-12)
    seen = play(playing, given, [0.0], anew, 0)[-1]
    assert seen.secret > fixed.secret + 0.25


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"algorithm": 4}, r"^algorithm=4 must be 1 \(all learn\), 2 \(fixed provider\) or 3 \(both fixed\)\.$"),
        ({"algorithm": "two"}, r"^algorithm='two' must be 1 "),
        ({"divergence": "reverse"}, r"^divergence='reverse' must be one of 'full', 'plug-in'\.$"),
        ({"steps": 0}, r"^steps=0 must be a whole number, 1 or above\.$"),
        ({"batch": 1}, r"^batch=1 must be a whole number, 2 or above\.$"),
        ({"refresh": -1}, r"^refresh=-1 must be a whole number, 0 or above\.$"),
        ({"learning_rate": 0.0}, r"^learning_rate=0\.0 must be a number above 0\.$"),
    ],
)
def test_rules_that_cannot_be_played_are_told(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Rules(**change)  # type: ignore[arg-type]


def test_what_cannot_be_played_is_told() -> None:
    with pytest.raises(InputError, match=r"^alpha=1\.5 must be a number in \[0, 1\]\.$"):
        play(players(rows(20)), rows(20), [0.2, 1.5], QUICK, 0)
    with pytest.raises(InputError, match=r"^a filter cannot be trained on 1 rows: one part is kept aside"):
        play(players(rows(1)), rows(1), [0.2], QUICK, 0)
    assert isinstance(play(players(rows(40)), rows(40), [0.2], QUICK, 0)[0], Point)
