"""Runs: what they train, that nothing depends on workers or interruptions, and third parties' parts."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, Literal

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.grid import DegreeKind, Grid
from counterpoise.interface import Explanation, Outcome, Task, Trained
from counterpoise.prepare import Job, prepare
from counterpoise.record import Measurement, Party
from counterpoise.running import run
from counterpoise.store import Store
from counterpoise.study import Study, Sweep, Use
from counterpoise.training import fit_classifier
from small_study import SMALL, small


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return small(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def finished(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run in this process."""
    out = tmp_path_factory.mktemp("serial")
    run(study, out, executor="serial")
    return out


def contents(out: Path) -> dict[str, bytes]:
    """Everything that must not depend on how the run went: records, galleries, manifest."""
    files = [p for room in ("records", "galleries") for p in (out / room).iterdir()] + [out / "results.json"]
    return {str(p.relative_to(out)): p.read_bytes() for p in files}


def weights(out: Path) -> dict[str, dict[str, Tensor]]:
    return {p.name: load_file(p) for p in (out / "weights").iterdir()}


def assert_same(one: Path, other: Path) -> None:
    assert contents(one) == contents(other)
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name, table in first.items():
        assert all(torch.equal(value, second[name][key]) for key, value in table.items())


def test_explaining_never_retrains(study: Study, finished: Path) -> None:
    results = Store.open(finished).results()
    assert len(results) == 2 * (1 + 2 + 1)
    assert all(len(record.explained) == 2 for record in results)
    assert {record.mechanism for record in results if record.guarantees} == {"dp-sgd"}


def test_the_parties_share_the_images_and_no_image_twice(study: Study) -> None:
    prepared = prepare(study)
    rows = [tuple(pixels.flatten().tolist()) for images in prepared.data.values() for pixels in images.pixels]
    train = prepare(study.model_copy(update={"parties": (Party("all"),)})).data["all"]
    assert len(rows) == len(train)
    assert sorted(rows) == sorted(tuple(pixels.flatten().tolist()) for pixels in train.pixels)


def test_worker_processes_write_the_same_bytes(study: Study, finished: Path, tmp_path: Path) -> None:
    seen: list[tuple[Job, float]] = []
    run(study, tmp_path / "two", workers=2, report=lambda job, share: seen.append((job, share)))
    assert_same(finished, tmp_path / "two")
    assert {job for job, share in seen if share == 1.0} == set(prepare(study).jobs)
    assert any(0 < share < 1 for _, share in seen), "progress moves while a training is under way"


def test_a_finished_run_trains_nothing(study: Study, finished: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (finished / "records").iterdir()}
    told: list[tuple[int, int]] = []
    run(study, finished, executor="serial", started=lambda todo, done: told.append((len(todo), len(done))))
    assert told == [(0, 8)]
    assert {p: p.stat().st_mtime_ns for p in (finished / "records").iterdir()} == before


def test_killed_at_any_moment_the_next_run_goes_on(study: Study, finished: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "study.toml", tmp_path / "killed"
    path.write_text(SMALL)
    command = [sys.executable, "-m", "counterpoise", "run", str(path), "--out", str(out), "--workers", "1"]
    for wanted in (1, 4):  # killed in the first wave, and again in the second
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while process.poll() is None and len(list(out.glob("records/*.json"))) < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = {p.name for p in out.glob("records/*.json")}
    assert wanted <= len(kept) < 8
    told: list[int] = []
    run(study, out, executor="serial", started=lambda todo, done: told.append(len(todo)))
    assert told == [8 - len(kept)]
    assert_same(finished, out)
    assert not list(out.glob("checkpoints/*"))


def test_a_worker_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    path, out = tmp_path / "study.toml", tmp_path / "orphans"
    path.write_text(SMALL)
    command = [sys.executable, "-m", "counterpoise", "run", str(path), "--out", str(out), "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(out.glob("records/*.json")):
        time.sleep(0.005)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
    ).stdout.split()
    assert children
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < deadline, "a worker is still there"
        time.sleep(0.05)


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    path, out = tmp_path / "study.toml", tmp_path / "stopped"
    path.write_text(SMALL)
    command = [sys.executable, "-m", "counterpoise", "run", str(path), "--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(out.glob("records/*.json")):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "trainings are kept; the same command goes on." in errors
    assert "Traceback" not in errors
    assert not list(out.rglob("*.part"))


def test_another_seed_degree_or_model_is_another_record(study: Study) -> None:
    base = {job.digest for job in prepare(study).jobs}
    for change in ({"seeds": (1,)}, {"delta": 1e-6}, {"model": Use(part="mlp")}, {"explained_images": 5}):
        assert not base & {job.digest for job in prepare(study.model_copy(update=change)).jobs}, change
    assert base == {job.digest for job in prepare(study.model_copy(update={"name": "other"})).jobs}


# Third parties' parts: nothing to inherit, nothing to register.


@dataclass(frozen=True)
class Blur:
    """Averages blocks of pixels; proves nothing."""

    name: ClassVar[str] = "blur"
    kind: ClassVar[DegreeKind] = DegreeKind("block", "up", Decimal(1), Decimal(8))
    needs: ClassVar[frozenset[str]] = frozenset()
    privacy_gain: ClassVar[str] = "no_gain"
    utility_loss: ClassVar[str] = "pooled_emd"
    block: Decimal = Decimal(2)

    def blank(self, task: Task) -> Trained:
        size = int(self.block)
        release = nn.Sequential(nn.AvgPool2d(size), nn.Upsample(scale_factor=size))
        return Trained(task.new_model(torch.Generator()), release)

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        blank = self.blank(task)
        model = task.new_model(rng)
        pixels = blank.release(task.train.pixels)
        fit_classifier(model, pixels, task.train.labels[task.target], task.recipe, rng.initial_seed())
        return replace(blank, model=model)


@dataclass(frozen=True)
class Edges:
    """The same map for every model: where neighbouring pixels differ."""

    scale: Decimal = Decimal(1)
    name: ClassVar[str] = "edges"
    kind: ClassVar[DegreeKind] = DegreeKind("scale", "up")
    degree_field: ClassVar[str] = "scale"
    needs: ClassVar[frozenset[str]] = frozenset()

    def explain(
        self, trained: Trained | nn.Module, images: Tensor, target: Tensor, rng: torch.Generator
    ) -> Explanation:
        gradient = torch.zeros_like(images[:, 0])
        gradient[:, 1:] = (images[:, 0, 1:] - images[:, 0, :-1]).abs()
        return Explanation(gradient * float(self.scale))


@dataclass(frozen=True)
class Brightness:
    """Mean of the released pixels; no direction that is better."""

    name: ClassVar[str] = "brightness"
    level: ClassVar[Literal["training", "explanation"]] = "training"
    unit: ClassVar[str] = "share of white"
    higher_is_better: ClassVar[bool] = True

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        return Measurement.exact(float(candidate.released_test.mean()))


def test_an_explainer_without_a_degree_is_swept_over_its_one(study: Study, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="explainer 'grad-cam' has no degree to tune: leave its degrees out"):
        prepare(study.model_copy(update={"explainer": Sweep(part="grad-cam", degrees=Grid.of([0, 1]))}))
    changed = {"explainer": Sweep(part="grad-cam"), "parties": (Party("a"),), "model": Use(part="small-cnn")}
    one = study.model_copy(update=changed)
    assert prepare(one).explainer.degrees.values == (Decimal(1),)
    results = run(one.model_copy(update={"mechanisms": (Sweep(part="plain"),)}), tmp_path, executor="serial")
    assert [[cell.degree for cell in record.explained] for record in results] == [[Decimal(1)]]


def test_parts_given_as_objects_run_and_are_measured(study: Study, tmp_path: Path) -> None:
    changed = study.model_copy(
        update={
            "mechanisms": (Sweep(part=Blur(), degrees=Grid.of([2, 4])),),
            "explainer": Sweep(part=Edges),
            "measures": (Use(part=Brightness()),),
            "parties": (Party("a", ("block >= 4",), ("blur",)),),
        }
    )
    with pytest.raises(InputError, match=r"explainer 'edges': degrees is missing"):
        run(changed, tmp_path, executor="serial")
    changed = changed.model_copy(update={"explainer": Sweep(part=Edges, degrees=Grid.of([1]))})
    results = run(changed, tmp_path, workers=1)
    assert [f"{r.mechanism} {r.degree}" for r in results] == ["plain 0", "blur 2", "blur 4"]
    plain, _, blurred = results
    assert blurred.measurements["brightness"].value == pytest.approx(plain.measurements["brightness"].value, abs=1e-6)
    assert blurred.measurements["mse"].value > 0.01
    assert blurred.guarantees == ()


@dataclass(frozen=True)
class SeedSpy(Blur):
    """Tells which random stream it was given."""

    name: ClassVar[str] = "spy"

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        return replace(Blur.train(self, task, rng), facts={"seed": float(rng.initial_seed() % 2**50)})


@dataclass(frozen=True)
class SeenSeed(Brightness):
    """What the spy was given."""

    name: ClassVar[str] = "seen_seed"

    def __call__(self, baseline: Outcome, candidate: Outcome) -> Measurement:
        return Measurement.exact(candidate.trained.facts.get("seed", 0.0))


def test_no_two_trainings_share_their_random_numbers(study: Study, tmp_path: Path) -> None:
    """Two private trainings on the same noise could be subtracted from each other."""
    changed = study.model_copy(
        update={
            "mechanisms": (Sweep(part=SeedSpy(), degrees=Grid.of([2, 4])),),
            "measures": (Use(part=SeenSeed()),),
            "parties": (Party("a"), Party("b")),
            "seeds": (0, 1),
        }
    )
    results = run(changed, tmp_path, executor="serial")
    seen = [record.measurements["seen_seed"].value for record in results if record.mechanism == "spy"]
    assert len(seen) == len(set(seen)) == 2 * 2 * 2
