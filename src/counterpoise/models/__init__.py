"""Architectures only: each function makes a fresh network for a shape and a number of classes, seeded by `rng`.

Images are in [0, 1] outside every network; its first layer normalises.
"""

from collections.abc import Callable

import torch
from torch import nn

from counterpoise.models.alexnet import alexnet
from counterpoise.models.dense import linear, mlp
from counterpoise.models.inception_v3 import inception_stem, inception_v3
from counterpoise.models.lenet5 import lenet5_caffe
from counterpoise.models.resnet import resnet18, resnet18_batchnorm
from counterpoise.models.scattering import scattering_linear
from counterpoise.models.small_cnn import small_cnn
from counterpoise.models.tanh_cnn import tanh_cnn
from counterpoise.models.vgg import vgg16
from counterpoise.models.xception import xception_small

BUILTIN: dict[str, Callable[[tuple[int, int, int], int, torch.Generator], nn.Module]] = {
    "alexnet": alexnet,
    "inception-stem": inception_stem,
    "inception-v3": inception_v3,
    "lenet5-caffe": lenet5_caffe,
    "linear": linear,
    "mlp": mlp,
    "resnet18": resnet18,
    "resnet18-batchnorm": resnet18_batchnorm,
    "scattering-linear": scattering_linear,
    "small-cnn": small_cnn,
    "tanh-cnn": tanh_cnn,
    "vgg16": vgg16,
    "xception-small": xception_small,
}
