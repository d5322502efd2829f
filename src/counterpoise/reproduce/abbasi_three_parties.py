"""The three parties of Abbasi, Mori and Saracino (2025), for real: MNIST shared by three, both flows, all policies.

The DP flow sends numbers only: every party trains for itself, and the matrices decide. In the autoencoder flow, after
the agreement, each party hands over its anonymised images of the agreed code size, and one common classifier is trained
on their union; nobody hands over a raw image.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from counterpoise.interface import Images, Mechanism
from counterpoise.prepare import BASELINE, Prepared, prepare
from counterpoise.publish import publish
from counterpoise.record import Party, Results
from counterpoise.reproduce.abbasi_sweeps import (
    MNIST,
    NOISES,
    REDUCTIONS,
    Reduction,
    report_lines,
    report_start,
    sweep_study,
)
from counterpoise.reproduce.settings import Settings
from counterpoise.running import run
from counterpoise.store import Store
from counterpoise.study import Study
from counterpoise.tradeoff import MODES, POLICIES, Choice, Standing, choose
from counterpoise.training import apply, generator
from counterpoise.work import load_weights

BOTH = ("dp-sgd", "autoencoder")
PARTIES = (
    Party("party 1", ("noise > 1.7", "code_ratio <= 0.25", "explainability > 0.6"), BOTH),
    Party("party 2", ("noise > 1.5", "code_ratio <= 0.5", "explainability > 0.6"), BOTH),
    Party("party 3"),
)
"""The source's requirements; the code sizes are ours, since it states none for this flow."""

OF_PARTIES = {"cpu": Reduction(None, NOISES, 99, 5, 24, 25)}
"""20,000 images a party take all of MNIST: the epochs are fewer instead."""
CODES = {"quick": 3, "cpu": 8, "paper": 99}
"""How many of the source's code sizes; all else is as in the DP flow."""


def abbasi_three_parties(settings: Settings) -> str:
    """The trade-off paper's three parties of 20,000 MNIST images: both flows, five policies, both modes."""
    study = three_parties(settings)
    results = run(study, settings.out, report=report_lines, started=report_start)
    store = Store.open(settings.out)
    paths = publish(store, results, choose(results, "unanimous", "measured"))
    codes = f"{CODES[settings.scale]} code sizes at most"
    lines = [f"{study.name}, scale {settings.scale}: {reduction(settings.scale).sentence('dp')}; {codes}."]
    for mode in MODES:
        for policy in POLICIES:
            decision = choose(results, policy, mode)
            for mechanism in BOTH:
                outcome = decision.outcomes[mechanism]
                lines.append(
                    f"{mode:<9}{policy:<12}{_words(outcome) if isinstance(outcome, Choice) else outcome.sentence}"
                )
    agreed = (choose(results, "unanimous", mode).outcomes["autoencoder"] for mode in MODES)
    winners = {outcome.winner.degree: outcome.winner for outcome in agreed if isinstance(outcome, Choice)}
    lines += [common_classifier(study, results, store, winner) for winner in winners.values()]
    return "\n".join([*lines, f"Report: {paths[0]}"])


def three_parties(settings: Settings) -> Study:
    """Both flows as one study, without the control of the sweeps."""
    declared = replace(reduction(settings.scale), codes=CODES[settings.scale])
    dp, auto = (sweep_study(MNIST, flow, declared, settings.data) for flow in ("dp", "autoencoder"))
    both = (dp.mechanisms[0], auto.mechanisms[0])
    together = {"name": "MNIST, three parties", "mechanisms": both, "parties": PARTIES}
    return dp.model_copy(update=together)


def reduction(scale: str) -> Reduction:
    """What a scale leaves out."""
    return OF_PARTIES.get(scale, REDUCTIONS[scale, "dp"])


def _words(choice: Choice) -> str:
    regrets = ", ".join(f"{view.regret:.3f}{'' if view.allows else ' (forbids it)'}" for view in choice.parties)
    return f"{choice.winner}: score {choice.winner.score:.3f}, flip margin {choice.flip_margin:.4f}, regrets {regrets}"


def common_classifier(study: Study, results: Results, store: Store, agreed: Standing) -> str:
    """Train one classifier on the union of the parties' anonymised images, and compare it with each one's own."""
    prepared = prepare(study)
    released = [_released(prepared, store, party.name, agreed) for party in study.parties]
    union = Images(
        "union of the anonymised images",
        torch.cat([images.pixels for images in released]),
        {prepared.target: torch.cat([images.labels[prepared.target] for images in released])},
        released[0].classes,
    )
    task = replace(prepared.task(study.parties[0].name), train=union)
    plain: Mechanism = prepared.mechanisms[BASELINE].at(prepared.mechanisms[BASELINE].degrees.values[0])
    trained = plain.train(task, generator(study.seeds[0], "union"))
    truth = prepared.test.labels[prepared.target]
    raw = _accuracy(apply(trained.model, prepared.test.pixels), truth)
    own = [
        r.measurements["accuracy"].value for r in results if (r.mechanism, r.degree) == ("autoencoder", agreed.degree)
    ]
    alone = ", ".join(f"{value:.3f}" for value in own)
    return (
        f"Common classifier on the union of {len(union)} anonymised images ({agreed}): accuracy {raw:.3f} on raw test"
        f" images; each party alone, on its own anonymised test images: {alone}."
    )


def _released(prepared: Prepared, store: Store, party: str, agreed: Standing) -> Images:
    """What one party hands over."""
    job = next(j for j in prepared.jobs if (j.party, j.mechanism, j.degree) == (party, "autoencoder", agreed.degree))
    mechanism: Mechanism = prepared.mechanisms["autoencoder"].at(agreed.degree)
    trained = load_weights(mechanism.blank(prepared.task(party)), store, job.digest)
    own = prepared.data[party]
    return replace(own, pixels=apply(trained.release, own.pixels))


def _accuracy(logits: torch.Tensor, truth: torch.Tensor) -> float:
    return float((logits.argmax(1) == truth).float().mean())
