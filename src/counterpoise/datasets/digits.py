"""The embedded data: scikit-learn's handwritten digits, real scans that need no download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from counterpoise.datasets._listing import check_options
from counterpoise.datasets._split import stratified
from counterpoise.interface import Images, Progress


@dataclass(frozen=True)
class Digits:
    """1,797 grey scans of 8 x 8 pixels with the label `digit` (Alpaydin and Kaynak 1998, test part)."""

    name: ClassVar[str] = "digits"
    test_share: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        check_options(test_share=self.test_share, seed=self.seed)

    def load(self, progress: Progress = lambda done: None) -> tuple[Images, Images]:
        """The training and the test images, divided by class."""
        from sklearn.datasets import load_digits

        scans = load_digits()
        # The scans count ink in blocks of 4 x 4 black or white pixels, so 16 is all ink.
        pixels = torch.from_numpy(scans.images).float().div(16).unsqueeze(1)
        digits = torch.from_numpy(scans.target).long()
        classes = {"digit": tuple(str(digit) for digit in range(10))}
        whole = Images("digits", pixels, {"digit": digits}, classes)
        train, test = stratified(digits, self.test_share, self.seed)
        progress(1.0)
        return whole.take(train), whole.take(test)
