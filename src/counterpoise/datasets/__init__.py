"""Where images come from: one file per source or format, each giving training and test `Images` with named labels."""

from counterpoise.datasets.digits import Digits
from counterpoise.datasets.dots import Dots
from counterpoise.datasets.folder import Folder
from counterpoise.interface import Dataset

BUILTIN: dict[str, type[Dataset]] = {
    "digits": Digits,
    "dots": Dots,
    "folder": Folder,
}
