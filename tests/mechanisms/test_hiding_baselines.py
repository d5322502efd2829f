"""EnD, gradient reversal and LEACE: each does what its formula says, resumes, and reloads."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.interface import Images, Mechanism, Recipe, Task
from counterpoise.mechanisms.entangle import EntangleDisentangle, togetherness
from counterpoise.mechanisms.gradient_reversal import GradientReversal, _Reverse
from counterpoise.mechanisms.linear_erasure import LinearErasure
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.representation.layers import features
from counterpoise.testing import check_mechanism
from counterpoise.training import apply, generator, one_thread


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


def drawn(n: int, seed: int) -> Images:
    """The upper half tells the target, the lower half the hidden class, and neither tells the other."""
    rng = generator(seed, "drawn")
    target = torch.randint(2, (n,), generator=rng)
    hidden = torch.randint(2, (n,), generator=rng)
    pixels = 0.4 * torch.rand(n, 1, 8, 8, generator=rng)
    pixels[:, :, :4, :4] += 0.3 * target.view(-1, 1, 1, 1)
    pixels[:, :, 4:, 4:] += 0.5 * hidden.view(-1, 1, 1, 1)
    labels = {"shape": target, "colour": hidden}
    return Images("drawn", pixels, labels, {"shape": ("a", "b"), "colour": ("c", "d")})


TASK = Task(drawn(400, 0), drawn(300, 1), "shape", MODELS["mlp"], Recipe(6, 40, 0.1, 0.9), hidden="colour")


def gap(model: torch.nn.Module, at: str = "") -> float:
    """How far apart the hidden classes' mean features are, target by target, in units of their spread."""
    rows, found = features(model, at, TASK.test.pixels), []
    for target in (0, 1):
        parts = [
            rows[(TASK.test.labels["shape"] == target) & (TASK.test.labels["colour"] == hidden)] for hidden in (0, 1)
        ]
        found.append(float((parts[0].mean(0) - parts[1].mean(0)).norm() / rows.std(0).norm()))
    return sum(found) / 2


def test_togetherness_is_what_counting_every_pair_gives() -> None:
    rng = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(12, 4, generator=rng, dtype=torch.float64))
    targets, hidden = torch.arange(12) % 2, torch.tensor([0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 0, 0])
    means = []
    for target in (0, 1):
        cosines = [
            float(rows[i] @ rows[j])
            for i in range(12)
            for j in range(12)
            if targets[i] == targets[j] == target and hidden[i] != hidden[j]
        ]
        means.append(sum(cosines) / len(cosines))
    assert float(togetherness(rows, targets, hidden)) == pytest.approx(sum(means) / 2)
    assert float(togetherness(rows, targets, targets)) == 0


@pytest.mark.parametrize(
    ("mechanism", "without"),
    [
        (EntangleDisentangle(Decimal(1), beta=1.0), EntangleDisentangle(Decimal(0), beta=0.0)),
        (GradientReversal(Decimal("0.3")), GradientReversal(Decimal(0))),
        (LinearErasure(), Plain()),
    ],
)
def test_the_hidden_class_moves_the_features_less(mechanism: Mechanism, without: Mechanism) -> None:
    slow = replace(TASK, recipe=Recipe(60, 40, 0.1))  # adversaries need small steps
    assert gap(mechanism.train(slow, generator(0)).model) < 0.8 * gap(without.train(slow, generator(0)).model)


def test_the_gradient_comes_back_turned_round_and_scaled() -> None:
    features = torch.randn(3, 2, requires_grad=True)
    turned = _Reverse.apply(features, 0.5)  # type: ignore[no-untyped-call]
    assert torch.equal(turned, features)
    (turned * torch.arange(6.0).view(3, 2)).sum().backward()
    assert features.grad is not None
    assert torch.equal(features.grad, -0.5 * torch.arange(6.0).view(3, 2))


@pytest.mark.parametrize(
    "mechanism", [EntangleDisentangle(Decimal(1)), GradientReversal(Decimal(1), units=8), LinearErasure()]
)
def test_it_keeps_what_every_mechanism_promises(mechanism: Mechanism) -> None:
    few = replace(TASK, train=TASK.train.take(torch.arange(80)), recipe=Recipe(1, 40))
    check_mechanism(mechanism, few)


@pytest.mark.parametrize("at", ["", "2", "3"])
def test_the_eraser_sits_where_it_is_told_to_and_goes_with_a_copy(at: str) -> None:
    trained = LinearErasure(at=at).train(TASK, generator(0)).model
    rows, classes = features(trained, at, TASK.train.pixels), TASK.train.labels["colour"]
    means = [rows[classes == c].mean(0) for c in (0, 1)]
    assert float((means[0] - means[1]).abs().max()) < 1e-3
    twin = copy.deepcopy(trained)
    with torch.no_grad():
        for name, value in twin.named_buffers():
            if name.endswith("eraser.taken"):
                value.zero_()
    pixels = TASK.test.pixels
    assert not torch.equal(apply(twin, pixels), apply(trained, pixels))


def test_the_reader_learns_along_and_is_checkpointed(tmp_path: object) -> None:
    class KilledError(Exception):
        pass

    def kill(share: float) -> None:
        if share > 0.6:
            raise KilledError

    def weights(task: Task) -> Tensor:
        model = GradientReversal(Decimal(1)).train(task, generator(1)).model
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    path = tmp_path / "saved"  # type: ignore[operator]
    longer = replace(TASK, recipe=replace(TASK.recipe, epochs=20))
    with pytest.raises(KilledError):
        weights(replace(longer, checkpoint=path, progress=kill))
    assert path.exists()
    assert torch.equal(weights(replace(longer, checkpoint=path)), weights(longer))


def test_a_layer_too_wide_for_a_square_matrix_is_told() -> None:
    large = Images("large", torch.rand(4, 3, 64, 64), {"a": torch.arange(4) % 2}, {"a": ("x", "y")})
    task = Task(large, large, "a", MODELS["linear"], hidden="a")
    with pytest.raises(
        InputError, match=r"^at='': linear-erasure is a square matrix of the layer's 12288 outputs; name"
    ):
        LinearErasure().blank(task)
