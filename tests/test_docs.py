"""The documentation is true: its code runs, its links lead somewhere, every command and page is named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from counterpoise.cli import app
from counterpoise.prepare import prepare
from counterpoise.study import read

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

SETTING = """
import torch
from counterpoise.interface import Trained
from counterpoise.testing import small_task
task = small_task()
trained = Trained(task.new_model(torch.Generator().manual_seed(0)).eval(), torch.nn.Identity())
images, target = task.test.pixels[:3], task.test.labels[task.target][:3]
model, targets = trained.model, target
"""
"""What a page may take as given: a trained model, some images and their classes."""


def blocks(page: Path) -> str:
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    code = blocks(page)
    given = "" if "__main__" in code else SETTING
    script.write_text(given + code)
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def studies(page: Path) -> list[str]:
    found = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in found if "[[mechanisms]]" in block and "[[parties]]" in block]


@pytest.mark.parametrize("page", [page for page in PAGES if studies(page)], ids=lambda page: page.name)
def test_the_studies_of_a_page_can_be_run_as_they_are(page: Path, tmp_path: Path) -> None:
    for index, block in enumerate(studies(page)):
        path = tmp_path / f"{index}.toml"
        path.write_text(block)
        study = read(path)
        if '[data]\nname = "digits"' in block:  # the others need files
            assert prepare(study).jobs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_names_every_command_and_page() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        assert f"counterpoise {name}" in readme, name
    for page in (ROOT / "docs").glob("*.md"):
        assert f"docs/{page.name}" in readme, page.name


def test_every_make_target_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_the_examples_are_studies(example: Path) -> None:
    assert read(example).parties
