"""Exporting into any folder, killed or twice at once: two whole halves of one model, or one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import nn

from counterpoise import cli
from counterpoise._check import InputError
from counterpoise._files import lock
from counterpoise.interface import Trained
from counterpoise.models import BUILTIN
from counterpoise.record import Party
from counterpoise.running import run
from counterpoise.splitting import halves, load_half, save_halves
from counterpoise.study import Study, Sweep, Training, Use

Export = Callable[..., tuple[int, str]]


def study(**changes: object) -> Study:
    settings: dict[str, object] = {
        "name": "export",
        "model": Use("mlp"),
        "training": Training(epochs=1, batch=64),
        "mechanisms": [Sweep("plain")],
        "explainer": Sweep("smoothgrad", degrees=[0], options={"samples": 2}),
        "explained_images": 4,
        "gallery_images": 0,
        "parties": [Party("a")],
        **changes,
    }
    return Study(**settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    run(study(), folder, executor="serial")
    return folder


@pytest.fixture
def export(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Export:
    """The command as a user gives it: exit code and what it says of a mistake."""

    def called(folder: Path, *more: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["counterpoise", "export", str(folder), "--split", *map(str, more)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, capsys.readouterr().err

    return called


def test_where_nothing_can_be_written_is_one_sentence(finished: Path, tmp_path: Path, export: Export) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    for out in (file, file / "deeper"):
        code, said = export(finished, "--out", out)
        assert (code, said.count("\n")) == (2, 1)
        assert said.startswith(f"counterpoise: --out {out}: cannot be written (")
        assert said.endswith("name a folder you may write.\n")
    assert file.read_bytes() == b"mine"


def test_a_layer_that_is_not_there_writes_nothing(finished: Path, tmp_path: Path, export: Export) -> None:
    code, said = export(finished, "--at", "99", "--out", tmp_path / "new")
    assert code == 2
    assert said.startswith("counterpoise: at='99': the model has no layer of that name; name one of: ")
    assert not (tmp_path / "new").exists()


def test_nothing_feasible_is_exit_code_1_and_writes_nothing(tmp_path: Path, export: Export) -> None:
    run(study(parties=[Party("a", ("accuracy >= 1",))]), tmp_path / "run", executor="serial")
    code, said = export(tmp_path / "run")
    assert code == 1
    assert "there is no single chosen model. No setting is feasible." in said
    assert not (tmp_path / "run" / "split").exists()


def own_model(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    return BUILTIN["linear"](shape, classes, rng)


def test_a_model_given_from_python_cannot_be_rebuilt_and_is_told(tmp_path: Path, export: Export) -> None:
    run(study(model=Use(own_model)), tmp_path / "run", executor="serial")
    code, said = export(tmp_path / "run")
    assert code == 2
    assert "own_model' was given as a Python object, which a folder cannot bring back; install it as a plug-in" in said
    assert not (tmp_path / "run" / "split").exists()


def test_other_files_stay_and_only_what_a_killed_export_left_goes(
    finished: Path, tmp_path: Path, export: Export
) -> None:
    kept = [tmp_path / "notes.txt", tmp_path / ".other.safetensors.7.part"]
    for path in kept:
        path.write_bytes(b"mine")
    (tmp_path / ".pi_2.safetensors.7.part").write_bytes(b"half")
    assert export(finished, "--out", tmp_path)[0] == 0
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"notes.txt", ".other.safetensors.7.part", "pi_1.safetensors", "pi_2.safetensors", ".lock"}


def test_two_at_once_are_one_and_a_sentence(finished: Path, tmp_path: Path, export: Export) -> None:
    with lock(tmp_path):
        code, said = export(finished, "--out", tmp_path)
        assert (code, [path.name for path in tmp_path.iterdir()]) == (2, [".lock"])
        assert said == f"counterpoise: --out {tmp_path}: another export is writing into this folder; wait for it.\n"
    assert export(finished, "--out", tmp_path)[0] == 0


DESCRIBED = {
    "at": "", "shape": [1, 8, 8], "classes": 10, "model": {"part": "mlp", "options": {}}, "degree": "0",
    "mechanism": {"part": "plain", "options": {}},
}  # fmt: skip

KILLED = """
import os, signal, sys, torch
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_exporting import DESCRIBED, pair
from counterpoise import splitting
calls, real, rename = [0], splitting.save_file, os.replace
def dying(done, *given, **named):
    calls[0] += 1
    if calls[0] == {moment}:
        os.kill(os.getpid(), signal.SIGKILL)
    return done(*given, **named)
splitting.save_file = lambda *given, **named: dying(real, *given, **named)
os.replace = lambda *given: dying(rename, *given)
splitting.save_halves(pair(1), Path({out!r}), {{**DESCRIBED, "digest": "new"}})
"""


def pair(seed: int) -> tuple[nn.Module, nn.Module]:
    return halves(Trained(BUILTIN["mlp"]((1, 8, 8), 10, torch.Generator().manual_seed(seed)), nn.Identity()), "")


@pytest.mark.parametrize(("moment", "there"), [(1, "old old"), (2, "old old"), (3, ""), (4, "new")])
def test_killed_at_any_moment_two_models_are_never_mixed(moment: int, there: str, tmp_path: Path) -> None:
    save_halves(pair(0), tmp_path, {**DESCRIBED, "digest": "old"})
    code = KILLED.format(tests=str(Path(__file__).parent), moment=moment, out=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    found = sorted(tmp_path.glob("pi_*"))
    assert " ".join(_of(path) for path in found) == there
    for path in found:
        load_half(path)
    save_halves(pair(1), tmp_path, {**DESCRIBED, "digest": "new"})
    assert [_of(path) for path in sorted(tmp_path.glob("*pi_*"))] == ["new", "new"]
    assert not list(tmp_path.glob(".*.part"))


def _of(path: Path) -> str:
    with safe_open(path, framework="pt") as file:
        words: str = file.metadata()["half"]
    return "old" if '"digest": "old"' in words else "new"


def test_a_folder_where_a_half_should_be_is_told_and_stays(tmp_path: Path) -> None:
    (tmp_path / "pi_1.safetensors").mkdir()
    with pytest.raises(InputError, match=r"^--out .*: cannot be written \(.+\); name a folder you may write\.$"):
        save_halves(pair(0), tmp_path, DESCRIBED)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["pi_1.safetensors"]
