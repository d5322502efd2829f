"""The study of Grad-CAM under differential privacy: from pictures to tables, and claims that come out either way."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoise.interface import Recipe
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.mechanisms.local_noise import LocalNoise
from counterpoise.mechanisms.plain import Plain
from counterpoise.privacy.local import least_gaussian
from counterpoise.reproduce import naidu
from counterpoise.reproduce._naidu_cells import GAUSSIAN, LAPLACE, LOCAL_IMAGE, LOCAL_LAPLACE, LOCAL_PIXEL, Bench, Cell
from counterpoise.reproduce._naidu_claims import UNDECIDED, by_size, points, sensitive, trends
from counterpoise.reproduce._naidu_maps import Group, Looked
from counterpoise.reproduce.settings import Settings

EPSILONS = (0.5, 1.0, 5.0, 10.0, math.inf)
ROWS = [(epsilon, 1.0) for epsilon in EPSILONS]


def pictures(folder: Path, n: int = 40) -> Path:
    """Cats are bright above, dogs below: easily learned."""
    rng = np.random.default_rng(0)
    (folder / "dogs-vs-cats" / "train").mkdir(parents=True)
    for animal in ("cat", "dog"):
        for index in range(n):
            pixels = rng.integers(0, 90, (16, 16, 3))
            pixels[:8] += 120 * (animal == "cat")
            pixels[8:] += 120 * (animal == "dog")
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "dogs-vs-cats" / "train" / f"{animal}.{index}.png")
    return folder


TINY = replace(
    naidu.CASES["cats-vs-dogs", "quick"],
    size=16,
    networks=(naidu.SMALL,),
    sweeps=((GAUSSIAN, (10.0,)), (LAPLACE, (10.0,))),
    clips=(1.0, 2.0),
    limit=None,
    explained=12,
    seeds=2,
    plain=Recipe(4, 16, 0.1, momentum=0.9),
    private=Recipe(2, 32, 0.5),
)


def test_from_pictures_to_tables_and_not_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(pictures(tmp_path / "data"), "quick", tmp_path / "out")
    text = naidu.reproduce(TINY, settings)
    assert "8 trainings to do, 0 done." in capsys.readouterr().err
    assert "(5.81)" in text  # the published drop beside ours
    assert "clip S at epsilon 1" in text
    assert "drop: floors" in text
    kept = json.loads((tmp_path / "out" / "comparison.json").read_bytes())
    assert kept["seeds"] == [0, 1]
    assert {claim["verdict"] for claim in kept["claims"]} == {UNDECIDED}  # two seeds decide nothing
    assert (tmp_path / "out" / "figures" / "accuracy-by-epsilon.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "out" / "naidu-cats-vs-dogs-quick.md").read_text() in text

    def never(*arguments: object) -> None:
        raise AssertionError("trained again")

    for mechanism in (LocalNoise, DPSGD, Plain):
        monkeypatch.setattr(mechanism, "train", never)
    assert naidu.reproduce(TINY, settings) == text
    assert "0 trainings to do, 8 done." in capsys.readouterr().err


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    root = tmp_path_factory.mktemp("pictures")
    return Bench.of(TINY, pictures(root), root / "out")


def test_every_private_training_keeps_its_epsilon(bench: Bench) -> None:
    for way in (GAUSSIAN, LAPLACE):
        cell = Cell(naidu.SMALL, way, 3.0, 0)
        (proved,) = bench.mechanism(cell).guarantees(bench.task(cell))  # type: ignore[attr-defined]
        assert 2.9 < proved.epsilon <= 3
        assert proved.releases[0].kind == way
    assert bench.delta == 1e-4
    many = replace(bench, train=bench.train.take(torch.zeros(6000, dtype=torch.int64)))
    assert many.delta == pytest.approx(0.5 / 6000)


def test_what_an_epsilon_about_a_pixel_is_about_an_image(bench: Bench) -> None:
    """The same noise, called by what it proves of the whole: 768 values for Laplace, a little less for Gaussian."""
    assert bench.of_image(LOCAL_LAPLACE, 0.5) == 0.5 * 768
    assert bench.of_image(LOCAL_IMAGE, 0.5) == 0.5
    mechanism = bench.mechanism(Cell(naidu.SMALL, LOCAL_PIXEL, 0.5, 0))
    assert isinstance(mechanism, LocalNoise)
    noise = mechanism.noise(bench.task(Cell(naidu.SMALL, LOCAL_PIXEL, 0.5, 0)))
    width = noise.multiplier * math.sqrt(768)
    assert width == pytest.approx(least_gaussian(0.5, bench.delta).multiplier, rel=1e-4)
    assert 0.5 < bench.of_image(LOCAL_PIXEL, 0.5) < 0.5 * 768


def made(drops: np.ndarray, images: int = 50, accuracies: tuple[float, ...] = (0.5, 0.6, 0.7, 0.7, 0.8)) -> Group:
    """A group whose models have these drops [seeds, epsilons], on every image; scores are what is left of 100."""
    looked = []
    for seed, row in enumerate(drops):
        for epsilon, drop, accuracy in zip(EPSILONS, row, accuracies, strict=True):
            values = {
                "average_drop": np.full(images, drop),
                "masked_score": np.full(images, 100 - drop),
                "confidence_increase": np.full(images, 100 - 3 * drop),
                "faithfulness": np.full(images, np.nan),
            }
            looked.append(Looked(Cell(naidu.SMALL, GAUSSIAN, epsilon, seed), accuracy, 0.0, values))
    return Group("made", torch.arange(images), tuple(looked))


FALLING = np.array([[13, 12, 7, 6, 2]] * 3) + np.array([[0], [0.5], [1]])


@pytest.mark.parametrize(
    ("drops", "verdict"),
    [
        (FALLING, "seen"),
        (FALLING[:, ::-1], "not seen"),
        (np.array([[1.0, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2, 1, 3, 5, 4]]), UNDECIDED),
        (FALLING[:2], UNDECIDED),
    ],
    ids=["as stated", "the other way", "torn", "two seeds"],
)
def test_a_trend_is_seen_not_seen_or_not_decidable(drops: np.ndarray, verdict: str) -> None:
    found = trends(made(drops), ROWS, "epsilon", naidu.WORSE, "smaller epsilon, worse maps")
    assert [claim.verdict for claim in found] == [verdict] * 3
    (ours,) = trends(made(drops), ROWS, "epsilon", naidu.OURS, "ours")
    assert ours.verdict == UNDECIDED  # all blank


def test_too_few_shared_images_decide_nothing() -> None:
    group = made(FALLING, images=9)
    (claim,) = trends(group, ROWS, "epsilon", {"average_drop": -1}, "words")
    assert (claim.ours, claim.verdict) == ("9 shared images", UNDECIDED)
    assert points(group, "masked_score", 1.0, 5.0, 25).verdict == UNDECIDED


def test_stated_points() -> None:
    assert by_size(18, 32, 25) == "seen"
    assert by_size(-5, 32, 25) == UNDECIDED
    assert by_size(2, 9, 25) == "not seen"
    claim = points(made(FALLING), "confidence_increase", 1.0, 5.0, 15)
    assert claim.ours.startswith("15.0 [15.0, 15.0], 3 seeds")
    assert claim.verdict == "seen"


def test_which_network_is_more_sensitive() -> None:
    steady, shaken = made(np.array([[4.0, 4, 4, 4, 3]] * 3)), made(FALLING, accuracies=(0.3, 0.6, 0.7, 0.7, 0.8))
    verdicts = [claim.verdict for claim in sensitive(steady, shaken, 0.5)]
    assert verdicts == ["seen", "seen"]
    assert [claim.verdict for claim in sensitive(shaken, steady, 0.5)] == ["not seen", "not seen"]


def test_the_paper_s_settings_are_the_printed_ones() -> None:
    cats, aptos = naidu.CASES["cats-vs-dogs", "paper"], naidu.CASES["aptos2019", "paper"]
    assert (cats.private.learning_rate, cats.private.batch, cats.private.epochs, cats.delta) == (1e-4, 32, 10, 1e-4)
    assert (aptos.private.learning_rate, aptos.private.epochs, aptos.target) == (0.01, 25, "grade")
    assert [network.part for network in (*cats.networks, *aptos.networks)] == ["vgg16", "resnet18", "alexnet"]
    for case in naidu.CASES.values():
        assert len({str(cell) for cell in case.cells()}) == len(case.cells())
    assert min(case.seeds for case in naidu.CASES.values()) == 3
