"""Where images come from: one file per source or format, each giving training and test `Images` with named labels."""

from counterpoise.datasets.attributes import CelebA, Lfw
from counterpoise.datasets.biased_mnist import BiasedMnist
from counterpoise.datasets.cats_dogs import CatsVsDogs
from counterpoise.datasets.cifar10 import Cifar10
from counterpoise.datasets.csv_folder import Aptos, CsvFolder
from counterpoise.datasets.digits import Digits
from counterpoise.datasets.dots import Dots
from counterpoise.datasets.fer2013 import Fer2013
from counterpoise.datasets.folder import Folder
from counterpoise.datasets.idx import Idx, Mnist
from counterpoise.datasets.utkface import UtkFace
from counterpoise.interface import Dataset

BUILTIN: dict[str, type[Dataset]] = {
    "aptos2019": Aptos,
    "biased-mnist": BiasedMnist,
    "cats-vs-dogs": CatsVsDogs,
    "celeba": CelebA,
    "cifar10": Cifar10,
    "csv-folder": CsvFolder,
    "digits": Digits,
    "dots": Dots,
    "fer2013": Fer2013,
    "folder": Folder,
    "idx": Idx,
    "lfw": Lfw,
    "mnist": Mnist,
    "utkface": UtkFace,
}
