"""The estimate of the time left, on a clock that the test moves."""

from __future__ import annotations

import io

import torch
from quadratic import Quadratic, rng

from counterpoise.explainers import Countdown, Saliency


def test_it_says_how_long_it_will_still_take_but_not_too_often() -> None:
    out, now = io.StringIO(), [100.0]
    heard = Countdown(every=2, out=out, clock=lambda: now[0])
    for seconds, done in ((1, 0.1), (5, 0.25), (6, 0.3), (10, 0.5), (20, 1.0)):
        now[0] = 100 + seconds
        heard(done)
    assert out.getvalue().splitlines() == [
        "explaining: 25%, about 15 s left",
        "explaining: 50%, about 10 s left",
        "explaining: 100%, 20 s in all",
    ]


def test_explainers_tell_it() -> None:
    out = io.StringIO()
    images = torch.rand(2, 1, 3, 3).double()
    Saliency().explain(Quadratic(), images, torch.tensor([0, 1]), rng(), progress=Countdown(out=out))
    assert out.getvalue() == "explaining: 100%, 0 s in all\n"
