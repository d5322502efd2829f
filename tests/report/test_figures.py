"""Figures: which there are, that each is a picture, and that a mask is never drawn as a score of 0."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle
from PIL import Image
from report_study import galleries, results, smaller

from counterpoise._check import InputError
from counterpoise.record import Results
from counterpoise.report import Gallery
from counterpoise.report.evidence import Evidence, gather
from counterpoise.report.figures import draw, slug
from counterpoise.report.figures.costs import accuracy, epsilon
from counterpoise.report.figures.heat import heat_maps
from counterpoise.report.figures.lines import chosen_degrees, four_lines, slices
from counterpoise.report.figures.pictures import noisy
from counterpoise.report.pixels import image_strip, map_strip, png, stretched, viridis
from counterpoise.report.strips import shown
from counterpoise.tradeoff import choose

STUDY: Results = smaller(results())
EVIDENCE: Evidence = gather(STUDY, choose(STUDY), galleries=galleries(STUDY)[:7])


def test_every_family_is_drawn_for_every_mechanism_with_degrees() -> None:
    files = draw(EVIDENCE)
    expected = {f"{family}-{m}-{mode}.png" for family in ("heat", "lines", "slices", "surface")
                for m in ("dp-sgd", "autoencoder") for mode in ("paper", "measured")}  # fmt: skip
    expected |= {"epsilon-dp-sgd.png", "accuracy-dp-sgd.png", "accuracy-autoencoder.png"}
    assert expected <= set(files)
    assert "epsilon-autoencoder.png" not in files
    assert {"released-dp-sgd-north-clinic.png", "maps-dp-sgd-north-clinic.png"} <= set(files)
    for name, content in files.items():
        if name.endswith(".png"):
            assert imread(io.BytesIO(content)).std() > 0.01, name
        else:
            assert content.startswith(b"%PDF")
            assert f"{name.removesuffix('.pdf')}.png" in files
    assert "heat-dp-sgd-paper.pdf" in files


def test_noisy_copies_are_drawn_for_smoothgrad_only_and_their_noise_is_the_level() -> None:
    named = tuple(replace(record, configuration={"explainer": "smoothgrad"}) for record in STUDY)
    smooth = gather(replace(STUDY, records=named), EVIDENCE.decision, galleries=EVIDENCE.galleries)
    assert "noisy-copies.pdf" in draw(smooth)
    assert not any(name.startswith("noisy") for name in draw(EVIDENCE))
    flat = np.full((1, 64, 64, 1), 128, dtype=np.uint8)
    first, levels = EVIDENCE.galleries[0], EVIDENCE.galleries[0].levels
    grey = Gallery(first.mechanism, first.party, first.degree, levels, flat, flat, np.zeros((len(levels), 1, 64, 64)))
    canvas = np.asarray(noisy(grey).axes[0].images[0].get_array(), dtype=float)
    gap = (canvas.shape[0] - 64 * len(grey.levels)) // len(grey.levels)
    rows = [canvas[i * (64 + gap) : i * (64 + gap) + 64, :64] for i in range(len(grey.levels))]
    assert np.all(rows[0] == 128)
    assert rows[2].std() / 255 == pytest.approx(float(grey.levels[2]), rel=0.05)  # .2: few pixels are cut off
    assert rows[1].std() < rows[2].std() < rows[5].std()


def test_figures_are_drawn_without_pyplot() -> None:
    """Pyplot looks for a screen and keeps every figure; in a process of its own, as other tests may have brought it."""
    code = "import sys, test_figures as t; t.draw(t.EVIDENCE); sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=False).returncode == 0


def test_forbidden_cells_are_masked_and_unmeasured_ones_blank() -> None:
    figure = heat_maps(EVIDENCE, "dp-sgd", "measured")
    panel = EVIDENCE.panels("measured")["dp-sgd"]
    north = figure.axes[0]
    array = north.images[0].get_array()
    assert array is not None
    drawn = np.ma.getmaskarray(array)
    assert np.array_equal(~drawn.T, panel.possible.sel(party="north clinic").values)
    assert north.patch.get_hatch() == "////"
    blanks = [p for p in north.patches if p.get_facecolor() == (1.0, 1.0, 1.0, 1.0)]
    assert len(blanks) == int(panel.scores["value"].sel(party="north clinic").isnull().sum())


def test_the_optimum_is_marked_on_every_map() -> None:
    figure = heat_maps(EVIDENCE, "dp-sgd", "measured")
    decided = choose(STUDY).outcomes["dp-sgd"].winner  # type: ignore[union-attr]  # it is feasible
    i = list(EVIDENCE.panels("measured")["dp-sgd"].table["privacy"].values).index(str(decided.degree))
    for axes in figure.axes[:4]:
        outlines = [p for p in axes.patches if isinstance(p, Rectangle) and not p.get_fill()]
        assert {p.get_x() for p in outlines} == {i - 0.5}


def test_the_four_lines_show_the_mean_over_parties() -> None:
    axes = four_lines(EVIDENCE, "autoencoder", "paper").axes[0]
    table = EVIDENCE.panels("paper")["autoencoder"]
    privacy, _, _, trade = (line.get_ydata() for line in axes.lines[:4])
    assert privacy == pytest.approx(table.table["privacy_gain"].mean("party").values.ravel())
    assert trade == pytest.approx(table.scores["value"].mean("party").values.ravel())


@pytest.mark.parametrize(
    ("degrees", "chosen"),
    [
        ([f"{i / 10:g}" for i in range(21)], ["0.1", "1", "2"]),
        (["0", "0.5", "3"], ["0", "0.5", "3"]),
        (["a", "b", "c", "d"], ["a", "b", "d"]),
        (["a", "b", "c", "d", "e"], ["b", "c", "e"]),
        (["a"], ["a"]),
    ],
)
def test_slices_are_at_the_sources_degrees_where_there_are_such(degrees: list[str], chosen: list[str]) -> None:
    assert chosen_degrees(degrees) == chosen


def test_slices_skip_degrees_that_were_refused() -> None:
    titles = [axes.get_title(loc="left") for axes in slices(EVIDENCE, "dp-sgd", "measured").axes]
    assert titles == ["noise 0", "noise 0.6", "noise 2"]


def test_an_infinite_epsilon_is_written_not_plotted() -> None:
    figure = epsilon(EVIDENCE, "dp-sgd")
    assert isinstance(figure, Figure)
    axes = figure.axes[0]
    assert np.isfinite(axes.lines[0].get_ydata()).all()
    assert [words.get_text() for words in axes.texts] == ["∞"]
    assert axes.texts[0].get_position()[0] == 0
    assert axes.get_yscale() == "log"


def test_accuracy_names_the_utility_loss_in_per_cent() -> None:
    figure = accuracy(EVIDENCE, "dp-sgd")
    assert isinstance(figure, Figure)
    assert figure.axes[0].texts[0].get_text() == "U 0 %"
    assert figure.axes[0].texts[1].get_text() == "U 6.1 %"


def test_names_become_file_names() -> None:
    assert slug("../Büro & Söhne/x") == "b-ro-s-hne-x"
    assert slug("...") == "unnamed"


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_the_png_writer_is_read_back_exactly(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    with Image.open(io.BytesIO(png(pixels))) as image:
        assert np.array_equal(np.asarray(image), pixels)
    if len(shape) == 2:
        with Image.open(io.BytesIO(png(pixels, viridis()))) as image:
            assert np.array_equal(np.asarray(image.convert("RGB")), viridis()[pixels])


def test_strips_put_images_side_by_side() -> None:
    black, white = np.zeros((4, 4, 1), np.uint8), np.full((4, 4, 1), 255, np.uint8)
    with Image.open(io.BytesIO(image_strip([black, white]))) as image:
        found = np.asarray(image)
    assert found.shape == (4, 9)
    assert found[:, :4].max() == 0
    assert found[:, 4:].min() == 255
    with Image.open(io.BytesIO(map_strip([np.eye(4), np.full((4, 4), math.nan)]))) as image:
        assert image.size == (9, 4)


def test_a_map_is_stretched_over_its_own_range() -> None:
    assert stretched(np.array([[-2.0, 0.0, 2.0]]), 254).tolist() == [[0, 127, 254]]
    assert stretched(np.full((1, 2), 7.0), 254).tolist() == [[0, 0]]
    assert stretched(np.array([[math.inf, 0.0, 1.0]]), 10).tolist() == [[0, 0, 10]]


def test_galleries_are_grouped_and_ordered() -> None:
    groups = shown(tuple(reversed(EVIDENCE.galleries)))
    assert {group.mechanism for group in groups} == {"plain", "dp-sgd", "autoencoder"}
    noise = next(group for group in groups if group.mechanism == "dp-sgd")
    assert [row.label for row in noise.released] == ["original", "0", "0.6", "2"]
    assert len(noise.maps) == len(noise.labels) == 4


IMAGES = np.zeros((2, 4, 4, 1), np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": IMAGES.astype(float)}, "images must be uint8"),
        ({"images": IMAGES[..., 0]}, "images must be uint8"),
        ({"originals": IMAGES[:1]}, "must agree"),
        ({"maps": np.zeros((2, 2, 4, 4))}, r"maps must have shape \(1, 2, 4, 4\)"),
        ({"labels": ("a",)}, "1 labels for 2 images"),
    ],
)
def test_a_gallery_that_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    right: dict[str, object] = {
        "mechanism": "m", "party": "p", "degree": Decimal(1), "levels": (Decimal(0),),
        "images": IMAGES, "originals": IMAGES, "maps": np.zeros((1, 2, 4, 4)),
    }  # fmt: skip
    Gallery(**right)  # type: ignore[arg-type]  # the test's own dictionary
    with pytest.raises(InputError, match=message):
        Gallery(**{**right, **change})  # type: ignore[arg-type]
