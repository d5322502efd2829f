"""Small sets of pictures whose values tell what they are."""

import os
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from counterpoise.interface import Images

DATA = os.environ["COUNTERPOISE_DATA"]


def picture(value: int, size: int = 8) -> bytes:
    file = BytesIO()
    Image.fromarray(np.full((size, size, 3), value, np.uint8)).save(file, "PNG")
    return file.getvalue()


def packed(path: Path, files: Mapping[str, bytes | str]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return str(path)


def counts(label: str, *parts: Images) -> list[int]:
    return torch.cat([part.labels[label] for part in parts]).bincount().tolist()


def value(images: Images) -> torch.Tensor:
    """The constant each small picture was made of."""
    return (255 * images.pixels.mean((1, 2, 3))).round().long()
