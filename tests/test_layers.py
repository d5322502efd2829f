"""The import table of the house, read from the source with `ast`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import counterpoise

SOURCE = Path(counterpoise.__file__).parent
BOTTOM = {"_check", "_files", "grid", "record"}
CORE = BOTTOM | {"interface", "training", "representation", "information"}
ROOMS = {"datasets", "models", "mechanisms", "explainers", "measures"}
PREPARED = CORE | {"prepare", "fingerprint", "store", "study", "catalogue", "tags", "tradeoff"}

# Which rooms each room may import, besides itself. The room is the first name below the package.
ALLOWED: dict[str, set[str]] = {
    "_check": set(),
    "_files": set(),
    "grid": {"_check"},
    "record": {"grid"},
    "interface": BOTTOM,
    "representation": {"_check"},
    "information": {"_check"},
    "training": BOTTOM | {"interface", "representation"},
    "privacy": CORE,
    **dict.fromkeys(ROOMS - {"mechanisms", "measures"}, CORE),
    "mechanisms": CORE | {"privacy"},
    "measures": CORE | {"privacy"},
    "tags": set(),
    "study": BOTTOM | {"tradeoff"},
    "store": BOTTOM,
    "catalogue": {"_check"} | ROOMS,
    "dealing": CORE,
    "fingerprint": {"interface"},
    "prepare": CORE | {"dealing", "fingerprint", "study", "store", "catalogue", "tags", "tradeoff"},
    "work": PREPARED,
    "plan": PREPARED | {"work"},
    "executors": {"_check", "prepare", "training"},
    "running": PREPARED | {"work", "executors"},
    "proving": PREPARED | {"privacy"},
    "threshold": PREPARED,
    "tradeoff": BOTTOM,
    "report": BOTTOM | {"tradeoff"},
    "publish": BOTTOM | {"store", "tradeoff", "report", "privacy"},
    "explaining": PREPARED | {"work"},
    "releasing": PREPARED | {"explaining"},
    "splitting": PREPARED | {"work", "explaining"},
    "testing": CORE,
    "_progress": {"prepare"},
    "_show": {"catalogue", "grid", "plan", "tradeoff"},
}
FREE = {"cli", "reproduce", "__init__", "__main__"}
NO_TORCH = {"_check", "_files", "grid", "record", "information", "tradeoff", "report", "store", "study"}


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[tuple[str, str]]:
    """(top-level package, room of ours or '') of every import in the file, also those inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "counterpoise" else [base]
        for name in names:
            parts = name.split(".")
            found.add((parts[0], parts[1] if parts[0] == "counterpoise" and len(parts) > 1 else ""))
    return found


def breaches(path: Path) -> list[str]:
    room = room_of(path)
    if room in FREE:
        return []
    if room not in ALLOWED:
        return [f"{path.name}: the room {room!r} is not in the import table"]
    ours = {name for package, name in imported(path) if package == "counterpoise" and not name.startswith("__")}
    wrong = [f"{room} imports {name}" for name in sorted(ours - ALLOWED[room] - {room, ""})]
    if room in NO_TORCH and ("torch", "") in imported(path):
        wrong.append(f"{room} imports torch")
    return wrong


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_only_what_the_table_allows(path: Path) -> None:
    assert breaches(path) == []


@pytest.mark.parametrize(
    ("room", "line", "complaint"),
    [
        ("explainers", "from counterpoise.mechanisms import Plain", "explainers imports mechanisms"),
        ("tradeoff", "import torch", "tradeoff imports torch"),
        ("report", "def f():\n    from counterpoise.running import run", "report imports running"),
        ("mechanisms", "import counterpoise.measures.leakage", "mechanisms imports measures"),
    ],
)
def test_the_table_catches_a_breach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str, line: str, complaint: str
) -> None:
    (tmp_path / room).mkdir()
    path = tmp_path / room / "planted.py"
    path.write_text(line)
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    assert breaches(path) == [complaint]


@pytest.mark.parametrize(
    "module", ["counterpoise", "counterpoise.tradeoff", "counterpoise.report", "counterpoise.store"]
)
def test_below_the_watershed_torch_stays_out(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_files_can_be_read_in_one_sitting() -> None:
    too_long = {
        str(p.relative_to(SOURCE)): n for p in SOURCE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 350
    }
    assert too_long == {}
