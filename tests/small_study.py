"""A study that trains in seconds, for tests of running, resuming and the command line."""

from __future__ import annotations

from pathlib import Path

from counterpoise.study import Study, read

SMALL = """
name = "small"
explained_images = 4
gallery_images = 2

[data]
name = "digits"

[model]
name = "linear"

[training]
epochs = 2
batch = 64

[[mechanisms]]
name = "dp-sgd"
degrees = [1, 2]

[[mechanisms]]
name = "autoencoder"
degrees = [0.2]
steps = 20

[explainer]
name = "smoothgrad"
degrees = [0, 0.5]
samples = 3

[[parties]]
name = "a"
mechanisms = ["dp-sgd"]
requires = ["noise > 1.5"]

[[parties]]
name = "b"
"""
"""8 trainings: 2 parties x (plain, two noises, one code)."""


def small(folder: Path) -> Study:
    """The study, read from a file in the folder."""
    path = folder / "study.toml"
    path.write_text(SMALL)
    return read(path)
