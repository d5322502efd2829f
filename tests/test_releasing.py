"""The chosen filter used by itself: on folders of photos, and as files that run where nothing of ours is installed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, PngImagePlugin
from torch import Tensor, nn

import counterpoise
from counterpoise import cli
from counterpoise._files import lock
from counterpoise.datasets.dots import Dots
from counterpoise.interface import Recipe, Task
from counterpoise.mechanisms import Autoencoder, LocalNoise
from counterpoise.mechanisms.filters import FRESH, Filter, Staged, UNet, load
from counterpoise.mechanisms.pixel_shuffle import PixelShuffle
from counterpoise.models import BUILTIN
from counterpoise.record import Party
from counterpoise.releasing import ASSURED, Chosen, chosen_release, export_release, release_folder
from counterpoise.running import run
from counterpoise.study import Study, Sweep, Training, Use
from counterpoise.training import generator

Command = Callable[..., tuple[int, str]]


def study(mechanism: Sweep) -> Study:
    return Study(
        name="release",
        data=Use("dots", train=300, test=120),
        target="position",
        hidden="secret",
        model=Use("mlp"),
        training=Training(epochs=1, batch=64),
        mechanisms=[mechanism],
        explainer=Sweep("smoothgrad", degrees=[0], options={"samples": 2}),
        explained_images=4,
        gallery_images=0,
        parties=[Party("a", (), (mechanism.name,))],
    )


OPTIONS = {"steps": 30, "check_every": 30, "refresh": 10, "width": 4, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "run"
    run(study(Sweep("privatizer", degrees=[1], options=OPTIONS)), folder, executor="serial")
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """A command as a user gives it: exit code, and what it says."""

    def called(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["counterpoise", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out + said.err

    return called


def photo(path: Path, size: tuple[int, int] = (8, 8), mode: str = "L", **options: Any) -> Path:
    """Bright at the upper left, dark elsewhere, so that turning it shows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.zeros((size[1], size[0]), np.uint8)
    pixels[: size[1] // 2, : size[0] // 2] = 250
    Image.fromarray(pixels).convert(mode).save(path, **options)
    return path


def of(image: nn.Module, shape: tuple[int, int, int] = (1, 8, 8)) -> Chosen:
    """A release given as it is."""
    return Chosen(image.eval(), shape, "a release", {"assurance": ASSURED}, torch.rand(16, *shape))


class Same(nn.Module):
    """Shows what it is given."""

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.clone()


def opened(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))


def read(path: Path) -> Tensor:
    return torch.from_numpy(np.asarray(opened(path)).copy()).float() / 255


def test_a_folder_becomes_a_folder_of_the_same_names(finished: Path, tmp_path: Path, command: Command) -> None:
    photos, out = tmp_path / "photos", tmp_path / "out"
    photo(photos / "a.png"), photo(photos / "deep" / "deeper" / "Ünï 图.JPG", (40, 20), "RGB"), photo(photos / "c.bmp")
    (photos / "notes.txt").write_text("no photo")
    (photos / "linked.png").symlink_to(photos / "a.png")
    code, said = command("release", finished, photos, "--out", out)
    assert code == 0
    assert said.startswith(f"Wrote 4 filtered images to {out}, of 8 x 8 pixels, by ")
    assert "1 had another size, and were resized." in said
    assert "Measured against the attackers named in the run's report; nothing is proved." in said
    found = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path.name != ".lock")
    assert found == ["a.png", "c.png", "deep/deeper/Ünï 图.png", "linked.png"]
    assert all(opened(out / name).size == (8, 8) and opened(out / name).mode == "L" for name in found)
    assert not torch.equal(read(out / "a.png"), read(out / "linked.png"))  # the noise is drawn anew for every image
    before = (out / "a.png").read_bytes()
    (out / "c.png").unlink()
    assert "Wrote 1 filtered images" in (second := command("release", finished, photos, "--out", out)[1])
    assert "3 were there already and were kept: remove them to filter those photos anew." in second
    assert (out / "a.png").read_bytes() == before


def test_photos_are_turned_upright_and_lose_their_metadata(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "home, 14 Main Street"  # turned by 90 degrees; a description
    photo(tmp_path / "in" / "turned.jpg", exif=exif, quality=95, comment=b"who made it")
    text = PngImagePlugin.PngInfo()
    text.add_text("Author", "somebody")
    photo(tmp_path / "in" / "named.png", pnginfo=text, dpi=(72, 72))
    assert opened(tmp_path / "in" / "turned.jpg").getexif()[0x010E] == "home, 14 Main Street"
    release_folder(of(Same()), tmp_path / "in", tmp_path / "out")
    for name in ("turned", "named"):
        content = (tmp_path / "out" / f"{name}.png").read_bytes()
        written = Image.open(io.BytesIO(content))
        assert not dict(written.getexif())
        assert not written.info
        assert not any(word in content for word in (b"Main Street", b"who made it", b"somebody", b"Exif", b"eXIf"))
    assert read(tmp_path / "out" / "named.png")[:4, :4].mean() > 0.9
    turned = read(tmp_path / "out" / "turned.png")
    assert turned[:4, 4:].mean() > 0.9  # upper left, turned clockwise, is upper right
    assert turned[:4, :4].mean() < 0.1


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_grey_and_colour(channels: int, mode: str, tmp_path: Path) -> None:
    for name, kind in (("grey", "L"), ("colour", "RGB"), ("palette", "P"), ("clear", "RGBA"), ("bits", "1")):
        photo(tmp_path / "in" / f"{name}.png", (6, 10), kind)
    release_folder(of(Same(), (channels, 10, 6)), tmp_path / "in", tmp_path / "out")
    for path in (tmp_path / "out").glob("*.png"):
        written = opened(path)
        assert (written.mode, written.size) == (mode, (6, 10))
        assert float(read(path)[:5, :3].mean()) > 0.9 > 0.1 > float(read(path)[5:].mean())


def test_what_cannot_be_read_is_told_after_the_rest_is_done(tmp_path: Path, command: Command, finished: Path) -> None:
    photo(tmp_path / "in" / "a.png"), photo(tmp_path / "in" / "z.png")
    (tmp_path / "in" / "broken.png").write_bytes(photo(tmp_path / "whole.png").read_bytes()[:40])
    (tmp_path / "in" / "gone.png").symlink_to(tmp_path / "nowhere.png")  # no file, so no photo
    code, said = command("release", finished, tmp_path / "in", "--out", tmp_path / "out")
    assert (code, said.count("\n")) == (2, 1)
    assert "Wrote 2 filtered images" in said
    assert f"1 could not be read, the first: {tmp_path / 'in' / 'broken.png'}: cannot be read as an image (" in said
    assert sorted(path.name for path in (tmp_path / "out").glob("*.png")) == ["a.png", "z.png"]


@pytest.mark.parametrize("case", ["nothing", "empty", "collide", "inside", "same", "file", "below a file"])
def test_folders_that_cannot_be_are_told_and_nothing_is_written(
    case: str, tmp_path: Path, command: Command, finished: Path
) -> None:
    photos, out = tmp_path / "in", tmp_path / "out"
    photo(photos / "a.png")
    told = {
        "nothing": (tmp_path / "nowhere", out, f"{tmp_path / 'nowhere'}: there is no such file or folder of photos."),
        "empty": (tmp_path / "empty", out, f"{tmp_path / 'empty'}: holds no photo (.png, .jpg"),
        "collide": (
            photos,
            out,
            f"{photos / 'a.png'} and {photos / 'a.jpg'} would both become {out / 'a.png'}; rename",
        ),
        "inside": (photos, photos / "out", f"--out {photos / 'out'}: lies in {photos}, and filtered images must not"),
        "same": (photos, photos, f"--out {photos}: lies in {photos}, and filtered images must not mix"),
        "file": (photos, tmp_path / "file", f"--out {tmp_path / 'file'}: is a file; name a folder."),
        "below a file": (photos, tmp_path / "file" / "x", f"--out {tmp_path / 'file' / 'x'}: cannot be written ("),
    }
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"mine")
    if case == "collide":
        photo(photos / "a.jpg")
    source, target, complaint = told[case]
    before = sorted(tmp_path.rglob("*"))
    code, said = command("release", finished, source, "--out", target)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"counterpoise: {complaint}")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_way_round_into_the_photos_is_seen(tmp_path: Path, command: Command, finished: Path) -> None:
    photo(tmp_path / "in" / "a.png")
    (tmp_path / "elsewhere").symlink_to(tmp_path / "in")
    code, said = command("release", finished, tmp_path / "in", "--out", tmp_path / "elsewhere" / "out")
    assert code == 2
    assert "filtered images must not mix with photos" in said


def test_two_at_once_are_one_and_a_sentence(tmp_path: Path, command: Command, finished: Path) -> None:
    photo(tmp_path / "in" / "a.png")
    (tmp_path / "out").mkdir()
    with lock(tmp_path / "out"):
        for words in (["release", finished, tmp_path / "in"], ["export", finished, "--release"]):
            code, said = command(*words, "--out", tmp_path / "out")
            assert code == 2
            out = tmp_path / "out"
            assert said == f"counterpoise: --out {out}: another command is writing into this folder; wait for it.\n"
    assert command("release", finished, tmp_path / "in", "--out", tmp_path / "out")[0] == 0


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_releasing import Same, of
from counterpoise import _files, releasing
calls, rename = [0], os.replace
def dying(*given):
    calls[0] += 1
    if calls[0] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(*given)
os.replace = dying
releasing.release_folder(of(Same()), Path({photos!r}), Path({out!r}))
"""


def test_killed_in_the_middle_images_are_whole_and_the_rest_follows(tmp_path: Path) -> None:
    for name in "abcde":
        photo(tmp_path / "in" / f"{name}.png")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".mine.png.7.part").write_bytes(b"somebody else's")
    code = KILLED.format(tests=str(Path(__file__).parent), photos=str(tmp_path / "in"), out=str(out))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert sorted(path.name for path in out.glob("*.png")) == ["a.png", "b.png"]
    assert len(list(out.glob(".c.png.*.part"))) == 1
    said = release_folder(of(Same()), tmp_path / "in", out)
    assert "Wrote 3 filtered images" in said
    assert "2 were there already" in said
    assert all(opened(path).size == (8, 8) for path in out.glob("*.png"))
    assert [path.name for path in out.glob(".*.part")] == [".mine.png.7.part"]


ALONE = """
import sys, torch
sys.path.insert(0, {out!r})
try:
    import counterpoise
    sys.exit("it can be imported")
except ImportError:
    pass
from filter import FRESH, load
one, program = load({out!r} + "/filter.safetensors"), torch.export.load({out!r} + "/filter.pt2").module()
given = torch.load({given!r}, weights_only=True)
rows = given["rows"]
with torch.no_grad():
    torch.save({{"run": one.run(rows, given["noise"])}}, {given!r} + ".out")
    for filtered in (one, program):
        first, second = filtered(rows), filtered(rows)
        assert first.shape == rows.shape and not torch.equal(first, second)
        assert filtered(rows[:1]).shape == rows[:1].shape
    torch.manual_seed(3)
    expected = one(rows)
    torch.manual_seed(3)
    assert torch.allclose(program(rows), expected, atol=1e-5)
assert int(one.seed) == FRESH
assert not any(name.startswith("counterpoise.") for name in sys.modules)
"""


def test_an_exported_filter_runs_alone(finished: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "ünd out"
    code, said = command("export", finished, "--release", "--out", out)
    assert code == 0
    assert {path.name for path in out.iterdir()} == {
        "filter.json", "filter.pt2", "filter.py", "filter.safetensors", ".lock"
    }  # fmt: skip
    release = chosen_release(finished, None, "unanimous", "measured").release
    assert isinstance(release, Filter)
    rows = Dots(train=10, test=10).load()[1].pixels
    noise = torch.randn(release.noise_shape(rows), generator=generator(0))
    torch.save({"rows": rows, "noise": noise}, tmp_path / "given.pt")
    code_there = ALONE.format(out=str(out), given=str(tmp_path / "given.pt"))
    blocked = "import sys; sys.modules['counterpoise'] = None\n"  # wherever it is installed, it cannot be imported
    alone = [sys.executable, "-I", "-c", blocked + code_there]
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    there = torch.load(tmp_path / "given.pt.out", weights_only=True)["run"]
    with torch.no_grad():
        assert torch.equal(there, release.run(rows, noise))
    about = json.loads((out / "filter.json").read_text())
    assert about["assurance"] == ASSURED
    assert (about["mechanism"], about["degree"], about["hidden"]) == ("privatizer", {"alpha": "1"}, "secret")
    assert about["bytes"] == {name: (out / name).stat().st_size for name in about["bytes"]}
    assert set(about["measured"]) >= {"accuracy", "secret_privacy"} or "privacy_gain" in about["measured"]
    assert 100 < about["images_per_second_on_one_thread"] < 1_000_000
    assert "images/s here on one thread" in said


def test_the_seed_of_the_study_is_in_none_of_the_files(finished: Path, tmp_path: Path, command: Command) -> None:
    """Whoever has it could draw the noise of the study's own images again."""
    from safetensors.torch import load_file

    assert command("export", finished, "--release", "--out", tmp_path)[0] == 0
    stored = [load_file(path) for path in finished.rglob("*.safetensors")]
    seed = next(int(table["release.seed"]) for table in stored if "release.seed" in table)
    assert seed > 2**32
    assert int(load_file(tmp_path / "filter.safetensors")["seed"]) == FRESH
    for path in tmp_path.glob("filter*"):
        content = _inside(path)
        assert str(seed).encode() not in content
        assert seed.to_bytes(8, "little") not in content


def _inside(path: Path) -> bytes:
    if path.suffix != ".pt2":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def test_the_program_holds_no_pickle_and_nothing_of_this_machine(tmp_path: Path) -> None:
    export_release(of(UNet((1, 8, 8), 4, 2)), tmp_path)
    with zipfile.ZipFile(tmp_path / "filter.pt2") as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    names = {name.split("/", 1)[1] for name in held if "weight_" not in name}
    assert names == {
        "models/model.json", "data/weights/model_weights_config.json", "data/constants/model_constants_config.json",
        "data/sample_inputs/model.pt", "archive_format", "archive_version", "byteorder", ".data/version",
        ".data/serialization_id",
    }  # fmt: skip
    everything = b"".join(held.values())
    assert next(content for name, content in held.items() if "sample_inputs" in name) == b""
    assert not any(content.startswith((b"PK", b"\x80")) for name, content in held.items() if "weight_" not in name)
    assert str(Path(counterpoise.__file__).parent).encode() not in everything
    assert str(Path.cwd()).encode() not in everything
    assert b"stack_trace" not in everything


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = Dots(train=100, test=40).load()
    return Task(train, test, "position", BUILTIN["mlp"], Recipe(epochs=1), hidden="secret")


def test_an_autoencoder_s_filter_is_a_program_alone(task: Task, tmp_path: Path) -> None:
    """Its class does not travel; older files of another filter go first."""
    export_release(of(UNet((1, 8, 8), 4, 2)), tmp_path)
    release = Autoencoder(code_ratio=Decimal("0.2"), steps=5).train(task, generator(0)).release
    export_release(of(release), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"filter.json", "filter.pt2", ".lock"}
    program = torch.export.load(tmp_path / "filter.pt2").module()
    with torch.no_grad():
        for n in (1, 7):
            assert torch.allclose(program(task.test.pixels[:n]), release(task.test.pixels[:n]), atol=1e-5)


@pytest.mark.parametrize("name", ["local-noise", "pixel-shuffle", "frozen"])
def test_what_a_program_cannot_hold_is_one_sentence(name: str, task: Task, tmp_path: Path) -> None:
    class Frozen(nn.Module):
        """Its noise comes from elsewhere, so tracing it would keep one draw for ever."""

        def forward(self, pixels: Tensor) -> Tensor:
            return pixels + torch.from_numpy(np.random.default_rng().random((1, 8, 8), np.float32))

    release: nn.Module = Frozen()
    if name == "local-noise":
        release = LocalNoise(Decimal(8)).train(task, generator(0)).release
        release[0].fresh()  # type: ignore[index]
    if name == "pixel-shuffle":
        release = PixelShuffle(Decimal(1)).train(task, generator(0)).release
    with pytest.raises(
        counterpoise._check.InputError, match=r"^the filter of a release cannot be exported as a program"
    ) as told:
        export_release(of(release), tmp_path / "out")
    assert str(told.value).endswith("use 'counterpoise release'.")
    assert not (tmp_path / "out").exists()


def test_a_local_noise_run_s_photos_are_noisy_and_never_the_same_twice(task: Task, tmp_path: Path) -> None:
    release = LocalNoise(Decimal(8)).train(task, generator(0)).release
    release[0].fresh()  # type: ignore[index]
    photo(tmp_path / "in" / "a.png"), photo(tmp_path / "in" / "b.png")
    release_folder(of(release), tmp_path / "in", tmp_path / "out")
    assert not torch.equal(read(tmp_path / "out" / "a.png"), read(tmp_path / "out" / "b.png"))


def test_two_stages_travel_together_or_as_a_program_alone(tmp_path: Path) -> None:
    export_release(of(Staged(UNet((1, 8, 8), 4, 2), UNet((1, 8, 8), 4, 2))), tmp_path / "both")
    loaded = load(tmp_path / "both" / "filter.safetensors")
    assert isinstance(loaded, Staged)
    export_release(of(Staged(nn.AvgPool2d(3, 1, 1), UNet((1, 8, 8), 4, 2))), tmp_path / "one")
    assert not (tmp_path / "one" / "filter.safetensors").exists()
    assert torch.export.load(tmp_path / "one" / "filter.pt2").module()(torch.zeros(3, 1, 8, 8)).shape == (3, 1, 8, 8)


def test_an_export_where_nothing_can_be_written_is_one_sentence(
    finished: Path, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    code, said = command("export", finished, "--release", "--out", tmp_path / "file")
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"counterpoise: --out {tmp_path / 'file'}: cannot be written (")
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_a_plain_model_has_nothing_to_filter(tmp_path: Path, command: Command) -> None:
    run(study(Sweep("plain")), tmp_path / "run", executor="serial")
    photo(tmp_path / "in" / "a.png")
    for words in (
        ["release", tmp_path / "run", tmp_path / "in", "--out", tmp_path / "out"],
        ["export", tmp_path / "run", "--release"],
    ):
        code, said = command(*words)
        assert (code, said.count("\n")) == (2, 1)
        assert "the chosen model (" in said
        assert "takes images as they are, so there is nothing to filter; choose a mechanism that does" in said
    assert not (tmp_path / "out").exists()
    assert os.listdir(tmp_path / "in") == ["a.png"]
