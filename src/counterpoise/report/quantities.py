"""What each number is: its name for people, unit, direction, and whether it was measured, bounded or assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

Standing = Literal["measured", "bounded", "assumed", "computed", "not described"]
Better = Literal["higher", "lower", "unknown"]


@dataclass(frozen=True)
class Quantity:
    """How to read one number. `standing` is what it rests on."""

    label: str
    unit: str
    better: Better
    standing: Standing
    meaning: str


QUANTITIES: dict[str, Quantity] = {
    "epsilon": Quantity(
        "epsilon", "nats", "lower", "bounded",
        "The most that one training image can move the log-odds of anything learned about it; proved, not measured.",
    ),
    "privacy_gain": Quantity(
        "privacy gain (paper)", "none", "higher", "assumed",
        "1/epsilon for differential privacy, 1 - code size/image size for an autoencoder. The first has no ceiling and"
        " the second proves nothing, so the two are not on one scale.",
    ),
    "bounded_privacy": Quantity(
        "bounded privacy", "share", "higher", "bounded",
        "1 - the most a membership attacker can gain, from the proved epsilon.",
    ),
    "advantage_bound": Quantity(
        "bound on membership advantage", "share", "lower", "bounded",
        "No attacker's true-positive rate exceeds the false-positive rate by more. 1 where nothing is proved.",
    ),
    "membership_advantage": Quantity(
        "membership advantage", "share", "lower", "measured",
        "How much better than guessing one simple attacker told training images from others. A better attacker may"
        " reach more.",
    ),
    "membership_privacy": Quantity(
        "membership privacy", "share", "higher", "measured", "1 - the membership advantage of the attack that was run."
    ),
    "utility_loss": Quantity(
        "utility loss (paper)", "share", "lower", "measured",
        "Accuracy lost for differential privacy; pooled earth mover's distance for an autoencoder, which cannot see"
        " that pixels changed places.",
    ),
    "task_loss": Quantity(
        "task loss", "share", "lower", "measured",
        "Accuracy lost against the unprotected model, on images as they are released.",
    ),
    "raw_task_loss": Quantity(
        "task loss on unfiltered images", "share", "lower", "measured",
        "Accuracy lost where the protected model is given images that did not pass its filter.",
    ),
    "accuracy_loss": Quantity(
        "accuracy loss", "share", "lower", "measured",
        "Accuracy lost against the unprotected model, both on the same unfiltered images.",
    ),
    "accuracy": Quantity("accuracy", "share", "higher", "measured", "Share of test images classified rightly."),
    "pooled_emd": Quantity(
        "pooled EMD", "share", "lower", "measured",
        "Earth mover's distance between the grey levels of all images, before and after the release.",
    ),
    "emd_per_image": Quantity(
        "EMD per image", "share", "lower", "measured", "The same distance, image by image, then averaged."
    ),
    "ssim": Quantity("structural similarity", "none", "higher", "measured", "1 where a released image is unchanged."),
    "mse": Quantity("mean squared error", "squared share", "lower", "measured", "Of released pixels against original."),
    "explainability_gain": Quantity(
        "explainability gain (paper)", "none", "higher", "assumed",
        "The smoothing level times the samples used, less the utility loss. No map is looked at, so it grows with"
        " smoothing by definition.",
    ),
    "explanation_quality": Quantity(
        "explanation quality", "none", "higher", "measured",
        "Faithfulness and stability of the maps themselves, as one number.",
    ),
    "deletion": Quantity(
        "deletion", "probability", "lower", "measured",
        "The model's confidence while the pixels a map calls important are taken away.",
    ),
    "insertion": Quantity(
        "insertion", "probability", "higher", "measured",
        "The model's confidence while the pixels a map calls important are given back.",
    ),
    "random_deletion": Quantity(
        "deletion in random order", "probability", "lower", "measured", "What a map that knows nothing would reach."
    ),
    "random_insertion": Quantity(
        "insertion in random order", "probability", "higher", "measured", "What a map that knows nothing would reach."
    ),
    "faithfulness": Quantity(
        "faithfulness", "probability", "higher", "measured", "Insertion - deletion; 0 for a map that knows nothing."
    ),
    "stability": Quantity(
        "stability", "cosine", "higher", "measured", "How alike the maps of an image and of a nearby image are."
    ),
    "average_drop": Quantity(
        "average drop", "percent", "lower", "measured",
        "How much of the score is lost where only the map's part of the image is shown. A map of ones loses nothing.",
    ),
    "confidence_increase": Quantity(
        "increase in confidence", "percent", "higher", "measured",
        "How often the map's part alone is surer than the whole image. Rises by itself where a model is unsure.",
    ),
    "masked_score": Quantity(
        "masked score", "percent", "higher", "measured", "The class's probability for the map's part of the image."
    ),
    "whole_score": Quantity(
        "whole score", "percent", "higher", "measured", "The class's probability before anything is masked."
    ),
    "blank_maps": Quantity(
        "blank maps", "share", "lower", "measured", "Maps that call nothing important: counted here, scored nowhere."
    ),
    "faithfulness_margin": Quantity(
        "faithfulness over floors", "probability", "higher", "measured",
        "Faithfulness less that of the best map that has not looked at the model.",
    ),
    "infidelity": Quantity(
        "infidelity", "share", "lower", "measured", "The part of the score's changes that the map does not foretell."
    ),
    "sensitivity_max": Quantity(
        "largest sensitivity", "share", "lower", "measured", "How far the map moved at most when its image moved a bit."
    ),
    "top_k_overlap": Quantity(
        "top pixels shared", "share", "higher", "measured",
        "Of the most important tenth, with the unprotected model's map; unrelated maps share a tenth.",
    ),
    "map_cosine": Quantity(
        "cosine with the baseline's map", "cosine", "higher", "measured", "On images that both models classify rightly."
    ),
    "map_spearman": Quantity(
        "rank correlation with the baseline's map", "none", "higher", "measured", "0 for unrelated maps."
    ),
    "map_ssim": Quantity(
        "similarity with the baseline's map", "none", "higher", "measured", "Structural; 1 for equal maps."
    ),
    "randomisation_check": Quantity(
        "likeness to a random model's map", "none", "lower", "measured",
        "1 for a map that stays when the model forgets everything.",
    ),
    "pointing_accuracy": Quantity(
        "pointing accuracy", "share", "higher", "measured", "Maps whose largest value lies on the planted evidence."
    ),
    "sparsity": Quantity("sparsity", "none", "higher", "measured", "0 for an even map, 1 for a single pixel."),
    "class_leak": Quantity(
        "hidden class told", "share above chance", "lower", "measured",
        "What the best of three probes told of the hidden class on balanced, unseen images: 0 is guessing, 1 is all."
        " Other readers may tell more.",
    ),
    "alignment": Quantity(
        "alignment R", "cosine", "lower", "measured",
        "How much features of one hidden class point the same way. 0 does not mean that the class is hidden.",
    ),
    "worst_group_accuracy": Quantity(
        "accuracy of the worst group", "share", "higher", "measured", "Of the groups of the hidden label."
    ),
    "worst_group_loss": Quantity(
        "loss of the worst group", "share", "lower", "measured",
        "Accuracy lost against the unprotected model by the group of the hidden label that loses most.",
    ),
    "smallest_group_loss": Quantity(
        "loss of the smallest group", "share", "lower", "measured",
        "Accuracy lost against the unprotected model by the group with the fewest training images.",
    ),
    "secret_advantage": Quantity(
        "secret told", "share above chance", "lower", "measured",
        "What the strongest of several attackers, trained on released images, told of the hidden label: 0 is guessing,"
        " 1 is all. Other attackers may tell more.",
    ),
    "secret_privacy": Quantity(
        "secret kept", "share", "higher", "measured", "1 - what the strongest attacker told of the hidden label."
    ),
    "information_leak": Quantity(
        "usable information on the secret", "nats", "lower", "measured",
        "How many nats less the hidden label costs the best calibrated attacker than guessing. A lower bound on what"
        " released images tell.",
    ),
    "secret_p_value": Quantity(
        "chance of such answers", "probability", "higher", "measured",
        "How often guessing would tell as much of the hidden label as the strongest attacker did.",
    ),
    "fixed_gap": Quantity(
        "flattery of a fixed attacker", "share above chance", "lower", "measured",
        "How much more is told by an attacker trained on released images than by one trained on raw images.",
    ),
    "secret_moved": Quantity(
        "images that tell on the secret", "share", "lower", "measured",
        "Test images after which the surest attacker's belief in the hidden label is off guessing by more than b.",
    ),
    "utility_moved": Quantity(
        "images whose target moved", "share", "lower", "measured",
        "Test images whose release moves the model's belief in the target by more than b.",
    ),
    "inversion_psnr": Quantity(
        "image had back", "dB", "lower", "measured",
        "Peak signal-to-noise ratio of what a trained network makes of released images. A better one has more back.",
    ),
    "inversion_ssim": Quantity(
        "structure had back", "none", "lower", "measured",
        "Structural similarity of the original and what a trained network makes of its release.",
    ),
    "certified_radius": Quantity(
        "certified radius", "pixels", "higher", "bounded",
        "How far an image can be moved, on purpose, before the share of the map's top that is promised to stay can be"
        " lost. About the image, not about training data; no privacy follows from it.",
    ),
    "attacked_overlap": Quantity(
        "overlap under attack", "share", "higher", "measured",
        "How much of the map's top stays when an attack moves the image a little. A better attacker may reach more.",
    ),
}  # fmt: skip


FLOORS = {"ones": "everything kept", "random": "random map", "centre": "hill in the middle", "edges": "image edges"}
"""Maps that have not looked at the model, by the endings of their quantities' names."""


def quantity(name: str) -> Quantity:
    """The description of a quantity; a third party's is shown under its own name."""
    unknown = Quantity(name.replace("_", " "), "", "unknown", "not described", "A quantity the study added.")
    known, of, floor = name.partition("_of_")
    if of and floor in FLOORS and known in QUANTITIES:
        own = QUANTITIES[known]
        return replace(own, label=f"{own.label}, {FLOORS[floor]}", meaning=f"A floor: no map looked at. {own.meaning}")
    return QUANTITIES.get(name, unknown)


def describe(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The descriptions as plain data."""
    return {name: asdict(quantity(name)) for name in dict.fromkeys(["epsilon", *names])}
