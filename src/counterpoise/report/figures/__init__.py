"""The figures as files, one family a module: heat maps, four lines, costs, surface, galleries."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from counterpoise.report.evidence import Evidence
from counterpoise.report.figures.costs import accuracy, epsilon
from counterpoise.report.figures.heat import heat_maps
from counterpoise.report.figures.lines import four_lines, slices
from counterpoise.report.figures.pictures import maps, noisy, released
from counterpoise.report.figures.style import rendered, slug
from counterpoise.report.figures.surface import surface
from counterpoise.report.gallery import Gallery

__all__ = ["draw", "slug"]


def draw(evidence: Evidence) -> dict[str, bytes]:
    """Every figure by its file name; those of the source paper also as PDF."""
    files: dict[str, bytes] = {}
    for name, of_paper, figure in _figures(evidence):
        if figure is None:
            continue
        while f"{name}.png" in files:  # two names of mechanisms or parties may differ in signs only
            name = f"{name}-other"
        files |= {f"{name}.{ending}": content for ending, content in rendered(figure, pdf=of_paper).items()}
    return files


def _figures(evidence: Evidence) -> Iterator[tuple[str, bool, Figure | None]]:
    """(name, whether the source has it, figure)."""
    for mechanism, panel in evidence.decision.panels.items():
        named = slug(mechanism)
        if panel.table.sizes["privacy"] < 2 and len(evidence.decision.panels) > 1:
            continue  # a single degree has no curve
        for mode in evidence.modes:
            if mechanism not in evidence.panels(mode):
                continue
            paper = mode == "paper"
            yield f"heat-{named}-{mode}", paper, heat_maps(evidence, mechanism, mode)
            yield f"lines-{named}-{mode}", paper, four_lines(evidence, mechanism, mode)
            yield f"slices-{named}-{mode}", paper, slices(evidence, mechanism, mode)
            yield f"surface-{named}-{mode}", paper, surface(evidence, mechanism, mode)
        yield f"epsilon-{named}", True, epsilon(evidence, mechanism)
        yield f"accuracy-{named}", True, accuracy(evidence, mechanism)
    for group in _groups(evidence.galleries):
        named = slug(f"{group[0].mechanism}-{group[0].party}")
        yield f"released-{named}", True, released(group)
        if group[0].levels:
            yield f"maps-{named}", True, maps(group)
    explained = [gallery for gallery in evidence.galleries if len(gallery.originals) and gallery.levels]
    if explained and evidence.explainer == "smoothgrad":
        yield "noisy-copies", True, noisy(explained[0])


def _groups(galleries: tuple[Gallery, ...]) -> list[list[Gallery]]:
    groups: dict[tuple[str, str], list[Gallery]] = {}
    for gallery in galleries:
        if len(gallery.images):
            groups.setdefault((gallery.mechanism, gallery.party), []).append(gallery)
    return [sorted(group, key=lambda gallery: gallery.degree) for group in groups.values()]
