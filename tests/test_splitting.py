"""Two halves that run in two processes give what the whole gives; what goes round the cut is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from counterpoise._check import InputError
from counterpoise.cli import app
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Recipe, Task, Trained
from counterpoise.mechanisms.linear_erasure import LinearErasure
from counterpoise.models import BUILTIN
from counterpoise.record import Party
from counterpoise.representation.layers import LAST, features
from counterpoise.running import run
from counterpoise.splitting import cut, export_split, halves, load_half
from counterpoise.study import Study, Sweep, Training, Use
from counterpoise.training import generator, seeded


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("name", "at"), [("lenet5-caffe", "2"), ("lenet5-caffe", "7"), ("small-cnn", LAST)])
def test_both_halves_are_the_whole_and_the_first_sends_what_is_heard_there(name: str, at: str) -> None:
    model, pixels = BUILTIN[name]((1, 28, 28), 3, rng()).eval(), torch.rand(4, 1, 28, 28, generator=rng())
    first, second = cut(model, at)
    with torch.no_grad():
        sent = first(pixels)
        assert torch.equal(second(sent), model(pixels))
    assert torch.equal(sent.flatten(1), features(model, at, pixels))
    both = {*first.state_dict(), *second.state_dict()}
    assert both == set(model.state_dict())
    assert not set(first.state_dict()) & set(second.state_dict())


def test_a_residual_network_is_cut_between_blocks_and_not_inside_one() -> None:
    model, pixels = BUILTIN["resnet18"]((3, 32, 32), 2, rng()).eval(), torch.rand(2, 3, 32, 32)
    inside = [name for name, part in model.named_modules() if isinstance(part, nn.Conv2d)][1]
    with pytest.raises(InputError, match=rf"^at='{inside}': \w+ goes round this layer to \w+; name a layer"):
        cut(model, inside)
    first, second = cut(model, LAST)
    with torch.no_grad():
        assert torch.equal(second(first(pixels)), model(pixels))


def test_the_eraser_works_before_anything_is_sent() -> None:
    train, test = Digits().load()
    task = Task(train, test, "digit", BUILTIN["mlp"], Recipe(2, 64), hidden="digit")
    trained = LinearErasure().train(task, generator(0))
    first, second = halves(trained, LAST)
    with torch.no_grad():
        sent = first(train.pixels)
        answers, whole = second(sent), trained.model(train.pixels)
    means = torch.stack([sent[train.labels["digit"] == c].mean(0) for c in range(10)])
    assert float((means - means.mean(0)).abs().max()) < 1e-3
    assert torch.allclose(answers, whole, atol=1e-4)


def test_a_network_that_cannot_be_traced_is_told() -> None:
    class Choosing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with seeded(rng()):
                self.layer = nn.Linear(4, 2)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.layer(rows) if rows.sum() > 0 else rows
            return found

    with pytest.raises(InputError, match=r"^at='layer': this network's forward pass cannot be traced"):
        cut(Choosing(), "layer")
    with pytest.raises(InputError, match=r"^at='fc': the model has no layer of that name"):
        halves(Trained(Choosing(), nn.Identity()), "fc")


def test_the_chosen_model_of_a_run_in_two_processes(tmp_path: Path) -> None:
    study = Study(
        name="split",
        model=Use("mlp"),
        training=Training(epochs=2, batch=64),
        mechanisms=[Sweep("autoencoder", degrees=["0.25"], options={"steps": 10})],
        explainer=Sweep("smoothgrad", degrees=[0], options={"samples": 2}),
        explained_images=4,
        gallery_images=0,
        parties=[Party("a", mechanisms=("autoencoder",))],
    )
    run(study, tmp_path / "run", executor="serial")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--split", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "The first half sends 64 numbers an image" in done.output
    assert "names no hidden label" in done.output
    pixels = Digits().load()[1].pixels[:20]
    np.save(tmp_path / "images.npy", pixels.numpy())
    for half, given, gives in (("pi_1", "images", "sent"), ("pi_2", "sent", "logits")):
        code = f"""
import numpy as np, torch
from counterpoise.splitting import load_half
half = load_half({str(tmp_path / half)!r} + ".safetensors")
with torch.no_grad():
    np.save({str(tmp_path / gives)!r}, half(torch.from_numpy(np.load({str(tmp_path / given)!r} + ".npy"))).numpy())
"""
        subprocess.run([sys.executable, "-c", code], check=True)
    whole = export_split(tmp_path / "run", tmp_path / "again", None, "a", "unanimous", "measured")
    first, second = (load_half(path) for path in whole.paths)
    with torch.no_grad():
        expected = second(first(pixels)).numpy()
    assert np.allclose(np.load(tmp_path / "logits.npy"), expected, atol=1e-5)
    assert np.load(tmp_path / "sent.npy").shape == (20, 64)
    assert whole.sizes == tuple(path.stat().st_size for path in whole.paths)


def test_what_is_no_half_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pi_1.safetensors"
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"pi_1\.safetensors: is not a half that 'counterpoise export --split' wrote"):
        load_half(path)
    done = CliRunner().invoke(app, ["export", str(tmp_path)])
    assert "say what to write, one of: --split (two halves of the model)" in str(done.exception)
