"""Explainers: one map an image, larger where the model's decision depends more on the pixel."""

from counterpoise.explainers.class_model import ClassModel
from counterpoise.explainers.countdown import Countdown
from counterpoise.explainers.grad_cam import GradCAM, GradCAMPlusPlus, HiResCAM, LayerCAM
from counterpoise.explainers.gradient import GradientTimesInput, Saliency
from counterpoise.explainers.integrated_gradients import IntegratedGradients
from counterpoise.explainers.occlusion import Occlusion
from counterpoise.explainers.rise import RISE
from counterpoise.explainers.smooth_grad import SmoothGrad, SmoothGradSquared, VarGrad
from counterpoise.explainers.via_captum import ViaCaptum
from counterpoise.interface import Explainer

BUILTIN: dict[str, type[Explainer]] = {
    ViaCaptum.name: ViaCaptum,
    ClassModel.name: ClassModel,
    GradCAM.name: GradCAM,
    GradCAMPlusPlus.name: GradCAMPlusPlus,
    GradientTimesInput.name: GradientTimesInput,
    HiResCAM.name: HiResCAM,
    IntegratedGradients.name: IntegratedGradients,
    LayerCAM.name: LayerCAM,
    Occlusion.name: Occlusion,
    RISE.name: RISE,
    Saliency.name: Saliency,
    SmoothGrad.name: SmoothGrad,
    SmoothGradSquared.name: SmoothGradSquared,
    VarGrad.name: VarGrad,
}
"""Name in a study -> class; every class is made as `cls(**{cls.degree_field: degree}, **options)`."""

__all__ = [
    "BUILTIN",
    "RISE",
    "ClassModel",
    "Countdown",
    "GradCAM",
    "GradCAMPlusPlus",
    "GradientTimesInput",
    "HiResCAM",
    "IntegratedGradients",
    "LayerCAM",
    "Occlusion",
    "Saliency",
    "SmoothGrad",
    "SmoothGradSquared",
    "VarGrad",
    "ViaCaptum",
]
