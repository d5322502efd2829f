"""A learned filter that keeps what the target needs, and hides the secret labels."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, at_least, in_range, positive
from counterpoise.grid import DegreeKind
from counterpoise.interface import Images, Progress, Task, Trained
from counterpoise.mechanisms._opponents import OPPONENTS, opponents
from counterpoise.mechanisms.filtering import LEARNS, Players, Point, Rows, Rules, play
from counterpoise.mechanisms.filters import Filter, Staged, UNet
from counterpoise.record import Guarantee
from counterpoise.training import apply, derive, fit_classifier, generator, kept_aside

LEAST_OF_A_CLASS = 2


class Fixed:
    """A network from outside that stays as it is. Known by what it holds, so that another one is another training."""

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False).eval()

    def __repr__(self) -> str:
        digest = hashlib.sha256(str(self.model).encode())
        for name, value in sorted(self.model.state_dict().items()):
            digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
        return f"Fixed({digest.hexdigest()[:16]})"


@dataclass(frozen=True)
class Privatizer:
    """Trains a filter of images, Q(x, z), by `alpha` for the secret and 1 - alpha for the target.

    Bertran et al., "Learning data-derived privacy preserving representations from information metrics". The filter
    gives images of the same size, partly by chance, and the provider uses one network for raw and filtered ones. The
    secrets are the study's hidden label, and whatever other labels `secrets` names. `algorithm` 1 learns everything, 2
    keeps the provider's network (trained on raw images as the recipe says, or given) and 3 the attackers' too, which
    any fresh attacker then beats: measure with secret_advantage. `opponents`: whom the filter plays against, the
    study's network, and a linear one and one with a hidden layer on the pixels: what is hidden from the first alone is
    often plain to the others. `climb`: alphas to train at before, each from the filter of the one before; without them
    every alpha starts at a copy. `first`: a frozen filter that the images pass before.

    Nothing is proved: what is hidden is hidden from those who tried.
    """

    name: ClassVar[str] = "privatizer"
    kind: ClassVar[DegreeKind] = DegreeKind("alpha", "up", Decimal(0), Decimal(1))
    needs: ClassVar[frozenset[str]] = frozenset({"hidden"})
    privacy_gain: ClassVar[str] = "secret_privacy"
    utility_loss: ClassVar[str] = "accuracy_loss"
    alpha: Decimal
    algorithm: int = 1
    secrets: Sequence[str] = ()
    opponents: Sequence[str] = OPPONENTS
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
    width: int = 16
    noise: int = 8
    climb: Sequence[Decimal] = ()
    provider: Fixed | None = None
    attackers: Fixed | None = None
    first: Fixed | None = None
    trace: Callable[[tuple[Point, ...]], None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.kind.check(self.alpha)
        _check_lists(self.climb, self.secrets)
        for what, given in (("provider", self.provider), ("attackers", self.attackers), ("first", self.first)):
            if given is not None and not isinstance(given, Fixed):
                raise InputError(f"{what}={given!r} must be Fixed(network), which only Python can give.")
        if self.trace is not None and not callable(self.trace):
            raise InputError(f"trace={self.trace!r} must be a function, which only Python can give.")
        if isinstance(self.opponents, str) or not self.opponents or not set(self.opponents) <= set(OPPONENTS):
            raise InputError(f"opponents={self.opponents!r} must be a list of some of: {', '.join(OPPONENTS)}.")
        at_least(1, width=self.width)
        at_least(0, noise=self.noise)
        positive(learning_rate=self.learning_rate, adversary_rate=self.adversary_rate)
        self.rules  # noqa: B018 - checks the rest
        if self.provider is not None and LEARNS[self.algorithm][0]:
            raise InputError("provider is given and algorithm=1 would change it: set algorithm to 2 or 3.")
        if self.attackers is not None and LEARNS[self.algorithm][1]:
            raise InputError(f"attackers are given and algorithm={self.algorithm} would change them: set it to 3.")

    @property
    def rules(self) -> Rules:
        """How the game is played."""
        return Rules(
            self.algorithm,
            self.divergence,
            self.steps,
            self.batch,
            self.adversary_steps,
            float(self.learning_rate),
            float(self.adversary_rate),
            self.check_every,
            self.refresh,
            self.shift,
            self.flip,
        )

    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        """Nothing is proved; what could not be trained is refused here, before training."""
        for name in self.hides(task):
            _check_secret(name, task)
        sizes = {"provider": (self.provider, task.classes), "attackers": (self.attackers, sum(self._sizes(task)))}
        for what, (given, classes) in sizes.items():
            if given is not None:
                _check_outputs(what, given.model, task.train, (classes,), f"the labels have {classes} classes")
        if self.first is not None:
            _check_outputs("first", self.first.model, task.train, task.train.shape, "an image needs as many back")
        return ()

    def shortened(self, share: float) -> Privatizer:
        """As many checks, each after this share of the steps: for timing."""
        steps, every, refresh = (math.ceil(share * n) for n in (self.steps, self.check_every, self.refresh))
        return replace(self, steps=steps, check_every=every, refresh=refresh)

    def hides(self, task: Task) -> tuple[str, ...]:
        """The labels to hide, the study's hidden one first."""
        return tuple(dict.fromkeys((task.to_hide(self.name), *self.secrets)))

    def blank(self, task: Task) -> Trained:
        """The untrained network behind an untrained filter."""
        return Trained(self._provider(task, torch.Generator()), self._filter(task))

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """The provider's and the attackers' networks on raw images, for which a filter is a copy; then the game."""
        self.guarantees(task)
        seed = derive(rng.initial_seed(), self.name)
        shares = _shares(task.progress, (0.1, 0.1, 0.8))
        secrets = [task.train.labels[name] for name in self.hides(task)]
        provider = self._provider(task, generator(seed, "provider"))
        if self.provider is None:
            _on_raw(provider, task, task.train.labels[task.target], seed, "provider", shares[0])
        sizes = self._sizes(task)
        attackers, newcomers = (self._attackers(task, sizes, derive(seed, part)) for part in ("game", "judge"))
        if self.attackers is None:
            for purpose, attacker in attackers.items():
                _on_raw(attacker, task, torch.stack(secrets, 1), seed, purpose, shares[1], sizes)
        players = Players(self._filter(task, seed), provider, *attackers.values())
        points = play(
            players,
            Rows(task.train.pixels, task.train.labels[task.target], tuple(secrets), sizes),
            [float(alpha) for alpha in (*self.climb, self.alpha)],
            self.rules,
            derive(seed, "game"),
            newcomers=list(newcomers.values()),
            progress=shares[2],
            checkpoint=_beside(task.checkpoint, "game"),
        )
        for purpose in ("provider", *attackers, "game"):
            if path := _beside(task.checkpoint, purpose):
                path.unlink(missing_ok=True)
        if self.trace is not None:
            self.trace(points)
        kept = min((point for point in points if point.alpha == points[-1].alpha), key=lambda point: point.loss)
        return Trained(
            players.provider.eval(),
            players.filter.with_seed(derive(seed, "released")).eval(),
            facts={
                "game_secret": kept.secret,
                "game_lost": kept.lost,
                "game_loss": kept.loss,
                "climbed": len(self.climb),
            },
            adversary=_FirstHead(players.attackers[0], sizes[0]).eval(),
        )

    def _sizes(self, task: Task) -> tuple[int, ...]:
        return tuple(len(task.train.classes[name]) for name in self.hides(task))

    def _provider(self, task: Task, rng: torch.Generator) -> nn.Module:
        return task.new_model(rng) if self.provider is None else copy.deepcopy(self.provider.model)

    def _attackers(self, task: Task, sizes: tuple[int, ...], seed: int) -> dict[str, nn.Module]:
        """Those given, or untrained ones; each with a head for each secret."""
        if self.attackers is not None:
            return {"given": copy.deepcopy(self.attackers.model)}
        return opponents(self.opponents, task, sum(sizes), seed)

    def _filter(self, task: Task, seed: int = 0) -> Filter:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(derive(seed, "filter"))
            learned = UNet(task.train.shape, self.width, self.noise)
        if self.first is None:
            return learned
        staged = Staged(copy.deepcopy(self.first.model), learned)
        staged.fresh()  # what is hidden by noise that never changes would be learned by heart
        return staged


class _FirstHead(nn.Module):
    """An attacker's logits for the first secret: the study's hidden label."""

    def __init__(self, attacker: nn.Module, classes: int) -> None:
        super().__init__()
        self.attacker, self.classes = attacker, classes

    def forward(self, rows: Tensor) -> Tensor:
        """The logits."""
        logits: Tensor = self.attacker(rows)[:, : self.classes]
        return logits


def _on_raw(
    network: nn.Module,
    task: Task,
    labels: Tensor,
    seed: int,
    purpose: str,
    progress: Progress,
    sizes: tuple[int, ...] | None = None,
) -> None:
    """Ordinary training on raw images as the recipe says; with sizes, of a head for each column of labels."""

    def of_heads(logits: Tensor, classes: Tensor) -> Tensor:
        heads = zip(torch.split(logits, list(sizes or ()), 1), classes.unbind(1), strict=True)
        return torch.stack([nn.functional.cross_entropy(head, column) for head, column in heads]).sum()

    learned, _ = kept_aside(len(task.train))  # what is kept aside judges the filter, and chooses its attackers
    fit_classifier(
        network,
        task.train.pixels[learned],
        labels[learned],
        task.recipe,
        derive(seed, purpose),
        loss=nn.functional.cross_entropy if sizes is None else of_heads,
        progress=progress,
        checkpoint=_beside(task.checkpoint, purpose),
    )


def _check_lists(climb: object, secrets: object) -> None:
    """A study file can hold anything in their places."""
    if isinstance(climb, str) or not isinstance(climb, Sequence):
        raise InputError(f"climb={climb!r} must be a list of alphas, such as [0.2, 0.5].")
    for alpha in climb:
        in_range(0, 1, climb=alpha)
    if isinstance(secrets, str) or not isinstance(secrets, Sequence):
        raise InputError(f"secrets={secrets!r} must be a list of labels, such as ['{secrets}'].")
    for name in secrets:
        if not isinstance(name, str):
            raise InputError(f"secrets={list(secrets)!r} must be a list of labels, and {name!r} is no text.")


def _check_secret(name: str, task: Task) -> None:
    if name not in task.train.labels:
        raise InputError(f"secrets: {name!r} must be one of the images' labels: {', '.join(task.train.labels)}.")
    if name == task.target:
        raise InputError(
            f"the secret {name!r} is the target too: what is to be kept cannot be hidden; name another label."
        )
    for label in (name, task.target):
        counts = torch.bincount(task.train.labels[label], minlength=len(task.train.classes[label]))
        if int((counts > 0).sum()) < 2:
            raise InputError(f"the label {label!r} has one class only in {task.train.name!r}: nothing tells it apart.")
        few = int(counts.argmin())
        if int(counts[few]) < LEAST_OF_A_CLASS:
            raise InputError(
                f"the label {label!r} has {int(counts[few])} training images of class"
                f" {task.train.classes[label][few]!r}, and a filter needs {LEAST_OF_A_CLASS}: leave the class out."
            )


def _check_outputs(what: str, model: nn.Module, images: Images, wanted: tuple[int, ...], why: str) -> None:
    """A fixed network must say as many numbers as there are classes, and a first filter must give images."""
    try:
        outputs = tuple(apply(model, torch.zeros(1, *images.shape)).shape)
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as problem:
        told = " ".join(str(problem).split())
        raise InputError(f"{what}: the fixed network cannot take images of {list(images.shape)} ({told}).") from None
    if outputs != (1, *wanted):
        raise InputError(f"{what}: the fixed network gives {list(outputs[1:])} numbers an image, and {why}.")


def _beside(path: Path | None, purpose: str) -> Path | None:
    """A checkpoint of a stage's own."""
    return None if path is None else path.with_name(f"{path.name}.{purpose}")


def _shares(progress: Progress, widths: tuple[float, ...]) -> list[Progress]:
    """One progress for each stage, of its share of the whole."""

    def part(start: float, width: float) -> Progress:
        return lambda done: progress(min(1.0, start + width * done))

    return [part(sum(widths[:index]), width) for index, width in enumerate(widths)]
