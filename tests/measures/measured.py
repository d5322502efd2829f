"""Small outcomes to measure: every test says only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import torch
from torch import Tensor, nn

from counterpoise.interface import Again, Explaining, Explanation, Images, Outcome, Task, Trained
from counterpoise.mechanisms.plain import Plain
from counterpoise.record import Guarantee, Measurement
from counterpoise.training import apply


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(pixels: Tensor, labels: Tensor | None = None, classes: int = 2) -> Images:
    values = torch.zeros(len(pixels), dtype=torch.int64) if labels is None else labels
    return Images("made", pixels, {"y": values}, {"y": tuple(str(c) for c in range(classes))})


class Pick(nn.Module):
    """Logits are the first pixels times 10, one for each class."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, pixels: Tensor) -> Tensor:
        return 10 * pixels.flatten(1)[:, : self.classes]


def outcome(
    test: Images,
    *,
    train: Images | None = None,
    model: nn.Module | None = None,
    release: nn.Module | None = None,
    guarantees: tuple[Guarantee, ...] = (),
    degree: str = "0",
    measured: Mapping[str, Measurement] | None = None,
    explaining: Explaining | None = None,
) -> Outcome:
    """What training would have left behind, had it given this model and this release."""
    members = test if train is None else train
    network = Pick(len(test.classes["y"])) if model is None else model
    trained = Trained(network, nn.Identity() if release is None else release, guarantees)
    released_train, released_test = (apply(trained.release, part.pixels) for part in (members, test))
    return Outcome(
        Task(members, test, "y", lambda shape, classes, generator: network),
        Plain(),
        Decimal(degree),
        trained,
        released_train,
        released_test,
        apply(network, released_train),
        apply(network, released_test),
        apply(network, test.pixels),
        seed=0,
        measured=measured or {},
        explaining=explaining,
    )


def explaining(
    pixels: Tensor,
    maps: Tensor,
    near: Tensor | None = None,
    *,
    target: int = 0,
    degree: str = "0.5",
    samples: int = 25,
    chosen: Tensor | None = None,
    again: Again | None = None,
) -> Explaining:
    """Explanations with these maps, and with `near` as the maps of the nearby images."""
    classes = torch.full((len(pixels),), target)
    around = Explanation(maps if near is None else near)
    return Explaining(Decimal(degree), pixels, classes, Explanation(maps, None, samples), pixels, around, chosen, again)
