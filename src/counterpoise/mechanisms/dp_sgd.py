"""Differentially private training: clipped per-example gradients and noise, by a plan."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal

import torch
from torch import nn

from counterpoise._check import one_of, positive
from counterpoise.grid import DegreeKind
from counterpoise.interface import Task, Trained
from counterpoise.privacy import Automatic, Flat, Gaussian, Laplace, PerLayer, Plan, Poisson, Schedule, fit
from counterpoise.record import Guarantee

_CLIPS = {"flat": Flat, "automatic": Automatic, "per-layer": PerLayer}


@dataclass(frozen=True)
class DPSGD:
    """Trains so that no one image changes the model much, and proves how much at most.

    Abadi et al., "Deep learning with differential privacy", CCS 2016. `noise` is the multiplier of the clip;
    without noise nothing is proved. Laplace noise clips in the L1 norm. The recipe's batch is the expected one.
    `secure` noise comes from the operating system's randomness; such a training cannot be repeated.
    """

    name: ClassVar[str] = "dp-sgd"
    kind: ClassVar[DegreeKind] = DegreeKind("noise", "up")
    needs: ClassVar[frozenset[str]] = frozenset({"per-example"})
    privacy_gain: ClassVar[str] = "inverse_epsilon"
    utility_loss: ClassVar[str] = "accuracy_loss"
    noise: Decimal
    clip: float = 1.0
    distribution: Literal["gaussian", "laplace"] = "gaussian"
    accountant: Literal["pld", "rdp"] = "pld"
    clipping: Literal["flat", "automatic", "per-layer"] = "flat"
    secure: bool = False

    def __post_init__(self) -> None:
        self.kind.check(self.noise)
        positive(clip=self.clip)
        one_of(("gaussian", "laplace"), distribution=self.distribution)
        one_of(tuple(_CLIPS), clipping=self.clipping)
        one_of(("pld", "rdp"), accountant=self.accountant)

    def plan(self, task: Task) -> Plan:
        """The plan of a training on this task; sizes and settings decide it, no pixel does."""
        sampling = Poisson(len(task.train), task.recipe.batch)
        noise = (Gaussian if self.distribution == "gaussian" else Laplace)(float(self.noise))
        return Plan(
            noise,
            sampling,
            steps=sampling.steps(task.recipe.epochs),
            delta=task.delta,
            clip=_CLIPS[self.clipping](bound=self.clip, norm=noise.norm),
            accountant=self.accountant,
            secure=self.secure,
        )

    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        """What training will prove."""
        guarantee = self.plan(task).guarantee()
        return () if guarantee is None else (guarantee,)

    def blank(self, task: Task) -> Trained:
        """The untrained network; images pass unchanged."""
        return Trained(task.new_model(torch.Generator()), nn.Identity())

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """Train on Poisson-sampled batches, as many steps as the recipe's epochs have."""
        model = task.new_model(rng)
        fit(
            model,
            task.train.pixels,
            task.train.labels[task.target],
            self.plan(task),
            task.recipe,
            rng,
            schedule=Schedule(task.progress, task.checkpoint),
        )
        facts = {"secure_noise": float(self.secure and self.noise > 0)}
        return Trained(model, nn.Identity(), self.guarantees(task), facts)
