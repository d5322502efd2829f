"""Reproductions: one file a source, studies as plain Python objects, published numbers beside ours."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from counterpoise._check import InputError, one_of
from counterpoise.catalogue import Entry
from counterpoise.reproduce import abbasi_sweeps
from counterpoise.reproduce.abbasi_campaign import abbasi_campaign
from counterpoise.reproduce.abbasi_example import abbasi_example
from counterpoise.reproduce.abbasi_three_parties import abbasi_three_parties
from counterpoise.reproduce.bertran_consent import bertran_consent
from counterpoise.reproduce.bertran_identity import bertran_identity_gender
from counterpoise.reproduce.bertran_smile import bertran_smile_gender
from counterpoise.reproduce.bertran_synthetic import bertran_synthetic
from counterpoise.reproduce.biased_mnist import biased_mnist
from counterpoise.reproduce.deck_cifar import deck_cifar
from counterpoise.reproduce.naidu import naidu_aptos, naidu_catsdogs
from counterpoise.reproduce.private_cifar10 import private_cifar10
from counterpoise.reproduce.private_mnist import private_mnist
from counterpoise.reproduce.settings import SCALES, Settings
from counterpoise.reproduce.tartaglione_mnist import tartaglione_mnist_conv1, tartaglione_mnist_fc1
from counterpoise.reproduce.tartaglione_utkface import tartaglione_utkface

Reproduction = Callable[[Settings], str]
"""Does the work and returns the comparison as text; its docstring's first line is what `list` shows."""

BUILTIN: dict[str, Reproduction] = {
    "abbasi-campaign": abbasi_campaign,
    "abbasi-example": abbasi_example,
    "abbasi-three-parties": abbasi_three_parties,
    "abbasi-mnist-dp": abbasi_sweeps.abbasi_mnist_dp,
    "abbasi-mnist-autoencoder": abbasi_sweeps.abbasi_mnist_autoencoder,
    "abbasi-fer-dp": abbasi_sweeps.abbasi_fer_dp,
    "abbasi-fer-autoencoder": abbasi_sweeps.abbasi_fer_autoencoder,
    "abbasi-cifar-dp": abbasi_sweeps.abbasi_cifar_dp,
    "abbasi-cifar-autoencoder": abbasi_sweeps.abbasi_cifar_autoencoder,
    "naidu-aptos": naidu_aptos,
    "naidu-catsdogs": naidu_catsdogs,
    "bertran-synthetic": bertran_synthetic,
    "bertran-consent": bertran_consent,
    "bertran-identity-gender": bertran_identity_gender,
    "bertran-smile-gender": bertran_smile_gender,
    "biased-mnist": biased_mnist,
    "deck-cifar": deck_cifar,
    "private-cifar10": private_cifar10,
    "private-mnist": private_mnist,
    "tartaglione-mnist-conv1": tartaglione_mnist_conv1,
    "tartaglione-mnist-fc1": tartaglione_mnist_fc1,
    "tartaglione-utkface": tartaglione_utkface,
}


def reproduction(name: str) -> Callable[[Path | None, str, Path], str]:
    """The reproduction of that name, as a function of (data folder, scale, out folder)."""
    if name not in BUILTIN:
        raise InputError(f"reproduction {name!r} is not one of: {', '.join(sorted(BUILTIN))}.")

    def reproduce(data: Path | None, scale: str, out: Path) -> str:
        one_of(SCALES, scale=scale)
        found = data or (Path(os.environ["COUNTERPOISE_DATA"]) if os.environ.get("COUNTERPOISE_DATA") else None)
        return BUILTIN[name](Settings(found, scale, out))

    return reproduce


def listing() -> list[Entry]:
    """All reproductions."""
    return [Entry(name, "built in", (part.__doc__ or "").split("\n")[0]) for name, part in sorted(BUILTIN.items())]
