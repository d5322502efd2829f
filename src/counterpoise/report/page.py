"""`report.html`: one self-contained file. Everything the template shows is escaped; every script is pinned by hash."""

from __future__ import annotations

from typing import Any

import jinja2

from counterpoise.report.evidence import Evidence


def page(evidence: Evidence, decided: dict[str, Any]) -> str:
    """The whole page."""
    loader = jinja2.PackageLoader("counterpoise.report", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template("page.html").render(decided=decided, study=evidence.results.study)
