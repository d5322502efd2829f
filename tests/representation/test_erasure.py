"""LEACE: what it takes, what it leaves, and that nothing smaller would do."""

from __future__ import annotations

import torch

from counterpoise.representation.erasure import Eraser


def told(n: int = 600, size: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    classes = torch.randint(3, (n,), generator=rng)
    mixing = torch.randn(size, size, generator=rng)
    return (torch.randn(n, size, generator=rng) + 2 * torch.eye(size)[classes]) @ mixing, classes


def covariance(rows: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    z = torch.nn.functional.one_hot(classes).double()
    return (rows.double() - rows.double().mean(0)).T @ (z - z.mean(0)) / len(rows)


def test_afterwards_nothing_covaries_with_the_class_and_the_mean_stays() -> None:
    rows, classes = told()
    erased = Eraser(8).fit(rows, classes)(rows)
    assert float(covariance(rows, classes).abs().max()) > 0.3
    assert float(covariance(erased, classes).abs().max()) < 1e-4
    assert torch.allclose(erased.mean(0), rows.mean(0), atol=1e-3)


def test_it_moves_the_features_less_than_cutting_the_class_means_away() -> None:
    rows, classes = told()
    least = float((Eraser(8).fit(rows, classes)(rows) - rows).square().sum())
    means = torch.stack([rows[classes == c].mean(0) for c in range(3)]) - rows.mean(0)
    basis = torch.linalg.svd(means.T, full_matrices=False)[0][:, :2]
    cut = float(((rows - rows.mean(0)) @ basis @ basis.T).square().sum())
    assert least < 0.9 * cut


def test_what_is_not_linear_stays() -> None:
    rng = torch.Generator().manual_seed(1)
    rows, classes = torch.randn(500, 4, generator=rng), torch.randint(2, (500,), generator=rng)
    rows[:, 0] *= 1 + 4 * classes
    erased = Eraser(4).fit(rows, classes)(rows)
    spread = [float(erased[classes == c, 0].std()) for c in (0, 1)]
    assert spread[1] > 3 * spread[0]


def test_directions_without_variance_do_no_harm_and_shapes_are_kept() -> None:
    rows, classes = told()
    flat = torch.cat([rows, torch.zeros(len(rows), 1)], 1)
    erased = Eraser(9).fit(flat, classes)(flat.view(-1, 3, 3))
    assert erased.shape == (600, 3, 3)
    assert bool(erased.isfinite().all())
    assert float(covariance(erased.flatten(1), classes).abs().max()) < 1e-4
