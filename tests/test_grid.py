"""Degrees are exact: grids are compared with integer arithmetic, and with the floats that get them wrong."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise._check import InputError
from counterpoise.grid import DegreeKind, Grid, decimal, text

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=4)


@given(start=st.integers(-1000, 1000), steps=st.integers(0, 200), width=st.integers(1, 50), places=st.integers(0, 4))
def test_a_span_is_an_integer_walk(start: int, steps: int, width: int, places: int) -> None:
    def scaled(number: int) -> Decimal:
        return Decimal(number).scaleb(-places)

    grid = Grid.span(scaled(start), scaled(start + steps * width), scaled(width))
    assert list(grid) == [scaled(start + index * width) for index in range(steps + 1)]
    assert len(grid) == steps + 1


def test_floats_that_people_type_are_exact() -> None:
    grid = Grid.span(0, 2, 0.1)
    assert len(grid) == 21
    above = [value for value in grid if value > Decimal("1.7")]
    assert [text(value) for value in above] == ["1.8", "1.9", "2"]
    # The nearby wrong thing: binary floats count 1.7 as above 1.7.
    assert len([index * 0.1 for index in range(21) if index * 0.1 > 1.7]) == 4


def test_a_step_that_does_not_divide_is_told_where_it_ends() -> None:
    with pytest.raises(
        InputError, match=r"^step=0\.3 does not divide the grid from 0 to 1; the last degree would be 0\.9\.$"
    ):
        Grid.span(0, 1, 0.3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 0), r"^step=0 must be above 0\.$"),
        ((0, 1, -1), r"^step=-1 must be above 0\.$"),
        ((1, 0, 1), r"^to=0 must not be below from=1\.$"),
        ((0, 1, "0.00001"), r"^step=0\.00001 gives 100001 degrees; use at most 10000\.$"),
        ((0, 1, "1e-40"), r"^step=0\.0{39}1 gives 10{39}1 degrees; use at most 10000\.$"),
        ((0, 1, "1e-400"), r"^step='1e-400' must be a decimal number of at most 100 digits such as 1\.8\.$"),
        ((0, Decimal("NaN"), 1), r"^to=NaN must be a finite decimal number such as 1\.8\.$"),
        (("much", 1, 1), r"^from='much' must be a decimal number such as 1\.8\.$"),
        ((0, float("nan"), 1), r"^to=nan must be a finite decimal number such as 1\.8\.$"),
        ((0, 1, True), r"^step=True must be a decimal number such as 1\.8\.$"),
    ],
)
def test_wrong_spans(arguments: tuple[object, object, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Grid.span(*arguments)


@pytest.mark.parametrize("values", [[0, 0], [1, 0.5], ["1.0", "1.00"]])
def test_degrees_must_increase(values: list[object]) -> None:
    with pytest.raises(InputError, match=r"^degrees must increase, but .* follows .*$"):
        Grid.of(values)


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(InputError, match=r"^degrees=\[\] must hold at least one degree\.$"):
        Grid.of([])


@given(DECIMALS)
def test_text_spells_every_decimal_once(value: Decimal) -> None:
    spelled = text(value)
    assert decimal(spelled) == value
    assert spelled == text(value.quantize(Decimal("1.000000")))
    assert "E" not in spelled
    assert spelled != "-0"


@pytest.mark.parametrize(("value", "spelled"), [("1.80", "1.8"), ("2E+1", "20"), ("-0.0", "0"), ("1e-7", "0.0000001")])
def test_text_examples(value: str, spelled: str) -> None:
    assert text(Decimal(value)) == spelled


def test_a_kind_holds_its_bounds() -> None:
    share = DegreeKind("code_ratio", "down", Decimal("0.1"), Decimal(1))
    share.check(Decimal("0.1"))
    share.check(Decimal(1))
    with pytest.raises(InputError, match=r"^code_ratio=1\.1 must be at least 0\.1 and at most 1\.$"):
        share.check(Decimal("1.1"))
    with pytest.raises(InputError, match=r"^noise=-0\.1 must be at least 0\.$"):
        DegreeKind("noise", "up").check(Decimal("-0.1"))


@pytest.mark.parametrize("value", ["a", None, Decimal("nan"), float("nan")])
def test_a_degree_that_is_no_number_is_one_sentence(value: object) -> None:
    with pytest.raises(InputError, match=r"^noise must be a number, such as Decimal\('1\.8'\)\.$"):
        DegreeKind("noise", "up").check(value)  # type: ignore[arg-type]


def test_a_plain_number_is_checked_like_a_decimal() -> None:
    DegreeKind("noise", "up").check(1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^noise=-1 must be at least 0\.$"):
        DegreeKind("noise", "up").check(-1)  # type: ignore[arg-type]
