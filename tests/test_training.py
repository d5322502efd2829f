"""The training loop: seeds, batches, and checkpoints that resume to the same bits."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Recipe
from counterpoise.training import (
    State,
    apply,
    channels_last,
    derive,
    fast_layout,
    fit,
    fit_classifier,
    generator,
    make_optimiser,
    restore,
    save,
    seeded,
    shuffled_batch,
    steps_per_epoch,
)

RECIPES = {
    "sgd": Recipe(epochs=3, batch=8, learning_rate=0.1),
    "momentum": Recipe(epochs=3, batch=8, learning_rate=0.1, momentum=0.9),
    "adam": Recipe(epochs=3, batch=8, learning_rate=0.01, optimiser="adam"),
}


class KilledError(Exception):
    """Stands for a kill in the middle of a training."""


@pytest.fixture
def data() -> tuple[Tensor, Tensor]:
    rng = generator(0, "data")
    return torch.rand(30, 1, 4, 4, generator=rng), torch.randint(3, (30,), generator=rng)


def network(seed: int = 0) -> nn.Module:
    with seeded(generator(seed)):
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 3))


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_seeds_of_different_purposes_differ() -> None:
    purposes = [(), ("a",), ("b",), ("a", "b"), ("a/b",), ("ab",), ("a", 1), (1, "a"), (11,), (1, 1)]
    seeds = {derive(seed, *purpose) for seed in range(50) for purpose in purposes}
    assert len(seeds) == 50 * len(purposes)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive(3, "a", 1) == derive(3, "a", 1)


def test_derived_streams_are_uncorrelated() -> None:
    first, second = (torch.randn(20_000, generator=generator(7, "noise", k)) for k in (0, 1))
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 4 / 20_000**0.5


@given(n=st.integers(1, 100), batch=st.integers(1, 40), seed=st.integers(0, 2**40), epoch=st.integers(0, 3))
def test_an_epoch_visits_every_image_once(n: int, batch: int, seed: int, epoch: int) -> None:
    steps = steps_per_epoch(n, batch)
    batches = [shuffled_batch(n, batch, seed, epoch * steps + index) for index in range(steps)]
    assert sorted(torch.cat(batches).tolist()) == list(range(n))
    assert [len(b) for b in batches[:-1]] == [batch] * (steps - 1)


def test_epochs_are_shuffled_differently() -> None:
    assert not torch.equal(shuffled_batch(100, 100, 0, 0), shuffled_batch(100, 100, 0, 1))
    assert not torch.equal(shuffled_batch(100, 100, 0, 0), shuffled_batch(100, 100, 1, 0))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("killed_at", [1, 5, 6, 9])
def test_a_killed_training_resumes_to_the_same_bits(
    recipe: Recipe, killed_at: int, data: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    def run(checkpoint: Path | None, kill: int | None) -> Tensor:
        model = network()
        optimiser = make_optimiser(model, recipe)
        rng = generator(5)

        def step(index: int) -> None:
            if index == kill:
                raise KilledError
            batch = shuffled_batch(30, recipe.batch, 0, index)
            noise = 0.1 * torch.randn(len(batch), 1, 4, 4, generator=rng)
            optimiser.zero_grad()
            with seeded(generator(0, index)):
                loss = nn.functional.cross_entropy(model(data[0][batch] + noise), data[1][batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

        state: State = {"model": model, "optimiser": optimiser, "rng": rng}
        fit(step, 12, state, checkpoint=checkpoint, every=2)
        return weights(model)

    whole = run(None, None)
    checkpoint = tmp_path / "training.safetensors"
    with pytest.raises(KilledError):
        run(checkpoint, killed_at)
    assert checkpoint.exists() == (killed_at >= 2)
    assert torch.equal(run(checkpoint, None), whole)


def test_a_resume_that_forgets_the_optimiser_differs(data: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    recipe = RECIPES["momentum"]
    whole, half = network(), network()
    fit_classifier(whole, *data, recipe, seed=0)
    fit_classifier(half, *data, Recipe(epochs=1, batch=8, learning_rate=0.1, momentum=0.9), seed=0)
    save({"model": half}, 4, tmp_path / "half")
    optimiser = make_optimiser(half, recipe)
    restore({"model": half}, tmp_path / "half")
    half.train()
    for index in range(4, 12):
        batch = shuffled_batch(30, recipe.batch, 0, index)
        optimiser.zero_grad()
        with seeded(generator(0, "dropout", index)):
            nn.functional.cross_entropy(half(data[0][batch]), data[1][batch]).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert not torch.equal(weights(half), weights(whole))


def test_fit_reports_every_step_and_starts_at_the_saved_one(tmp_path: Path) -> None:
    model = network()
    seen: list[int] = []
    shares: list[float] = []
    save({"model": model}, 3, tmp_path / "saved")
    fit(seen.append, 5, {"model": model}, progress=shares.append, checkpoint=tmp_path / "saved")
    assert seen == [3, 4]
    assert shares == [0.8, 1.0]


def test_saving_leaves_no_half_written_file(tmp_path: Path) -> None:
    for step in (1, 2):
        save({"model": network(), "rng": generator(1)}, step, tmp_path / "deep" / "saved")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["saved"]
    assert restore({"model": network(), "rng": generator(2)}, tmp_path / "deep" / "saved") == 2


def _other_shape(path: Path) -> None:
    save({"model": nn.Linear(2, 2), "rng": generator(0)}, 1, path)


def _truncated(path: Path) -> None:
    save({"model": network(), "rng": generator(0)}, 1, path)
    path.write_bytes(path.read_bytes()[:200])


def _no_generator(path: Path) -> None:
    save({"model": network()}, 1, path)


def _no_metadata(path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"model/1.weight": torch.zeros(8, 16)}, path)


@pytest.mark.parametrize("spoil", [_other_shape, _truncated, _no_generator, _no_metadata])
def test_a_checkpoint_that_does_not_fit_is_refused(spoil: object, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    assert callable(spoil)
    spoil(path)
    sentence = rf"^{re.escape(str(path))}: this checkpoint does not fit the training \(.+\); delete it to start anew\.$"
    with pytest.raises(InputError, match=sentence) as problem:
        restore({"model": network(), "rng": generator(0)}, path)
    assert "\n" not in str(problem.value)


def test_nothing_saved_means_from_the_start(tmp_path: Path) -> None:
    assert restore({"model": network()}, tmp_path / "absent") == 0


@pytest.fixture
def _global_generator_is_kept() -> Iterator[None]:
    torch.manual_seed(123)
    before = torch.get_rng_state()
    yield
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("_global_generator_is_kept")
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_training_neither_uses_nor_moves_the_global_generator(recipe: Recipe, data: tuple[Tensor, Tensor]) -> None:
    first, second = network(), network()
    fit_classifier(first, *data, recipe, seed=1)
    with torch.random.fork_rng():
        torch.manual_seed(999)
        fit_classifier(second, *data, recipe, seed=1)
    assert torch.equal(weights(first), weights(second))
    other = network()
    fit_classifier(other, *data, recipe, seed=2)
    assert not torch.equal(weights(first), weights(other))


def test_training_lowers_the_loss_and_ends_in_evaluation_mode(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    before = float(nn.functional.cross_entropy(apply(model, data[0]), data[1]))
    fit_classifier(model, *data, Recipe(epochs=60, batch=10, learning_rate=0.3), seed=0)
    assert not model.training
    assert float(nn.functional.cross_entropy(apply(model, data[0]), data[1])) < 0.8 * before


def test_a_falling_rate_is_the_loop_by_hand_also_when_resumed(data: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    recipe = Recipe(epochs=30, batch=8, learning_rate=0.2, falling=True)  # 4 steps an epoch, the last one smaller
    by_hand = network()
    for index in range(120):
        batch = shuffled_batch(30, 8, 0, index)
        with seeded(generator(0, "dropout", index)):
            loss = nn.functional.cross_entropy(by_hand(channels_last(data[0][batch])), data[1][batch])
        found = torch.autograd.grad(loss, list(by_hand.parameters()))
        with torch.no_grad():
            for weight, slope in zip(by_hand.parameters(), found, strict=True):
                weight.sub_(0.2 * (120 - index) / 120 * slope)
    whole, constant, resumed, path = network(), network(), network(), tmp_path / "half.safetensors"
    fit_classifier(whole, *data, recipe, seed=0)
    fit_classifier(constant, *data, Recipe(epochs=30, batch=8, learning_rate=0.2), seed=0)
    assert torch.allclose(weights(whole), weights(by_hand), atol=1e-4)
    assert not torch.allclose(weights(constant), weights(by_hand), atol=1e-2)

    def kill(done: float) -> None:
        if done > 0.9:
            raise KilledError

    with pytest.raises(KilledError):
        fit_classifier(network(), *data, recipe, seed=0, progress=kill, checkpoint=path)
    fit_classifier(resumed, *data, recipe, seed=0, checkpoint=path)
    assert torch.equal(weights(resumed), weights(whole))


@given(n=st.integers(0, 20), chunk=st.integers(1, 7))
def test_apply_in_chunks_equals_apply_at_once(n: int, chunk: int) -> None:
    model = network().train()
    pixels = torch.rand(n, 1, 4, 4, generator=generator(n))
    assert torch.allclose(apply(model, pixels, chunk), apply(model, pixels), atol=1e-6)
    assert model.training


class Viewing(nn.Module):
    """Takes a `view` of its maps, which does not exist where channels lie beside each other."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(144, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.conv(x)).view(-1, 144))  # type: ignore[no-any-return]


def test_the_fast_layout_is_found_without_leaving_a_trace() -> None:
    pixels = torch.rand(5, 3, 8, 8, generator=generator(1))
    viewing, flattening = Viewing().train(), nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 2))
    with pytest.raises(RuntimeError, match="view"):
        viewing(channels_last(pixels))
    state, drawn = {key: value.clone() for key, value in viewing.state_dict().items()}, torch.get_rng_state()
    assert fast_layout(viewing, pixels)(pixels) is pixels
    assert fast_layout(flattening, pixels) is channels_last
    assert fast_layout(flattening, pixels.flatten(1))(pixels) is pixels
    assert viewing.training
    assert viewing.norm.training
    assert all(torch.equal(value, state[key]) for key, value in viewing.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert torch.allclose(apply(viewing, pixels), viewing.eval()(pixels), atol=1e-6)
    assert torch.allclose(apply(flattening, pixels), flattening(pixels), atol=1e-6)


def test_an_error_of_the_model_is_not_taken_for_a_layout() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        apply(nn.Sequential(nn.Flatten(), nn.Linear(3, 2)), torch.rand(2, 1, 4, 4))
