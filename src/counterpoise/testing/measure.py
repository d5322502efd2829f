"""What every measure promises."""

from __future__ import annotations

import math
from dataclasses import replace

from counterpoise.interface import Measure
from counterpoise.record import Measurement
from counterpoise.testing import _bed as bed
from counterpoise.testing._bed import hold


def check_measure(measure: Measure) -> None:
    """Measure small outcomes, and hold it to what `Measure` promises."""
    name = bed.named(Measure, measure)
    hold(measure.level in ("training", "explanation"), f"{name}: level must be 'training' or 'explanation'")
    baseline, candidate = bed.outcomes()
    before, state = bed.copies(candidate), bed.state(candidate.trained.model)
    with bed.elsewhere():
        found = measure(baseline, candidate)
    hold(bed.same(before, bed.copies(candidate)), f"{name}: it changed the outcome it measured")
    hold(state == bed.state(candidate.trained.model), f"{name}: the model was not given back as it was found")
    hold(isinstance(found, Measurement), f"{name}: it must return a Measurement, not {type(found).__name__}")
    numbers = (found.low, found.value, found.high)
    hold(all(map(math.isfinite, numbers)), f"{name}: low, value and high must be finite, not {numbers}")
    with bed.elsewhere():
        again = measure(replace(baseline), replace(candidate))
    hold(found == again, f"{name}: measured twice, it gives {found.value} and {again.value}; seed what it draws")
    if measure.name.endswith("_loss"):
        none = measure(baseline, replace(baseline)).value
        hold(none == 0, f"{name}: the baseline compared with itself must lose 0, not {none}")
