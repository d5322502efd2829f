"""What a record's numbers depend on besides the study: the code, the libraries, and the images themselves."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import numpy as np
import torch

import counterpoise
from counterpoise.interface import Images

_BELOW = ("tradeoff", "report", "reproduce", "cli.py", "testing")
"""Parts of the source that cannot change a record's numbers."""


def versions() -> dict[str, str]:
    """What the numbers depend on besides the study: this package's code, and the libraries that compute."""
    return {
        "counterpoise": f"{counterpoise.__version__}+{_source_digest()}",
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
    }


@functools.cache
def _source_digest() -> str:
    root = Path(counterpoise.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _BELOW:
            whole.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def images_digest(*images: Images) -> str:
    """Digest of pixels and labels, with their names and classes."""
    whole = hashlib.sha256()
    for part in images:
        whole.update(repr((tuple(part.pixels.shape), sorted(part.labels), sorted(part.classes.items()))).encode())
        whole.update(part.pixels.contiguous().numpy().tobytes())
        for name in sorted(part.labels):
            whole.update(part.labels[name].contiguous().numpy().tobytes())
    return whole.hexdigest()[:32]
