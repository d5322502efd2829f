"""NDR: balanced batches, plain training where gamma is 0, features turned apart elsewhere, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Images, Penalty, Recipe, Task
from counterpoise.mechanisms._balanced import BalancedBatches
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.mechanisms.non_discrimination import NonDiscriminatory
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.representation.alignment import alignment
from counterpoise.representation.layers import features
from counterpoise.training import apply, generator, one_thread


def with_parity(images: Images) -> Images:
    digit = images.labels["digit"]
    labels = {"digit": digit, "parity": digit % 2}
    return replace(images, labels=labels, classes={**images.classes, "parity": ("even", "odd")})


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = (with_parity(part) for part in Digits().load())
    recipe = Recipe(epochs=8, batch=60, learning_rate=0.1, momentum=0.9)
    return Task(train, test, "parity", MODELS["mlp"], recipe, hidden="digit")


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def read(mechanism: NonDiscriminatory, task: Task) -> tuple[float, float]:
    """Accuracy and R on the test images."""
    model = mechanism.train(task, generator(0)).model
    right = apply(model, task.test.pixels).argmax(1) == task.test.labels["parity"]
    return float(right.float().mean()), float(
        alignment(features(model, mechanism.at, task.test.pixels), task.test.labels["digit"])
    )


def test_every_batch_has_equally_many_of_every_class_and_every_image_is_seen() -> None:
    classes = torch.tensor([0] * 50 + [1] * 7 + [3] * 20)
    batches = BalancedBatches(classes, 12, seed=1)
    seen = [batches(step) for step in range(40)]
    assert all(classes[batch].bincount().tolist() == [4, 4, 0, 4] for batch in seen)
    times = torch.cat(seen).bincount(minlength=77)
    assert times[:50].tolist() == pytest.approx([160 / 50] * 50, abs=1)
    assert times[50:57].tolist() == pytest.approx([160 / 7] * 7, abs=1)
    assert torch.equal(BalancedBatches(classes, 12, 1)(17), seen[17])
    assert not torch.equal(BalancedBatches(classes, 12, 2)(17), seen[17])


def test_a_batch_that_the_classes_do_not_divide_still_has_pairs_of_each() -> None:
    counts = [BalancedBatches(torch.arange(30) % 3, 7, 0)(step).remainder(3).bincount() for step in range(3)]
    assert torch.stack(counts).sum(0).tolist() == [7, 7, 7]
    assert min(int(count.min()) for count in counts) == 2


def test_without_gamma_and_on_the_usual_batches_it_is_plain_training_bit_for_bit(task: Task) -> None:
    short = replace(task, recipe=replace(task.recipe, epochs=2))
    plain = weights(Plain().train(short, generator(3)).model)
    assert torch.equal(
        weights(NonDiscriminatory(Decimal(0), batches="shuffled").train(short, generator(3)).model), plain
    )
    assert not torch.equal(weights(NonDiscriminatory(Decimal(0)).train(short, generator(3)).model), plain)
    other = NonDiscriminatory(Decimal(1), batches="shuffled").train(short, generator(3))
    assert not torch.equal(weights(other.model), plain)


@pytest.mark.parametrize("form", ["weak", "strong"])
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_it_turns_features_apart_and_keeps_the_task(form: str, optimiser: str, task: Task) -> None:
    rate = 0.1 if optimiser == "sgd" else 0.005
    task = replace(task, recipe=replace(task.recipe, optimiser=optimiser, learning_rate=rate))  # type: ignore[arg-type]
    without = read(NonDiscriminatory(Decimal(0), form=form), task)  # type: ignore[arg-type]
    within = read(NonDiscriminatory(Decimal(1), form=form), task)  # type: ignore[arg-type]
    assert within[1] < without[1] / 2
    assert within[0] > 0.85


def test_any_layer_can_be_named(task: Task) -> None:
    model = MODELS["small-cnn"]
    task = replace(task, make_model=model, recipe=replace(task.recipe, epochs=3))
    at = "1"
    assert read(NonDiscriminatory(Decimal(5), at), task)[1] < read(NonDiscriminatory(Decimal(0), at), task)[1]


def test_a_killed_training_resumes_to_the_same_bits(task: Task, tmp_path: Path) -> None:
    class KilledError(Exception):
        pass

    def kill(share: float) -> None:
        if share > 0.6:
            raise KilledError

    mechanism, path = NonDiscriminatory(Decimal("0.1")), tmp_path / "saved"
    whole = weights(mechanism.train(task, generator(4)).model)
    with pytest.raises(KilledError):
        mechanism.train(replace(task, checkpoint=path, progress=kill), generator(4))
    assert path.exists()
    assert torch.equal(weights(mechanism.train(replace(task, checkpoint=path), generator(4)).model), whole)


def test_weight_decay_shrinks_the_weights(task: Task) -> None:
    sizes = []
    for decay in (0.0, 0.05):
        recipe = replace(task.recipe, weight_decay=decay, momentum=0.0)
        sizes.append(float(weights(Plain().train(replace(task, recipe=recipe), generator(0)).model).norm()))
    assert sizes[1] < 0.95 * sizes[0]


def test_a_penalty_sees_the_batch_it_belongs_to(task: Task) -> None:
    """The features it is given are those of the images whose indices it is given."""
    chosen: list[Tensor] = []

    def of(heard: Tensor, batch: Tensor) -> Tensor:
        chosen.append(batch)
        assert len(heard) == len(batch)
        return 0 * heard.sum()

    def batches(step: int) -> Tensor:
        return torch.arange(5) + step

    short = replace(task, recipe=Recipe(epochs=1, batch=500))
    Plain().train_with(short, generator(0), Penalty("", of), batches)
    assert [batch.tolist() for batch in chosen] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [2, 3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: NonDiscriminatory(Decimal(-1)), r"^gamma=-1 must be at least 0\.$"),
        (lambda: NonDiscriminatory(Decimal(1), form="mild"), r"^form='mild' must be one of 'strong', 'weak'\.$"),  # type: ignore[arg-type]
        (lambda: NonDiscriminatory(Decimal(1), batches="all"), r"^batches='all' must be one of"),  # type: ignore[arg-type]
        (
            lambda: NonDiscriminatory(Decimal(1), then=DPSGD(Decimal(1))),
            r"^non-discriminatory: then='dp-sgd' takes no loss over pairs of images",
        ),
    ],
)
def test_wrong_options_are_told(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        make()


def test_a_task_that_cannot_be_trained_on_is_refused_before_training(task: Task) -> None:
    mechanism = NonDiscriminatory(Decimal(1))
    assert mechanism.guarantees(task) == ()
    with pytest.raises(InputError, match=r"^non-discriminatory needs to know what is to be hidden: set hidden"):
        mechanism.guarantees(replace(task, hidden=None))
    with pytest.raises(InputError, match=r"^at='fc9': the model has no layer of that name; name one of: 0, 1, 2"):
        replace(mechanism, at="fc9").guarantees(task)
    with pytest.raises(InputError, match=r"^batch=19 must be at least 20: 2 images of each of the 10 hidden classes"):
        mechanism.guarantees(replace(task, recipe=replace(task.recipe, batch=19)))
    assert replace(mechanism, batches="shuffled").guarantees(replace(task, recipe=Recipe(batch=19))) == ()
