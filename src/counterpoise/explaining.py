"""One image, the chosen model: a prediction, and the map that explains it."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from counterpoise import catalogue
from counterpoise._check import InputError, NothingFitsError
from counterpoise._files import write
from counterpoise.grid import DegreeKind, text
from counterpoise.interface import Explainer, Explanation, Mechanism, Trained
from counterpoise.prepare import Job, Prepared, prepare
from counterpoise.store import Store
from counterpoise.study import parse_study
from counterpoise.tags import refusal
from counterpoise.tradeoff import Standing, choose
from counterpoise.training import apply, generator
from counterpoise.work import load_weights

SIDE = 320
"""Pixels of each of the three panels of the picture."""


def explain_photo(
    folder: Path, photo: Path, out: Path, party: str | None, policy: str, mode: str, explainer: str | None = None
) -> str:
    """Write the picture (input, what the model sees, why) and return the prediction in words."""
    store = Store.open(folder)
    prepared, _, _, trained, winner = chosen_by(store, party, policy, mode)
    pixels, resized = read_photo(photo, prepared.test.shape)
    released = apply(trained.release, pixels[None])
    logits = apply(trained.model, released)
    target = logits.argmax(1)
    chosen = _explainer(prepared, explainer, winner, trained)
    explanation = chosen.explain(trained, released, target, generator(0, "explain"))
    write(out, picture(pixels, released[0], explanation))
    shares = logits.softmax(1)[0]
    names = prepared.test.classes[prepared.target]
    order = shares.argsort(descending=True)[:3]
    likely = ", ".join(f"{names[int(i)]} ({float(shares[i]):.0%})" for i in order)
    note = f" The photo was resized to {pixels.shape[2]} x {pixels.shape[1]} pixels." if resized else ""
    return f"{photo}: {likely}.\nModel: {winner}.{note}\nWrote {out}: the input, what the model sees, and why."


def _explainer(prepared: Prepared, name: str | None, winner: Standing, trained: Trained) -> Explainer:
    """The study's explainer at the chosen degree; or another one, at that degree if it has more than one."""
    if name is None:
        own: Explainer = prepared.explainer.at(winner.explainability)
        return own
    part = catalogue.find("explainers", name)
    kind: DegreeKind = getattr(part, "kind")  # noqa: B009 - every explainer's class has one, a Part need not
    single = kind.low == kind.high
    if not single and kind != prepared.explainer.kind:
        raise InputError(
            f"--explainer {name!r} needs a degree of its own ({kind.name!r}), and the run's is of"
            f" {prepared.explainer.name!r}: choose one without a degree, such as 'saliency', or explain from Python."
        )
    degree = kind.low if single else winner.explainability
    other: Explainer = part(**{getattr(part, "degree_field"): degree})  # noqa: B009
    refused = refusal(name, other.needs, trained.model)
    if refused:
        raise InputError(refused)
    return other


def _named_only(configuration: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The study of a run, as far as it can be rebuilt from names alone."""
    parts = [configuration["data"], configuration["model"], configuration["explainer"], *configuration["mechanisms"]]
    for part in [*parts, *configuration["measures"]]:
        if ":" in str(part["part"]):
            raise InputError(
                f"{folder}: the part {part['part']!r} was given as a Python object, which a folder cannot bring back;"
                " install it as a plug-in and name it in the study."
            )
    return configuration


def chosen_by(
    store: Store, party: str | None, policy: str, mode: str
) -> tuple[Prepared, Job, Mechanism, Trained, Standing]:
    """The model that a run's decision chose, of one party; and everything it belongs to."""
    folder = store.root
    decision = choose(store.results(), policy, mode)
    if decision.best is None:
        raise NothingFitsError(f"{folder}: there is no single chosen model. {decision.sentence()}")
    winner = decision.best.winner
    configuration = dict(store.manifest().configuration)
    prepared = prepare(parse_study(_named_only(configuration, folder), str(folder)))
    names = [known.name for known in prepared.study.parties]
    if party is not None and party not in names:
        raise InputError(f"--party {party!r} must be one of: {', '.join(names)}.")
    job = _job(prepared, winner, party or names[0])
    mechanism: Mechanism = prepared.mechanisms[winner.mechanism].at(winner.degree)
    trained = load_weights(mechanism.blank(prepared.task(job.party)), store, job.digest)
    return prepared, job, mechanism, trained, winner


def _job(prepared: Prepared, winner: Standing, party: str) -> Job:
    for job in prepared.jobs:
        if (job.mechanism, job.degree, job.party) == (winner.mechanism, winner.degree, party):
            return job
    raise InputError(f"the run has no training of {winner.mechanism} at {text(winner.degree)} for {party!r}.")


def read_photo(path: Path, shape: tuple[int, int, int]) -> tuple[Tensor, bool]:
    """An image file as [channels, height, width] in [0, 1], in the model's size; and whether it was resized."""
    channels, height, width = shape
    try:
        with Image.open(path) as opened:
            # Cameras write which way is up beside the pixels, and only the pixels go on from here.
            image = ImageOps.exif_transpose(opened).convert("L" if channels == 1 else "RGB")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such image file.") from None
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as problem:
        raise InputError(f"{path}: cannot be read as an image ({problem}).") from None
    resized = image.size != (width, height)
    if resized:
        image = image.resize((width, height), Image.Resampling.LANCZOS)
    pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)
    return pixels[None] if channels == 1 else pixels.permute(2, 0, 1).contiguous(), resized


def picture(raw: Tensor, released: Tensor, explanation: Explanation) -> bytes:
    """Three panels as PNG: the input, the released image, and the map over the released image."""
    heat = explanation.maps[0].clamp(min=0)  # what speaks against the class is left dark
    heat = heat / heat.max().clamp(min=torch.finfo(heat.dtype).tiny)
    coloured = colormaps["inferno"](heat.numpy())[..., :3]
    seen = _rgb(released)
    blended = (0.35 * seen + 0.65 * coloured * 255).astype(np.uint8)
    panels = [Image.fromarray(p).resize((SIDE, SIDE), Image.Resampling.NEAREST) for p in (_rgb(raw), seen, blended)]
    whole = Image.new("RGB", (3 * SIDE + 2 * 8, SIDE), "white")
    for index, panel in enumerate(panels):
        whole.paste(panel, (index * (SIDE + 8), 0))
    buffer = BytesIO()
    whole.save(buffer, "PNG")
    return buffer.getvalue()


def _rgb(pixels: Tensor) -> NDArray[np.uint8]:
    image = (pixels.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
