"""The baseline: it learns, it is fixed by its seed, and it claims nothing."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Mechanism, Recipe, Task
from counterpoise.mechanisms import BUILTIN
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.training import apply, generator


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = Digits().load()
    recipe = Recipe(epochs=20, batch=32, learning_rate=0.1, momentum=0.9)
    return Task(train, test, "digit", MODELS["small-cnn"], recipe)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_every_builtin_is_a_mechanism_under_its_own_name() -> None:
    for name, kind in BUILTIN.items():
        assert kind.name == name
        degree = kind.kind.high if kind.kind.high is not None else Decimal(1)
        made = kind(**{kind.kind.name: degree})
        assert isinstance(made, Mechanism)
        assert getattr(made, kind.kind.name) == degree


def test_it_reads_the_digits(task: Task) -> None:
    trained = Plain().train(task, generator(0))
    accuracy = (apply(trained.model, task.test.pixels).argmax(1) == task.test.labels["digit"]).float().mean()
    assert float(accuracy) >= 0.95
    assert trained.guarantees == ()
    assert torch.equal(trained.release(task.test.pixels), task.test.pixels)


def test_the_seed_decides_everything(task: Task) -> None:
    short = replace(task, recipe=replace(task.recipe, epochs=1))
    first = weights(Plain().train(short, generator(1)).model)
    assert torch.equal(weights(Plain().train(short, generator(1)).model), first)
    assert not torch.equal(weights(Plain().train(short, generator(2)).model), first)


def test_progress_rises_to_one_and_a_finished_checkpoint_is_not_needed(task: Task, tmp_path: Path) -> None:
    shares: list[float] = []
    short = replace(task, recipe=replace(task.recipe, epochs=3), progress=shares.append)
    Plain().train(replace(short, checkpoint=tmp_path / "saved"), generator(1))
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(shares) == 3 * 40


def test_blank_has_the_architecture_without_looking_at_pixels(task: Task) -> None:
    dark = replace(task, train=replace(task.train, pixels=torch.zeros_like(task.train.pixels)))
    blank, trained = Plain().blank(dark), Plain().train(replace(task, recipe=Recipe(epochs=1)), generator(0))
    blank.model.load_state_dict(trained.model.state_dict())
    assert torch.equal(apply(blank.model, task.test.pixels), apply(trained.model, task.test.pixels))


def test_the_only_degree_is_zero() -> None:
    assert Plain(protection=Decimal(0)) == Plain()
    with pytest.raises(InputError, match=r"^protection=1 must be at least 0 and at most 0\.$"):
        Plain(protection=Decimal(1))
