"""The deck's study on files of random images, its accounts, and the numbers it lays out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import NormalDist

import pytest
import torch

from counterpoise._check import InputError
from counterpoise.interface import Images
from counterpoise.models.vgg import vgg16
from counterpoise.privacy import account
from counterpoise.reproduce import _deck_pairs as pairs_step
from counterpoise.reproduce import _deck_training as training_step
from counterpoise.reproduce import listing, reproduction
from counterpoise.reproduce._deck_accounts import last_epoch_within, spending, strong_composition
from counterpoise.reproduce._deck_pairs import Pairs, cosine, pairs_of
from counterpoise.reproduce._deck_tables import heads, wilson
from counterpoise.reproduce._deck_training import DECAYING, Arm, Rate, plan_for, train
from counterpoise.reproduce._private_heads import Fixed
from counterpoise.reproduce._side_by_side import compare, sparsified_radius
from counterpoise.reproduce.settings import Settings
from counterpoise.store import Store
from counterpoise.training import generator

deck = import_module("counterpoise.reproduce.deck_cifar")
TINY = Pairs(samples=12, steps=1, draws=1)


def images(n: int, seed: int) -> Images:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (n,), generator=rng)
    pixels = (torch.rand(n, 3, 32, 32, generator=rng) + 0.5 * labels.view(-1, 1, 1, 1)).clamp(0, 1)
    return Images("made", pixels, {"object": labels}, {"object": ("dark", "light")})


def test_the_epsilons_are_those_of_the_decks_settings() -> None:
    """What the specification quotes for RDP; the tighter accountant allows one epoch at .35 and two at .5."""
    one, ten, fifty = spending(50_000, 250, 1.1, 1e-5, [1, 10, 50])
    assert [round(row.rdp, 2) for row in (one, ten, fifty)] == [0.78, 1.19, 2.58]
    for row in (one, ten, fifty):
        assert row.pld < row.rdp < row.strong
    assert one.pld == pytest.approx(0.341, abs=0.001)
    assert [last_epoch_within(goal, 50_000, 250, 1.1, 1e-5, "rdp") for goal in (0.35, 0.5)] == [0, 0]
    assert [last_epoch_within(goal, 50_000, 250, 1.1, 1e-5, "pld") for goal in (0.35, 0.5)] == [1, 2]


def test_strong_composition_is_above_the_truth_and_near_it_for_one_step() -> None:
    exact = account(noise=2.0, sample_rate=1.0, steps=1, delta=1e-5)
    assert exact < strong_composition(2.0, 1.0, 1, 1e-5) < math.inf
    small = [strong_composition(40.0, 0.1, steps, 1e-5) for steps in (100, 400)]
    assert 1.9 < small[1] / small[0] < 2.6  # it grows with the root of the steps
    assert account(noise=40.0, sample_rate=0.1, steps=400, delta=1e-5) < small[1]


def test_rates_decay_without_stairs() -> None:
    assert DECAYING.at(0) == 0.5
    assert DECAYING.at(5000) == pytest.approx(0.45)
    assert Rate(0.001).at(10_000) == 0.001
    assert str(DECAYING) == "0.5, x 0.9 every 5000 steps"


@pytest.mark.parametrize("private", [False, True])
def test_an_arm_learns_is_kept_and_is_taken_up_again(private: bool, tmp_path: Path) -> None:
    arm = Arm("small", "small-cnn", private, Rate(0.5))
    data, tests = images(600, 0), images(200, 1)
    trial = train(arm, data, tests, "object", 3, 0, tmp_path)
    assert trial.accuracy > 0.9
    assert len(trial.accuracies) == 3
    assert trial.cpu_seconds > 0
    assert trial.peak_mib > 1
    assert (trial.push > 0) == private
    again = train(arm, data, tests, "object", 3, 0, tmp_path)
    assert again.cpu_seconds == trial.cpu_seconds
    assert all(torch.equal(a, b) for a, b in zip(trial.model.parameters(), again.model.parameters(), strict=True))
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"damaged")
    assert train(arm, data, tests, "object", 3, 0, tmp_path).accuracies == trial.accuracies
    other = train(arm, images(600, 2), tests, "object", 3, 0, tmp_path)  # as many images, but others
    assert not torch.equal(next(other.model.parameters()), next(trial.model.parameters()))
    assert plan_for(600, 3).spent().epsilon > 0


def test_the_whole_study_lays_out_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = (
        Arm("CNN, Adam", "small-cnn", False, Rate(0.01), "adam"),
        Arm("CNN, private, decaying", "small-cnn", True, DECAYING),
    )
    monkeypatch.setattr(deck, "arms", lambda width: few)
    reduction = replace(deck.SCALES["quick"], shown=2, pairs=TINY, samples=(20,))
    text = deck.study(images(300, 0), images(40, 1), "object", reduction, Settings(None, "quick", tmp_path))
    assert "0.341" in text
    assert ", 1 epoch; pairs of 2 test images" in text
    assert "Scale quick shows that all works; its accuracies and radii say nothing." in text
    assert "written as a loss, with the sign that makes it a minimum, it is -1.000" in text
    assert "Whole epochs that stay within the quoted epsilons: epsilon 0.35 by pld: 1;" in text
    content = json.loads((tmp_path / "deck-cifar-quick.json").read_text())
    assert content["digest"] in text
    assert content["cosine_of_equal_maps"] == {"similarity": pytest.approx(1), "as_a_loss": pytest.approx(-1)}
    assert set(content["pairs"]) == {"CNN, Adam", "CNN, private, decaying"}
    assert all(row["contradicted"] == 0 for row in content["pairs"].values())
    assert (tmp_path / "deck-cifar-quick.png").read_bytes().startswith(b"\x89PNG")
    assert "epsilon" not in {key for row in content["pairs"].values() for key in row}
    assert "epsilon" not in {key for row in content["side_by_side"] for key in row}
    assert "deck-cifar" in {entry.name for entry in listing()}


def test_a_gradient_that_vanishes_is_refused_in_single_precision_and_not_in_double() -> None:
    """What a map of almost nothing looks like: rounding ties it to its neighbours; double precision has room."""
    model = vgg16((3, 32, 32), 10, generator(0, "deck"), width=16)
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn(weight.shape, generator=rng))
            else:
                weight.mul_(0.1)
    pixels, target = images(1, 0).pixels, torch.zeros(1, dtype=torch.int64)
    with pytest.raises(InputError, match="has batch statistics, or a gradient so near 0 that rounding decides"):
        TINY.explainer().explain(model, pixels, target, rng)
    found = TINY.explainer().explain(model.double(), pixels.double(), target, rng)
    assert float(found.maps.sum()) == pytest.approx(16)


def test_heads_are_trained_at_the_quoted_and_the_computed_epsilon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, tests = images(600, 0), images(40, 1)
    parts = [(part.pixels.flatten(1)[:, ::64] / 7, part.labels["object"]) for part in (some, tests)]
    fixed = Fixed(*parts[0], *parts[1])
    monkeypatch.setattr(deck, "whitened", lambda *_: (fixed, ["every 64th value"]))
    levels = deck._heads(some, tests, replace(deck.SCALES["quick"], epochs=1), Settings(None, "quick", tmp_path))
    ours = spending(600, 250, 1.1, 1e-5, [1])[0].pld
    assert [level.epsilon for level in levels] == pytest.approx([0.35, 0.5, ours], abs=0.002)
    assert all(level.epsilon <= level.head.epsilon for level in levels)
    content = json.loads((tmp_path / "deck-cifar-quick-heads.json").read_text())
    assert content["seeds"] == [0, 1]
    assert content["configuration"]["features"] == ["every 64th value"]
    assert [row["accuracies"] for row in content["levels"]] == [list(level.accuracies) for level in levels]
    assert "| 0.350 |" in heads(levels, 600)


def _small_study(out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every step of the study, heads included, on few images and features of a moment."""
    some, tests = images(300, 0), images(40, 1)
    parts = [(part.pixels.flatten(1)[:, ::64] / 7, part.labels["object"]) for part in (some, tests)]
    few = (Arm("CNN, Adam", "small-cnn", False, Rate(0.01), "adam"), Arm("private", "small-cnn", True, DECAYING))
    monkeypatch.setattr(deck, "arms", lambda width: few)
    monkeypatch.setattr(deck, "whitened", lambda *_: (Fixed(*parts[0], *parts[1]), ["every 64th value"]))
    reduction = replace(deck.SCALES["quick"], shown=2, pairs=TINY, samples=(20, 50), heads=True)
    text: str = deck.study(some, tests, "object", reduction, Settings(None, "quick", out))
    return text


def _stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


STEPS = ((training_step, "_run"), (pairs_step, "pairs_of"), (deck, "compare"), (deck, "train_levels"))


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_a_stopped_study_goes_on_where_it_was(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the second call of each step, it makes the rest; once whole, it makes nothing, to the same bytes."""
    module, name = STEPS[at]
    real, calls = getattr(module, name), []

    def second(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, second)
        with pytest.raises(KeyboardInterrupt):
            _small_study(tmp_path, patched)
    resumed = _small_study(tmp_path, monkeypatch)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert not [path for path in files if path.name.endswith(".part")]
    with monkeypatch.context() as patched:
        for each, step in STEPS:
            patched.setattr(each, step, _stop)
        assert _small_study(tmp_path, patched) == resumed
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_damaged_files_are_made_again_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _small_study(tmp_path, monkeypatch)
    whole = json.loads((tmp_path / "deck-cifar-quick.json").read_text())
    for folder, count in (("weights", 2), ("pairs", 2), ("trainings", 5)):
        kept = list((tmp_path / folder).iterdir())
        assert len(kept) == count
        for path in kept:
            path.write_bytes(path.read_bytes()[:20])
    _small_study(tmp_path, monkeypatch)
    again = json.loads((tmp_path / "deck-cifar-quick.json").read_text())
    for name in ("digest", "pairs", "heads", "epsilons"):
        assert again[name] == whole[name]
    for name, timed in (("trials", ("cpu_seconds_an_epoch", "peak_mib")), ("side_by_side", ("seconds",))):
        for one, two in zip(whole[name], again[name], strict=True):
            assert {k: v for k, v in one.items() if k not in timed} == {k: v for k, v in two.items() if k not in timed}


def test_a_folder_that_cannot_be_used_is_refused_before_the_data_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for out, reason in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "under", "Not a directory")):
        with pytest.raises(InputError, match=f"cannot be made \\({reason}\\); name a folder you may write"):
            reproduction("deck-cifar")(tmp_path / "no data", "quick", out)
    with pytest.raises(InputError, match="there is no such file or folder; CIFAR-10 is offered at"):
        reproduction("deck-cifar")(tmp_path / "no data", "quick", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"there is no data_batch_1 or data_batch_1\.bin in it"):
        reproduction("deck-cifar")(tmp_path / "empty", "quick", tmp_path / "out")
    part = tmp_path / "out" / "weights" / ".x.safetensors.1.part"
    part.parent.mkdir()
    part.write_bytes(b"half")
    with pytest.raises(InputError, match="data_batch_1"):
        reproduction("deck-cifar")(tmp_path / "empty", "quick", tmp_path / "out")
    assert not part.exists()
    with Store.create(tmp_path / "out").locked(), pytest.raises(InputError, match="another run is at work in this"):
        reproduction("deck-cifar")(tmp_path / "empty", "quick", tmp_path / "out")


def test_files_with_fewer_images_are_not_called_all() -> None:
    paper = deck.SCALES["paper"]
    assert paper.sentence(20_000).startswith("20,000 of the deck's 50,000 training images")
    assert paper.sentence(50_000).startswith("all 50,000 training images")


def test_pairs_are_judged_by_whole_maps() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    seen = pairs_of(model, images(3, 2).pixels, TINY, 0)
    row = seen.row(16)
    for name, value in row.items():
        if name != "certified_radius":
            assert 0 <= value <= 1 + 1e-6, name
    assert row["labels_kept"] == 1
    blank = torch.zeros(1, 8, 8)
    assert cosine(blank, blank).tolist() == [0]
    assert cosine(blank + 1, blank + 2).tolist() == pytest.approx([1])


def test_at_equal_samples_our_radius_is_never_below_sparsified_smoothgrads() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    rows = compare(model, images(2, 3), "object", TINY, 0, (20, 60))
    by_name = {(row.method, row.samples): row for row in rows}
    assert by_name["SmoothGrad", 20].radius is None
    for samples in (20, 60):
        ours, theirs = (by_name[name, samples].radius for name in ("ours, step", "Sparsified SmoothGrad"))
        assert ours is not None
        assert theirs is not None
        assert ours >= theirs
    assert by_name["ours, step", 60].radius > 0  # type: ignore[operator]


def test_sparsified_smoothgrads_radius_by_hand() -> None:
    shares = torch.tensor([1.0, 0.9, 0.8, 0.2, 0.1, 0.0])
    # k = 2, beta = 1/2: the first rank against the fourth, each moved by the slack.
    slack = math.sqrt(math.log(2 * 6 / 0.05) / 20_000)
    held, taken = (NormalDist().inv_cdf(x) for x in (1 - slack, 0.2 + slack))
    assert sparsified_radius(shares, 10_000, 2, 0.5, 0.3) == pytest.approx(0.15 * (held - taken), rel=1e-4)
    assert sparsified_radius(shares, 10, 2, 0.5, 0.3) == 0


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = wilson(0.1, 5000)
    assert (round(low, 4), round(high, 4)) == (0.0920, 0.1086)
