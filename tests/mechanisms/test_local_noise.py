"""Noise before anybody sees the image: calibrated exactly, attacked with the best test, and composed with DP-SGD."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import beta, norm
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Mechanism, Planned, Recipe, Task
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.mechanisms.local_noise import LocalNoise, Noisy
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.privacy import Gaussian, Laplace, compose
from counterpoise.privacy.local import gaussian_delta, least_gaussian, least_laplace
from counterpoise.record import Release
from counterpoise.training import apply, generator

SHAPE = (1, 4, 4)


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = Digits().load()
    return Task(train, test, "digit", MODELS["small-cnn"], Recipe(epochs=3, batch=32, learning_rate=0.1, momentum=0.9))


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 10.0, 200.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-6])
def test_the_calibration_is_exact(epsilon: float, delta: float) -> None:
    noise = least_gaussian(epsilon, delta)
    assert gaussian_delta(epsilon, noise.multiplier) == pytest.approx(delta, rel=1e-3)
    assert gaussian_delta(epsilon, noise.multiplier) <= delta
    assert gaussian_delta(epsilon, 0.99 * noise.multiplier) > delta


def test_an_epsilon_beyond_all_meaning_is_refused_and_the_largest_is_calibrated(task: Task) -> None:
    assert gaussian_delta(1e9, least_gaussian(1e9, 1e-5).multiplier) == pytest.approx(1e-5, rel=1e-3)
    told = r"epsilon=1e\+12 must be at most 1e\+09 for Gaussian noise: so much is no protection; train 'plain'\."
    with pytest.raises(InputError, match=told):
        LocalNoise(Decimal("1e12")).guarantees(task)
    (sent,) = LocalNoise(Decimal("1e12"), distribution="laplace").guarantees(task)
    assert sent.epsilon == 1e12


@pytest.mark.parametrize("secure", ["no", 0, None])
def test_a_switch_is_no_text(secure: object) -> None:
    with pytest.raises(InputError, match=f"secure={secure!r} must be True or False"):
        LocalNoise(Decimal(1), secure=secure)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_an_independent_accountant_agrees(epsilon: float) -> None:
    """dp-accounting's distribution of losses, of one unsampled use: an upper bound that is tight to a thousandth."""
    for noise, delta in ((least_gaussian(epsilon, 1e-5), 1e-5), (least_laplace(epsilon), 0.0)):
        found = compose([Release(noise.kind, noise.multiplier, 1.0, 1, "full")], delta)
        assert found == pytest.approx(epsilon, rel=5e-3)


def test_the_classical_calibration_wastes_noise_and_breaks_above_1() -> None:
    """sqrt(2 ln(1.25 / delta)) / epsilon is proved for epsilon < 1 only; far above, it is not even enough."""
    classical = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert least_gaussian(0.5, 1e-5).multiplier < classical / 0.5
    assert gaussian_delta(100, classical / 100) > 1e-5


def draws(noise: Gaussian | Laplace, image: Tensor, n: int, seed: int) -> Tensor:
    """n releases of one image, each with its own seed, before and after nothing else."""
    return torch.stack([Noisy(noise, SHAPE, 1, 1000 * seed + i)(image[None])[0] for i in range(n)])


def test_the_noise_has_the_law_it_claims() -> None:
    """Standard deviation: multiplier * sensitivity; sensitivity sqrt(numbers) for Gaussian, numbers for Laplace."""
    middle = torch.full((1, 40, 40), 0.5)
    for noise, width in ((Gaussian(0.002), 0.002 * 40), (Laplace(0.00003), 0.00003 * 1600 * math.sqrt(2))):
        off = Noisy(noise, (1, 40, 40), 1, 3)(middle[None]) - 0.5
        error = width / math.sqrt(2 * 1600) * (1 if noise.kind == "gaussian" else math.sqrt(5) / math.sqrt(2))
        assert abs(float(off.std()) - width) < 4 * error
        assert abs(float(off.mean())) < 4 * width / 40


@pytest.mark.parametrize(("shape", "block", "numbers"), [((3, 8, 8), 1, 192), ((3, 8, 8), 4, 12), ((1, 8, 4), 2, 8)])
def test_blocks_shrink_the_sensitivity(shape: tuple[int, int, int], block: int, numbers: int) -> None:
    assert Noisy(Gaussian(1), shape, block, 0).sensitivity == pytest.approx(math.sqrt(numbers))
    assert Noisy(Laplace(1), shape, block, 0).sensitivity == numbers


def test_the_sensitivity_is_the_farthest_two_images_get() -> None:
    for block in (1, 2, 4):
        module = Noisy(Gaussian(0), SHAPE, block, 0)
        black, white = (nn.functional.avg_pool2d(torch.full((1, *SHAPE), v), block) for v in (0.0, 1.0))
        assert float((white - black).norm()) == pytest.approx(module.sensitivity)
        shown = module(torch.rand(2, *SHAPE, generator=generator(0)))
        assert shown.shape == (2, *SHAPE)
        assert len(shown[0].unique()) == 16 // block**2


def test_an_image_outside_0_to_1_is_cut_before_the_noise() -> None:
    """Else it would lie further from others than the noise is made for."""
    module = Noisy(Gaussian(0), SHAPE, 1, 0)
    assert torch.equal(module(torch.full((1, *SHAPE), 9.0)), torch.ones(1, *SHAPE))


def between(count: int, n: int) -> tuple[float, float]:
    """The 99.9 % Clopper-Pearson interval of a share."""
    low = float(beta.ppf(0.0005, count, n - count + 1)) if count else 0.0
    return low, float(beta.ppf(0.9995, count + 1, n - count)) if count < n else 1.0


def advantage_over_epsilon(noise: Gaussian | Laplace, epsilon: float, n: int = 60_000) -> tuple[float, float]:
    """Of the best distinguishing test between a black and a white image: P(S | white) - e^epsilon P(S | black), S where
    the loss exceeds epsilon; with its 99.9 % Clopper-Pearson bounds. (epsilon, delta) says that it is at most delta.

    The attacker sees the values before they are cut, which is more than is released.
    """
    module = Noisy(noise, SHAPE, 1, 0)
    scale = noise.multiplier * module.sensitivity
    rng = np.random.default_rng(7)
    make = rng.normal if noise.kind == "gaussian" else rng.laplace
    said = []
    for value in (1.0, 0.0):
        seen = value + make(scale=scale, size=(n, 16))
        if noise.kind == "gaussian":
            losses = ((seen**2).sum(1) - ((seen - 1) ** 2).sum(1)) / (2 * scale**2)
        else:
            losses = (np.abs(seen).sum(1) - np.abs(seen - 1).sum(1)) / scale
        said.append(int((losses > epsilon * (1 + 1e-9)).sum()))
    (low_white, high_white), (low_black, high_black) = (between(count, n) for count in said)
    low, high = low_white - math.exp(epsilon) * high_black, high_white - math.exp(epsilon) * low_black
    return low, high


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.01), (2.0, 0.02)])
def test_no_attack_beats_the_gaussian_claim_and_one_does_with_two_thirds_of_the_noise(
    epsilon: float, delta: float
) -> None:
    noise = least_gaussian(epsilon, delta)
    low, high = advantage_over_epsilon(noise, epsilon)
    assert low <= delta <= high  # at the bound, not beyond: the calibration wastes nothing
    cut = Gaussian(noise.multiplier * 2 / 3)
    assert advantage_over_epsilon(cut, epsilon)[0] > delta


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_no_loss_exceeds_the_laplace_claim_and_many_do_with_two_thirds_of_the_noise(epsilon: float) -> None:
    noise = least_laplace(epsilon)
    assert advantage_over_epsilon(noise, epsilon)[0] <= 0
    # In 16 numbers the loss of Laplace noise is far from its worst case: the attack needs images that differ in one.
    assert one_number(noise, epsilon) == 0
    assert one_number(Laplace(noise.multiplier * 2 / 3), epsilon) > 0.05


def one_number(noise: Laplace, epsilon: float) -> float:
    """P(loss > epsilon | 1) of the distinguisher of two images of one number, from the module's own releases."""
    module = Noisy(noise, (1, 1, 1), 1, 0)
    scale = noise.multiplier * module.sensitivity
    seen = 1.0 + np.random.default_rng(3).laplace(scale=scale, size=20_000)
    losses = (np.abs(seen) - np.abs(seen - 1)) / scale
    return float((losses > epsilon * (1 + 1e-9)).mean())


def test_the_module_s_own_releases_are_no_easier_to_tell_apart() -> None:
    """End to end, on what really leaves, cut to [0, 1]: an attacker sums pixels; TPR - FPR is at most the bound."""
    epsilon, delta, n = 1.0, 0.01, 3000
    bound = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    tight = 2 * norm.cdf(0.5 / least_gaussian(epsilon, delta).multiplier) - 1  # of the uncut values, exactly
    white, black = torch.ones(SHAPE), torch.zeros(SHAPE)

    def advantage(noise: Gaussian) -> float:
        sums = [draws(noise, image, n, i).sum((1, 2, 3)).numpy() for i, image in enumerate((white, black))]
        return max(float((sums[0] > t).mean() - (sums[1] > t).mean()) for t in np.linspace(4, 12, 33))

    honest = advantage(least_gaussian(epsilon, delta))
    assert honest < tight < bound
    assert advantage(Gaussian(least_gaussian(epsilon, delta).multiplier / 3)) > bound


def test_seeded_noise_belongs_to_the_image_and_not_to_the_batch() -> None:
    pixels = torch.rand(5, *SHAPE, generator=generator(1))
    module = Noisy(Gaussian(0.05), SHAPE, 1, 4)
    whole = module(pixels)
    assert torch.equal(whole, torch.cat([module(image[None]) for image in pixels]))
    assert not torch.equal(whole, Noisy(Gaussian(0.05), SHAPE, 1, 5)(pixels))
    noise = whole - pixels
    assert all(not torch.allclose(one, two, atol=1e-3) for one, two in pairwise(noise))


def test_secure_noise_is_fresh_and_keeps_no_seed() -> None:
    module = Noisy(Gaussian(0.05), SHAPE, 1, None)
    pixels = torch.full((1, *SHAPE), 0.5)
    assert not torch.equal(module(pixels), module(pixels))
    assert module.state_dict() == {}


def test_it_proves_what_it_planned_of_the_image(task: Task) -> None:
    mechanism = LocalNoise(Decimal(2))
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, Planned)
    (local,) = mechanism.train(task, generator(0)).guarantees
    assert (local.notion, local.unit, local.adjacency) == ("local-dp", "image", "replace-one")
    assert (local.epsilon, local.delta) == (2, task.delta)
    (pure,) = LocalNoise(Decimal(2), distribution="laplace").guarantees(task)
    assert (pure.epsilon, pure.delta) == (2, 0)


def test_it_composes_with_dp_sgd_and_adds_nothing(task: Task) -> None:
    """Two notions side by side: what is sent of an image, and what the model tells of it."""
    inner = DPSGD(Decimal(2))
    local, central = LocalNoise(Decimal(8), then=inner).train(task, generator(0)).guarantees
    assert (local.notion, local.epsilon) == ("local-dp", 8)
    assert (central,) == inner.guarantees(task)
    assert central.notion == "dp"


def test_what_the_model_has_seen_is_noise_and_its_seed_is_not_kept(task: Task) -> None:
    seen: list[Tensor] = []

    class Watching(Plain):
        def train(self, task: Task, rng: torch.Generator):  # type: ignore[no-untyped-def]
            seen.append(task.train.pixels)
            return super().train(task, rng)

    trained = LocalNoise(Decimal(200), then=Watching()).train(task, generator(0))
    assert float((seen[0] - task.train.pixels).abs().mean()) > 0.1
    again = apply(trained.release, task.train.pixels)
    assert not torch.equal(again, seen[0])  # another seed: whoever has the weights cannot take the training noise off


def test_less_noise_is_learned_from_better_and_blocks_help(task: Task) -> None:
    def hits(mechanism: LocalNoise) -> float:
        trained = mechanism.train(task, generator(0))
        said = apply(trained.model, apply(trained.release, task.test.pixels)).argmax(1)
        return float((said == task.test.labels["digit"]).float().mean())

    strong, weak = hits(LocalNoise(Decimal(1))), hits(LocalNoise(Decimal(500)))
    assert weak > 0.8
    assert strong < 0.3


def test_wrong_settings(task: Task) -> None:
    with pytest.raises(InputError, match=r"^local_epsilon=0 must be at least 0\.000001\.$"):
        LocalNoise(Decimal(0))
    with pytest.raises(InputError, match=r"^block=3 must divide the images' 8 x 8 pixels\.$"):
        LocalNoise(Decimal(1), block=3).train(task, generator(0))
    with pytest.raises(InputError, match=r"^block=3 must divide the images' 8 x 8 pixels\.$"):
        LocalNoise(Decimal(1), block=3).guarantees(task)  # told before any training
    with pytest.raises(InputError, match=r"^then='dp-sgd' must be a mechanism, such as DPSGD\(noise=1\)"):
        LocalNoise(Decimal(1), then="dp-sgd")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^delta=0 must be above 0 and below 1 for Gaussian noise; Laplace"):
        least_gaussian(1.0, 0.0)
    with pytest.raises(InputError, match="distribution='cauchy' must be one of 'gaussian', 'laplace'"):
        LocalNoise(Decimal(1), distribution="cauchy")  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2, 1, 10, 10), (2, 1, 9, 9), (2, 3, 8, 8), (1, 8, 8), (2, 1, 4, 4)])
def test_an_image_of_another_size_is_refused_as_its_noise_would_be_too_little(shape: tuple[int, ...]) -> None:
    noisy = Noisy(least_gaussian(1.0, 1e-5), (1, 8, 8), 2, 0)
    with pytest.raises(InputError, match=r"^images to hide must be \[n, 1, 8, 8\], not \[.*\]\.$"):
        noisy(torch.rand(shape))
    assert noisy(torch.rand(2, 1, 8, 8)).shape == (2, 1, 8, 8)


@pytest.mark.parametrize("missing", [math.nan, math.inf])
def test_a_pixel_that_no_noise_hides_is_refused(missing: float) -> None:
    image = torch.rand(1, 1, 8, 8, generator=generator(0))
    image[0, 0, 2, 3] = missing
    with pytest.raises(InputError, match="has a pixel that is no finite number, which no noise hides"):
        Noisy(least_gaussian(1.0, 1e-5), (1, 8, 8), 1, 0)(image)
