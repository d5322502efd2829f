"""The control: what every histogram calls unharmed, and pictures, models and structure call destroyed."""

from decimal import Decimal

import pytest
import torch

from counterpoise._check import InputError
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Images, Recipe, Task
from counterpoise.mechanisms.autoencoder import Autoencoder
from counterpoise.mechanisms.pixel_shuffle import PixelShuffle, Shuffle
from counterpoise.mechanisms.plain import Plain
from counterpoise.models import BUILTIN as MODELS
from counterpoise.training import apply, generator


@pytest.fixture(scope="module")
def task() -> Task:
    train, test = Digits().load()
    return Task(train, test, "digit", MODELS["small-cnn"], Recipe(epochs=5, batch=32, learning_rate=0.1, momentum=0.9))


def hits(mechanism: Plain | PixelShuffle | Autoencoder, task: Task) -> float:
    trained = mechanism.train(task, generator(0))
    said = apply(trained.model, apply(trained.release, task.test.pixels)).argmax(1)
    return float((said == task.test.labels[task.target]).float().mean())


def moved(images: Images, share: str) -> torch.Tensor:
    """How many places of each image show another pixel; every pixel of `images` must be unlike the others."""
    released: torch.Tensor = Shuffle(Decimal(share), 3)(images.pixels)
    return (released != images.pixels).flatten(1).sum(1)


def distinct(channels: int = 1, side: int = 10, n: int = 4) -> Images:
    ladder = torch.linspace(0, 1, side * side)
    pixels = torch.stack([ladder[torch.randperm(side * side, generator=generator(i))] for i in range(n)])
    return Images("ladders", pixels.view(n, 1, side, side).repeat(1, channels, 1, 1), {}, {})


def test_every_image_keeps_its_pixels_and_all_channels_move_together() -> None:
    images = distinct(channels=3)
    released = Shuffle(Decimal(1), 3)(images.pixels)
    assert torch.equal(released.flatten(2).sort(2).values, images.pixels.flatten(2).sort(2).values)
    assert torch.equal(released[:, 0], released[:, 1])
    assert not torch.equal(released, images.pixels)


def test_the_degree_is_the_share_of_pixels_that_may_move() -> None:
    images = distinct()
    assert moved(images, "0").tolist() == [0] * 4
    assert moved(images, "0.01").tolist() == [0] * 4  # one pixel has nobody to change places with
    assert int(moved(images, "0.3").max()) <= 30
    assert int(moved(images, "0.3").min()) >= 24
    assert int(moved(images, "1").min()) >= 90


def test_the_order_belongs_to_the_image_and_the_seed_not_to_the_batch() -> None:
    pixels = distinct(n=6).pixels
    whole = Shuffle(Decimal(1), 3)(pixels)
    alone = torch.cat([Shuffle(Decimal(1), 3)(image[None]) for image in pixels])
    assert torch.equal(whole, alone)
    assert not torch.equal(whole, Shuffle(Decimal(1), 4)(pixels))
    places = torch.arange(100.0).view(1, 1, 10, 10) / 100
    first, second = (Shuffle(Decimal(1), 3)(image) for image in (places, places.flip(3)))
    assert not torch.equal(first, second.flip(3))  # one order for all images would only rename the pixels


def test_the_model_loses_what_the_picture_showed(task: Task) -> None:
    whole, shuffled = hits(Plain(), task), hits(PixelShuffle(Decimal(1)), task)
    assert whole > 0.9
    assert shuffled < 0.5
    assert hits(Autoencoder(Decimal("0.25"), steps=50), task) > shuffled + 0.3


def test_it_claims_nothing_and_keeps_its_seed_with_its_weights(task: Task) -> None:
    mechanism = PixelShuffle(Decimal(1))
    trained, blank = mechanism.train(task, generator(0)), mechanism.blank(task)
    assert trained.guarantees == ()
    assert not torch.equal(blank.release(task.test.pixels), trained.release(task.test.pixels))
    blank.release.load_state_dict(trained.release.state_dict())
    assert torch.equal(blank.release(task.test.pixels), trained.release(task.test.pixels))


@pytest.mark.parametrize("share", ["-0.1", "1.01"])
def test_a_share_outside_its_range(share: str) -> None:
    with pytest.raises(InputError, match=rf"^shuffled={share} must be at least 0 and at most 1\.$"):
        PixelShuffle(Decimal(share))
