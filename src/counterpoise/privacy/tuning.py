"""What the search for good settings costs: trying several and publishing the best one looks at the images each time.

To compose all trials is always right, and dear. Where the number of trials is itself drawn at random, and only the
best is ever published, repeat-and-select (Papernot and Steinke, "Hyperparameter tuning with Rényi differential
privacy", ICLR 2022) charges about twice one trial, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from counterpoise import _check
from counterpoise._check import InputError
from counterpoise.privacy import rdp
from counterpoise.record import Release


def draw_trials(mean: float, rng: np.random.Generator, shape: float = math.inf) -> int:
    """How many trials to run; part of the guarantee, so it must be drawn and not chosen.

    `shape` is infinite for a Poisson number, 1 for a geometric one. A Poisson number may be 0: then nothing is
    published.
    """
    _check.positive(mean=mean)
    _check_shape(shape, mean)
    return int(rng.poisson(mean) if math.isinf(shape) else rng.geometric(1 / mean))


def select_cost(trial: Iterable[Release], delta: float, mean: float, shape: float = math.inf) -> float:
    """The epsilon of the best of a random number of trials, each of which is `trial`, chosen by its own score.

    All else about the trials stays unpublished, scores included. Gaussian releases, add-remove adjacency.
    """
    _check.positive(mean=mean)
    _check.inside(0, 1, delta=delta)
    _check_shape(shape, mean)
    uses = list(trial)
    if any(use.kind != "gaussian" or use.sampling == "shuffle" for use in uses):
        raise InputError("repeat-and-select is proved from Rényi moments: Gaussian noise and no shuffled batches.")
    if any(use.noise == 0 for use in uses):
        return math.inf
    import dp_accounting
    from dp_accounting import rdp as library

    events = []
    for use in uses:
        event = dp_accounting.GaussianDpEvent(use.noise)
        if use.sample_rate < 1:
            event = dp_accounting.PoissonSampledDpEvent(use.sample_rate, event)
        events.append(dp_accounting.SelfComposedDpEvent(event, use.steps))
    accountant = library.RdpAccountant(rdp.ORDERS[rdp.ORDERS >= 2])
    accountant.compose(
        dp_accounting.dp_event.RepeatAndSelectDpEvent(dp_accounting.ComposedDpEvent(events), mean, shape)
    )
    return float(accountant.get_epsilon(delta))


def _check_shape(shape: float, mean: float) -> None:
    if shape != math.inf and shape != 1:
        raise InputError(f"shape={shape!r} must be infinite (a Poisson number of trials) or 1 (a geometric one).")
    if shape == 1 and mean < 1:
        raise InputError(f"mean={mean!r} must be at least 1 for a geometric number of trials.")
