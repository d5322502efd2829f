"""Small networks trained on the digits, once for all tests that need trained ones."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from counterpoise import training
from counterpoise.datasets.digits import Digits
from counterpoise.interface import Recipe
from counterpoise.models.dense import mlp
from counterpoise.models.small_cnn import small_cnn


def relu_cnn(shape: tuple[int, int, int], classes: int, rng: torch.Generator) -> nn.Module:
    with training.seeded(rng):
        return nn.Sequential(
            nn.Conv2d(shape[0], 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 16, 32),
            nn.ReLU(),
            nn.Linear(32, classes),
        )


MODELS = {"mlp": mlp, "small-cnn": small_cnn, "relu-cnn": relu_cnn}


@cache
def trained(name: str) -> nn.Module:
    """Accurate enough to be worth explaining: above 90 % on test images."""
    train, test = Digits().load()
    model = MODELS[name](train.shape, 10, training.generator(0))
    recipe = Recipe(epochs=15, batch=64, learning_rate=0.1, momentum=0.9)
    with training.one_thread():
        training.fit_classifier(model, train.pixels, train.labels["digit"], recipe, 0)
        right = training.apply(model, test.pixels).argmax(1) == test.labels["digit"]
    assert float(right.float().mean()) > 0.9
    return model


def digits(model: nn.Module, count: int) -> tuple[Tensor, Tensor]:
    """Test images and what the model says they are."""
    images = Digits().load()[1].pixels[:count]
    return images, training.apply(model, images).argmax(1)
