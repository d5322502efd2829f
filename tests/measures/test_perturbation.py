"""Infidelity and sensitivity: closed forms, captum in double precision, and maps that should and should not pass."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from captum.metrics import infidelity as their_infidelity
from captum.metrics import sensitivity_max as their_sensitivity
from measured import explaining, images, outcome, rng
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.interface import Explanation, Outcome
from counterpoise.measures import Infidelity, SensitivityMax
from counterpoise.measures.perturbation import largest_moves, patches, squared_errors

WEIGHTS = torch.rand(8, 8, generator=rng(0))


class Linear(nn.Module):
    """Class 0's logit is a weighted sum of the pixels; the other's is 0."""

    def forward(self, pixels: Tensor) -> Tensor:
        score = (pixels[:, 0] * WEIGHTS.to(pixels.dtype)).sum((1, 2))
        return torch.stack([score, torch.zeros_like(score)], dim=1)


PIXELS = torch.rand(6, 1, 8, 8, generator=rng(1))


def linear(maps: Tensor, model: nn.Module | None = None) -> Outcome:
    return outcome(images(PIXELS), model=model or Linear(), explaining=explaining(PIXELS, maps))


def test_of_a_linear_model_weight_times_distance_from_the_mean_foretells_everything() -> None:
    """f(x) - f(x_I) = sum over the patch of w (x - mean): that map, at any scale, has infidelity 0."""
    truth = WEIGHTS * (PIXELS[:, 0] - PIXELS.mean((1, 2, 3))[:, None, None])
    right = linear(truth)
    assert Infidelity()(right, right).value == pytest.approx(0, abs=1e-6)
    scaled = linear(300 * truth)
    assert Infidelity()(scaled, scaled).value == pytest.approx(0, abs=1e-6)
    shuffled = linear(truth.flatten(1)[:, torch.randperm(64, generator=rng(2))].view_as(truth))
    assert Infidelity()(shuffled, shuffled).low > 0.2
    found = Infidelity()(shuffled, shuffled)
    assert found == Infidelity()(shuffled, shuffled)
    assert found.high <= 1


def test_a_flat_model_and_a_blank_map_have_nothing_to_foretell() -> None:
    class Flat(nn.Module):
        def forward(self, pixels: Tensor) -> Tensor:
            return torch.zeros(len(pixels), 2)

    for made in (linear(WEIGHTS.expand(6, -1, -1), Flat()), linear(torch.zeros(6, 8, 8))):
        found = Infidelity()(made, made)
        assert (found.value, found.low, found.high, found.n) == (1, 0, 1, 0)


class Counted(Linear):
    asked = 0

    def forward(self, pixels: Tensor) -> Tensor:
        self.asked += len(pixels)
        return super().forward(pixels)


def test_it_brings_its_floors_and_asks_the_model_once_for_all_of_them() -> None:
    truth = WEIGHTS * (PIXELS[:, 0] - PIXELS.mean((1, 2, 3))[:, None, None])
    model = Counted()
    made = linear(truth, model)
    own = Infidelity(patches=40)
    found = own(made, made)
    asked = model.asked
    floors = {floor.name: floor(made, made) for floor in own.beside}
    assert list(floors) == [f"infidelity_of_{of}" for of in ("ones", "random", "centre", "edges")]
    assert model.asked == asked
    assert all(floor.patches == 40 and not floor.beside for floor in own.beside)
    assert all(floor.low > found.high for floor in floors.values())  # no floor looks at the model
    assert all(0 < floor.value <= 1 and floor.n == 6 for floor in floors.values())
    Infidelity(patches=41)(made, made)
    assert model.asked > asked  # other patches are another question


def test_its_floors_do_not_depend_on_the_map_and_are_what_such_a_map_would_score() -> None:
    """Ones under 4-pixel patches foretell the same change everywhere: 1 - mean(change)^2 / mean(change^2)."""
    one, other = linear(WEIGHTS.expand(6, -1, -1)), linear(PIXELS[:, 0])
    where = patches(PIXELS, 50, 0.25)
    mean = PIXELS.mean((1, 2, 3))[:, None, None]
    changed = ((WEIGHTS * (PIXELS[:, 0] - mean))[:, None].double() * where).sum((2, 3))
    expected = float((1 - changed.mean(1).square() / changed.square().mean(1)).mean())
    assert Infidelity(of="ones")(one, one).value == pytest.approx(expected, rel=1e-4)
    as_a_map = linear(torch.ones(6, 8, 8))
    assert Infidelity(of="ones")(other, other) == Infidelity(of="ones")(one, one)
    assert Infidelity()(as_a_map, as_a_map).value == pytest.approx(expected, rel=1e-4)


def test_patches_are_squares_of_the_asked_size_and_the_same_for_every_model() -> None:
    where = patches(PIXELS, 20, 0.25)
    assert where.shape == (6, 20, 8, 8)
    assert set(where.sum((2, 3)).flatten().tolist()) == {4}
    assert torch.equal(where, patches(1 - PIXELS, 20, 0.25))
    assert bool((where.sum((0, 1)) > 0).all())


@pytest.mark.parametrize("scaled", [False, True])
def test_it_agrees_with_captum_in_double_precision(scaled: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 3)).double().eval()
    pixels, maps = PIXELS.double(), torch.randn(6, 1, 8, 8, generator=rng(3), dtype=torch.float64)
    target, noise = (
        torch.tensor([0, 1, 2, 0, 1, 2]),
        0.1 * torch.randn(6, 7, 1, 8, 8, generator=rng(4), dtype=torch.float64),
    )

    def perturb(repeated: Tensor) -> tuple[Tensor, Tensor]:
        flat = noise.flatten(0, 1)
        return flat, repeated - flat

    theirs = their_infidelity(model, perturb, pixels, maps, target=target, n_perturb_samples=7, normalize=scaled)

    def said(x: Tensor) -> Tensor:
        found: Tensor = model(x)
        return found.gather(1, target[:, None])[:, 0]

    changed = said(pixels)[:, None] - torch.stack([said(pixels - noise[:, i]) for i in range(7)], 1)
    ours = squared_errors((maps[:, None] * noise).sum((2, 3, 4)), changed, scaled)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)


def test_sensitivity_agrees_with_captum_on_the_same_moves() -> None:
    def explained(image: Tensor) -> Tensor:
        return torch.cos(3 * image) + image

    def maps_of(given: Tensor | tuple[Tensor, ...]) -> Tensor | tuple[Tensor]:
        """They ask once with a tuple and then with a tensor, and want the same back."""
        return explained(given) if isinstance(given, Tensor) else (explained(given[0]),)

    pixels = PIXELS.double()
    moves = 0.02 * (2 * torch.rand(4, *pixels.shape, generator=rng(5), dtype=torch.float64) - 1)

    def perturb(repeated: Tensor | tuple[Tensor, ...], radius: float = 0.02) -> Tensor:
        image = repeated if isinstance(repeated, Tensor) else repeated[0]
        return image + moves.transpose(0, 1).flatten(0, 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = their_sensitivity(maps_of, pixels, perturb, n_perturb_samples=4, max_examples_per_batch=24)
    ours = largest_moves(explained(pixels)[:, 0], torch.stack([explained(pixels + move)[:, 0] for move in moves]))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_a_map_that_follows_the_image_moves_as_far_as_the_image() -> None:
    """map(x) = x: the largest |d| / |x|, at most radius * sqrt(64) / |x|; a constant map does not move."""
    seen: list[str] = []

    def follows(model: nn.Module, pixels: Tensor, purpose: str) -> Explanation:
        seen.append(purpose)
        return Explanation(pixels[:, 0])

    lengths = PIXELS.flatten(1).norm(dim=1)
    made = outcome(images(PIXELS), explaining=explaining(PIXELS, PIXELS[:, 0], again=follows))
    found = SensitivityMax(draws=3, radius=0.01)(made, made)
    assert 0.4 * float((0.01 * 8 / lengths).mean()) < found.value <= float((0.01 * 8 / lengths).mean())
    assert len(set(seen)) == 3  # fresh noise each time
    more = SensitivityMax(draws=6, radius=0.01)(made, made)
    assert more.value >= found.value
    still = explaining(PIXELS, WEIGHTS.expand(6, -1, -1), again=lambda m, x, p: Explanation(WEIGHTS.expand(6, -1, -1)))
    constant = outcome(images(PIXELS), explaining=still)
    assert SensitivityMax()(constant, constant).value == 0


def test_blank_maps_have_no_length_to_measure_by() -> None:
    zeros = torch.zeros(6, 8, 8)
    made = outcome(images(PIXELS), explaining=explaining(PIXELS, zeros, again=lambda m, x, p: Explanation(zeros)))
    found = SensitivityMax()(made, made)
    assert (found.value, found.low, found.n) == (math.inf, 0, 0)


def test_mistakes() -> None:
    with pytest.raises(InputError, match="patches=1 must be a whole number, 2 or above"):
        Infidelity(patches=1)
    with pytest.raises(InputError, match="of='middle' must be one of"):
        Infidelity(of="middle")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="radius=0 must be a number above 0"):
        SensitivityMax(radius=0)
    made = outcome(images(PIXELS), explaining=explaining(PIXELS, PIXELS[:, 0]))
    with pytest.raises(InputError, match="sensitivity_max needs more maps than are given"):
        SensitivityMax()(made, made)
