"""The command line as a person meets it: outputs, exit codes, one sentence for a mistake and no traceback."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoise import cli, datasets, mechanisms
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Images, Progress, Task, Trained
from counterpoise.mechanisms.autoencoder import Autoencoder
from counterpoise.store import Store
from small_study import SMALL

COMMANDS = ("init", "plan", "run", "choose", "report", "explain", "reproduce", "list")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Call = Callable[..., Said]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("COLUMNS", "200")

    def called(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["counterpoise", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return called


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, made by the real command in a real process."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "study.toml").write_text(SMALL)
    command = [sys.executable, "-m", "counterpoise", "run", "study.toml", "--out", "run", "--workers", "2"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "8 trainings." in done.stdout
    assert re.search(r"\[8/8\] \d+ s  \w: ", done.stdout)
    assert "run: 8 trainings, 16 cells, 4 settings." in done.stdout
    assert "Report: run/report.html" in done.stdout
    return folder / "run"


def test_a_run_leaves_a_report_a_decision_a_matrix_and_figures(demo: Path) -> None:
    for name in ("report.html", "decision.json", "matrix.csv", "matrix-paper.csv", "results.json"):
        assert (demo / name).stat().st_size > 0, name
    assert list((demo / "figures").glob("*.png"))
    assert not list(demo.rglob("*.part"))
    json.loads((demo / "decision.json").read_text(), parse_constant=lambda name: pytest.fail(name))


def test_version_and_help(call: Call) -> None:
    assert re.fullmatch(r"counterpoise \d+\.\d+\.\d+\n", call("--version").out)
    whole = call("--help").out
    for command in COMMANDS:
        assert f"  {command} " in whole
        text = " ".join(call(command, "--help").out.split())
        assert f"Example: counterpoise {command} " in text, command


def test_init_writes_a_study_that_plan_reads(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    assert call("init", path).code == 0
    again = call("init", path)
    assert (again.code, again.err) == (
        2,
        f"counterpoise: {path}: is there already; name another file, or add --force to overwrite it.\n",
    )
    assert call("init", path, "--force").code == 0
    said = call("plan", path, "--workers", "2")
    assert said.code == 0
    assert re.search(r"dp-sgd +63 +693 +noise 0 to 2, 21 degrees", said.out)
    assert "In all: 78 trainings for 858 cells." in said.out
    assert re.search(r"^2 +5\.\d+ *$", said.out, re.MULTILINE), "epsilon of the last degree"
    assert re.search(r"^0 +infinite *$", said.out, re.MULTILINE)
    assert "No conflict between the requirements" in said.out
    assert re.search(r"Estimate from a few timed steps: about .* with 2 workers\.", said.out)


def test_plan_tells_conflicts_and_regrets_before_training(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(SMALL.replace('name = "b"\n', 'name = "b"\nrequires = ["noise < 1.5"]\n'))
    said = call("plan", path)
    assert "Conflict: No cell of 'dp-sgd' is allowed by all parties." in said.out
    assert "Binding: a's 'noise > 1.5' or b's 'noise < 1.5'." in said.out
    assert "Note: b bounds the degree of dp-sgd and lists no mechanisms" in said.out
    assert not list(tmp_path.glob("*/"))


def test_choose_prints_winner_runners_up_regret_and_margin(call: Call, demo: Path) -> None:
    said = call("choose", demo)
    assert said.code == 0
    assert said.out.startswith("Choose dp-sgd at noise 2, explainability ")
    for word in ("Flip margin", "Runners-up", "regret", "epsilon", "Policy unanimous, mode measured."):
        assert word in said.out
    assert call("choose", demo, "--mode", "paper", "--policy", "paper").code == 0
    assert re.search(r"moved by 10 %: the winner stays in \d+ of 12 cases\.", call("choose", demo, "--shake").out)


def test_choose_as_json_is_the_decision(call: Call, demo: Path) -> None:
    said = call("choose", demo, "--json", "--policy", "nash", "--mode", "paper")
    assert json.loads(said.out)["policy"] == "nash"


def test_an_infeasible_wish_exits_1_with_advice(call: Call, demo: Path) -> None:
    said = call("choose", demo, "--require", "a: noise >= 3")
    assert said.code == 1
    assert "No setting is feasible." in said.out
    assert "Smallest relaxation: a: 'noise >= 3' to 'noise >= 2'." in said.out


def test_report_is_written_again_for_another_policy(call: Call, demo: Path) -> None:
    said = call("report", demo, "--policy", "egalitarian")
    assert said.code == 0
    assert "a: the chosen model alone has epsilon" in said.out
    assert "publishing all 2 private trainings of the sweep has epsilon" in said.out
    assert '"egalitarian"' in (demo / "decision.json").read_text()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_explain_predicts_a_photo_and_draws_why(call: Call, demo: Path, tmp_path: Path, mode: str) -> None:
    arrays = Store.open(demo).gallery(Store.open(demo).results().records[0].digest)
    assert arrays is not None
    photo = tmp_path / "digit.png"
    Image.fromarray(arrays["original"][0, :, :, 0]).resize((64, 64)).convert(mode).save(photo)
    said = call("explain", demo, photo, "--out", tmp_path / "why.png", "--party", "b")
    assert said.code == 0, said.err
    assert re.match(
        rf"{re.escape(str(photo))}: \w+ \(\d+%\), \w+ \(\d+%\), \w+ \(\d+%\)\.\nModel: dp-sgd at noise 2", said.out
    )
    assert "resized to 8 x 8 pixels" in said.out
    picture = np.asarray(Image.open(tmp_path / "why.png"))
    assert picture.shape == (320, 976, 3)
    assert picture[:, 656:].std() > 1


def test_reproduce_prints_published_numbers_beside_ours(call: Call) -> None:
    said = call("reproduce", "abbasi-example")
    assert said.code == 0
    assert "14 of 14 agree." in said.out


def test_list_shows_every_room(call: Call) -> None:
    assert "smoothgrad" in call("list", "explainers").out
    assert "dp-sgd" in call("list", "mechanisms").out
    assert "abbasi-example" in call("list", "reproductions").out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("run", "gone.toml", "--out", "x"),
            r"gone\.toml: there is no such file; 'counterpoise init gone\.toml' writes one",
        ),
        (
            ("run", "bad.toml", "--out", "x"),
            r"bad\.toml: training\.epochs = -1: Input should be greater than or equal to 1\.",
        ),
        (
            ("run", "wrong.toml", "--out", "x"),
            r"wrong\.toml: data 'folder': .*nowhere.* there is no such folder",
        ),
        (("plan", "wrong.toml"), r"wrong\.toml: data 'folder': .*nowhere.* there is no such folder"),
        (("run", "good.toml", "--out", "x", "--workers", "0"), r"workers=0 must be a whole number, 1 or above\."),
        (("run", "good.toml", "--out", "x", "--seeds", "0"), r"seeds=0 must be a whole number, 1 or above\."),
        (("run", "good.toml", "--out", "x", "--policy", "best"), r"policy='best' must be one of"),
        (("run", "good.toml", "--out", "good.toml"), r"good\.toml: cannot be made"),
        (("plan", "."), r"\.: cannot be read as a text file"),
        (("choose", "gone"), r"gone: holds no run \(no results\.json\)"),
        (("report", "gone"), r"gone: holds no run"),
        (("explain", "gone", "photo.png"), r"gone: holds no run"),
        (("reproduce", "abbasi"), r"reproduction 'abbasi' is not one of: .*abbasi-example"),
        (("reproduce", "abbasi-example", "--scale", "huge"), r"scale='huge' must be one of 'cpu', 'paper', 'quick'\."),
        (("list", "things"), r"room='things' must be one of"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.toml").write_text(SMALL)
    (tmp_path / "bad.toml").write_text(SMALL.replace("epochs = 2", "epochs = -1"))
    (tmp_path / "wrong.toml").write_text(
        SMALL.replace("[data]", '[data]\nroot = "nowhere"').replace("digits", "folder")
    )
    said = call(*arguments)
    assert said.code == 2
    assert re.search(complaint, said.err), said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert {p.name for p in tmp_path.iterdir()} == {"good.toml", "bad.toml", "wrong.toml"}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--require", "noise"), r"requirement 'noise' must read like"),
        (("--require", "colour > 1"), r"'colour > 1' requires the unknown 'colour'; known: "),
        (
            ("--require", "certified_radius >= .1"),
            r"party 'a': 'certified_radius >= \.1' is about 'certified_radius', which is measured on request only,"
            r" .*: list it under \[\[measures\]\] in the study, or in a party's requires, and run the study again\.\n$",
        ),
        (("--require", "b: average_drop_of_edges < 3"), r"party 'b': .* is measured on request only,"),
        (("--require", "nobody: noise > 1"), r"there is no party 'nobody'; parties: a, b\."),
        (("--quorum", "2"), r"quorum=2 is only for policy='quorum'"),
        (("--policy", "quorum", "--quorum", "9"), r"quorum=9 must not be above the number of parties, 2\."),
        (("--mode", "both"), r"mode='both' must be one of 'measured', 'paper'\."),
    ],
)
def test_a_wrong_wish_is_one_sentence(call: Call, demo: Path, options: tuple[str, ...], complaint: str) -> None:
    said = call("choose", demo, *options)
    assert (said.code, said.out) == (2, "")
    assert re.search(complaint, said.err), said.err


def test_another_explainer_explains_the_chosen_model(call: Call, demo: Path, tmp_path: Path) -> None:
    photo = tmp_path / "x.png"
    Image.effect_noise((8, 8), 90).save(photo)
    pictures = {}
    for name in ("", "saliency", "occlusion", "vargrad"):
        out = tmp_path / f"{name}.png"
        said = call("explain", demo, photo, "--out", out, *(("--explainer", name) if name else ()))
        assert said.code == 0, said.err
        pictures[name] = out.read_bytes()
    assert len(set(pictures.values())) >= 3
    for name, sentence in (
        ("grad_cam", "did you mean 'grad-cam'?"),
        ("grad-cam", "the model has no convolution"),
        (
            "robust-topk",
            "needs a degree of its own ('explainability'), and the run's is of 'smoothgrad': choose one without",
        ),
    ):
        said = call("explain", demo, photo, "--explainer", name, "--out", tmp_path / "never.png")
        assert (said.code, sentence in said.err) == (2, True)
    assert not (tmp_path / "never.png").exists()


def test_a_corrupt_photo_or_unknown_party_is_one_sentence(call: Call, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    out = tmp_path / "why.png"
    assert "broken.png: cannot be read as an image" in call("explain", demo, tmp_path / "broken.png", "--out", out).err
    assert "there is no such image file" in call("explain", demo, tmp_path / "gone.png", "--out", out).err
    assert (
        "--party 'c' must be one of: a, b."
        in call("explain", demo, tmp_path / "x.png", "--party", "c", "--out", out).err
    )
    assert not out.exists()


def test_damaged_weights_are_one_sentence(call: Call, demo: Path, tmp_path: Path) -> None:
    photo = tmp_path / "x.png"
    Image.new("L", (8, 8)).save(photo)
    store = Store.open(demo)
    paths = sorted((demo / "weights").iterdir())
    kept = {path: path.read_bytes() for path in paths}
    try:
        for path in paths:
            path.write_bytes(b"nonsense")
        said = call("explain", demo, photo, "--out", tmp_path / "why.png")
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
    assert said.code == 2
    assert "these weights are missing, damaged, or another model's; delete records/" in said.err
    assert store.results().notes == ()


class Interrupted(Digits):
    """Ctrl-C comes while the images are read."""

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        signal.raise_signal(signal.SIGINT)
        return super().load(progress)


class Stopping(Autoencoder):
    """Ctrl-C comes in the middle of a training."""

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        signal.raise_signal(signal.SIGINT)
        return super().train(task, rng)


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(datasets.BUILTIN, "interrupted", Interrupted)
    monkeypatch.setitem(mechanisms.BUILTIN, "stopping", Stopping)
    path, out = tmp_path / "study.toml", tmp_path / "out"
    path.write_text(SMALL.replace('"digits"', '"interrupted"'))
    said = call("run", path, "--out", out, "--executor", "serial")
    assert (said.code, said.err) == (130, "Stopped: before the first training; the same command goes on.\n")
    assert not out.exists()
    path.write_text(SMALL.replace('"autoencoder"', '"stopping"'))
    said = call("run", path, "--out", out, "--executor", "serial")
    assert (said.code, said.err) == (130, "Stopped: 6 of 8 trainings are kept; the same command goes on.\n")
    assert len(list((out / "records").iterdir())) == 6
