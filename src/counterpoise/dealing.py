"""The training images dealt to the parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from counterpoise._check import InputError
from counterpoise.interface import Images
from counterpoise.record import Party
from counterpoise.training import generator


def deal(train: Images, target: str, parties: Sequence[Party]) -> dict[str, Images]:
    """Deal the training images to the parties, class by class, by their shares; every image to exactly one."""
    labels, total = train.labels[target], sum(party.share for party in parties)
    bounds = np.cumsum([0.0, *(party.share / total for party in parties)])
    chosen: list[list[Tensor]] = [[] for _ in parties]
    for label, name in enumerate(train.classes[target]):
        members = torch.nonzero(labels == label).flatten()
        members = members[torch.randperm(len(members), generator=generator(0, "split", label))]
        edges = np.rint(bounds * len(members)).astype(int)
        for index, party in enumerate(parties):
            own = members[edges[index] : edges[index + 1]]
            if not len(own):
                raise InputError(
                    f"party {party.name!r}: share={party.share:g} gives it no training image of class {name!r}"
                    f" ({len(members)} in all); raise its share, or leave the party out."
                )
            chosen[index].append(own)
    return {
        party.name: replace(train.take(torch.cat(own).sort().values), name=f"{train.name}, {party.name}")
        for party, own in zip(parties, chosen, strict=True)
    }
