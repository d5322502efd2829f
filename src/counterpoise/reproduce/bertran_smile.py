"""Bertran et al. on CelebA: gender is kept while the smile is hidden, and the other way round."""

from __future__ import annotations

from counterpoise.datasets.attributes import CelebA
from counterpoise.interface import Recipe, Task
from counterpoise.reproduce._face_tables import finish
from counterpoise.reproduce._faces import Schedule, Sweep
from counterpoise.reproduce.settings import Settings

PUBLISHED = {
    (
        "Male",
        "Smiling",
    ): "Published, women or men and smiling or not, in percent: gender raw 94.2 / 94.5, filtered 91.2 /"
    " 96.1; smile raw 93.3 / 92.0, filtered 54.0 / 60.0, by a network that had learned from raw images",
    ("Smiling", "Male"): "Published: nothing for this direction",
}
SCHEDULES = {
    "quick": Schedule(24, 600, "small-cnn", Recipe(3, 64, 2e-3, optimiser="adam"), ("0.5",), 30, 4, 20),
    "cpu": Schedule(32, None, "xception-small", Recipe(12, 64, 2e-3, optimiser="adam"), ("0.5", "0.8", "0.95"), 900, 8),
    "paper": Schedule(
        64, None, "xception-small", Recipe(30, 64, 1e-3, optimiser="adam"),
        ("0.1", "0.3", "0.5", "0.7", "0.9", "0.95"), 20_000, 32, 500, 3,
    ),
}  # fmt: skip


def bertran_smile_gender(settings: Settings) -> str:
    """Gender kept and smile hidden, and the other way round, on CelebA: B08 beside ours, every attacker, a gallery."""
    schedule = SCHEDULES[settings.scale]
    root = None if settings.data is None else str(settings.data)
    train, test = CelebA(root, schedule.side, schedule.images).load()
    told = []
    for (target, hidden), published in PUBLISHED.items():
        task = Task(train, test, target, schedule.model, schedule.recipe, hidden=hidden)
        sweep = Sweep("bertran-smile-gender", task, schedule, settings)
        rows = sweep.rows({f"alpha {alpha}": (alpha, {}) for alpha in schedule.alphas})
        title = f"{target} kept, {hidden} hidden, on CelebA. {published}"
        name = f"bertran-{target.lower()}-kept-{hidden.lower()}-hidden"
        told.append(finish(name, title, rows, test.pixels, schedule.sentence(), settings))
    return "\n\n".join(told)
