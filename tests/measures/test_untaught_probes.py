"""The source's own probes on features whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from counterpoise.measures.clusters import clusters, principal
from counterpoise.measures.unit_agreement import agreement, within_and_between


def blobs(apart: float) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    classes = torch.arange(300) % 3
    return apart * torch.eye(5)[classes] + torch.randn(300, 5, generator=rng) * 0.1, classes


def test_clusters_find_classes_that_are_apart_and_not_noise() -> None:
    found, noise = clusters(*blobs(5)), clusters(*blobs(0))
    assert found.matched == 1
    assert found.information == pytest.approx(1)
    assert found.components == 2  # three centres span a plane
    assert np.allclose(np.diag(found.distances), 0, atol=0.1)
    assert float(found.distances[0, 1]) == pytest.approx(5 * 2**0.5, rel=0.05)
    assert noise.matched < 0.5
    assert noise.information < 0.1


def test_names_of_clusters_do_not_matter() -> None:
    rows, classes = blobs(5)
    renamed = clusters(rows, (classes + 1) % 3)
    assert renamed.matched == 1
    assert np.allclose(np.diag(renamed.distances), 0, atol=0.1)


def test_wide_and_tall_rows_have_the_energy_of_their_singular_values() -> None:
    for shape in ((40, 9), (9, 40)):
        rows = torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        values = torch.linalg.svdvals(rows - rows.mean(0)).square()
        scores, shares = principal(rows)
        assert np.allclose(shares[: len(values)], (values / values.sum()).numpy(), atol=1e-9)
        assert np.allclose((scores**2).sum(0)[: len(values)], values.numpy(), atol=1e-6)


def test_agreement_is_what_counting_every_pair_gives() -> None:
    rng = torch.Generator().manual_seed(2)
    rows, classes = torch.randn(14, 7, generator=rng), torch.tensor([0] * 6 + [1] * 5 + [2] * 3)
    on = rows > 0
    for a, row in enumerate(agreement(rows, classes)):
        for b, rate in enumerate(row):
            pairs = [
                float((on[i] == on[j]).double().mean())
                for i in range(14)
                for j in range(14)
                if i != j and int(classes[i]) == a and int(classes[j]) == b
            ]
            assert rate == pytest.approx(np.mean(pairs))


def test_agreement_shows_units_that_stand_for_a_class() -> None:
    classes = torch.arange(30) % 3
    within, between = within_and_between(agreement(torch.eye(3)[classes], classes))
    assert within == 1
    assert between == pytest.approx(1 / 3)
    alone = agreement(torch.eye(2), torch.tensor([0, 1]))
    assert np.isnan(np.diag(alone)).all()
