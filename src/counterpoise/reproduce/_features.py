"""Features computed once: a file that is named by the images and by how they were made."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from counterpoise import store, training
from counterpoise._files import replacing
from counterpoise.interface import Progress

BATCH = 500


def cached(
    folder: Path, pixels: Tensor, features: nn.Module, made_by: object, progress: Progress = lambda done: None
) -> Tensor:
    """The features of the images, from the file if there is a sound one. `made_by` says all that they depend on.

    The file is about private images, as they are: treat it as these.
    """
    path = folder / f"{store.digest([_content(pixels), made_by])}.safetensors"
    try:
        kept = load_file(path)["features"]
        if len(kept) == len(pixels):
            return kept
    except (FileNotFoundError, SafetensorError, KeyError):  # not there, or damaged: then it is made again
        pass
    parts = []
    for done, part in enumerate(torch.split(pixels, BATCH), start=1):
        parts.append(training.apply(features, part))
        progress(min(1.0, done * BATCH / len(pixels)))
    made = torch.cat(parts)
    with replacing(path) as beside:
        save_file({"features": made}, beside)
    return made


def _content(pixels: Tensor) -> str:
    return hashlib.sha256(repr(tuple(pixels.shape)).encode() + pixels.contiguous().numpy().tobytes()).hexdigest()
