"""One trained model as two that run apart: the first on the trusted device, the second wherever its output is sent.

Each half is a safetensors file with its own weights only, and what is needed to rebuild the architecture in its
metadata. The network is traced and cut at a layer through which everything passes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, fx, nn

from counterpoise import catalogue
from counterpoise._check import InputError
from counterpoise._files import lock, replacing
from counterpoise.explaining import chosen_by
from counterpoise.grid import text
from counterpoise.interface import Images, Measure, Mechanism, Outcome, Task, Trained
from counterpoise.representation.layers import LAST, find, last_linear
from counterpoise.store import Store
from counterpoise.training import apply, one_thread
from counterpoise.work import outcome

SCHEMA = "counterpoise/half/1"
NOT_ASKED = "The study names no hidden label, so nobody asked what the output tells (set hidden)."


def cut(model: nn.Module, at: str) -> tuple[nn.Module, nn.Module]:
    """The model up to and including the layer, and what follows; '' cuts before the last linear layer."""
    known = {module: name for name, module in model.named_modules()}
    name = known[last_linear(model)] if at == LAST else known[find(model, at)]

    class Tracer(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return module_qualified_name == name or super().is_leaf_module(m, module_qualified_name)

    try:
        graph = Tracer().trace(model)
    except Exception as problem:  # whatever a network's own code does when its input is a stand-in
        raise InputError(f"at={at!r}: this network's forward pass cannot be traced ({problem}).") from None
    layer = next((node for node in graph.nodes if node.op == "call_module" and node.target == name), None)
    if layer is None:
        raise InputError(f"at={at!r}: the forward pass never calls this layer; name another.")
    border = layer.args[0] if at == LAST else layer
    assert isinstance(border, fx.Node)
    nodes = list(graph.nodes)
    after = nodes.index(border) + 1
    first, second = fx.Graph(), fx.Graph()
    before: dict[fx.Node, fx.Node] = {}
    for node in nodes[:after]:
        before[node] = first.node_copy(node, lambda old: before[old])
    sent = before[border]
    if at == LAST and hasattr(last_linear(model), "eraser"):
        # It works on what the last layer gets; it must do so before anything is sent. Done twice, it is done once.
        sent = first.call_module(f"{name}.eraser", (sent,))
    first.output(sent)
    behind: dict[fx.Node, fx.Node] = {border: second.placeholder("features")}
    for node in nodes[after:]:
        round_about = [old for old in node.all_input_nodes if old not in behind]
        if round_about:
            raise InputError(
                f"at={at!r}: {round_about[0].name} goes round this layer to {node.name}; name a layer that everything"
                " passes through."
            )
        behind[node] = second.node_copy(node, lambda old: behind[old])
    return fx.GraphModule(model, first), fx.GraphModule(model, second)


def halves(trained: Trained, at: str) -> tuple[nn.Module, nn.Module]:
    """Release and first half, and second half, in evaluation mode."""
    first, second = cut(trained.model.eval(), at)
    return nn.Sequential(trained.release, first).eval(), second.eval()


def save_halves(pair: tuple[nn.Module, nn.Module], out: Path, described: Mapping[str, Any]) -> tuple[Path, Path]:
    """Each half's own weights, and how to rebuild it, as pi_1.safetensors and pi_2.safetensors in the folder.

    Killed at any moment, the folder never holds halves of two different models: an earlier pair stays until both new
    ones are written whole, and goes before they take its place.
    """
    paths = (out / "pi_1.safetensors", out / "pi_2.safetensors")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with lock(out):
            for path in paths:
                for left in out.glob(f".{path.name}.*.part"):
                    left.unlink()
            with replacing(paths[0]) as first, replacing(paths[1]) as second:
                for index, (half, part) in enumerate(zip(pair, (first, second), strict=True)):
                    table = {key: value.detach().clone().contiguous() for key, value in half.state_dict().items()}
                    words = json.dumps({"schema": SCHEMA, **described, "index": index})
                    save_file(table, part, metadata={"half": words})
                for path in paths:
                    path.unlink(missing_ok=True)
    except BlockingIOError:
        raise InputError(f"--out {out}: another export is writing into this folder; wait for it.") from None
    except (OSError, SafetensorError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InputError(f"--out {out}: cannot be written ({why}); name a folder you may write.") from None
    return paths


def load_half(path: str | Path) -> nn.Module:
    """A half as `counterpoise export --split` wrote it; needs no data, no run and no other half."""
    try:
        with safe_open(path, framework="pt") as file:
            described = json.loads((file.metadata() or {})["half"])
            table = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        half = halves(_blank(described), described["at"])[described["index"]]
        half.load_state_dict(table)
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{path}: is not a half that 'counterpoise export --split' wrote ({problem}).") from None
    return half.eval()


def _blank(described: Mapping[str, Any]) -> Trained:
    """The untrained architecture of a description."""
    shape, classes = tuple(described["shape"]), int(described["classes"])
    nothing = torch.zeros(1, dtype=torch.int64)
    names = tuple(str(index) for index in range(classes))
    blank = Images("blank", torch.zeros(1, *shape), {"target": nothing, "hidden": nothing}, {"target": names})
    model, used = described["model"], described["mechanism"]

    def make(size: tuple[int, int, int], count: int, rng: torch.Generator) -> nn.Module:
        made: nn.Module = catalogue.find("models", model["part"])(size, count, rng, **model["options"])
        return made

    kind = catalogue.find("mechanisms", used["part"])
    degree = {kind.kind.name: Decimal(described["degree"])}  # type: ignore[attr-defined]
    mechanism: Mechanism = kind(**degree, **used["options"])
    return mechanism.blank(Task(blank, blank, "target", make, hidden="hidden"))


@dataclass(frozen=True)
class Split:
    """What was written, and what is known about the first half's output."""

    paths: tuple[Path, Path]
    sizes: tuple[int, int]
    numbers: int
    images_per_second: float
    leak: str

    def sentence(self) -> str:
        """For people."""
        one, two = self.paths
        return (
            f"Wrote {one} ({self.sizes[0]:,} bytes, for the trusted device) and {two} ({self.sizes[1]:,} bytes).\n"
            f"The first half sends {self.numbers:,} numbers an image, {self.images_per_second:,.0f} images/s here on"
            f" one thread.\n{self.leak}"
        )


def export_split(folder: Path, out: Path, at: str | None, party: str | None, policy: str, mode: str) -> Split:
    """The chosen model of a run as pi_1.safetensors and pi_2.safetensors in `out`."""
    store = Store.open(folder)
    prepared, job, mechanism, trained, _ = chosen_by(store, party, policy, mode)
    place = at if at is not None else str(getattr(mechanism, "at", LAST))
    task = prepared.task(job.party)
    first, second = halves(trained, place)
    sweep = next((sweep for sweep in prepared.study.mechanisms if sweep.name == job.mechanism), None)
    described = {
        "at": place,
        "shape": list(task.train.shape),
        "classes": task.classes,
        "model": prepared.study.model.canonical(),
        "mechanism": {"part": job.mechanism, "options": {} if sweep is None else sweep.canonical()["options"]},
        "degree": text(job.degree),
        "digest": job.digest,
    }
    pixels = task.test.pixels
    with one_thread():
        started = time.perf_counter()
        sent = apply(first, pixels)
        rate = len(pixels) / (time.perf_counter() - started)
    leak = NOT_ASKED if task.hidden is None else _told(outcome(task, mechanism, job, trained), place)
    paths = save_halves((first, second), out, described)
    return Split(paths, (paths[0].stat().st_size, paths[1].stat().st_size), _width(sent), rate, leak)


def _told(seen: Outcome, at: str) -> str:
    """What the probes read of the hidden label from the layer's output, in words."""
    hidden = seen.task.hidden
    measure: Measure = catalogue.find("measures", "class_leak")(at=at)
    try:
        found = measure(seen, seen)
    except InputError as problem:
        return f"What the output tells of {hidden} is not known: {problem}"
    return (
        f"Of {hidden}, the best of three probes told {found.value:.3f} above chance [{found.low:.3f},"
        f" {found.high:.3f}] from it (0: guessing, 1: all); other readers may tell more."
    )


def _width(sent: Tensor) -> int:
    return sent[0].numel()
