"""Training by a plan: killed and resumed, with empty batches, in every layout, on the wrong number of images."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Recipe
from counterpoise.models.small_cnn import small_cnn
from counterpoise.privacy import Flat, Gaussian, Plan, Poisson, Schedule, Shuffled, clipped_gradient, fit
from counterpoise.training import channels_last

PLAN = Plan(Gaussian(1.0), Poisson(60, 12), steps=40, delta=1e-5)
RECIPE = Recipe(learning_rate=0.5, momentum=0.5)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def data(n: int = 60, channels: int = 1) -> tuple[Tensor, Tensor]:
    return torch.rand(n, channels, 8, 8, generator=rng(1)), torch.arange(n) % 10


def trained(plan: Plan, recipe: Recipe = RECIPE, schedule: Schedule | None = None, seed: int = 0) -> dict[str, Tensor]:
    model = small_cnn((1, 8, 8), 10, rng())
    fit(model, *data(plan.sampling.n), plan, recipe, rng(seed), schedule=schedule)
    return dict(model.state_dict())


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


SLOW = """
import sys, time
sys.path.insert(0, {folder!r})
from pathlib import Path
from test_fitting import *
torch.set_num_threads(1)
def wait(done):
    print(done, flush=True)
    time.sleep(0.05)
trained(PLAN, Recipe(learning_rate=0.05, optimiser={optimiser!r}), Schedule(wait, Path({checkpoint!r}), every=3))
"""


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_killed_between_steps_and_resumed_is_bit_for_bit_the_same(tmp_path: Path, optimiser: str) -> None:
    checkpoint = tmp_path / "half.safetensors"
    code = SLOW.format(folder=str(Path(__file__).parent), optimiser=optimiser, checkpoint=str(checkpoint))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if float(line) > 0.4:
            break
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    steps: list[float] = []
    recipe = Recipe(learning_rate=0.05, optimiser=optimiser)  # type: ignore[arg-type]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        resumed = trained(PLAN, recipe, Schedule(steps.append, checkpoint))
        assert 0 < len(steps) < PLAN.steps
        assert same(resumed, trained(PLAN, recipe))
        assert not same(resumed, trained(PLAN, recipe, seed=1))
    finally:
        torch.set_num_threads(threads)


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "half.safetensors"
    trained(PLAN, schedule=Schedule(checkpoint=checkpoint, every=10))
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    with pytest.raises(InputError, match="this checkpoint does not fit the training"):
        fit(model, *data(), PLAN, RECIPE, rng(), schedule=Schedule(checkpoint=checkpoint))


def test_empty_batches_still_release_noise() -> None:
    """An expected batch of one in sixty images is often empty; such a step must move the weights like any other."""
    plan = replace(PLAN, sampling=Poisson(60, 1), steps=20)
    state = rng(7)
    assert any(len(plan.sampling.draw(i, state)) == 0 for i in range(20))
    weights = [
        next(iter(trained(replace(plan, steps=steps), Recipe(learning_rate=0.5)).values())) for steps in range(1, 21)
    ]
    assert all(not torch.equal(before, after) for before, after in pairwise(weights))


def test_secure_training_is_not_repeated() -> None:
    plan = replace(PLAN, secure=True, steps=3)
    assert not same(trained(plan), trained(plan))


def test_the_denominator_is_the_expected_batch() -> None:
    """Without noise, one step moves the weights by the clipped sum over the expected batch, whatever was drawn."""
    plan = replace(PLAN, noise=Gaussian(0.0), steps=1, clip=Flat(0.1))
    model = small_cnn((1, 8, 8), 10, rng())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fit(model, *data(), plan, Recipe(learning_rate=1.0), rng())
    seed = int(torch.randint(2**63 - 1, (), generator=rng()))
    drawn = plan.sampling.draw(0, rng(seed))
    assert len(drawn) != plan.expected_batch
    images, labels = data()
    start = small_cnn((1, 8, 8), 10, rng())
    total = clipped_gradient(start, images[drawn], labels[drawn], 0.1).gradients
    for name, value in model.state_dict().items():
        torch.testing.assert_close(before[name] - value, total[name] / 12, rtol=1e-3, atol=1e-6)


def test_microbatches_train_alike() -> None:
    whole, parts = trained(PLAN), trained(PLAN, schedule=Schedule(microbatch=5))
    assert all(torch.allclose(whole[name], parts[name], atol=1e-5) for name in whole)


class Viewing(nn.Module):
    """`view` fails on maps whose channels lie together, so this network keeps the usual layout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(144, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(x).view(-1, 144))  # type: ignore[no-any-return]


def test_models_that_view_their_maps_train_too() -> None:
    with pytest.raises(RuntimeError, match="view"):
        Viewing()(channels_last(data(channels=3)[0]))
    fit(Viewing(), *data(channels=3), replace(PLAN, steps=2), RECIPE, rng())


def test_layout_changes_no_value() -> None:
    for channels in (1, 3):
        images = data(channels=channels)[0]
        assert torch.equal(channels_last(images), images)
        assert channels_last(images).stride(1) == 1


def test_shuffled_training_needs_its_own_account() -> None:
    plan = Plan(Gaussian(8.0), Shuffled(60, 12), steps=10, delta=1e-5, adjacency="replace-one")
    trained(plan)
    with pytest.raises(InputError, match="shuffled batches have no privacy proof under add-remove"):
        replace(plan, adjacency="add-remove")


def test_replacing_an_image_is_hidden_by_its_own_account() -> None:
    """The same noise proves less when neighbours differ by a swap: the sum moves by two clips."""
    swap = replace(PLAN, adjacency="replace-one").spent().epsilon
    assert swap > 1.3 * PLAN.spent().epsilon


def test_the_wrong_number_of_images_is_one_sentence() -> None:
    with pytest.raises(InputError, match="the plan is for n=60 images, but 50 are given"):
        fit(small_cnn((1, 8, 8), 10, rng()), *data(50), PLAN, RECIPE, rng())
