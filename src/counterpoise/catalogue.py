"""Name to part: each room's BUILTIN table, then installed packages' entry points, looked up on demand."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from counterpoise._check import InputError, one_of

ROOMS = ("datasets", "models", "mechanisms", "explainers", "measures")

Part = Callable[..., Any]
"""A class, or for models a function, that makes the part from its options."""


@dataclass(frozen=True)
class Entry:
    """One part as `counterpoise list` shows it."""

    name: str
    origin: str
    summary: str


def _builtin(room: str) -> Mapping[str, Part]:
    one_of(ROOMS, room=room)
    table: Mapping[str, Part] = import_module(f"counterpoise.{room}").BUILTIN
    return table


def _plugins(room: str) -> dict[str, EntryPoint]:
    """Entry points of the group `counterpoise.<room>`; one name from two packages is refused."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"counterpoise.{room}"):
        if point.name in found or point.name in _builtin(room):
            other = _origin(found[point.name]) if point.name in found else "counterpoise"
            raise InputError(
                f"{room}: the name {point.name!r} is given by both {other} and {_origin(point)}; uninstall one of them."
            )
        found[point.name] = point
    return found


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def find(room: str, name: str) -> Part:
    """The part of that name; raises with the nearest names where there is none."""
    builtin, plugins = _builtin(room), _plugins(room)
    if name in builtin:
        return builtin[name]
    if name in plugins:
        part: Part = plugins[name].load()
        return part
    known = [*builtin, *plugins]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}."
    raise InputError(f"{room}: there is no {name!r}; {hint}")


def listing(room: str) -> list[Entry]:
    """Every part of a room, built-in ones first."""
    entries = [Entry(name, "built in", _summary(part)) for name, part in sorted(_builtin(room).items())]
    for name, point in sorted(_plugins(room).items()):
        entries.append(Entry(name, _origin(point), _summary(point.load())))
    return entries


def standard_measures() -> tuple[str, ...]:
    """The measures taken of every training; those that only one mechanism's paper uses are not among them."""
    names: tuple[str, ...] = import_module("counterpoise.measures").EVERYWHERE
    return names


def requested_measures() -> tuple[str, ...]:
    """The built-in measures taken only where a study lists them, or a party requires them."""
    return tuple(measure.name for measure in import_module("counterpoise.measures").ON_REQUEST)


def _summary(part: Part) -> str:
    return (part.__doc__ or "").strip().split("\n")[0]
