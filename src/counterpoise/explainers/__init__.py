"""Explainers: one map an image, larger where the model's decision depends more on the pixel."""

from counterpoise.explainers.robust import RobustTopK, certified_overlap
from counterpoise.explainers.smooth_grad import SmoothGrad
from counterpoise.interface import Explainer

BUILTIN: dict[str, type[Explainer]] = {SmoothGrad.name: SmoothGrad, RobustTopK.name: RobustTopK}
"""Name in a study -> class; every class is made as `cls(**{cls.degree_field: degree}, **options)`."""

__all__ = ["BUILTIN", "RobustTopK", "SmoothGrad", "certified_overlap"]
