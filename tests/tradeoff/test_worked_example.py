"""The source's worked example, exactly; and what goes wrong with grids of binary floats."""

from __future__ import annotations

import numpy as np
import pytest

from counterpoise.reproduce.abbasi_example import compare, example
from counterpoise.tradeoff import PAPER, build, choose, score


def test_every_published_number_is_met() -> None:
    for line in compare():
        assert line.ours == line.published, line.what


def test_the_quoted_scores_fit_the_declared_configuration() -> None:
    table = score(build(example(), "dp-sgd"), PAPER)["value"].sel(party="party 3", privacy="1")
    assert float(table.sel(explainability="0")) == pytest.approx(0.32, abs=0.02)
    assert float(table.sel(explainability="1")) == pytest.approx(0.78, abs=0.02)


def test_a_binary_float_grid_would_count_20_cells_for_12() -> None:
    noises, levels = np.arange(0, 2.05, 0.1), np.arange(0, 1.05, 0.1)
    assert int((noises > 1.7).sum() * (levels > 0.6).sum()) == 20


def test_the_papers_own_policy_settles_on_a_forbidden_cell_where_unanimous_cannot() -> None:
    results = example()
    one, two, _ = results.parties
    cautious = type(one)("party 3", ("noise <= 1.0",))
    paper = choose(results, "paper", "paper", (one, two, cautious))
    assert paper.best is not None
    assert [view.allows for view in paper.best.parties] == [True, True, False]
    assert paper.best.parties[2].forbids == ("noise <= 1.0",)
    unanimous = choose(results, "unanimous", "paper", (one, two, cautious))
    assert unanimous.best is None
    assert "Binding: party 3's 'noise <= 1'" in unanimous.sentence()
    assert "Smallest relaxation: party 3: 'noise <= 1' to 'noise <= 1.8'." in unanimous.sentence()
