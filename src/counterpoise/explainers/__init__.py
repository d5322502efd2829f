"""Explainers: one map an image, larger where the model's decision depends more on the pixel."""

from counterpoise.explainers.grad_cam import GradCAM
from counterpoise.explainers.smooth_grad import SmoothGrad
from counterpoise.interface import Explainer

BUILTIN: dict[str, type[Explainer]] = {
    GradCAM.name: GradCAM,
    SmoothGrad.name: SmoothGrad,
}
"""Name in a study -> class; every class is made as `cls(**{cls.degree_field: degree}, **options)`."""

__all__ = ["BUILTIN", "GradCAM", "SmoothGrad"]
