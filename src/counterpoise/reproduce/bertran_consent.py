"""Bertran et al., subject within subject: those who consent are recognised, those who do not are not.

The people of LFW are dealt into three groups: *consenting*, whose identities are the target (everybody else is one
class of it); *observed private*, whose identities are the secret (everybody else is one class of it); and *unobserved
private*, of whom no image takes part in training the filter. After that, a fresh network learns to name people of all
groups from filtered images, and is asked about other filtered images of them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from counterpoise._files import write
from counterpoise.datasets.attributes import Lfw
from counterpoise.interface import Images, Recipe, Task
from counterpoise.mechanisms._opponents import OPPONENTS, opponents
from counterpoise.mechanisms.plain import Plain
from counterpoise.report.figures.style import new, rendered, tidy
from counterpoise.reproduce._faces import Row, Schedule, spread, stacked, strip
from counterpoise.reproduce._kept import Numbers, kept
from counterpoise.reproduce.settings import Settings
from counterpoise.training import apply, derive, fit_classifier, generator, kept_aside, one_thread

GROUPS = ("consenting", "observed private", "unobserved private")
SCHEDULES = {
    "quick": Schedule(24, None, "small-cnn", Recipe(3, 32, 2e-3, optimiser="adam"), ("0.5",), 30, 4, 20),
    "cpu": Schedule(32, None, "mlp", Recipe(40, 32, 2e-3, optimiser="adam"), ("0.3", "0.6"), 1000, 8, 400),
    "paper": Schedule(
        90, None, "xception-small", Recipe(80, 32, 1e-3, optimiser="adam"),
        ("0.1", "0.3", "0.5", "0.7", "0.9"), 20_000, 32, 500, 3,
    ),
}  # fmt: skip


def bertran_consent(settings: Settings) -> str:
    """Consenting people recognised, observed and unobserved private ones not: top-1 and top-5 by alpha, on LFW; B07."""
    schedule = SCHEDULES[settings.scale]
    root = None if settings.data is None else str(settings.data)
    train, test = Lfw(root, schedule.side, limit=schedule.images).load()
    rows = []
    with one_thread():
        for seed in range(schedule.seeds):
            for alpha in (None, *schedule.alphas):
                name = "raw" if alpha is None else f"alpha {alpha}"
                configuration = {
                    "source": "bertran-consent",
                    "alpha": alpha,
                    "schedule": schedule.sentence(),
                    "seed": seed,
                }
                path = settings.out / "strips" / f"consent-{name.replace(' ', '-')}-{seed}.png"
                numbers = kept(
                    settings.out,
                    configuration,
                    lambda a=alpha, s=seed, p=path: train_one(train, test, a, s, schedule, p),  # type: ignore[misc]
                )
                rows.append(Row(name, alpha, seed, numbers, path))
    return finish(rows, test.pixels, schedule, settings)


def grouped(images: Images, groups: Tensor) -> Images:
    """The images with the two labels: who it is among those who consent, and among the observed private."""
    person = images.labels["person"]
    labels, classes = dict(images.labels), dict(images.classes)
    for group, name in enumerate(("consenting", "private")):
        members = torch.nonzero(groups == group).flatten()
        number = torch.full_like(groups, len(members))
        number[members] = torch.arange(len(members))
        labels[name] = number[person]
        classes[name] = (*(images.classes["person"][int(i)] for i in members), "somebody else")
    return replace(images, labels=labels, classes=classes)


def deal_people(count: int) -> Tensor:
    """The group of each person: half consent, a quarter is observed and private, a quarter is never seen."""
    order = torch.randperm(count, generator=generator(0, "consent"))
    groups = torch.full((count,), 2)
    groups[order[: count // 2]] = 0
    groups[order[count // 2 : count // 2 + count // 4]] = 1
    return groups


def train_one(
    train: Images, test: Images, alpha: str | None, seed: int, schedule: Schedule, strip_file: Path
) -> Numbers:
    """One filter, trained without the unobserved; then a namer of all people, asked about each group."""
    groups = deal_people(len(train.classes["person"]))
    train, test = grouped(train, groups), grouped(test, groups)
    person, group = train.labels["person"], groups[train.labels["person"]]
    seen = train.take(torch.nonzero(group != 2).flatten())
    task = Task(seen, test, "consenting", schedule.model, schedule.recipe, hidden="private")
    mechanism: Any = Plain() if alpha is None else schedule.privatizer(alpha)
    trained = mechanism.train(task, generator(seed, "consent", alpha))
    released, asked = apply(trained.release, train.pixels), apply(trained.release, test.pixels)
    write(strip_file, strip(spread(asked)))
    namer = strongest_namer(task, released, person, seed)
    truth, theirs = test.labels["person"], groups[test.labels["person"]]
    provided = apply(trained.model, asked)
    consenting = theirs == 0
    return {
        "namer": {name: _right(apply(namer, asked), truth, theirs == g) for g, name in enumerate(GROUPS)},
        "provider": _right(provided, test.labels["consenting"], consenting),
        "people": [int((groups == g).sum()) for g in range(3)],
        "alpha": None if alpha is None else str(Decimal(alpha)),
    }


def strongest_namer(task: Task, released: Tensor, person: Tensor, seed: int) -> nn.Module:
    """Of three that learn from filtered images, on standardised pixels, the one that names most of those kept aside."""
    learned, aside = kept_aside(len(released))
    namers = opponents(OPPONENTS, task, int(person.max()) + 1, derive(seed, "namers"))
    for namer in namers.values():
        fit_classifier(namer, released[learned], person[learned], task.recipe, seed)

    def named(namer: nn.Module) -> float:
        return float((apply(namer, released[aside]).argmax(1) == person[aside]).float().mean())

    return max(namers.values(), key=named)


def _right(logits: Tensor, truth: Tensor, chosen: Tensor) -> dict[str, float]:
    logits, truth = logits[chosen], truth[chosen]
    top = logits.topk(min(5, logits.shape[1]), 1).indices == truth[:, None]
    first = float(top[:, 0].double().mean())
    error = (first * (1 - first) / max(1, len(truth))) ** 0.5
    return {"top1": round(first, 4), "top5": round(float(top.any(1).double().mean()), 4), "error": round(error, 4)}


def finish(rows: list[Row], original: Tensor, schedule: Schedule, settings: Settings) -> str:
    """Table, figure, gallery."""
    first = rows[0].numbers
    columns = ("", "seed", "provider, consenting", *(f"namer, {group}" for group in GROUPS), "digest")
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        found = [row.numbers["provider"], *(row.numbers["namer"][group] for group in GROUPS)]
        cells = [f"{100 * n['top1']:.1f} ± {196 * n['error']:.1f} / {100 * n['top5']:.1f}" for n in found]
        lines.append("| " + " | ".join([row.name, str(row.seed), *cells, f"`{row.numbers['digest'][:8]}`"]) + " |")
    versions = ", ".join(f"{key} {value}" for key, value in first["configuration"]["versions"].items())
    seconds = sum(row.numbers["cpu_seconds"] for row in rows)
    people = " / ".join(map(str, first["people"]))
    text = "\n".join(
        [
            f"Subject within subject on LFW, {people} people consenting / observed private / unobserved private. Scale"
            f" {settings.scale}: {schedule.sentence()}.",
            "",
            *lines,
            "",
            "Percent right, top-1 with its 95 % interval / top-5. The provider's network names those who consent; the"
            " namer is fresh, has learned from filtered images of all people, and names all of them: an attacker with"
            " labelled, filtered pictures of everybody, the strongest of three networks on pictures kept aside."
            " Measured against this attacker; nothing is proved.",
            f"{versions}; {seconds / 60:.1f} CPU minutes.",
        ]
    )
    stem = f"bertran-consent-{settings.scale}"
    write(settings.out / f"{stem}.md", text.encode() + b"\n")
    everything = [{"name": row.name, "alpha": row.alpha, "seed": row.seed, **row.numbers} for row in rows]
    write(settings.out / f"{stem}.json", json.dumps(everything, indent=1).encode() + b"\n")
    write(settings.out / f"{stem}.png", _picture(rows))
    filtered = [row for row in rows if row.alpha is not None and row.seed == 0]
    write(settings.out / f"{stem}-gallery.png", stacked(filtered, original))
    return f"{text}\nFigure: {settings.out / stem}.png; gallery (original faces above): {stem}-gallery.png"


def _picture(rows: list[Row]) -> bytes:
    figure = new(6, 3.6)
    axes: Any = figure.subplots()
    rows = [row for row in rows if row.seed == 0]
    for group in GROUPS:
        for key, style in (("top5", "o-"), ("top1", "x--")):
            axes.plot([row.numbers["namer"][group][key] for row in rows], style, label=f"{group}, {key}")
    axes.set_xticks(range(len(rows)), [row.name for row in rows])
    axes.legend(fontsize=6)
    tidy(axes, "", "share named rightly", "Who is recognised")
    return rendered(figure, pdf=False)["png"]
