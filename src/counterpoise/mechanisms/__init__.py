"""How a training is protected: each mechanism trains a model, or filters the images, and says what is proved."""

from counterpoise.interface import Mechanism
from counterpoise.mechanisms.autoencoder import Autoencoder
from counterpoise.mechanisms.dp_sgd import DPSGD
from counterpoise.mechanisms.entangle import EntangleDisentangle
from counterpoise.mechanisms.gradient_reversal import GradientReversal
from counterpoise.mechanisms.linear_erasure import LinearErasure
from counterpoise.mechanisms.local_noise import LocalNoise
from counterpoise.mechanisms.non_discrimination import NonDiscriminatory
from counterpoise.mechanisms.pixel_shuffle import PixelShuffle
from counterpoise.mechanisms.plain import Plain
from counterpoise.mechanisms.privatizer import Fixed, Privatizer

__all__ = ["BUILTIN", "DPSGD", "Autoencoder", "Fixed", "LocalNoise", "PixelShuffle", "Plain", "Privatizer"]

BUILTIN: dict[str, type[Mechanism]] = {
    "autoencoder": Autoencoder,
    "dp-sgd": DPSGD,
    "local-noise": LocalNoise,
    "end": EntangleDisentangle,
    "gradient-reversal": GradientReversal,
    "linear-erasure": LinearErasure,
    "non-discriminatory": NonDiscriminatory,
    "pixel-shuffle": PixelShuffle,
    "plain": Plain,
    "privatizer": Privatizer,
}
