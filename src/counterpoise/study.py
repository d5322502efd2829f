"""The frozen study: data, model, mechanisms with degrees, an explainer with degrees, parties with requirements.

In Python it is an object, on disk a TOML file; both are checked here, and every mistake is one sentence that names the
file, the key, the value and the rule.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from counterpoise._check import InputError, naming
from counterpoise.grid import Grid, text
from counterpoise.record import Party
from counterpoise.tradeoff.ranges import check_reachable
from counterpoise.tradeoff.requirements import parse


def _grid(value: object) -> object:
    """Degrees as a list, a single number, or a table {from, to, step}."""
    if value is None or isinstance(value, Grid):
        return value
    if isinstance(value, Mapping):
        if set(value) != {"from", "to", "step"}:
            raise ValueError("must have exactly the keys from, to and step")
        return Grid.span(value["from"], value["to"], value["step"])
    return Grid.of(value if isinstance(value, list | tuple) else [value])


def _float(value: object) -> object:
    """Options are ordinary numbers; only degrees are kept as decimals."""
    return float(value) if isinstance(value, Decimal) else value


def _number(value: object) -> object:
    """Text and true are no numbers, although Python would make some of them."""
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


Whole = Annotated[int, BeforeValidator(_number)]
Real = Annotated[float, BeforeValidator(_number)]
Degrees = Annotated[Grid, BeforeValidator(_grid)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Use(_Frozen):
    """A part by name, or as an object, with its options. In TOML every further key is an option."""

    part: Any
    options: Mapping[str, Any] = Field(default_factory=dict)

    def __init__(self, part: Any = None, /, **data: Any) -> None:
        super().__init__(**(data if part is None else {"part": part, **data}))

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            data = dict(data)
            if "name" in data:
                if not isinstance(data["name"], str):
                    raise ValueError(f"name={_shown(data['name'])} must be text")
                data["part"] = data.pop("name")
            fields = {key: data.pop(key) for key in [*cls.model_fields] if key in data}
            options = {key: _float(value) for key, value in {**fields.pop("options", {}), **data}.items()}
            return {**fields, "options": options}
        return data if isinstance(data, Use) else {"part": data}

    @property
    def name(self) -> str:
        """The name to show: an object's own, or the one it was asked for by."""
        return self.part if isinstance(self.part, str) else str(getattr(self.part, "name", _qualified(self.part)))

    def canonical(self) -> dict[str, Any]:
        """What the digest is made from."""
        part = self.part if isinstance(self.part, str) else _qualified(self.part)
        options = dict(self.options)
        if not isinstance(self.part, str | type) and dataclasses.is_dataclass(self.part):
            options |= {field.name: getattr(self.part, field.name) for field in dataclasses.fields(self.part)}
        return {"part": part, "options": {key: _plain(value) for key, value in sorted(options.items())}}


class Sweep(Use):
    """A mechanism, or the explainer, over its degrees. Without degrees: the one the object has."""

    degrees: Degrees | None = None

    def __init__(self, part: Any = None, /, **data: Any) -> None:
        super().__init__(part, **data)

    def canonical(self) -> dict[str, Any]:
        """What the digest is made from."""
        grid = None if self.degrees is None else [text(degree) for degree in self.degrees]
        return {**super().canonical(), "degrees": grid}


class Training(_Frozen):
    """How to train. `batch` is the expected batch of private training."""

    epochs: Whole = Field(default=20, ge=1)
    batch: Whole = Field(default=64, ge=1)
    learning_rate: Real = Field(default=0.1, gt=0, allow_inf_nan=False)
    momentum: Real = Field(default=0.0, ge=0, lt=1)
    optimiser: Literal["sgd", "adam"] = "sgd"
    weight_decay: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class Study(_Frozen):
    """Everything that decides a run's numbers, and nothing else (no paths, no number of workers)."""

    name: str = Field(default="study", min_length=1)
    data: Use = Use(part="digits")
    target: str | None = None
    hidden: str | None = None
    model: Use = Use(part="small-cnn")
    training: Training = Training()
    mechanisms: Annotated[Sequence[Sweep], AfterValidator(tuple)] = Field(min_length=1)
    explainer: Sweep = Sweep(part="smoothgrad", degrees=Grid.span(0, 1, "0.1"), options={"samples": 25})
    explained_images: Whole = Field(default=24, ge=2)
    gallery_images: Whole = Field(default=6, ge=0)
    measures: Annotated[Sequence[Use], AfterValidator(tuple)] = ()
    parties: Annotated[Sequence[Party], AfterValidator(tuple)] = Field(min_length=1)
    seeds: Annotated[Sequence[Whole], AfterValidator(tuple)] = Field(default=(0,), min_length=1)
    delta: Real = Field(default=1e-5, gt=0, lt=1)

    @model_validator(mode="after")
    def _consistent(self) -> Study:
        for key, names in (
            ("parties", [party.name for party in self.parties]),
            ("mechanisms", [sweep.name for sweep in self.mechanisms]),
            ("seeds", [str(seed) for seed in self.seeds]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{key}: {twice[0]!r} is named twice")
        known = {sweep.name for sweep in self.mechanisms} | {"plain"}
        for party in self.parties:
            if not party.name.strip():
                raise ValueError("parties: a party needs a name")
            if not 0 < party.share < float("inf"):
                raise ValueError(f"parties: {party.name!r} has share={party.share!r}, which must be above 0")
            for words in party.requires:
                with naming(f"parties: {party.name!r}"):
                    check_reachable(parse(words))
            for mechanism in party.mechanisms:
                if mechanism not in known:
                    raise ValueError(f"parties: {party.name!r} allows {mechanism!r}, which the study does not have")
        return self

    def with_required(self, on_request: Sequence[str]) -> Study:
        """The study with those of these measures that a party requires among its own, so that its digest tells."""
        listed = {use.name for use in self.measures}
        required = {parse(words).quantity for party in self.parties for words in party.requires}
        asked = [Use(part=name) for name in on_request if name in required - listed]
        return self.model_copy(update={"measures": (*self.measures, *asked)})

    def canonical(self) -> dict[str, Any]:
        """The study as plain values: what results.json keeps and the digests are made from."""
        return {
            "name": self.name,
            "data": self.data.canonical(),
            "target": self.target,
            "hidden": self.hidden,
            "model": self.model.canonical(),
            "training": self.training.model_dump(),
            "mechanisms": [sweep.canonical() for sweep in self.mechanisms],
            "explainer": self.explainer.canonical(),
            "explained_images": self.explained_images,
            "gallery_images": self.gallery_images,
            "measures": [use.canonical() for use in self.measures],
            "parties": [dataclasses.asdict(party) for party in self.parties],
            "seeds": list(self.seeds),
            "delta": self.delta,
        }


def read(path: Path) -> Study:
    """The study in a TOML file."""
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; 'counterpoise init {path}' writes one to edit.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read as a text file ({problem}).") from None
    try:
        # Decimals, so that a degree of 0.1 is one tenth and not the nearest binary float.
        data = tomllib.loads(content, parse_float=Decimal)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path}: is not valid TOML: {problem}.") from None
    return parse_study(data, str(path))


def parse_study(data: Mapping[str, Any], source: str = "study") -> Study:
    """A study from plain values; a mistake becomes one sentence."""
    try:
        return Study.model_validate(data)
    except ValidationError as problems:
        problem = problems.errors()[0]
        # Counted from 1, as people do; a part's name is 'part' to Python only.
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in problem["loc"])
        key = key.removesuffix(".part") + ".name" if key.endswith(".part") else key
        rule = _RULES.get(problem["type"], problem["msg"].removeprefix("Value error, ").rstrip("."))
        if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            raise InputError(f"{source}: {key}: is not a key of a study; remove it or correct its name.") from None
        if problem["type"] == "missing":
            raise InputError(f"{source}: {key}: is missing.") from None
        shown = "" if isinstance(problem["input"], Mapping | Study) else f" = {_shown(problem['input'])}"
        raise InputError(f"{source}: {key}{shown}: {rule}." if key else f"{source}: {rule}.") from None


_RULES = {"tuple_type": "must be a list", "is_instance_of": "must be a list", "list_type": "must be a list"}
"""In the words of a TOML file."""


def _shown(value: object) -> str:
    if isinstance(value, list):
        value = ", ".join(str(item) if isinstance(item, Decimal) else repr(item) for item in value)
        return f"[{value}]" if len(value) <= 58 else f"[{value[:55]}...]"
    spelled = str(value) if isinstance(value, Decimal) else repr(value)
    return spelled if len(spelled) <= 60 else spelled[:57] + "..."


def _plain(value: object) -> Any:
    """Options as JSON values."""
    if isinstance(value, Decimal):
        return text(value)
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in sorted(value.items())}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"part": _qualified(value), **fields}
    return _qualified(value)


def _qualified(part: object) -> str:
    kind = part if isinstance(part, type) or (callable(part) and hasattr(part, "__qualname__")) else type(part)
    return f"{kind.__module__}:{kind.__qualname__}"
