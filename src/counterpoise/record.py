"""The watershed: what a training leaves behind, as frozen numbers. Standard library only.

Above this file there is torch, and hours; below it there are numbers, and milliseconds. The trade-off, the
report and the documents read `Results` and nothing else, so they start at once and need no model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from counterpoise.grid import DegreeKind

Plain = None | bool | int | float | str
"""What a configuration may hold: values that look the same in TOML, JSON and Python."""


_STRICT = {"ser_json_inf_nan": "strings", "extra": "forbid"}
"""How the store writes these as JSON: infinity as a string (JSON has no number for it), nothing unknown read."""


@dataclass(frozen=True)
class Measurement:
    """A number with its 95 % interval; `n` counts what it was averaged `over` (images, seeds, or 'exact')."""

    __pydantic_config__ = _STRICT

    value: float
    low: float
    high: float
    n: int
    over: str

    def __post_init__(self) -> None:
        if any(math.isnan(x) for x in (self.value, self.low, self.high)):
            raise ValueError(f"a measurement cannot be NaN: {self}")
        if not self.low <= self.value <= self.high:
            raise ValueError(f"a measurement must lie in its interval: {self}")

    @classmethod
    def exact(cls, value: float) -> Measurement:
        """A value that is computed, not estimated."""
        return cls(value, value, value, 1, "exact")


@dataclass(frozen=True)
class Release:
    """One use of the private data, as an accountant needs to know it, so that releases can be composed later.

    `noise` is the noise multiplier (standard deviation, or Laplace scale, in units of the clip), `sample_rate` the
    chance of one image to be in a step, `steps` how many steps were taken.
    """

    __pydantic_config__ = _STRICT

    kind: Literal["gaussian", "laplace"]
    noise: float
    sample_rate: float
    steps: int
    sampling: Literal["poisson", "full", "shuffle"] = "poisson"


@dataclass(frozen=True)
class Guarantee:
    """What is proved, with everything needed to read it. No guarantee is an empty tuple, never an optimistic number.

    `unit` is what one neighbour differs in, `adjacency` how ('add-remove' or 'replace-one').
    """

    __pydantic_config__ = _STRICT

    notion: Literal["dp", "local-dp"]
    epsilon: float
    delta: float
    unit: Literal["image"] = "image"
    adjacency: Literal["add-remove", "replace-one"] = "add-remove"
    accountant: str = "pld"
    releases: tuple[Release, ...] = ()

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0 or not 0 <= self.delta < 1:
            raise ValueError(f"epsilon must be 0 or above and delta in [0, 1): {self}")


@dataclass(frozen=True)
class Certificate:
    """What is certified about one explanation: its top k keep a share `beta` while the image moves less than `radius`.

    About the input, not about training data: it is no privacy guarantee, and whatever Rényi divergence went into it is
    never an epsilon. `radius` is in [0, 1] pixels, in the norm `norm`; 0 where `abstained`. `noise` is the standard
    deviation of Gaussian noise or the scale of Laplace noise. It is about the true smoothed map, of which the reported
    one is an estimate from `samples` draws: it holds with probability `confidence`. `top` are the reported units, and
    [low, high] what their true scores (and all others') lie in, from which everything can be recomputed.
    """

    radius: float
    norm: Literal["l1", "l2", "linf"]
    k: int
    beta: Fraction
    confidence: float
    samples: int
    noise: float
    distribution: Literal["gaussian", "laplace"]
    bound: Literal["renyi", "neyman-pearson", "published"]
    abstained: bool
    top: tuple[int, ...]
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)

    @property
    def sound(self) -> bool:
        """False for the published form, which can certify too much; it is there to compare with."""
        return self.bound != "published"


@dataclass(frozen=True)
class Explained:
    """One cell: what was measured on the explanations of one explainability degree."""

    __pydantic_config__ = _STRICT

    degree: Decimal
    measurements: Mapping[str, Measurement]


@dataclass(frozen=True)
class Record:
    """One training: one party, one mechanism at one degree, one seed; and all its explainability degrees.

    A refused combination has a `refusal` (a sentence with advice) and no measurements.
    It holds no time and no path, so that a resumed run writes the same bytes as an uninterrupted one.
    """

    __pydantic_config__ = _STRICT

    digest: str
    party: str
    mechanism: str
    kind: DegreeKind
    degree: Decimal
    seed: int
    measurements: Mapping[str, Measurement] = field(default_factory=dict)
    explained: tuple[Explained, ...] = ()
    guarantees: tuple[Guarantee, ...] = ()
    refusal: str = ""
    configuration: Mapping[str, Plain] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def epsilon(self) -> float:
        """The smallest proved epsilon about the training images; infinite where nothing is proved."""
        return min((g.epsilon for g in self.guarantees if g.notion == "dp"), default=math.inf)


@dataclass(frozen=True)
class Party:
    """Who takes part, and what they require, in the words of the study ('noise > 1.7').

    An empty `mechanisms` means: any. `share` is the party's part of the training images, relative to the others'.
    """

    name: str
    requires: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()
    share: float = 1.0


@dataclass(frozen=True)
class Results:
    """A study's records with the parties whose requirements decide over them."""

    study: str
    parties: tuple[Party, ...]
    records: tuple[Record, ...]
    digest: str = ""
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def measured(self) -> frozenset[str]:
        """The names of everything that was measured of some training, or of its explanations."""
        tables = [table for r in self for table in (r.measurements, *(cell.measurements for cell in r.explained))]
        return frozenset(name for table in tables for name in table)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that have a record, in the order of the records."""
        return tuple(dict.fromkeys(record.mechanism for record in self.records))
