"""Tables beside pictures: comma-separated files, checked line by line."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.datasets._archive import Source


def text(source: Source, name: str) -> io.StringIO:
    """The file's text, which must be UTF-8."""
    try:
        return io.StringIO(source.read(name).decode("utf-8-sig"), newline="")
    except UnicodeDecodeError:
        raise InputError(f"{source.path}/{name}: this is no UTF-8 text; save it again as UTF-8.") from None


def rows(source: Source, name: str, columns: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """The rows of a comma-separated file, which must have these columns."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.DictReader(text(source, name))
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        found = ", ".join(reader.fieldnames or ()) or "nothing"
        raise InputError(f"{source.path}/{name}: it has no column {missing[0]!r}, its first line is: {found}.")
    for row in reader:
        if any(row[column] is None for column in columns):
            raise InputError(f"{source.path}/{name}: line {reader.line_num} has too few values.")
        yield row


def encode(values: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Class indices and class names: in the order of the numbers where all values are whole numbers, else of names."""
    distinct = set(values)
    numbers = all(value.removeprefix("-").isdecimal() for value in distinct)
    classes = tuple(sorted(distinct, key=int) if numbers else sorted(distinct))
    index = {value: position for position, value in enumerate(classes)}
    return torch.tensor([index[value] for value in values], dtype=torch.long), classes


def whole(value: str, classes: int, where: str) -> int:
    """A class number from 0 to `classes` - 1."""
    if not value.isdecimal() or int(value) >= classes:
        raise InputError(f"{where}: label {value!r} is out of range; labels go from 0 to {classes - 1}.")
    return int(value)
