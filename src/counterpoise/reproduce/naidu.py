"""Naidu et al., "When differential privacy meets interpretability" (2021): Grad-CAM of networks trained with DP-SGD.

Cats vs. Dogs and APTOS 2019, global and local noise, by epsilon. What the source leaves open is set so: accountant PLD,
one image the unit, add-remove, Poisson batches of the source's size on average; GroupNorm, also without noise; Adam
where the step is 1e-4, else SGD; Laplace noise hides gradients clipped in the L1 norm, because in the L2 norm it is no
pure DP and nothing is proved. Maps are compared on the images that all models of a table classify rightly; blank maps
are counted, not scored.
"""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import asdict, replace

from counterpoise import store
from counterpoise._files import write
from counterpoise.fingerprint import versions
from counterpoise.interface import Recipe
from counterpoise.report import Claim, write_claims
from counterpoise.reproduce import _naidu_figures as figures
from counterpoise.reproduce._naidu_cells import (
    GAUSSIAN,
    LAPLACE,
    LOCAL,
    LOCAL_IMAGE,
    LOCAL_LAPLACE,
    LOCAL_PIXEL,
    Bench,
    Case,
    Cell,
    Network,
    train_all,
)
from counterpoise.reproduce._naidu_claims import points, sensitive, trends
from counterpoise.reproduce._naidu_maps import Group, look
from counterpoise.reproduce._naidu_text import MASKED, PUBLISHED, claims_table, tables
from counterpoise.reproduce.settings import Settings

EPSILONS = (0.5, 1.0, 5.0, 10.0)
LAPLACES = (1.0, 5.0, 10.0)
LOCALS = (0.25, 0.5, 1.0)
CLIPS = (0.5, 1.0, 2.0, 4.0)
WORSE = {"average_drop": -1, "confidence_increase": 1, "masked_score": 1}
OURS = {"faithfulness": 1}

TANH, SMALL = Network("tanh-cnn", "tanh-cnn"), Network("small-cnn", "small-cnn")
VGG = Network("vgg16", "VGG-16", (("norm", "group"),))
RESNET, ALEXNET = Network("resnet18", "ResNet-18", (("norm", "group"),)), Network("alexnet", "AlexNet")

CATS = Case(
    "cats-vs-dogs",
    "animal",
    224,
    (VGG,),
    Recipe(10, 32, 1e-4, optimiser="adam"),
    Recipe(10, 32, 1e-4, optimiser="adam"),
    ((GAUSSIAN, EPSILONS), (LAPLACE, LAPLACES)),
    CLIPS,
    seeds=5,
)
APTOS = Case(
    "aptos2019",
    "grade",
    224,
    (RESNET, ALEXNET),
    Recipe(25, 32, 0.01),
    Recipe(25, 32, 0.01),
    ((GAUSSIAN, EPSILONS), (LAPLACE, LAPLACES), (LOCAL_IMAGE, LOCALS), (LOCAL_PIXEL, LOCALS), (LOCAL_LAPLACE, LOCALS)),
    (),
    seeds=5,
)
_PLAIN, _PRIVATE = Recipe(20, 64, 0.05, momentum=0.9), Recipe(20, 512, 1.0)
CASES = {
    ("cats-vs-dogs", "paper"): CATS,
    ("cats-vs-dogs", "cpu"): replace(CATS, size=32, networks=(TANH,), plain=_PLAIN, private=_PRIVATE, seeds=3),
    ("aptos2019", "paper"): APTOS,
    ("aptos2019", "cpu"): replace(
        APTOS, target="disease", size=32, networks=(TANH, SMALL), plain=_PLAIN, private=_PRIVATE, seeds=3
    ),
}
CASES["cats-vs-dogs", "quick"] = replace(
    CASES["cats-vs-dogs", "cpu"],
    sweeps=((GAUSSIAN, (0.5, 10.0)),),
    clips=(),
    limit=1000,
    explained=50,
    plain=replace(_PLAIN, epochs=10),
    private=replace(_PRIVATE, epochs=10, batch=256),
)
CASES["aptos2019", "quick"] = replace(
    CASES["aptos2019", "cpu"],
    sweeps=((GAUSSIAN, (0.5, 10.0)), (LOCAL_PIXEL, (1.0,))),
    explained=50,
    plain=replace(_PLAIN, epochs=10),
    private=replace(_PRIVATE, epochs=10, batch=256),
)
REDUCED = {
    "quick": "Reduced much further than scale cpu, to half a minute of processor time: fewer epsilons, {explained}"
    " explained images; else: images of 32 x 32 pixels (the source: 224); {networks} in place of {theirs}; {epochs}"
    " epochs of batches of {batch} and a rate of {rate:g} for private training, {plain} at {plain_rate:g} with momentum"
    " .9 for the others; {train} training images{target}.",
    "cpu": "Reduced: images of 32 x 32 pixels (the source: 224); {networks} in place of {theirs}; {epochs} epochs of"
    " batches of {batch} and a rate of {rate:g} for private training, {plain} at {plain_rate:g} with momentum .9 for"
    " the others; {train} training images{target}.",
    "paper": "The source's settings as printed: {networks}, {epochs} epochs, batch {batch}, rate {rate:g}. {train}"
    " training images of 224 x 224 pixels.",
}
TITLES = {
    GAUSSIAN: "Gaussian noise",
    LAPLACE: "Laplace noise, clipped in L1",
    LOCAL_IMAGE: "local Gaussian noise, epsilon about the image",
    LOCAL_PIXEL: "local Gaussian noise, epsilon about one pixel value",
    LOCAL_LAPLACE: "local Laplace noise, epsilon about one pixel value",
}


def naidu_catsdogs(settings: Settings) -> str:
    """DP-SGD and Grad-CAM on Cats vs. Dogs: drop, increase and score by epsilon, Gaussian and Laplace noise."""
    return reproduce(CASES["cats-vs-dogs", settings.scale], settings)


def naidu_aptos(settings: Settings) -> str:
    """DP-SGD, local noise and Grad-CAM on APTOS 2019 fundus images: two networks, by epsilon."""
    return reproduce(CASES["aptos2019", settings.scale], settings)


def reproduce(case: Case, settings: Settings) -> str:
    """Train what is missing, compare, write tables, claims and figures; return the tables."""
    cells = case.cells()
    workers = min(2, os.cpu_count() or 1) if settings.scale != "quick" else 1
    train_all(case, settings.data, settings.out, cells, workers, lambda line: print(line, file=sys.stderr))
    bench = Bench.of(case, settings.data, settings.out)
    groups = {name: look(bench, *chosen) for name, chosen in compared(case, cells).items()}
    claims = decide(case, groups)
    drawn = figures.save(settings.out / "figures", draw(case, bench, groups))
    provenance: dict[str, object] = {
        "reproduction": f"Naidu et al. 2021, {case.data}",
        "scale": settings.scale,
        "seeds": list(range(case.seeds)),
        "configuration": store.digest(json.loads(json.dumps(asdict(case)))),
        "versions": versions(),
    }
    write_claims(settings.out, claims, provenance)
    text = written(case, bench, groups, claims, provenance)
    path = settings.out / f"naidu-{case.data}-{settings.scale}.md"
    write(path, text.encode())
    return f"{text}\nTables: {path}; figures: {', '.join(drawn)} in {settings.out / 'figures'}"


def compared(case: Case, cells: list[Cell]) -> dict[str, tuple[str, list[Cell]]]:
    """Which trainings make one table: every sweep with the trainings without noise, and the clips at epsilon 1."""
    found = {}
    for network in case.networks:
        for way, epsilons in case.sweeps:
            chosen = [
                cell
                for cell in cells
                if cell.network == network
                and cell.clip == 1
                and ((cell.way == way and cell.epsilon in epsilons) or math.isinf(cell.epsilon))
            ]
            if any(math.isfinite(cell.epsilon) for cell in chosen):
                found[f"{way}, {network.title}"] = (f"{TITLES[way]}, {network.title}", chosen)
    if case.clips:
        first = case.networks[0]
        chosen = [
            cell
            for cell in cells
            if cell.network == first and cell.way == GAUSSIAN and cell.epsilon == 1 and cell.clip in case.clips
        ]
        found["clips"] = (f"clip S at epsilon 1, Gaussian noise, {first.title}", chosen)
    return found


def settings_of(group: Group) -> list[tuple[float, float]]:
    """(epsilon, clip) of a group's rows, the source's order: least epsilon, or clip, first."""
    return sorted({(one.cell.epsilon, one.cell.clip) for one in group.looked})


def decide(case: Case, groups: dict[str, Group]) -> list[Claim]:
    """The source's claims. Ours beside them: insertion - deletion, which a map of ones cannot win."""
    found = []
    for name, group in groups.items():
        rows = settings_of(group)
        if name == "clips":
            rows = [row for row in rows if row[1] >= 1]
            hurt = {"masked_score": -1, "average_drop": 1}
            found += trends(group, rows, "clip", hurt, f"raising S past 1 hurts ({group.title})")
            continue
        found += trends(group, rows, "epsilon", WORSE | OURS, f"smaller epsilon, worse maps ({group.title})")
    first = groups[f"{GAUSSIAN}, {case.networks[0].title}"]
    measured = {one.cell.epsilon for one in first.looked}
    if case.data == "cats-vs-dogs":
        for quantity in ("confidence_increase", "masked_score"):
            if {1.0, 5.0} <= measured:
                found.append(points(first, quantity, 1.0, 5.0, 25))
            if 10.0 in measured:
                found.append(points(first, quantity, 10.0, math.inf, 15))
    if len(case.networks) > 1:
        smaller = groups[f"{GAUSSIAN}, {case.networks[1].title}"]
        found += sensitive(first, smaller, min(measured))
    return found


def draw(case: Case, bench: Bench, groups: dict[str, Group]) -> dict[str, figures.Figure | None]:
    """The source's figures, as far as this case has their data."""
    globally = [group for name, group in groups.items() if name != "clips" and not name.startswith("local")]
    locally = [group for name, group in groups.items() if name.startswith(LOCAL[1:])]
    found = {"accuracy-by-epsilon": figures.lines(globally, ["accuracy"], "epsilon", "test accuracy")}
    found["score-by-epsilon"] = figures.lines(globally, ["masked_score"], "epsilon", "masked score")
    if "clips" in groups:
        found["score-by-clip"] = figures.lines([groups["clips"]], ["masked_score"], "clip", "masked score at epsilon 1")
    if locally:
        found["local"] = figures.lines(locally, MASKED[:2], "epsilon", "drop and increase, local noise")
    for name, group in groups.items():
        if name.startswith(GAUSSIAN):
            found[f"maps-{figures.slug(name)}"] = figures.gallery(bench, group)
    return found


def written(
    case: Case, bench: Bench, groups: dict[str, Group], claims: list[Claim], provenance: dict[str, object]
) -> str:
    """Everything as one text: what was reduced, the tables, the claims, where the numbers come from."""
    theirs = "VGG-16" if case.data == "cats-vs-dogs" else "ResNet-18 and AlexNet"
    reduced = REDUCED[str(provenance["scale"])].format(
        networks=" and ".join(network.title for network in case.networks),
        theirs=theirs,
        explained=case.explained,
        epochs=case.private.epochs,
        batch=case.private.batch,
        rate=case.private.learning_rate,
        plain=case.plain.batch,
        plain_rate=case.plain.learning_rate,
        train=len(bench.train),
        target="; disease or none (the source: five grades)" if case.target == "disease" else "",
    )
    parts = [f"### {case.data}, scale {provenance['scale']}", reduced, f"Delta {bench.delta:g}."]
    for name, group in groups.items():
        published = PUBLISHED if case.data == "cats-vs-dogs" else {}
        told = published.get(name.split(",")[0], {})
        parts.append(tables(group, settings_of(group), told))
        if name.startswith(LOCAL[1:]):
            parts.append(_per_image(bench, group))
    parts += ["**Claims**", claims_table(claims), _provenance(provenance)]
    return "\n\n".join(parts) + "\n"


def _per_image(bench: Bench, group: Group) -> str:
    """What an epsilon about one value proves about an image."""
    cells = {one.cell.epsilon: one.cell for one in group.looked if math.isfinite(one.cell.epsilon)}
    told = [f"{epsilon:g} is {bench.of_image(cell.way, epsilon):,.0f}" for epsilon, cell in sorted(cells.items())]
    return f"About the whole image, epsilon {', '.join(told)}: that is what these trainings prove of an image."


def _provenance(provenance: dict[str, object]) -> str:
    library = ", ".join(f"{name} {value}" for name, value in versions().items())
    return f"Seeds {provenance['seeds']}; configuration {provenance['configuration']}; {library}."


__all__ = ["naidu_aptos", "naidu_catsdogs", "reproduce"]
