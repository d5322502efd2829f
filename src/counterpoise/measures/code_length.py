"""How many bits the class costs somebody who has the rows: the online code of a reader that learns as it goes."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn

from counterpoise.measures._interval import bootstrap
from counterpoise.measures.probes import HIDDEN, SEED, Material, fitted, turn
from counterpoise.record import Measurement
from counterpoise.training import apply, generator, seeded

SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def bits(given: Material) -> Measurement:
    """Bits an image, as a share of log2 C: 1 and above where the rows are of no use, near 0 where they tell all.

    Voita and Titov, "Information-theoretic probing with minimum description length", EMNLP 2020. The first block is
    sent with log2 C bits an image, each later one by a reader trained on all before it.
    """
    rows, classes = torch.cat([given.learn, given.choose]), torch.cat([given.learn_classes, given.choose_classes])
    edges = [max(given.count, round(share * len(rows))) for share in SHARES]
    lengths = [torch.full((edges[0],), math.log2(given.count))]
    for known, until in pairwise(edges):
        learn, sent = rows[:known], rows[known:until]
        if given.turned:  # axes that the sent rows helped to make tell them wrongly
            learn, sent = turn(learn, sent)
        with seeded(generator(SEED, "code", known)):
            network = nn.Sequential(nn.Linear(learn.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, given.count))
        fitted(network, learn, classes[:known], least=100, epochs=10)
        nats = nn.functional.cross_entropy(apply(network, sent), classes[known:until], reduction="none")
        lengths.append(nats / math.log(2))
    return bootstrap((torch.cat(lengths) / math.log2(given.count)).double().numpy())
