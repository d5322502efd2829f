"""Open the page in a real browser and drive it: `python tests/report/browser_check.py [CHROMIUM]`.

The tests run the page's rules in a small interpreter, so that they need no browser. This adds what only a browser can
tell: that the form asks what it says, under the page's own Content-Security-Policy; that no script fails; and that
nothing is wider than a telephone's screen. It exits with 1 and says why where something differs from Python.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from report_study import budgets, galleries, results, smaller

from counterpoise.grid import text
from counterpoise.record import Party, Results
from counterpoise.report import write
from counterpoise.tradeoff import MODES, POLICIES, Choice, choose

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--allow-file-access-from-files", "--virtual-time-budget=60000",
    "--enable-logging=stderr", "--dump-dom", "--window-size=1280,2000",
)  # fmt: skip

DRIVER = """<!doctype html><iframe id="page" src="report.html" style="width:390px;height:900px"></iframe>
<pre id="found"></pre>
<script>
const questions = QUESTIONS;
const wait = () => new Promise((done) => setTimeout(done, 50));
document.getElementById("page").onload = async (event) => {
  const frame = event.target, page = frame.contentDocument, found = { answers: [] };
  while (page.documentElement.dataset.ready !== "true") await wait();
  const set = (id, value) => {
    const element = page.getElementById(id);
    if (typeof value === "boolean") element.checked = value; else element.value = value;
    element.dispatchEvent(new Event("input", { bubbles: true }));
  };
  for (const question of questions) {
    page.getElementById("explore-form").reset();
    await wait();
    for (const [id, value] of Object.entries(question.set)) set(id, value);
    found.answers.push(page.querySelector("#verdict .answer").textContent);
  }
  found.widths = {};
  for (const width of [390, 1280]) {
    frame.style.width = `${width}px`;
    await new Promise((done) => setTimeout(done, 500));
    found.widths[width] = page.documentElement.scrollWidth;
  }
  found.charts = page.querySelectorAll(".js-plotly-plot .main-svg").length;
  found.maps = page.querySelectorAll("svg.heat").length;
  document.getElementById("found").textContent = JSON.stringify(found);
};
</script>
"""


def asked(study: Results) -> list[tuple[dict[str, Any], str, str, str, int | None, tuple[Party, ...]]]:
    """(form values, mechanism, policy, mode, quorum, the parties those values state)."""
    first, *others = study.parties
    cases: list[tuple[dict[str, Any], tuple[Party, ...]]] = [
        ({}, study.parties),
        ({"keep-0-0": False}, (replace(first, requires=first.requires[1:]), *others)),
        ({"level-2": "2"}, _with(study, 2, "explainability >= 0.4")),
        ({"loss-1": "7"}, _with(study, 1, "utility_loss <= 0.07")),
        ({"extra-2": "accuracy > 0.9"}, _with(study, 2, "accuracy > 0.9")),
        ({"named-0": False}, (replace(first, mechanisms=()), *others)),
    ]
    found = []
    for mechanism in ("dp-sgd", "autoencoder", "plain"):
        for mode in MODES:
            for policy in POLICIES:
                for quorum in (1, 3) if policy == "quorum" else (None,):
                    for values, parties in cases:
                        picked = {"mechanism": mechanism, "mode": mode, "policy": policy}
                        counted = {} if quorum is None else {"quorum": str(quorum)}
                        found.append(({**picked, **counted, **values}, mechanism, policy, mode, quorum, parties))
    protected = _with(study, 2, "noise >= 2")
    found.append(({"mechanism": "dp-sgd", "degree-2": "2"}, "dp-sgd", "unanimous", "measured", None, protected))
    return found


def _with(study: Results, index: int, words: str) -> tuple[Party, ...]:
    return tuple(replace(p, requires=(*p.requires, words)) if i == index else p for i, p in enumerate(study.parties))


def expected(study: Results, mechanism: str, policy: str, mode: str, quorum: int | None, who: tuple[Party, ...]) -> str:
    outcome = choose(study, policy, mode, who, quorum).outcomes[mechanism]
    if not isinstance(outcome, Choice):
        return f"No setting of {mechanism} is allowed by enough parties."
    winner = outcome.winner
    where = f"{winner.mechanism} at {winner.degree_name} {text(winner.degree)}"
    return f"{where}, explainability {text(winner.explainability)}"


def main(browser: str) -> int:
    study = smaller(results())
    questions = asked(study)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        write(study, choose(study), out, galleries=galleries(study)[:6], budgets=budgets(study))
        driver = out / "drive.html"
        driver.write_text(DRIVER.replace("QUESTIONS", json.dumps([{"set": question[0]} for question in questions])))
        command = [browser, *FLAGS, f"--user-data-dir={out / 'profile'}", driver.as_uri()]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    console = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    failures = [line for line in console if re.search(r"Uncaught|Refused|Content Security|Error", line)]
    dumped = re.search(r'<pre id="found">(.+?)</pre>', ran.stdout, re.DOTALL)
    if dumped is None:
        print("The page did not become ready.", *console, sep="\n")
        return 1
    found = json.loads(html.unescape(dumped[1]))
    for question, answer in zip(questions, found["answers"], strict=True):
        wanted = expected(study, *question[1:])
        if answer != wanted:
            failures.append(f"{question[0]}: the page says {answer!r}, Python {wanted!r}")
    failures += [f"{w} px: the page is {seen} px wide" for w, seen in found["widths"].items() if seen > int(w)]
    print(*failures or ["No difference."], sep="\n")
    print(f"{len(questions)} questions, {found['charts']} charts, {found['maps']} maps, widths {found['widths']}.")
    return 1 if failures or not found["charts"] or not found["maps"] else 0


if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium") or shutil.which("google-chrome")
    if name is None:
        sys.exit("This check needs Chromium: install it, or name it, as in 'browser_check.py /usr/bin/chromium'.")
    sys.exit(main(name))
