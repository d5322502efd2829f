"""Which pictures with which labels: decided and divided before a pixel is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from counterpoise._check import InputError, at_least, inside
from counterpoise.datasets._archive import Source
from counterpoise.datasets._pictures import stack
from counterpoise.datasets._split import stratified, subset
from counterpoise.interface import Images, Progress


def check_options(*, size: int | None = None, limit: int | None = None, test_share: float = 0.5, seed: int = 0) -> None:
    """The rules of the options that most data sets share."""
    if size is not None:
        at_least(1, size=size)
    if limit is not None:
        at_least(1, limit=limit)
    inside(0, 1, test_share=test_share)
    at_least(0, seed=seed)


@dataclass(frozen=True)
class Listing:
    """Names of pictures in a source, and their labels."""

    name: str
    files: Sequence[str]
    labels: Mapping[str, Tensor]
    classes: Mapping[str, tuple[str, ...]]

    def take(self, indices: Tensor) -> Listing:
        """The chosen pictures."""
        chosen = indices.tolist()
        labels = {name: values[indices] for name, values in self.labels.items()}
        return replace(self, files=[self.files[index] for index in chosen], labels=labels)

    def where(self, mask: Sequence[bool]) -> Listing:
        """The pictures for which the mask holds."""
        return self.take(torch.nonzero(torch.tensor(list(mask), dtype=torch.bool)).flatten())

    def divide(self, by: Tensor, test_share: float, seed: int) -> tuple[Listing, Listing]:
        """Training and test pictures, with equal shares of every value of `by`."""
        train, test = stratified(by, test_share, seed)
        return self.take(train), self.take(test)


def read_pictures(
    source: Source,
    listings: Sequence[Listing],
    *,
    size: int | None,
    grey: bool,
    limit: int | None = None,
    progress: Progress = lambda done: None,
) -> list[Images]:
    """The pixels of each listing, of at most `limit` pictures each; the shares of progress follow their lengths."""
    short = [listing.take(subset(len(listing.files), limit)) for listing in listings]
    total, done = sum(len(listing.files) for listing in short), 0
    images = []
    for listing in short:
        if not listing.files:
            raise InputError(f"{source.path}: it has no picture for {listing.name}; get the complete data set.")
        pixels = stack(source, listing.files, size=size, grey=grey, progress=_share(progress, done, total, listing))
        images.append(Images(listing.name, pixels, dict(listing.labels), dict(listing.classes)))
        done += len(listing.files)
    return images


def _share(progress: Progress, done: int, total: int, listing: Listing) -> Progress:
    return lambda part: progress((done + part * len(listing.files)) / total)
