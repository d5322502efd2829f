"""What a run's chosen model puts before every image, used by itself: on a folder of photos, or written for elsewhere.

At the sensor the noise is drawn anew for every image: a seed that could be known would be no noise.
"""

from __future__ import annotations

import inspect
import io
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import save
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise._files import remove_unfinished, replacing, write
from counterpoise.explaining import chosen_by, read_photo
from counterpoise.grid import text
from counterpoise.interface import Progress
from counterpoise.store import Store
from counterpoise.training import apply, one_thread

SUFFIXES = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".bmp", ".webp", ".tif", ".tiff")
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
    remove_unfinished(out)
    written, kept, resized, unread = 0, 0, 0, []
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
        started = time.perf_counter()
        apply(chosen.release, chosen.examples)
        rate = len(chosen.examples) / (time.perf_counter() - started)
    written = [_program(chosen, out / "filter.pt2"), *_weights(chosen, out)]
    sizes = {path.name: path.stat().st_size for path in written}
    about = {**chosen.about, "shape": list(chosen.shape), "bytes": sizes, "images_per_second_on_one_thread": rate}
    write(out / "filter.json", (json.dumps(about, indent=2, sort_keys=True) + "\n").encode())
    listed = ", ".join(f"{name} ({size:,} bytes)" for name, size in sizes.items())
    return (
        f"Wrote {listed} and filter.json to {out}: {chosen.words}.\n"
        f"It filters {rate:,.0f} images/s here on one thread. {chosen.about['assurance']}"
    )


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


def _program(chosen: Chosen, path: Path) -> Path:
    """The release as a program that needs torch and nothing of ours, for any number of images."""
    example = (torch.zeros(2, *chosen.shape),)
    try:
        program = torch.export.export(
            chosen.release, example, dynamic_shapes=({0: torch.export.Dim("images")},), strict=False
        )
    except Exception as problem:  # whatever a filter's own code does when it is traced
        why = " ".join(str(problem).split())[:200]
        raise InputError(f"the filter of {chosen.words} cannot be exported as a program ({why}).") from None
    with replacing(path) as part, part.open("wb") as file:
        torch.export.save(program, file)
    return path


def _weights(chosen: Chosen, out: Path) -> list[Path]:
    """Weights and code, where the filter's class can describe itself."""
    describe: Callable[[], dict[str, Any]] | None = getattr(chosen.release, "description", None)
    if describe is None:
        return []
    try:
        metadata = {"filter": json.dumps(describe())}
    except TypeError:  # one of its parts cannot; the program has it all
        return []
    paths = [out / "filter.safetensors", out / "filter.py"]
    write(paths[0], save({k: v.detach().contiguous() for k, v in chosen.release.state_dict().items()}, metadata))
    write(paths[1], Path(inspect.getsourcefile(type(chosen.release)) or "").read_bytes())
    return paths
