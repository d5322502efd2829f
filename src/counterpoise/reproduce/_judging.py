"""Every probe of one trained network at one layer, as plain numbers: the same for all that hide a class."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from counterpoise.interface import Task
from counterpoise.measures import code_length
from counterpoise.measures._interval import bootstrap
from counterpoise.measures.clusters import clusters
from counterpoise.measures.probes import Reading, best, erased, material, read
from counterpoise.measures.unit_agreement import agreement, within_and_between
from counterpoise.record import Measurement
from counterpoise.representation.alignment import alignment
from counterpoise.representation.layers import features
from counterpoise.training import apply

CURVE = 60
"""How many points of the energy curve are kept."""
SEEN = 4000
"""Test images that are clustered at most."""


def judge(model: nn.Module, at: str, task: Task) -> dict[str, Any]:
    """Accuracy, R, taught probes with intervals, and the source's own untaught ones."""
    hidden = task.to_hide("the probes")
    right = apply(model, task.test.pixels).argmax(1) == task.test.labels[task.target]
    train, test = (features(model, at, part.pixels) for part in (task.train, task.test))
    classes = task.test.labels[hidden]
    given = material(train, task.train.labels[hidden], test, classes)
    readings, floor = read(given), read(erased(given))
    grouped = clusters(test[:SEEN], classes[:SEEN])
    rates = agreement(test, classes)
    within, between = within_and_between(rates)
    return {
        "accuracy": _plain(bootstrap(right.double().numpy())),
        "R": float(alignment(test, classes)),
        "probes": {name: _reading(reading) for name, reading in readings.items()},
        "best": best(readings).name,
        "class_leak": _plain(best(readings).leak),
        "p_value": best(readings).p_value,
        "after_leace": {name: _plain(reading.accuracy) for name, reading in floor.items()},
        "code_length": _plain(code_length.bits(given)),
        "chance": 1 / given.count,
        "told_by_target": told_by_target(task.test.labels[task.target], classes),
        "components": grouped.components,
        "cluster_match": grouped.matched,
        "cluster_nmi": grouped.information,
        "agreement": [within, between],
        "dead_units": float((test.flatten(1).amax(0) <= 0).double().mean()),
        "figures": {
            "energy": grouped.energy[:CURVE].tolist(),
            "distances": grouped.distances.tolist(),
            "agreement": rates.tolist(),
        },
    }


def told_by_target(target: Tensor, hidden: Tensor) -> float:
    """Accuracy on balanced images of somebody who knows the true target and nothing else: the floor of hiding."""
    table = torch.stack(
        [(hidden[target == t]).bincount(minlength=int(hidden.max()) + 1) for t in range(int(target.max()) + 1)]
    )
    shares = table / table.sum(0).clamp(min=1)
    present = int((table.sum(0) > 0).sum())
    return float(shares.amax(1).sum() / present)


def _plain(found: Measurement) -> dict[str, float]:
    return {key: round(float(value), 5) for key, value in asdict(found).items() if key in ("value", "low", "high")}


def _reading(reading: Reading) -> dict[str, float]:
    return {**_plain(reading.accuracy), "p_value": reading.p_value}
