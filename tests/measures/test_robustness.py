"""The two quantities about attacks: what they are the mean of, what they refuse, and how a study comes by them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from measured import explaining, images, outcome, rng
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers import RobustTopK, SmoothGrad
from counterpoise.interface import Explainer, Explanation, Outcome
from counterpoise.measures import EVERYWHERE, ON_REQUEST
from counterpoise.measures.robustness import AttackedOverlap, CertifiedRadius
from counterpoise.record import Certificate, Party
from counterpoise.running import run
from counterpoise.study import Study, Sweep, Training, Use
from counterpoise.tradeoff import choose

TEST = images(torch.rand(8, 1, 6, 6, generator=rng(1)))


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.Tanh(), nn.Linear(24, 2)).eval()


def certificate(radius: float, bound: Any = "renyi") -> Certificate:
    half = Fraction(1, 2)
    return Certificate(radius, "l2", 1, half, 0.95, 9, 0.5, "gaussian", bound, radius == 0, (0,), (0.5,), (0.9,))


def explained(explainer: Explainer, degree: str) -> Outcome:
    """A network's own classes explained by this explainer, which can be asked again."""
    model = network()
    target = model(TEST.pixels).argmax(1)

    def again(other: nn.Module, pixels: Tensor, purpose: str) -> Explanation:
        return explainer.explain(other, pixels, target, rng(5))

    found = explainer.explain(model, TEST.pixels, target, rng(4))
    about = explaining(TEST.pixels, found.maps, degree=degree)
    return outcome(TEST, model=model, explaining=replace(about, explanation=found, target=target, again=again))


def test_the_radius_is_the_mean_of_the_certificates_and_abstaining_counts_as_nought() -> None:
    about = explaining(TEST.pixels, TEST.pixels[:, 0])
    radii = (0.2, 0.0, 0.4, None, 0.2, 0.2, 0.2, 0.4)
    known = tuple(None if r is None else certificate(r) for r in radii)
    candidate = outcome(TEST, explaining=replace(about, explanation=replace(about.explanation, certificates=known)))
    found = CertifiedRadius()(candidate, candidate)
    assert found.value == pytest.approx(0.2)
    assert 0.1 <= found.low < 0.2 < found.high <= 0.31


def test_a_radius_needs_sound_certificates() -> None:
    about = explaining(TEST.pixels, TEST.pixels[:, 0])
    plain = outcome(TEST, explaining=about)
    with pytest.raises(InputError, match="certified_radius needs an explainer that certifies its maps, such as robust"):
        CertifiedRadius()(plain, plain)
    printed = replace(about.explanation, certificates=(certificate(0.3, "published"),))
    unsound = outcome(TEST, explaining=replace(about, explanation=printed))
    with pytest.raises(InputError, match="not measured with bound='published', which certifies too much"):
        CertifiedRadius()(unsound, unsound)


def test_a_smoothed_map_keeps_more_under_attack_than_a_plain_one() -> None:
    plain = explained(SmoothGrad(noise=0), "0")
    smoothed = explained(RobustTopK(noise=1.0, samples=400, k=9), "1")
    measure = AttackedOverlap(radius=1.5)
    kept = [measure(candidate, candidate).value for candidate in (plain, smoothed)]
    assert 0 <= kept[0] < kept[1] <= 1
    assert measure(plain, plain) == measure(plain, replace(plain))
    assert AttackedOverlap(radius=1e-6)(plain, plain).value == 1


def test_the_overlap_needs_to_ask_again_and_sensible_settings() -> None:
    candidate = outcome(TEST, explaining=explaining(TEST.pixels, TEST.pixels[:, 0]))
    with pytest.raises(InputError, match="attacked_overlap needs more maps than are given: set `again`"):
        AttackedOverlap()(candidate, candidate)
    with pytest.raises(InputError, match="radius=0 must be a number above 0"):
        AttackedOverlap(radius=0)
    with pytest.raises(InputError, match="share=1 must be a number strictly between 0 and 1"):
        AttackedOverlap(share=1)


def study(*requires: str, explainer: str = "robust-topk", measures: tuple[Use, ...] = ()) -> Study:
    options = {"samples": 150, "k": 16} if explainer == "robust-topk" else {"samples": 3}
    return Study(
        name="robust",
        model=Use("linear"),
        training=Training(epochs=2, batch=64),
        mechanisms=[Sweep("plain", degrees=["0"])],
        explainer=Sweep(explainer, degrees=["0.5", "1"], options=options),
        explained_images=3,
        gallery_images=0,
        measures=measures,
        parties=[Party("hospital", requires), Party("university")],
    )


def test_a_party_can_require_both_and_nobody_else_pays_for_them(tmp_path: Path) -> None:
    results = run(study("certified_radius >= 0.1", "attacked_overlap >= 0.5"), tmp_path / "asked", executor="serial")
    for record in results:
        for cell in record.explained:
            assert cell.measurements["certified_radius"].value >= 0
            # A linear model has one gradient everywhere: nothing can be moved, and much is certified.
            assert cell.measurements["attacked_overlap"].value > 0.9
    radii = [cell.measurements["certified_radius"].value for cell in results.records[0].explained]
    assert 0.1 < radii[0] < radii[1]
    decision = choose(results, "unanimous", "measured")
    assert decision.best is not None
    nobody = choose(
        results, "unanimous", "measured", [Party("hospital", ("certified_radius >= 99",)), Party("university")]
    )
    assert nobody.best is None
    without = run(study(), tmp_path / "not", executor="serial")
    assert not set(ON_REQUEST) & set(without.records[0].explained[0].measurements)
    assert not set(ON_REQUEST) & set(EVERYWHERE)


def test_an_explainer_without_certificates_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"certified_radius needs an explainer that certifies its maps, and 'smoothgrad'"
    ):
        run(study("certified_radius >= 0.1", explainer="smoothgrad"), tmp_path / "refused")
    assert not list((tmp_path / "refused").glob("records/*"))


def test_a_listed_measure_has_its_own_settings(tmp_path: Path) -> None:
    listed = (Use("attacked_overlap", options={"radius": 0.25, "steps": 2}),)
    results = run(
        study("attacked_overlap >= 0.1", explainer="smoothgrad", measures=listed),
        tmp_path / "listed",
        executor="serial",
    )
    assert "attacked_overlap" in results.records[0].explained[0].measurements
