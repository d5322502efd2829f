"""The privatizer on images: alphas, algorithms, secrets, climbing, resuming; and what is refused before training."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoise import cli
from counterpoise._check import InputError
from counterpoise.datasets.dots import Dots
from counterpoise.interface import Images, Recipe, Task, Trained
from counterpoise.mechanisms._opponents import Standardised
from counterpoise.mechanisms.filtering import Point, play
from counterpoise.mechanisms.filters import UNet
from counterpoise.mechanisms.privatizer import Fixed, Privatizer
from counterpoise.models import BUILTIN as MODELS
from counterpoise.plan import preview
from counterpoise.prepare import prepare
from counterpoise.study import parse_study
from counterpoise.testing import check_mechanism
from counterpoise.training import apply, fit_classifier, generator, kept_aside, one_thread

ALPHA = Decimal("0.9")
TINY = Privatizer(ALPHA, steps=4, batch=32, adversary_steps=1, check_every=2, refresh=2, width=4, noise=2)


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def with_third(images: Images) -> Images:
    """Another label: the dot's row within its quarter, of three."""
    row = images.evidence.float().amax(2).argmax(1) % 4  # type: ignore[union-attr]
    return replace(
        images, labels={**images.labels, "row": row}, classes={**images.classes, "row": ("top", "middle", "bottom")}
    )


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = (with_third(part) for part in Dots(train=500, test=200).load())
    recipe = Recipe(epochs=8, batch=64, learning_rate=0.005, optimiser="adam")
    return Task(train, test, "position", MODELS["mlp"], recipe, hidden="secret")


def state(module: nn.Module) -> Tensor:
    return torch.cat([value.double().flatten() for value in module.state_dict().values()])


def told(trained: Trained, task: Task) -> float:
    """How often a network that learns from released images is right about the secret; every pixel is standardised."""
    released = [apply(trained.release, part.pixels) for part in (task.train, task.test)]
    mean, deviation = released[0].mean(0), released[0].std(0) + 1e-6
    learn, ask = (0.5 + 0.25 * (pixels - mean) / deviation for pixels in released)
    reader = MODELS["mlp"](task.train.shape, 2, generator(5))
    recipe = Recipe(epochs=40, batch=64, learning_rate=0.005, optimiser="adam", weight_decay=1e-3)
    fit_classifier(reader, learn, task.train.labels["secret"], recipe, 5)
    return float((apply(reader, ask).argmax(1) == task.test.labels["secret"]).double().mean())


@torch.no_grad()
def test_standardised_readers_see_what_was_made_small(task: Task) -> None:
    faint = 0.5 + 1e-3 * (task.train.pixels - 0.5)
    layer = Standardised(task.train.shape).train()
    for index in range(200):
        layer(faint[index : index + 50])
    seen = layer.eval()(faint)
    assert seen.mean().item() == pytest.approx(0, abs=0.1)
    assert seen.std().item() == pytest.approx(1, abs=0.25)
    before = state(layer).clone()
    layer(task.train.pixels)  # asked, not learned from
    assert torch.equal(state(layer), before)
    assert bool(layer.train()(torch.zeros(1, 1, 8, 8)).isfinite().all())  # one row, and pixels that never change


def kept(trained: Trained, task: Task) -> float:
    logits = apply(trained.model, apply(trained.release, task.test.pixels))
    return float((logits.argmax(1) == task.test.labels[task.target]).double().mean())


def test_it_keeps_what_a_mechanism_promises() -> None:
    check_mechanism(TINY)


def test_also_behind_a_first_filter_that_draws() -> None:
    first = UNet((1, 8, 8), 4, 2)
    nn.init.normal_(first.last.weight, std=0.5)
    check_mechanism(replace(TINY, first=Fixed(first)))


def test_alpha_0_keeps_everything_and_alpha_1_hides(task: Task) -> None:
    game = Privatizer(Decimal(0), steps=160, check_every=160, refresh=80, width=8, adversary_rate=2e-3)
    open_, closed = (replace(game, alpha=Decimal(alpha)).train(task, generator(1)) for alpha in (0, 1))
    assert kept(open_, task) > 0.95
    assert told(open_, task) > 0.9  # a copy with some noise
    assert told(closed, task) < 0.68
    for trained in (open_, closed):
        assert trained.guarantees == ()
        assert set(trained.facts) == {"game_secret", "game_lost", "game_loss", "climbed"}
    assert open_.facts["game_secret"] > 0.5 > 0.1 > closed.facts["game_secret"]


@pytest.mark.parametrize("secrets", [("row",), ("row", "secret")], ids=["one more", "the hidden one named too"])
def test_several_secrets_have_a_head_each(task: Task, secrets: tuple[str, ...]) -> None:
    mechanism = replace(TINY, secrets=secrets)
    assert mechanism.hides(task) == ("secret", "row")
    seen: list[tuple[Point, ...]] = []
    trained = replace(mechanism, trace=seen.append).train(task, generator(0))
    assert trained.adversary is not None
    assert apply(trained.adversary, task.test.pixels).shape == (200, 2)  # the first secret's head alone
    assert apply(trained.adversary.attacker, task.test.pixels).shape == (200, 5)  # type: ignore[arg-type]
    assert [(point.step, point.alpha) for point in seen[0]] == [(2, 0.9), (4, 0.9)]


def test_the_target_s_rows_are_hidden_by_noise_that_is_drawn_anew_elsewhere(task: Task) -> None:
    """Seeded inside a study, so that measures agree; the seed is not the training's."""
    one, two = (TINY.train(task, generator(seed)).release for seed in (0, 1))
    assert torch.equal(apply(one, task.test.pixels), apply(one, task.test.pixels))
    assert int(one.seed) != int(two.seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", [2, 3])
def test_a_fixed_network_stays_as_it_was(task: Task, algorithm: int) -> None:
    provider, attackers = MODELS["mlp"]((1, 8, 8), 4, generator(8)), MODELS["mlp"]((1, 8, 8), 2, generator(9))
    fixed = replace(TINY, algorithm=algorithm, provider=Fixed(provider))
    if algorithm == 3:
        fixed = replace(fixed, attackers=Fixed(attackers))
    trained = fixed.train(task, generator(0))
    assert torch.equal(state(trained.model), state(provider))
    inside = trained.adversary.attacker  # type: ignore[union-attr]
    if algorithm == 3:
        assert torch.equal(state(inside), state(attackers))  # type: ignore[arg-type]
    else:
        learned = replace(fixed, steps=1).train(task, generator(0)).adversary.attacker  # type: ignore[union-attr]
        assert not torch.equal(state(inside), state(learned))  # type: ignore[arg-type]


def test_algorithm_3_is_judged_by_the_attackers_it_fixes(task: Task) -> None:
    """Newcomers learn nothing there: they would see nothing, and call every filter private."""
    seen: list[tuple[Point, ...]] = []
    open_ = replace(TINY, algorithm=3, alpha=Decimal(0), trace=seen.append).train(task, generator(0))
    assert min(point.secret for point in seen[0]) > 0.3
    assert open_.adversary is not None
    right = apply(open_.adversary, apply(open_.release, task.test.pixels)).argmax(1) == task.test.labels["secret"]
    assert float(right.float().mean()) > 0.8


def test_without_one_given_algorithm_2_fixes_the_one_that_learned_on_raw_images(task: Task) -> None:
    """The recipe's training, on what is not kept aside, which judges the filter."""
    two, three = (replace(TINY, algorithm=n).train(task, generator(0)).model for n in (2, 3))
    one = TINY.train(task, generator(0)).model
    assert torch.equal(state(two), state(three))
    assert not torch.equal(state(two), state(one))
    right = apply(two, task.test.pixels).argmax(1) == task.test.labels["position"]
    assert float(right.double().mean()) > 0.9
    learned, aside = kept_aside(500)
    assert (len(learned), len(aside)) == (400, 100)
    other = task.train.pixels.clone()
    other[aside] = 1 - other[aside]
    changed = replace(task, train=replace(task.train, pixels=other))
    again = replace(TINY, algorithm=2).train(changed, generator(0)).model
    assert torch.equal(state(again), state(two))


def test_the_fixed_attacker_flatters_algorithm_3(task: Task) -> None:
    """A network that learned on raw images, and that the filter knows."""
    known = MODELS["mlp"](task.train.shape, 2, generator(9))
    fit_classifier(known, task.train.pixels, task.train.labels["secret"], task.recipe, 9)
    game = replace(TINY, alpha=Decimal(1), algorithm=3, attackers=Fixed(known), learning_rate=3e-3, width=8)
    trained = replace(game, steps=60, check_every=60).train(task, generator(0))
    released = apply(trained.release, task.test.pixels)
    fixed = apply(trained.adversary, released).argmax(1) == task.test.labels["secret"]  # type: ignore[arg-type]
    assert float(fixed.double().mean()) < 0.7
    assert told(trained, task) > float(fixed.double().mean()) + 0.15


def test_batch_normalised_readers_stay_fixed_too(task: Task) -> None:
    def normalised(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
        inner = MODELS["mlp"](shape, classes, rng)
        return nn.Sequential(nn.BatchNorm2d(shape[0]), inner)

    batch = replace(task, make_model=normalised)
    provider = normalised((1, 8, 8), 4, generator(8))
    trained = replace(TINY, algorithm=2, provider=Fixed(provider)).train(batch, generator(0))
    assert torch.equal(state(trained.model), state(provider))
    moved = TINY.train(batch, generator(0))
    assert not moved.model.training
    alone, together = (apply(moved.model, task.test.pixels[:n])[0] for n in (1, 200))
    assert torch.allclose(alone, together, atol=1e-5)


def test_climbing_goes_through_the_alphas_in_order(task: Task) -> None:
    seen: list[tuple[Point, ...]] = []
    climbing = replace(TINY, climb=(Decimal("0.1"), Decimal("0.5")), trace=seen.append)
    climbed, alone = climbing.train(task, generator(0)), TINY.train(task, generator(0))
    assert [point.alpha for point in seen[0]] == [0.1, 0.1, 0.5, 0.5, 0.9, 0.9]
    assert not torch.equal(state(climbed.release), state(alone.release))
    last = min(seen[0][4:], key=lambda point: point.loss)
    assert climbed.facts["game_loss"] == last.loss
    assert (climbed.facts["climbed"], alone.facts["climbed"]) == (2, 0)


@pytest.mark.parametrize("share", [0.05, 0.15, 0.6, 0.95], ids=["provider", "attackers", "game", "second alpha"])
def test_killed_in_any_stage_it_ends_with_the_same_bits(task: Task, share: float, tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def kill(done: float) -> None:
        if done > share:
            raise KilledError

    long = replace(task, recipe=replace(task.recipe, batch=20, epochs=6))  # 120 steps: one checkpoint a stage
    game = replace(TINY, steps=110, check_every=110, climb=(Decimal("0.2"),))
    path = tmp_path / "saved"
    with pytest.raises(KilledError):
        game.train(replace(long, progress=kill, checkpoint=path), generator(4))
    assert list(tmp_path.iterdir()) or share == 0.05
    resumed = game.train(replace(long, checkpoint=path), generator(4))
    assert not list(tmp_path.iterdir())
    key = ("whole", game.steps)
    if key not in WHOLE:
        WHOLE[key] = game.train(long, generator(4))
    for part in ("model", "release"):
        assert torch.equal(state(getattr(resumed, part)), state(getattr(WHOLE[key], part)))


WHOLE: dict[tuple[str, int], Trained] = {}
"""Trained once for all kills."""


def test_a_fixed_network_is_known_by_what_it_holds() -> None:
    one, same, other = (Fixed(MODELS["mlp"]((1, 8, 8), 2, generator(seed))) for seed in (0, 0, 1))
    assert repr(one) == repr(same) != repr(other)
    assert re.fullmatch(r"Fixed\([0-9a-f]{16}\)", repr(one))


def few(task: Task, label: str, counts: dict[int, int]) -> Task:
    """As many training images of some classes of a label."""
    values = task.train.labels[label]
    chosen = [torch.nonzero(values == c).flatten()[: counts.get(c, 500)] for c in range(len(task.train.classes[label]))]
    return replace(task, train=task.train.take(torch.cat(chosen)))


def mlp(classes: int, shape: tuple[int, int, int] = (1, 8, 8)) -> Fixed:
    return Fixed(MODELS["mlp"](shape, classes, generator(0)))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"alpha": Decimal("1.2")}, r"^alpha=1\.2 must"),
        ({"alpha": Decimal("-0.1")}, r"^alpha=-0\.1 must"),
        ({"climb": (Decimal(2),)}, r"^climb=Decimal\('2'\) must be a number in \[0, 1\]\.$"),
        ({"climb": "0.5"}, r"^climb='0\.5' must be a list of alphas, such as \[0\.2, 0\.5\]\.$"),
        ({"climb": 0.5}, r"^climb=0\.5 must be a list of alphas"),
        ({"secrets": "row"}, r"^secrets='row' must be a list of labels, such as \['row'\]\.$"),
        ({"secrets": 3}, r"^secrets=3 must be a list of labels"),
        ({"secrets": ["row", 3]}, r"^secrets=\['row', 3\] must be a list of labels, and 3 is no text\.$"),
        ({"algorithm": 4}, r"^algorithm=4 must be 1 \(all learn\), 2 \(fixed provider\) or 3 \(both fixed\)\.$"),
        ({"divergence": "reverse"}, r"^divergence='reverse' must be one of 'full', 'plug-in'\.$"),
        ({"width": 0}, r"^width=0 must be a whole number, 1 or above\.$"),
        ({"noise": -1}, r"^noise=-1 must be a whole number, 0 or above\.$"),
        ({"learning_rate": "fast"}, r"^learning_rate='fast' must be a number above 0\.$"),
        ({"provider": "mine"}, r"^provider='mine' must be Fixed\(network\), which only Python can give\.$"),
        ({"trace": "log"}, r"^trace='log' must be a function"),
        ({"provider": mlp(4)}, r"^provider is given and algorithm=1 would change it: set algorithm to 2 or 3\.$"),
        ({"algorithm": 2, "attackers": mlp(2)}, r"^attackers are given and algorithm=2 would change them: set it to 3"),
    ],
)
def test_wrong_settings_are_one_sentence(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        replace(TINY, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "given", "complaint"),
    [
        ({"secrets": ["position"]}, {}, r"^the secret 'position' is the target too: what is to be kept cannot"),
        ({"secrets": ["age"]}, {}, r"^secrets: 'age' must be one of the images' labels: position, secret, row\.$"),
        ({}, {"secret": {1: 0}}, r"^the label 'secret' has one class only in 'dots': nothing tells it apart\.$"),
        ({}, {"secret": {1: 1}}, r"^the label 'secret' has 1 training images of class 'bright', and a filter needs 2"),
        ({"secrets": ["row"]}, {"row": {2: 1}}, r"^the label 'row' has 1 training images of class 'bottom'"),
        ({}, {"position": {0: 1}}, r"^the label 'position' has 1 training images of class 'upper left'"),
        (
            {"algorithm": 2, "provider": mlp(3)}, {},
            r"^provider: the fixed network gives \[3\] numbers an image, and the labels have 4 classes\.$",
        ),
        ({"algorithm": 3, "attackers": mlp(3)}, {}, r"^attackers: the fixed network gives \[3\] numbers an image"),
        (
            {"algorithm": 2, "provider": mlp(4, (3, 9, 9))}, {},
            r"^provider: the fixed network cannot take images of \[1, 8, 8\] \(",
        ),
        ({"first": mlp(4)}, {}, r"^first: the fixed network gives \[4\] numbers an image, and an image needs as many"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_told_before_training(
    task: Task, change: dict[str, object], given: dict[str, dict[int, int]], complaint: str
) -> None:
    for label, counts in given.items():
        task = few(task, label, counts)
    with pytest.raises(InputError, match=complaint):
        replace(TINY, **change).guarantees(task)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=complaint):
        replace(TINY, **change).train(task, generator(0))  # type: ignore[arg-type]


def test_two_images_of_a_class_are_enough(task: Task) -> None:
    assert TINY.guarantees(few(task, "secret", {1: 2})) == ()


STUDY = """
name = "told"
target = "position"
hidden = "secret"
data = {{ part = "dots", size = {size} }}
model = {{ part = "{model}" }}
explainer = {{ part = "smoothgrad", degrees = [0], samples = 2 }}
mechanisms = [{{ part = "privatizer", degrees = {degrees}, {options} }}]
parties = [{{ name = "a" }}]
"""


def test_a_plan_times_a_share_of_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Privatizer(ALPHA, steps=600, check_every=100, refresh=200)
    brief = whole.shortened(0.02)
    assert (brief.steps, brief.check_every, brief.refresh) == (12, 2, 4)
    assert replace(brief, steps=600, check_every=100, refresh=200) == whole
    told = parse_study(tomllib.loads(STUDY.format(options="width = 4", degrees="[0.5]", size=8, model="mlp")))
    played: list[int] = []

    def counted(*given: Any, **named: Any) -> tuple[Point, ...]:
        played.append(given[3].steps)
        return play(*given, **named)

    monkeypatch.setattr("counterpoise.mechanisms.privatizer.play", counted)
    planned = preview(prepare(told))
    assert played == [12, 12, 12, 24]
    assert 0.5 < planned.seconds < 500


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command says of a study, which trains nothing."""

    def called(
        options: str = "width = 4",
        degrees: str = "[0.5]",
        size: int = 8,
        model: str = "mlp",
        old: str = "",
        new: str = "",
    ) -> str:
        path = tmp_path / "told.toml"
        path.write_text(STUDY.format(options=options, degrees=degrees, size=size, model=model).replace(old, new))
        monkeypatch.setattr("sys.argv", ["counterpoise", "run", str(path), "--out", str(tmp_path / "run")])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 2
        assert not (tmp_path / "run" / "records").exists()
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert said.startswith(f"counterpoise: {path}: ")
        return said.split("told.toml: ")[1]

    return called


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"old": 'hidden = "secret"', "new": 'hidden = "position"'}, "hidden='position' must be one of the labels of"),
        ({"options": 'secrets = ["position"]'}, "mechanism 'privatizer' for party 'a': the secret 'position' is the"),
        ({"options": 'secrets = ["age"]'}, "mechanism 'privatizer' for party 'a': secrets: 'age' must be one of the"),
        ({"options": 'secrets = "row"'}, "mechanism 'privatizer': secrets='row' must be a list of labels"),
        ({"options": "algorithm = 4"}, "mechanism 'privatizer': algorithm=4 must be 1 "),
        ({"options": 'divergence = "half"'}, "mechanism 'privatizer': divergence='half' must be one of"),
        ({"options": 'provider = "mine.pt"'}, "mechanism 'privatizer': provider='mine.pt' must be Fixed(network)"),
        ({"options": "climb = [7]"}, "mechanism 'privatizer': climb=7 must be a number in [0, 1]"),
        ({"options": "strength = 7"}, "mechanism 'privatizer': got an unexpected keyword argument 'strength'"),
        ({"degrees": "[1.5]"}, "mechanism 'privatizer': alpha=1.5 must"),
        ({"model": "tanh-cnn"}, "model 'tanh-cnn': tanh-cnn needs images of at least 16 x 16 pixels, not 8 x 8"),
    ],
)
def test_a_study_file_is_told_with_file_and_key(
    plan: Callable[..., str], given: dict[str, str], complaint: str
) -> None:
    assert plan(**given).startswith(complaint)
