"""Tartaglione and Grangetto (2020) on UTKFace: gender is the task, five ethnicities are hidden before the blocks.

The source's layer has about 968,000 numbers: 192 x 71 x 71 = 967,872, the output of Inception-v3's stem at 299 x 299.
These are pictures of people: nothing of them but numbers goes into the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from counterpoise.datasets.utkface import UtkFace
from counterpoise.interface import Recipe, Task
from counterpoise.mechanisms.non_discrimination import NonDiscriminatory
from counterpoise.models.inception_v3 import inception_stem, inception_v3
from counterpoise.reproduce._hiding_table import Row, finish
from counterpoise.reproduce._judging import judge
from counterpoise.reproduce._kept import Numbers, kept
from counterpoise.reproduce.settings import Settings
from counterpoise.training import generator, one_thread

AT = "1"
PUBLISHED = {"0": (93.84, 0.78), "1": (91.75, 0.01)}
"""Table I: accuracy in percent, and R."""


@dataclass(frozen=True)
class Schedule:
    """How much is trained, on pictures of which size, with the whole network or its stem."""

    images: int | None
    side: int
    recipe: Recipe
    whole: bool

    def sentence(self) -> str:
        """In words."""
        images = "all images" if self.images is None else f"{self.images} images"
        r = self.recipe
        network = "Inception-v3" if self.whole else "the stem of Inception-v3"
        return (
            f"{images} at {self.side} x {self.side}, {network}, {r.epochs} epochs, SGD {r.learning_rate:g},"
            f" weight decay {r.weight_decay:g}, batch {r.batch}"
        )


SCHEDULES = {
    "quick": Schedule(400, 24, Recipe(2, 50, 0.1, weight_decay=1e-4), whole=False),
    "cpu": Schedule(None, 32, Recipe(6, 50, 0.1, weight_decay=1e-4), whole=False),
    "paper": Schedule(None, 299, Recipe(100, 50, 0.1, weight_decay=1e-4), whole=True),
}


def tartaglione_utkface(settings: Settings) -> str:
    """Hiding five ethnicities before Inception's blocks while gender is told: gamma 0 and 1, Table I, probes."""
    schedule = SCHEDULES[settings.scale]
    root = None if settings.data is None else str(settings.data)
    train, test = UtkFace(root=root, size=schedule.side, limit=schedule.images).load()
    make = inception_v3 if schedule.whole else inception_stem
    task = Task(train, test, "gender", make, schedule.recipe, hidden="race")
    rows = []
    for gamma in PUBLISHED:
        configuration = {"source": "tartaglione-utkface", "gamma": gamma, "schedule": schedule.sentence(), "seed": 0}
        numbers = kept(settings.out, configuration, lambda gamma=gamma: train_one(task, gamma))  # type: ignore[misc]
        rows.append(Row(f"gamma {gamma}", PUBLISHED[gamma], numbers))
    title = f"UTKFace gender, race hidden at the stem's output, scale {settings.scale} ({schedule.sentence()}), seed 0"
    return finish("tartaglione-utkface", title, rows, settings)


def train_one(task: Task, gamma: str) -> Numbers:
    """One training with its probes."""
    with one_thread():
        model = NonDiscriminatory(Decimal(gamma), AT).train(task, generator(0, "tartaglione")).model
        return judge(model, AT, task)
