"""What each number is: its name for people, unit, direction, and whether it was measured, bounded or assumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
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


def quantity(name: str) -> Quantity:
    """The description of a quantity; a third party's is shown under its own name."""
    unknown = Quantity(name.replace("_", " "), "", "unknown", "not described", "A quantity the study added.")
    return QUANTITIES.get(name, unknown)


def describe(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The descriptions as plain data."""
    return {name: asdict(quantity(name)) for name in dict.fromkeys(["epsilon", *names])}
