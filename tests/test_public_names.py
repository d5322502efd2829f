"""What the package promises by name exists, and importing it is cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

import counterpoise


@pytest.mark.parametrize("name", counterpoise.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(counterpoise, name).__name__ == name


def test_no_public_name_is_also_a_module() -> None:
    """`counterpoise.run` must stay the function, whatever has been imported before."""
    code = "import counterpoise.running, counterpoise as c; assert callable(c.run) and callable(c.choose)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        _ = counterpoise.walk
