"""Attackers read what was planted, each what it can; nothing where nothing is; and nats of known channels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom, kstest
from secrets_told import bar, grey, nothing, outcome, pixel
from torch import Tensor, nn

from counterpoise import Party, Study, Sweep, run
from counterpoise._check import InputError
from counterpoise.measures import (
    FixedGap,
    InformationLeak,
    SecretAdvantage,
    SecretChance,
    SecretMoved,
    SecretPrivacy,
    UtilityMoved,
)
from counterpoise.measures.attackers import Attack, attacks, strongest, surest
from counterpoise.measures.information import _share
from counterpoise.measures.probes import Reading
from counterpoise.study import Training, Use
from counterpoise.training import one_thread


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def test_what_lies_along_a_pixel_is_read_by_all_and_a_filter_cannot_hide_it_by_turning_it_round() -> None:
    raw = outcome(pixel)
    found = attacks(raw, raw)
    assert set(found) == {"linear", "knn", "mlp", "cnn", "fixed"}
    for name in ("linear", "mlp", "cnn"):
        assert found[name].reading.leak.low > 0.9
    assert SecretAdvantage()(raw, raw).low > 0.95
    assert SecretPrivacy()(raw, raw).high < 0.05
    assert SecretChance()(raw, raw).value == 0.001
    assert FixedGap()(raw, raw).value == pytest.approx(0, abs=0.02)

    turned = outcome(pixel, release=lambda pixels: 1 - pixels)
    assert attacks(raw, turned)["fixed"].reading.leak.value < 0.3  # it guesses, or says the opposite
    assert SecretAdvantage()(raw, turned).low > 0.95
    gap = FixedGap()(raw, turned)
    assert gap.low > 0.6
    assert gap.value == pytest.approx(
        SecretAdvantage()(raw, turned).value - attacks(raw, turned)["fixed"].reading.leak.value, abs=0.02
    )


def test_a_pattern_at_a_random_place_is_read_by_the_convolutions_alone() -> None:
    raw = outcome(bar, train=1600)
    found = attacks(raw, raw)
    for name in ("linear", "knn", "mlp"):
        assert found[name].reading.leak.value < 0.45
    assert found["cnn"].reading.leak.low > 0.75
    assert strongest(found).reading.name == "cnn"
    assert surest(found).reading.name == "cnn"
    assert InformationLeak()(raw, raw).value > found["mlp"].information.value + 0.2


def test_where_nothing_is_nothing_is_told() -> None:
    raw = outcome(nothing, train=600, test=800, seed=2)
    advantage, nats = SecretAdvantage()(raw, raw), InformationLeak()(raw, raw)
    assert advantage.low < 0 < advantage.high
    assert -0.06 < nats.value < 0.02  # who was chosen by luck pays for it on the test images
    assert nats.low <= 0
    assert SecretChance()(raw, raw).value > 0.01
    assert SecretPrivacy()(raw, raw).high == 1
    assert SecretMoved(b=0.2)(raw, raw).value < 0.05


def test_p_values_of_guesses_are_spread_evenly_and_those_of_a_slight_knowledge_are_not() -> None:
    rng = np.random.default_rng(0)

    def p_value(right: float) -> float:
        classes = rng.integers(2, size=300)
        said = np.where(rng.random(300) < right, classes, 1 - classes)
        return Reading("some", 0.0, said, classes, 2).p_value

    guesses = [p_value(0.5) for _ in range(120)]
    assert kstest(guesses, "uniform").pvalue > 0.01
    assert np.mean([p_value(0.6) < 0.05 for _ in range(40)]) > 0.7


@pytest.mark.parametrize("wrong", [0.02, 0.1, 0.3, 0.5])
def test_nats_of_a_pixel_that_is_right_so_often(wrong: float) -> None:
    def noisy(secret: Tensor, rng: torch.Generator) -> Tensor:
        flipped = (torch.rand(len(secret), generator=rng) < wrong).long()
        return pixel(secret ^ flipped, rng)

    raw = outcome(noisy, train=1600, test=1200)
    exact = math.log(2) + wrong * math.log(wrong) + (1 - wrong) * math.log(1 - wrong)
    found = InformationLeak()(raw, raw)
    assert found.value == pytest.approx(exact, abs=0.05)
    assert all(attack.information.low <= math.log(2) for attack in attacks(raw, raw).values())


def test_an_adversary_is_asked_as_it_is_and_after_it_has_learned_on() -> None:
    class Opponent(nn.Module):
        """Knows a pixel's secret, but was trained on images of twice the brightness; it has a class nobody has."""

        def __init__(self) -> None:
            super().__init__()
            self.weigh = nn.Linear(144, 3)
            nn.init.zeros_(self.weigh.weight)
            self.weigh.bias.data = torch.tensor([9.0, 0.0, 99.0])
            self.weigh.weight.data[1, 0] = 20.0

        def forward(self, pixels: Tensor) -> Tensor:
            scores: Tensor = self.weigh(pixels.flatten(1))
            return scores

    dim = outcome(pixel, release=lambda pixels: pixels / 2, adversary=Opponent().requires_grad_(False))
    before = [weight.clone() for weight in dim.trained.adversary.parameters()]  # type: ignore[union-attr]
    found = attacks(dim, dim)
    assert found["cotrained"].reading.leak.value == pytest.approx(0, abs=0.01)  # it always says 0
    assert found["continued"].reading.leak.low > 0.9
    after = list(dim.trained.adversary.parameters())  # type: ignore[union-attr]
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))
    assert not any(weight.requires_grad for weight in after)
    # Neither it nor the fixed one is fresh: the gap is to those who learned from what is released.
    assert strongest(found, fresh=True).reading.name not in ("cotrained", "fixed")


def test_how_many_images_tell_on_the_secret() -> None:
    """Three in ten images show it plainly, the others show grey: the mean is modest, and three in ten are exposed."""

    def some(secret: Tensor, rng: torch.Generator) -> Tensor:
        pixels = pixel(secret, rng)
        hide = torch.rand(len(secret), generator=rng) > 0.3
        pixels[hide, 0, 0, 0] = 0.4
        return pixels

    raw = outcome(some, train=2000, test=1000)
    found = SecretMoved(b=0.3)(raw, raw)
    assert found.low <= 0.3 <= found.high
    assert found.value == pytest.approx(0.3, abs=0.04)
    assert SecretMoved(b=0.49)(raw, raw).value < found.value + 0.01


def test_how_many_images_lose_their_target() -> None:
    class First(nn.Module):
        def forward(self, pixels: Tensor) -> Tensor:
            level = 20 * (pixels[:, 0, 0, 0] - 0.4)
            return torch.stack([torch.zeros_like(level), level], 1)

    def dim(pixels: Tensor) -> Tensor:
        changed = pixels.clone()
        changed[:, 0, 0, 0] = changed[:, 0, 0, 0].clamp(max=0.2)
        return changed

    moved = outcome(pixel, train=40, test=400, release=dim, model=First())
    secret = moved.task.test.labels["secret"].double().mean()
    found = UtilityMoved()(moved, moved)
    assert found.value == pytest.approx(float(secret))
    assert UtilityMoved()(moved, replace(moved, test_logits=moved.raw_test_logits)).value == 0


@pytest.mark.parametrize(("k", "n"), [(0, 50), (3, 50), (50, 50)])
def test_the_interval_of_a_share_is_exact(k: int, n: int) -> None:
    found = _share(torch.arange(n) < k)
    assert found.value == k / n
    if k < n:
        assert binom.cdf(k, n, found.high) == pytest.approx(0.025)
        assert binom.cdf(k, n, found.high - 0.02) > 0.025
    if k > 0:
        assert binom.sf(k - 1, n, found.low) == pytest.approx(0.025)


def test_mistakes_are_told() -> None:
    raw = outcome(nothing, train=40, test=20)
    with pytest.raises(InputError, match=r"^an attacker needs to know what is to be hidden: set hidden to one of the"):
        SecretAdvantage()(raw, replace(raw, task=replace(raw.task, hidden=None)))
    with pytest.raises(InputError, match=r"^b=0 must be a number strictly between 0 and 1\.$"):
        SecretMoved(b=0)
    with pytest.raises(InputError, match=r"^b=1.5 must be a number strictly between 0 and 1\.$"):
        UtilityMoved(b=1.5)


def test_a_study_takes_them_of_any_mechanism(tmp_path: Path) -> None:
    asked = ("secret_advantage", "information_leak", "fixed_gap", "secret_moved", "inversion_psnr", "utility_moved")
    study = Study(
        name="asked",
        data=Use("dots", train=120, test=60),
        target="position",
        hidden="secret",
        training=Training(epochs=1, batch=32, learning_rate=0.1),
        mechanisms=[Sweep("autoencoder", degrees=["0.1"], options={"steps": 20})],
        explainer=Sweep("smoothgrad", degrees=[0], samples=1),
        explained_images=2,
        gallery_images=0,
        measures=[Use(name) if name != "secret_moved" else Use(name, b=0.2) for name in asked],
        parties=[Party("one", ("secret_privacy >= 0.1",))],
    )
    records = run(study, tmp_path, executor="serial").records
    found = {record.mechanism: record.measurements for record in records}
    for name in (*asked, "secret_privacy"):
        assert name in found["autoencoder"]
    assert found["plain"]["inversion_psnr"].value > found["autoencoder"]["inversion_psnr"].value


def test_readings_do_not_depend_on_what_was_drawn_before() -> None:
    raw = outcome(lambda secret, rng: grey(len(secret), rng) + 0.1 * secret[:, None, None, None], train=200, test=100)
    first = InformationLeak()(raw, raw)
    torch.manual_seed(99)
    assert InformationLeak()(replace(raw), replace(raw)) == first


def test_trying_many_attackers_flatters_none_and_the_one_that_tells_is_found() -> None:
    """Best of thirty guessers on the images they are judged by looks well above chance; crossed, they do not."""
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=400)

    def attacker(name: str, right: float) -> Attack:
        answers = np.where(rng.random(400) < right, classes, 1 - classes)
        sure = torch.nn.functional.one_hot(torch.from_numpy(answers)).double() * 0.2
        reading = Reading(name, float(rng.normal(right, 0.05)), answers, classes, 2)
        return Attack(reading, 0.69, sure.log_softmax(1), torch.from_numpy(classes), 100)

    crossed, flattered = [], []
    for _ in range(40):
        guessers = {str(number): attacker(str(number), 0.5) for number in range(30)}
        crossed.append(strongest(guessers).reading.leak.value)
        flattered.append(max(guess.reading.leak.value for guess in guessers.values()))
    assert abs(float(np.mean(crossed))) < 0.02
    assert min(flattered) > 0.05
    assert strongest({**guessers, "reader": attacker("reader", 0.65)}).reading.name == "reader"
    assert surest({**guessers, "reader": attacker("reader", 0.65)}).reading.name == "reader"
