"""What a run's chosen model puts before every image, used by itself: on a folder of photos, or written for elsewhere.

At the sensor the noise is drawn anew for every image: a seed that could be known would be no noise.
"""

from __future__ import annotations

import inspect
import io
import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import save
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise._files import lock, write
from counterpoise.explaining import chosen_by, read_photo
from counterpoise.grid import text
from counterpoise.interface import Progress
from counterpoise.store import Store
from counterpoise.training import apply, one_thread

SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".bmp", ".webp", ".tif", ".tiff")
EXPORTED = ("filter.json", "filter.pt2", "filter.safetensors", "filter.py")
TIMED = 256
"""Images on which the speed is measured."""
ASSURED = "Measured against the attackers named in the run's report; nothing is proved."


@dataclass(frozen=True)
class Chosen:
    """The chosen model's release, drawing its noise anew, and where it comes from."""

    release: nn.Module
    shape: tuple[int, int, int]
    words: str
    about: dict[str, Any]
    examples: Tensor


def chosen_release(folder: Path, party: str | None, policy: str, mode: str) -> Chosen:
    """The release of the model that the run's decision chose."""
    store = Store.open(folder)
    prepared, job, _, trained, winner = chosen_by(store, party, policy, mode)
    release = trained.release
    if not any(True for _ in release.parameters()) and not any(True for _ in release.buffers()):
        raise InputError(
            f"{folder}: the chosen model ({winner}) takes images as they are, so there is nothing to filter; choose a"
            " mechanism that does, with a requirement that only it meets."
        )
    for module in release.modules():
        drawn_anew: Callable[[], None] | None = getattr(module, "fresh", None)
        if drawn_anew is not None:
            drawn_anew()
    record = store.load(job.digest)
    measured = {} if record is None else dict(record.measurements)
    about = {
        "mechanism": job.mechanism,
        "degree": {prepared.mechanisms[job.mechanism].kind.name: text(job.degree)},
        "target": prepared.target,
        "hidden": prepared.study.hidden,
        "digest": job.digest,
        "versions": {} if record is None else dict(record.versions),
        "measured": {name: [value.value, value.low, value.high] for name, value in sorted(measured.items())},
        "assurance": ASSURED if not trained.guarantees else "See the guarantees in the run's report.",
    }
    return Chosen(release.eval(), prepared.test.shape, str(winner), about, prepared.test.pixels[:TIMED])


def release_folder(chosen: Chosen, photos: Path, out: Path, progress: Progress = lambda done: None) -> str:
    """Filter every photo, one file each, under the same name as PNG without any metadata; what is there is kept."""
    pairs = _pairs(photos, out)
    written, kept, resized, unread = 0, 0, 0, []
    with _alone_in(out):
        _remove_unfinished([target for _, target in pairs])
        for done, (source, target) in enumerate(pairs, start=1):
            if target.exists():  # a second draw of an image's noise would let both be averaged
                kept += 1
            else:
                try:
                    pixels, changed = read_photo(source, chosen.shape)
                except InputError as problem:
                    unread.append(str(problem))
                    continue
                write(target, _png(apply(chosen.release, pixels[None])[0]))
                written, resized = written + 1, resized + changed
            progress(done / len(pairs))
    _, height, width = chosen.shape
    sentence = f"Wrote {written} filtered images to {out}, of {width} x {height} pixels, by {chosen.words}."
    if resized:
        sentence += f" {resized} had another size, and were resized."
    if kept:
        sentence += f" {kept} were there already and were kept: remove them to filter those photos anew."
    if unread:
        raise InputError(f"{sentence} {len(unread)} could not be read, the first: {unread[0]}")
    return f"{sentence} {chosen.about['assurance']}"


def export_release(chosen: Chosen, out: Path) -> str:
    """The filter as an exported program, and as weights with the code that reads them; with size and speed."""
    with one_thread():
        apply(chosen.release, chosen.examples[:2])  # the first call is slower
        started = time.perf_counter()
        apply(chosen.release, chosen.examples)
        rate = len(chosen.examples) / (time.perf_counter() - started)
    files = {"filter.pt2": _program(chosen), **_weights(chosen)}
    sizes = {name: len(content) for name, content in files.items()}
    about = {**chosen.about, "shape": list(chosen.shape), "bytes": sizes, "images_per_second_on_one_thread": rate}
    files["filter.json"] = (json.dumps(about, indent=2, sort_keys=True) + "\n").encode()
    with _alone_in(out):
        _remove_unfinished([out / name for name in EXPORTED])
        for name in EXPORTED:  # all, before the first new one: files of two filters must never stand together
            (out / name).unlink(missing_ok=True)
        for name, content in files.items():
            write(out / name, content)
    listed = ", ".join(f"{name} ({size:,} bytes)" for name, size in sizes.items())
    return (
        f"Wrote {listed} and filter.json to {out}: {chosen.words}.\n"
        f"It filters {rate:,.0f} images/s here on one thread. {chosen.about['assurance']}"
    )


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """While this lasts nobody else writes into the folder; what the system refuses is told in a sentence."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with lock(out):
            yield
    except BlockingIOError:
        raise InputError(f"--out {out}: another command is writing into this folder; wait for it.") from None
    except OSError as problem:
        why = problem.strerror or problem
        raise InputError(f"--out {out}: cannot be written ({why}); name a folder you may write.") from None


def _remove_unfinished(targets: Collection[Path]) -> None:
    """Remove what a killed command left of these files, and nothing else: the folder is its owner's."""
    names = {(target.parent, target.name) for target in targets}
    for folder in {target.parent for target in targets}:
        for part in folder.glob(".*.part"):
            if (folder, part.name[1:].rsplit(".", 2)[0]) in names:
                part.unlink(missing_ok=True)


def _pairs(photos: Path, out: Path) -> list[tuple[Path, Path]]:
    """Every photo and the file it becomes; all that can be wrong with the names is told before anything is written."""
    if photos.is_file():
        sources, root = [photos], photos.parent
    elif photos.is_dir():
        sources = sorted(p for p in photos.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        root = photos
    else:
        raise InputError(f"{photos}: there is no such file or folder of photos.")
    if not sources:
        raise InputError(f"{photos}: holds no photo ({', '.join(SUFFIXES)}).")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file; name a folder.")
    here, there = root.resolve(), out.resolve()
    if here == there or here in there.parents:
        raise InputError(f"--out {out}: lies in {root}, and filtered images must not mix with photos; name another.")
    found: dict[Path, Path] = {}
    for source in sources:
        target = out / source.relative_to(root).with_suffix(".png")
        if target in found:
            raise InputError(f"{source} and {found[target]} would both become {target}; rename one.")
        found[target] = source
    return [(source, target) for target, source in found.items()]


def _png(pixels: Tensor) -> bytes:
    values = (pixels.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    buffer = io.BytesIO()
    Image.fromarray(values[..., 0] if values.shape[2] == 1 else values).save(buffer, "PNG")
    return buffer.getvalue()


def _program(chosen: Chosen) -> bytes:
    """The release as a program that needs torch and nothing of ours, for any number of images."""
    example = torch.zeros(2, *chosen.shape)
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.export.export(
                chosen.release, (example,), dynamic_shapes=({0: torch.export.Dim("images")},), strict=False
            )
        said = program.module()
        frozen = bool((said(example) == said(example)).all()) and not _repeats(chosen.release, example)
        # Neither an example, which would be the only pickle in the file, nor where our code lies on this machine.
        program.example_inputs = None
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)
        torch.export.save(program, buffer)
    except Exception as problem:  # whatever a filter's own code does when it is traced
        raise InputError(
            f"the filter of {chosen.words} cannot be exported as a program ({type(problem).__name__}: what it does with"
            " an image is not in its layers alone); use 'counterpoise release'."
        ) from None
    if frozen:
        raise InputError(
            f"the filter of {chosen.words} cannot be exported as a program: the noise of one call would be in it for"
            " ever; use 'counterpoise release'."
        )
    return buffer.getvalue()


@torch.no_grad()
def _repeats(release: nn.Module, example: Tensor) -> bool:
    """Whether the release gives the same twice."""
    return bool((release(example) == release(example)).all())


def _weights(chosen: Chosen) -> dict[str, bytes]:
    """Weights and code, where the filter's class can describe itself."""
    describe: Callable[[], dict[str, Any]] | None = getattr(chosen.release, "description", None)
    if describe is None:
        return {}
    try:
        metadata = {"filter": json.dumps(describe())}
    except TypeError:  # one of its parts cannot; the program has it all
        return {}
    table = {key: value.detach().contiguous() for key, value in chosen.release.state_dict().items()}
    code = Path(inspect.getsourcefile(type(chosen.release)) or "").read_bytes()
    return {"filter.safetensors": save(table, metadata), "filter.py": code}
