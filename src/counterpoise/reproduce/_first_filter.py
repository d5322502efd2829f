"""A first filter in the manner of Fader networks: the attribute is taken out of the code, and a middling one put in.

Lample et al., "Fader networks", NIPS 2017: an encoder whose code a reader cannot tell the attribute from, and a decoder
that is given the attribute beside the code. As a filter it is given one half for every class. It draws no noise.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from counterpoise import store
from counterpoise._files import replacing
from counterpoise.fingerprint import versions
from counterpoise.interface import Task
from counterpoise.mechanisms.privatizer import Fixed
from counterpoise.training import fit, generator, kept_aside, one_thread, seeded, shuffled_batch

BATCH, RATE = 32, 1e-3
AGAINST = 0.05
"""Weight of the reader's uncertainty beside the squared error of the image."""


class Fader(nn.Module):
    """Images to images through a code of a quarter of the side; `classes` attribute values go in beside the code."""

    def __init__(self, channels: int, classes: int, width: int = 16, code: int = 16) -> None:
        super().__init__()
        self.classes = classes
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, width, 3, 2, 1), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.SiLU(),
            nn.Conv2d(2 * width, code, 3, padding=1),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Conv2d(code + classes, 2 * width, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * width, width, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2),
            nn.Conv2d(width, channels, 3, padding=1), nn.Sigmoid(),
        )  # fmt: skip

    def decode(self, code: Tensor, attribute: Tensor, sides: torch.Size) -> Tensor:
        """The image with this code and this attribute [n, classes], cut to the sides."""
        beside = attribute[:, :, None, None].expand(-1, -1, *code.shape[2:])
        image: Tensor = self.decoder(torch.cat([code, beside], 1))
        return image[:, :, : sides[0], : sides[1]]

    def forward(self, images: Tensor) -> Tensor:
        """The images with the attribute nobody has."""
        middling = torch.full((len(images), self.classes), 1 / self.classes)
        return self.decode(self.encoder(images), middling, images.shape[2:])


def first_filter(task: Task, steps: int, folder: Path) -> Fixed:
    """Train it on the task's images, or read it where it has been trained with this code already."""
    secret = task.to_hide("a first filter")
    made_from = {
        "versions": versions(),
        "task": [task.train.name, secret, list(task.train.shape), len(task.train), steps],
    }
    path = folder / "trainings" / f"{store.digest(made_from)}.safetensors"
    classes = len(task.train.classes[secret])
    with seeded(generator(0, "fader")):
        fader = Fader(task.train.shape[0], classes)
        code = fader.encoder(task.train.pixels[:1])
        reader = nn.Sequential(nn.Flatten(), nn.Linear(code[0].numel(), 64), nn.ReLU(), nn.Linear(64, classes))
    if not _read(fader, path):
        with one_thread():
            _train(fader, reader, task, secret, steps)
        with replacing(path) as part:
            save_file(fader.state_dict(), part, metadata={"made_from": json.dumps(made_from)})
    return Fixed(fader)


def _read(fader: Fader, path: Path) -> bool:
    try:
        with safe_open(path, framework="pt") as file:
            fader.load_state_dict({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError, RuntimeError):  # not there, or damaged: trained again
        return False
    return True


def _train(fader: Fader, reader: nn.Module, task: Task, secret: str, steps: int) -> None:
    learned, _ = kept_aside(len(task.train))
    pixels, labels = task.train.pixels[learned], task.train.labels[secret][learned]
    ours = torch.optim.Adam(itertools.chain(fader.encoder.parameters(), fader.decoder.parameters()), RATE)
    theirs = torch.optim.Adam(reader.parameters(), RATE)

    def step(index: int) -> None:
        batch = shuffled_batch(len(pixels), BATCH, 0, index)
        images, classes = pixels[batch], labels[batch]
        told = nn.functional.cross_entropy(reader(fader.encoder(images).detach()), classes)
        theirs.zero_grad()
        told.backward()  # type: ignore[no-untyped-call]
        theirs.step()
        code = fader.encoder(images)
        attribute = nn.functional.one_hot(classes, fader.classes).float()
        error = nn.functional.mse_loss(fader.decode(code, attribute, images.shape[2:]), images)
        unsure = -reader(code).log_softmax(1).mean()  # least where every class is as likely
        ours.zero_grad()
        (error + AGAINST * min(1.0, 2 * index / steps) * unsure).backward()
        ours.step()

    fit(step, steps, {"fader": fader, "reader": reader, "ours": ours, "theirs": theirs})
