"""R of features whose cosines are known, in both forms; its gradient; and the sums against the Gram matrix."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.representation.alignment import Form, Normaliser, alignment

EYE = torch.eye(4)
ONE = torch.zeros(4, dtype=torch.int64)


def naive(features: Tensor, classes: Tensor, form: str, normaliser: str) -> float:
    """Pair by pair, as the formula reads."""
    units = [row / row.norm() for row in features.flatten(1).double()]
    sums, pairs = [], []
    for label in sorted(set(classes.tolist())):
        own = [i for i, c in enumerate(classes.tolist()) if c == label]
        cosines = [float(units[i] @ units[j]) for i in own for j in own if i != j]
        if cosines:
            sums.append(sum(map(abs, cosines)) if form == "strong" else abs(sum(cosines)))
            pairs.append(len(cosines))
    if normaliser == "paper":
        return sum(sums) / (2 * len(units))
    return sum(s / p for s, p in zip(sums, pairs, strict=True)) / len(sums)


@pytest.mark.parametrize(
    ("features", "strong", "weak"),
    [
        (EYE[0].expand(4, 4), 1.0, 1.0),  # identical
        (EYE, 0.0, 0.0),  # at right angles
        (torch.stack([EYE[0], -EYE[0]]), 1.0, 1.0),  # antipodal
        (torch.stack([EYE[0], -EYE[0], EYE[0], -EYE[0]]), 1.0, 1 / 3),  # antipodal pairs cancel in the weak form
        (5 * EYE[0].expand(4, 4), 1.0, 1.0),  # length does not matter
    ],
)
def test_features_whose_cosines_are_known(features: Tensor, strong: float, weak: float) -> None:
    classes = ONE[: len(features)]
    assert float(alignment(features, classes, "strong")) == pytest.approx(strong, abs=1e-6)
    assert float(alignment(features, classes, "weak")) == pytest.approx(weak, abs=1e-6)


@pytest.mark.parametrize("form", ["weak", "strong"])
@pytest.mark.parametrize("normaliser", ["pairs", "paper"])
@given(n=st.integers(2, 30), classes=st.integers(1, 5), seed=st.integers(0, 1000))
def test_sums_and_gram_matrices_give_what_every_pair_gives(
    form: Form, normaliser: Normaliser, n: int, classes: int, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    features, labels = torch.randn(n, 3, 2, 2, generator=rng), torch.randint(classes, (n,), generator=rng)
    if int(labels.bincount().max()) < 2:
        labels[:2] = 0
    found = float(alignment(features.double(), labels, form, normaliser))
    assert found == pytest.approx(naive(features, labels, form, normaliser), abs=1e-9)


def test_the_forms_are_one_where_nothing_is_negative_and_differ_elsewhere() -> None:
    rng = torch.Generator().manual_seed(0)
    features, labels = torch.randn(60, 8, generator=rng), torch.randint(3, (60,), generator=rng)
    weak, strong = (float(alignment(features.relu(), labels, form)) for form in ("weak", "strong"))
    assert weak == pytest.approx(strong, rel=1e-5)
    assert float(alignment(features, labels, "strong")) > 2 * float(alignment(features, labels, "weak"))


@pytest.mark.parametrize("form", ["weak", "strong"])
@pytest.mark.parametrize("normaliser", ["pairs", "paper"])
def test_the_gradient_is_that_of_finite_differences(form: Form, normaliser: Normaliser) -> None:
    rng = torch.Generator().manual_seed(1)
    features = torch.randn(8, 5, generator=rng, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2])
    assert torch.autograd.gradcheck(lambda x: alignment(x, labels, form, normaliser), (features,))


def test_a_step_against_the_gradient_turns_the_class_apart() -> None:
    features = torch.tensor([[1.0, 0.2], [1.0, -0.2]], requires_grad=True)
    before = alignment(features, ONE[:2])
    (gradient,) = torch.autograd.grad(before, features)
    after = alignment(features.detach() - 0.1 * gradient, ONE[:2])
    assert after.item() < before.item()
    # Along a feature itself there is nothing to gain: R does not see lengths.
    assert float((gradient * features.detach()).sum(1).abs().max()) < 1e-6


def test_a_class_with_one_image_is_skipped_and_changes_nothing() -> None:
    rng = torch.Generator().manual_seed(2)
    features = torch.randn(5, 6, generator=rng)
    with_single = alignment(features, torch.tensor([0, 0, 1, 1, 2]))
    assert float(with_single) == pytest.approx(float(alignment(features[:4], torch.tensor([0, 0, 1, 1]))))
    alone = torch.randn(2, 3, requires_grad=True)
    nothing = alignment(alone, torch.tensor([0, 1]))
    nothing.backward()  # type: ignore[no-untyped-call]
    assert nothing.item() == 0
    assert alone.grad is not None
    assert float(alone.grad.abs().max()) == 0


def test_a_dead_layer_has_no_direction_and_no_gradient_that_is_not_finite() -> None:
    dead = torch.zeros(4, 3, requires_grad=True)
    found = alignment(dead, ONE)
    found.backward()  # type: ignore[no-untyped-call]
    assert found.item() == 0
    assert dead.grad is not None
    assert bool(dead.grad.isfinite().all())


def test_the_printed_normaliser_grows_with_the_batch_and_the_mean_over_pairs_does_not() -> None:
    same = torch.ones(40, 3)
    small, large = (torch.zeros(n, dtype=torch.int64) for n in (10, 40))
    assert float(alignment(same[:10], small, normaliser="paper")) == pytest.approx(4.5)
    assert float(alignment(same, large, normaliser="paper")) == pytest.approx(19.5)
    assert float(alignment(same[:10], small)) == pytest.approx(float(alignment(same, large)), rel=1e-5)


def test_right_angles_do_not_hide_the_class() -> None:
    """20 + 20 orthonormal vectors: R is 0, and a linear reader tells every one of the two classes."""
    vectors = torch.linalg.qr(torch.randn(64, 40, generator=torch.Generator().manual_seed(3)))[0].T
    labels = torch.arange(40) % 2
    assert float(alignment(vectors, labels, "strong")) < 1e-5
    reader = torch.linalg.lstsq(vectors, (2.0 * labels - 1)[:, None]).solution
    assert bool((((vectors @ reader).flatten() > 0) == (labels == 1)).all())


def test_wrong_options_are_told() -> None:
    with pytest.raises(InputError, match=r"^form='medium' must be one of 'strong', 'weak'\.$"):
        alignment(EYE, ONE, "medium")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^normaliser='batch' must be one of 'pairs', 'paper'\.$"):
        alignment(EYE, ONE, "weak", "batch")  # type: ignore[arg-type]
