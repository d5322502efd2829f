"""counterpoise: decide, and show, how private, accurate, explainable and fair an image classifier is to be.

    from counterpoise import Grid, Party, Study, Sweep, choose, run

The names are looked up when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterpoise._check import InputError
    from counterpoise.grid import Grid
    from counterpoise.record import Measurement, Party, Record, Results
    from counterpoise.running import run
    from counterpoise.study import Study, Sweep, Training, Use
    from counterpoise.tradeoff import choose

__version__ = "0.1.0"

_HOMES = {
    "Grid": "grid",
    "InputError": "_check",
    "Measurement": "record",
    "Party": "record",
    "Record": "record",
    "Results": "record",
    "Study": "study",
    "Sweep": "study",
    "Training": "study",
    "Use": "study",
    "choose": "tradeoff",
    "run": "running",
}

__all__ = [
    "Grid",
    "InputError",
    "Measurement",
    "Party",
    "Record",
    "Results",
    "Study",
    "Sweep",
    "Training",
    "Use",
    "choose",
    "run",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'counterpoise' has no attribute {name!r}")
    return getattr(import_module(f"counterpoise.{_HOMES[name]}"), name)
