"""Local differential privacy: every image is hidden by noise before anybody, the curator included, sees it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from counterpoise._check import InputError, at_least, one_of
from counterpoise.grid import DegreeKind
from counterpoise.interface import Mechanism, Planned, Task, Trained
from counterpoise.mechanisms.plain import Plain
from counterpoise.privacy import Gaussian, Laplace
from counterpoise.privacy.local import least_gaussian, least_laplace
from counterpoise.privacy.noise import hide
from counterpoise.record import Guarantee
from counterpoise.training import apply, derive, generator


@dataclass(frozen=True)
class LocalNoise:
    """Adds noise to each image's pixels, or to the averages of its blocks, and trains `then` on the noisy images.

    `local_epsilon` is about one image: whatever its pixels were, what leaves its owner is nearly as likely
    (replace-one, any image for any other). Gaussian noise is calibrated analytically (Balle and Wang 2018) at the
    task's delta; Laplace noise needs none. The sensitivity is the diameter of all images: sqrt(numbers) for Gaussian,
    their number for Laplace noise; blocks of `block` x `block` pixels shrink it. Noisy values are cut to [0, 1], which
    costs nothing.

    The label goes with the image as it is: it is not hidden. An image that is sent again, for a prediction say, gets
    fresh noise and spends its epsilon again. `secure` noise comes from the operating system; else it is as secret as
    the seed, and the release keeps its own seed (not that of the training images) with the weights.
    """

    name: ClassVar[str] = "local-noise"
    kind: ClassVar[DegreeKind] = DegreeKind("local_epsilon", "down", Decimal("0.000001"))
    needs: ClassVar[frozenset[str]] = frozenset()
    privacy_gain: ClassVar[str] = "inverse_epsilon"
    utility_loss: ClassVar[str] = "task_loss"
    local_epsilon: Decimal
    then: Mechanism = Plain()  # noqa: RUF009 - frozen
    distribution: Literal["gaussian", "laplace"] = "gaussian"
    block: int = 1
    secure: bool = False

    def __post_init__(self) -> None:
        self.kind.check(self.local_epsilon)
        one_of(("gaussian", "laplace"), distribution=self.distribution)
        at_least(1, block=self.block)
        if not isinstance(self.secure, bool):  # text such as "no" would be true
            raise InputError(f"secure={self.secure!r} must be True or False.")
        if not isinstance(self.then, Mechanism):
            raise InputError(f"then={self.then!r} must be a mechanism, such as DPSGD(noise=1): give it from Python.")

    def noise(self, task: Task) -> Gaussian | Laplace:
        """The least noise that keeps epsilon, in units of the sensitivity."""
        if self.distribution == "gaussian":
            return least_gaussian(float(self.local_epsilon), task.delta)
        return least_laplace(float(self.local_epsilon))

    def guarantees(self, task: Task) -> tuple[Guarantee, ...]:
        """The local one, and what the inner mechanism proves of the model: the noise is drawn image by image and looks
        at no other, so one image more is still one noisy image more. They are two notions, and are not added."""
        self._noisy(task, 0)  # raises where the blocks do not fit
        gaussian = self.distribution == "gaussian"
        local = Guarantee(
            "local-dp",
            float(self.local_epsilon),
            task.delta if gaussian else 0.0,
            adjacency="replace-one",
            accountant="analytic Gaussian" if gaussian else "Laplace",
        )
        return (local, *(self.then.guarantees(task) if isinstance(self.then, Planned) else ()))

    def blank(self, task: Task) -> Trained:
        """The untrained inner network behind noise whose seed is not set yet."""
        inner = self.then.blank(task)
        return replace(inner, release=nn.Sequential(self._noisy(task, 0), inner.release))

    def train(self, task: Task, rng: torch.Generator) -> Trained:
        """Hide the training images once, then let the inner mechanism train on what is left of them."""
        # Drawn, not derived: two trainings that share a generator must not share their noise.
        seed = int(torch.randint(2**62, (), generator=rng))
        hidden = apply(self._noisy(task, derive(seed, "collected")), task.train.pixels)
        inner = self.then.train(replace(task, train=replace(task.train, pixels=hidden)), generator(seed, "then"))
        local = self.guarantees(task)[:1]
        release = nn.Sequential(self._noisy(task, derive(seed, "released")), inner.release)
        return replace(inner, release=release, guarantees=(*local, *inner.guarantees))

    def _noisy(self, task: Task, seed: int) -> Noisy:
        return Noisy(self.noise(task), task.train.shape, self.block, None if self.secure else seed)


class Noisy(nn.Module):
    """Averages blocks, adds noise to the averages, cuts them to [0, 1], and shows each in the place of its block.

    Seeded noise belongs to the image and the seed: the same image gets the same noise, in any batch. Without a seed it
    is fresh at every call.
    """

    seed: Tensor

    def __init__(
        self, noise: Gaussian | Laplace, shape: tuple[int, int, int], block: int = 1, seed: int | None = None
    ) -> None:
        super().__init__()
        channels, height, width = shape
        if height % block or width % block:
            raise InputError(f"block={block} must divide the images' {width} x {height} pixels.")
        self.noise, self.block, self.shape = noise, block, tuple(shape)
        self.numbers = channels * (height // block) * (width // block)
        if seed is not None:
            self.register_buffer("seed", torch.tensor(seed))
        self.seeded = seed is not None

    @property
    def sensitivity(self) -> float:
        """How far apart two images' averages can be: all of them from 0 to 1."""
        return float(self.numbers ** (1 / self.noise.norm))

    def fresh(self) -> None:
        """From now on every call draws anew, from the operating system."""
        self.seeded = False

    def forward(self, pixels: Tensor) -> Tensor:
        """The hidden images, in the same size. The noise is made for one size: of a larger image it would hide less."""
        if pixels.shape[1:] != self.shape or pixels.ndim != 4:
            raise InputError(
                f"images to hide must be [n, {', '.join(map(str, self.shape))}], not {list(pixels.shape)}."
            )
        if not bool(pixels.isfinite().all()):  # it would stay what it is, and tell where it was
            raise InputError("an image to hide has a pixel that is no finite number, which no noise hides.")
        # Cut first: an image outside [0, 1] would be further from others than the noise is made for.
        inside = pixels.detach().clamp(0, 1)
        averages = nn.functional.avg_pool2d(inside, self.block) if self.block > 1 else inside
        hidden = torch.stack([self._hide(image) for image in averages]) if len(averages) else averages
        shown = hidden.clamp(0, 1)
        return shown.repeat_interleave(self.block, 2).repeat_interleave(self.block, 3)

    def _hide(self, image: Tensor) -> Tensor:
        rng = None
        if self.seeded:
            content = image.contiguous().numpy().tobytes()
            rng = generator(int(self.seed), hashlib.sha256(content).hexdigest())
        return hide({"image": image.clone()}, self.noise, self.sensitivity, rng)["image"]
