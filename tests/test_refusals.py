"""What cannot run is told before any training, in one sentence, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.grid import Grid
from counterpoise.interface import Images
from counterpoise.record import Party
from counterpoise.running import run
from counterpoise.study import Study, Sweep, Use
from small_study import small


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small(tmp_path_factory.mktemp("study"))


def batch_norm_model(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    channels, height, width = shape
    return nn.Sequential(
        nn.Flatten(), nn.BatchNorm1d(channels * height * width), nn.Linear(channels * height * width, classes)
    )


def test_what_does_not_combine_is_refused_before_training_and_the_rest_goes_on(study: Study, tmp_path: Path) -> None:
    changed = study.model_copy(
        update={"model": Use(part=batch_norm_model), "mechanisms": study.mechanisms[:1], "parties": (Party("a"),)}
    )
    results = run(changed, tmp_path, executor="serial")
    refused = [record for record in results if record.refusal]
    assert [record.mechanism for record in refused] == ["dp-sgd", "dp-sgd"]
    assert "dp-sgd needs each image's own gradient, but the model has batch normalisation" in refused[0].refusal
    assert refused[0].measurements == {}
    assert [record.mechanism for record in results if not record.refusal] == ["plain"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"data": Use(part="digit")}, r"datasets: there is no 'digit'; did you mean 'digits'\?"),
        (
            {"data": Use(part="digits", options={"colour": 1})},
            r"data 'digits': got an unexpected keyword argument 'colour'; its",
        ),
        (
            {"model": Use(part="linear", options={"depth": 1})},
            r"model 'linear': got an unexpected keyword argument 'depth'",
        ),
        ({"target": "colour"}, r"target='colour' must be one of the labels of 'digits'.*: digit\."),
        ({"mechanisms": (Sweep(part="dp-sgd"),)}, r"mechanism 'dp-sgd': degrees is missing"),
        ({"mechanisms": (Sweep(part="dp-sgd", degrees=Grid.of([-1])),)}, r"noise=-1 must be at least 0\."),
        (
            {"mechanisms": (Sweep(part="autoencoder", degrees=Grid.of([2])),)},
            r"code_ratio=2 must be at least .* and at most 1\.",
        ),
        (
            {"parties": (Party("a"), Party("tiny", share=1e-6))},
            r"party 'tiny': share=1e-06 gives it no training image of class '0'",
        ),
        (
            {"parties": (Party("a", ("nois > 1",)),)},
            r"party 'a': 'nois > 1' requires the unknown 'nois'; known: .*noise",
        ),
        ({"delta": 0.5}, r"delta=0\.5 must be below 1/6\d\d"),
        (
            {"model": Use(part="small-cnn"), "explainer": Sweep(part="grad-cam", layer="conv9")},
            r"explainer 'grad-cam': layer='conv9' is not a part of the model; choose from: 1, 2, 3, 4, 5\.$",
        ),
        (
            {"model": Use(part="small-cnn"), "explainer": Sweep(part="layer-cam", layer="7")},
            r"explainer 'layer-cam': layer='7' gives no feature map; choose from: 1, 2, 3, 4, 5\.$",
        ),
        (
            {"model": Use(part="small-cnn"), "explainer": Sweep(part="captum", method="LayerGradCam", layer="7")},
            r"explainer 'captum': layer='7' gives no feature map; choose from: 1, 2, 3, 4, 5\.$",
        ),
        (
            {"explainer": Sweep(part="captum", method="DeepLyft")},
            r"explainer 'captum': method='DeepLyft': captum\.attr has no attribution 'DeepLyft'\.$",
        ),
        ({"measures": (Use(part="accuracy"),)}, r"measure 'accuracy' is in every study already, or named twice"),
    ],
)
def test_a_study_that_cannot_run_is_one_sentence_and_writes_nothing(
    study: Study, tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        run(study.model_copy(update=change), tmp_path / "out", executor="serial")
    with pytest.raises(InputError, match=rf"^mine\.toml: .*{complaint}"):
        run(study.model_copy(update=change), tmp_path / "out", executor="serial", source="mine.toml")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (
            {"mechanisms": (Sweep(part="dp-sgd", degrees=[1], secure="no"),)},
            r"'dp-sgd': secure='no' must be true or fal",
        ),
        (
            {"mechanisms": (Sweep(part="dp-sgd", degrees=[1], clip="1"),)},
            r"'dp-sgd': clip='1' must be a number above 0",
        ),
        ({"data": Use(part="folder", root=3)}, r"data 'folder': root=3 must be text\."),
        (
            {"explainer": Sweep(part="robust-topk", degrees=["0.25"], noise=0.3)},
            r"explainer 'robust-topk': noise is what its degrees are, and is given beside them as 0\.3; leave it out\.",
        ),
        (
            {"mechanisms": (Sweep(part="dp-sgd", degrees=[1], noise=3),)},
            r"mechanism 'dp-sgd': noise is what its degrees are, and is given beside them as 3; leave it out\.",
        ),
        (
            {
                "explainer": Sweep(part="robust-topk", degrees=["0.25"], k=4, bound="published"),
                "measures": (Use(part="certified_radius"),),
            },
            r"certified_radius is not measured with bound='published', which certifies too much: take bound='best'\.",
        ),
        (
            {"explainer": Sweep(part="robust-topk", degrees=["0.25"], k=64)},
            r"explainer 'robust-topk': k=64 must be below the 64 units of a map",
        ),
        (
            {"explainer": Sweep(part="robust-topk", degrees=["0.25"], k=4, block=3)},
            r"explainer 'robust-topk': block=3 must divide the image of 8 x 8 pixels",
        ),
    ],
)
def test_text_is_no_switch_and_no_number_and_a_number_no_path(
    study: Study, tmp_path: Path, part: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        run(study.model_copy(update=part), tmp_path / "out", executor="serial")


@dataclass(frozen=True)
class Retested:
    """Digits whose test images are changed."""

    name: ClassVar[str] = "retested"
    change: Callable[[Images], Images]

    def load(self) -> tuple[Images, Images]:
        train, test = Digits().load()
        return train, self.change(test)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda test: test.take(torch.arange(0)), r"its test images \(0 of 1 x 8 x 8\) must be some, of the size of"),
        (
            lambda test: replace(test, pixels=test.pixels[..., :7]),
            r"its test images \(\d+ of 1 x 8 x 7\) must be some, of the size of its training images \(1 x 8 x 8\)\.",
        ),
    ],
)
def test_test_images_must_fit_the_training_images(
    study: Study, tmp_path: Path, change: Callable[[Images], Images], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        run(study.model_copy(update={"data": Use(Retested(change))}), tmp_path / "out", executor="serial")


def test_an_unknown_executor_is_refused(study: Study, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"executor='threads' must be one of 'processes', 'serial'\."):
        run(study, tmp_path, executor="threads")
