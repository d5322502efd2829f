"""Does the map depend on the model, point where the answer is, and say it briefly? Each asked both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from measured import explaining, images, outcome, rng
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.datasets.dots import Dots
from counterpoise.explainers import SmoothGrad
from counterpoise.interface import Explanation, Images, Outcome, Recipe, Task, Trained
from counterpoise.measures import PointingAccuracy, RandomisationCheck, Sparsity
from counterpoise.measures._maps import edges
from counterpoise.measures.sanity import gini, pointing
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.training import apply, generator


def saliency(model: nn.Module, pixels: Tensor, target: Tensor) -> Tensor:
    return SmoothGrad(noise=0).explain(model, pixels, target, generator(0)).maps


@pytest.fixture(scope="module")
def dots() -> tuple[Task, Trained]:
    train, test = Dots(test=100).load()
    recipe = Recipe(epochs=15, batch=32, learning_rate=0.05, momentum=0.9)
    task = Task(train, test, "position", MODELS["small-cnn"], recipe)
    return task, Plain().train(task, generator(0))


def explained(dots: tuple[Task, Trained], maps: Tensor, test: Images | None = None) -> Outcome:
    """The trained network's outcome with these maps of its test images."""
    task, trained = dots
    target = apply(trained.model, task.test.pixels).argmax(1)
    made = outcome(images(task.test.pixels, task.test.labels["position"], 4), model=trained.model)
    asked = explaining(
        task.test.pixels,
        maps,
        chosen=torch.arange(len(task.test)),
        again=lambda model, pixels, purpose: Explanation(saliency(model, pixels, target)),
    )
    return replace(made, task=replace(task, test=test or task.test), explaining=replace(asked, target=target))


def test_the_dots_are_marked_where_they_are() -> None:
    train, test = Dots(visibility=0.5).load()
    assert train.evidence is not None
    assert set(train.evidence.sum((1, 2)).tolist()) == {4}
    assert bool((train.pixels[:, 0][train.evidence] >= 0.6).all())
    assert bool((train.pixels[:, 0][~train.evidence] <= 0.2).all())
    some = test.take(torch.tensor([3, 1]))
    assert some.evidence is not None
    assert torch.equal(some.evidence[1], test.evidence[1])  # type: ignore[index]


def test_a_trained_network_s_map_points_at_the_dot_and_its_floors_do_not(dots: tuple[Task, Trained]) -> None:
    task, trained = dots
    target = apply(trained.model, task.test.pixels).argmax(1)
    times_input = saliency(trained.model, task.test.pixels, target) * task.test.pixels[:, 0]
    made = explained(dots, times_input)
    assert PointingAccuracy()(made, made).low > 0.8
    assert PointingAccuracy("random")(made, made).value == pytest.approx(4 / 64)
    corner = torch.zeros_like(times_input)
    corner[:, 0, 0] = 1
    wrong = explained(dots, corner)
    assert PointingAccuracy()(wrong, wrong).value < 0.2
    assert [measure.name for measure in PointingAccuracy().beside] == [
        "pointing_accuracy_of_random",
        "pointing_accuracy_of_edges",
    ]


def test_equal_largest_values_count_by_their_share() -> None:
    planted = torch.tensor([[True, False], [False, False]]).expand(3, -1, -1)
    maps = torch.tensor([[5.0, 5, 0, 0], [1, 2, 0, 0], [9, 2, 0, 0]]).view(3, 2, 2)
    assert pointing(maps, planted).tolist() == [0.5, 0, 1]


def test_pointing_needs_evidence(dots: tuple[Task, Trained]) -> None:
    bare = explained(dots, torch.ones(100, 8, 8), replace(dots[0].test, evidence=None))
    with pytest.raises(
        InputError, match=r"^pointing_accuracy needs images whose evidence is known; 'dots' has none: take"
    ):
        PointingAccuracy()(bare, bare)


def test_evidence_is_one_mark_a_pixel() -> None:
    pixels = torch.zeros(2, 1, 3, 3)
    with pytest.raises(
        InputError, match=r"made: evidence must be bool \[2, 3, 3\], one mark a pixel, not torch.bool \[3, 3\]"
    ):
        Images("made", pixels, {}, {}, torch.zeros(3, 3, dtype=torch.bool))
    with pytest.raises(InputError, match=r"not torch.float32 \[2, 3, 3\]"):
        Images("made", pixels, {}, {}, torch.zeros(2, 3, 3))


def test_gradients_forget_with_the_model_and_edges_do_not(dots: tuple[Task, Trained]) -> None:
    task, trained = dots
    target = apply(trained.model, task.test.pixels).argmax(1)
    honest = explained(dots, saliency(trained.model, task.test.pixels, target))
    found = RandomisationCheck()(honest, honest)
    assert found.high < 0.4
    drawn = edges(task.test.pixels)
    detector = explained(dots, drawn)
    assert detector.explaining is not None
    again = replace(detector.explaining, again=lambda model, pixels, purpose: Explanation(edges(pixels)))
    detector = replace(detector, explaining=again)
    assert RandomisationCheck()(detector, detector).value == pytest.approx(1)


def test_the_random_networks_differ_from_the_trained_one_and_each_other(dots: tuple[Task, Trained]) -> None:
    seen: list[nn.Module] = []
    made = explained(dots, torch.rand(100, 8, 8, generator=rng(1)))
    assert made.explaining is not None

    def watching(model: nn.Module, pixels: Tensor, purpose: str) -> Explanation:
        seen.append(model)
        return Explanation(torch.rand(100, 8, 8, generator=rng(len(seen) + 1)))

    watched = replace(made, explaining=replace(made.explaining, again=watching))
    RandomisationCheck(networks=2)(watched, watched)
    first, second, trained = (next(iter(model.parameters())) for model in (*seen, made.trained.model))
    assert not torch.equal(first, second)
    assert not torch.equal(first, trained)


def test_gini_of_known_maps() -> None:
    """Even: 0. One pixel of N: (N - 1) / N. Pixels 1, 2, 3, 4: sum (2i - 5) i / (4 * 10) = .25."""
    one = torch.zeros(5, 5)
    one[2, 3] = -7
    maps = torch.stack([torch.ones(5, 5), one, torch.zeros(5, 5)])
    assert gini(maps).tolist() == pytest.approx([0, 24 / 25, 0])
    line = torch.tensor([[3.0, 1], [4, 2]])[None]
    assert float(gini(line)) == pytest.approx(0.25)
    assert float(gini(1000 * line)) == pytest.approx(0.25)
    pairs = (line.flatten()[:, None] - line.flatten()).abs().sum() / (2 * 16 * line.mean())
    assert float(gini(line)) == pytest.approx(float(pairs))  # the definition by differences
    made = outcome(images(torch.zeros(3, 1, 5, 5)), explaining=explaining(torch.zeros(3, 1, 5, 5), maps))
    found = Sparsity()(made, made)
    assert (found.value, found.n) == (0, 1)  # of the others one has no value above 0, and one is blank
