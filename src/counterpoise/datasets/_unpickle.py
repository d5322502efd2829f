"""Reading the pickles of CIFAR-10 without running anything they name.

Unpickling calls whatever a pickle asks for. Here it can only ask for the four names that an array of bytes
needs, and gets harmless stand-ins for them: no function of numpy sees the file's values unchecked.
"""

from __future__ import annotations

import io
import pickle
from math import prod

import numpy as np

from counterpoise._check import InputError
from counterpoise.datasets._archive import damaged


class _Dtype:
    """Stands for numpy.dtype; only unsigned bytes are known."""

    def __init__(self, code: object, *flags: object) -> None:
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"an array of type {code!r} where bytes are needed")

    def __setstate__(self, state: object) -> None:
        """Byte order and alignment mean nothing for bytes."""


class _Marker:
    """Stands for the class numpy.ndarray, which a pickle only mentions."""

    def __new__(cls, *arguments: object) -> _Marker:
        raise pickle.UnpicklingError("an array is made in an unknown way")


class _Array:
    """Stands for an array while its content is still to come."""

    def __init__(self, *arguments: object) -> None:
        self.values: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = np.empty(0, np.uint8)

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), tuple() as shape, _Dtype(), bool(), bytes() as raw) if all(
                isinstance(side, int) and side >= 0 for side in shape
            ):
                if state[3] or prod(shape) != len(raw):
                    raise pickle.UnpicklingError(f"an array of shape {shape} with {len(raw)} bytes")
                self.values = np.frombuffer(raw, np.uint8).reshape(shape)
            case _:
                raise pickle.UnpicklingError("an array that is no array of bytes")


def _encode(text: object, encoding: object = "latin1") -> bytes:
    """Stands for _codecs.encode, by which Python 3 writes bytes for Python 2."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Marker,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _ForbiddenError(Exception):
    """The pickle asks for something else."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _ADMITTED:
            raise _ForbiddenError(f"{module}.{name}")
        return _ADMITTED[module, name]


def read_batch(content: bytes, where: str) -> dict[str, object]:
    """The pickled dictionary, with arrays of bytes as numpy arrays; Python 2 text becomes text or bytes."""
    try:
        whole = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except _ForbiddenError as problem:
        raise InputError(
            f"{where}: this pickle asks for {problem}, which no image data needs; nothing was run, do not trust it."
        ) from None
    # A hostile pickle can make the stand-ins and the unpickler itself fail in all these ways.
    except (
        pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError,
        MemoryError, RecursionError,
    ) as problem:  # fmt: skip
        raise damaged(where, problem) from None
    if not isinstance(whole, dict):
        raise InputError(f"{where}: this pickle holds no dictionary; give a batch of CIFAR-10.")
    return {_text(key): value.values if isinstance(value, _Array) else value for key, value in whole.items()}


def _text(key: object) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)
