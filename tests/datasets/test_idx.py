"""idx files: what is read, and one sentence for each way in which they can be wrong."""

import gzip
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoise._check import InputError
from counterpoise.datasets.idx import Idx, Mnist

RNG = np.random.default_rng(0)
PIXELS = {"train": RNG.integers(0, 256, (7, 5, 4), np.uint8), "t10k": RNG.integers(0, 256, (3, 5, 4), np.uint8)}
LABELS = {"train": np.array([0, 1, 2, 3, 4, 5, 9], np.uint8), "t10k": np.array([9, 0, 1], np.uint8)}


def idx(array: np.ndarray, magic: int | None = None) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", magic or 2048 + array.ndim, *array.shape) + array.tobytes()


def write(folder: Path, zipped: bool = True) -> Path:
    folder.mkdir(exist_ok=True)
    for part in ("train", "t10k"):
        for kind, arrays in (("images-idx3", PIXELS), ("labels-idx1", LABELS)):
            content = idx(arrays[part])
            name = f"{part}-{kind}-ubyte" + (".gz" if zipped else "")
            (folder / name).write_bytes(gzip.compress(content) if zipped else content)
    return folder


@pytest.mark.parametrize("zipped", [True, False])
def test_bytes_become_shares_and_labels_stay(zipped: bool, tmp_path: Path) -> None:
    shares: list[float] = []
    train, test = Idx(str(write(tmp_path, zipped))).load(shares.append)
    for images, part in ((train, "train"), (test, "t10k")):
        assert torch.equal(images.pixels, torch.from_numpy(PIXELS[part][:, None]).float() / 255)
        assert images.labels["class"].tolist() == LABELS[part].tolist()
    assert train.classes == {"class": tuple("0123456789")}
    assert shares == [0.5, 1.0]


def test_other_spellings_of_the_names(tmp_path: Path) -> None:
    for file in write(tmp_path).iterdir():
        file.rename(tmp_path / ("emnist-letters-" + file.name.replace("t10k", "test")))
    assert len(Idx(str(tmp_path)).load()[1]) == 3


def test_both_plain_and_zipped_are_one_file(tmp_path: Path) -> None:
    write(tmp_path, True)
    assert len(Idx(str(write(tmp_path, False))).load()[0]) == 7


def test_mnist_knows_the_parity(tmp_path: Path) -> None:
    train, _ = Mnist(str(write(tmp_path / "mnist"))).load()
    assert train.labels["parity"].tolist() == [0, 1, 0, 1, 0, 1, 1]
    assert train.classes["parity"] == ("even", "odd")
    assert len(Mnist(str(tmp_path)).load()[0]) == 7


def spoiled(tmp_path: Path, name: str, change: Callable[[bytes], bytes], sentence: str, zipped: bool = False) -> None:
    path = write(tmp_path, zipped) / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=rf"^{re.escape(str(path))}.*{sentence}") as problem:
        Idx(str(tmp_path)).load()
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_a_truncated_gzip_file(share: float, tmp_path: Path) -> None:
    sentence = r"cannot be read, it is damaged or incomplete \(.*\); get it again\.$"
    spoiled(tmp_path, "train-images-idx3-ubyte.gz", lambda b: b[: int(share * len(b))], sentence, zipped=True)


def test_a_flipped_byte_in_a_gzip_file(tmp_path: Path) -> None:
    def flip(content: bytes) -> bytes:
        return content[:-6] + bytes([content[-6] ^ 1]) + content[-5:]

    spoiled(tmp_path, "train-images-idx3-ubyte.gz", flip, "cannot be read, it is damaged", zipped=True)


@pytest.mark.parametrize(
    ("name", "array", "magic", "sentence"),
    [
        ("train-images-idx3-ubyte", PIXELS["train"], 2052, r": its magic number is 2052, where idx images have 2051"),
        ("train-images-idx3-ubyte", LABELS["train"], None, r": its magic number is 2049, where idx images have 2051"),
        ("train-labels-idx1-ubyte", PIXELS["train"], None, r": its magic number is 2051, where idx labels have 2049"),
        (
            "train-labels-idx1-ubyte",
            np.array([0, 1, 10], np.uint8),
            None,
            r": label 10 of image 2 is out of range",
        ),
    ],
)
def test_wrong_content(name: str, array: np.ndarray, magic: int | None, sentence: str, tmp_path: Path) -> None:
    spoiled(tmp_path, name, lambda _: idx(array, magic), sentence)


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b + b"\0"])
def test_more_or_fewer_bytes_than_promised(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    sentence = r": its header promises 140 bytes \(7 x 5 x 4\), but 1(39|41) follow; get the complete file\.$"
    spoiled(tmp_path, "train-images-idx3-ubyte", change, sentence)


def test_a_header_that_promises_more_than_any_memory(tmp_path: Path) -> None:
    huge = struct.pack(">4I", 2051, 2**32 - 1, 2**32 - 1, 2**32 - 1)
    spoiled(tmp_path, "train-images-idx3-ubyte", lambda _: huge, ": its header promises 79228162458924105385300197375")


@pytest.mark.parametrize("shape", [(0, 5, 4), (7, 0, 4)])
def test_a_header_that_promises_nothing(shape: tuple[int, int, int], tmp_path: Path) -> None:
    nothing = struct.pack(">4I", 2051, *shape)
    sentence = rf": its header promises nothing \({shape[0]} x {shape[1]} x 4\); get the complete file\.$"
    spoiled(tmp_path, "train-images-idx3-ubyte", lambda _: nothing, sentence)


def test_an_empty_file(tmp_path: Path) -> None:
    spoiled(tmp_path, "train-images-idx3-ubyte", lambda _: b"", r" cannot be read.*\(it ends within its header\)")


def test_counts_that_disagree(tmp_path: Path) -> None:
    (write(tmp_path, False) / "train-labels-idx1-ubyte").write_bytes(idx(LABELS["t10k"]))
    sentence = r": train-images-idx3-ubyte has 7 images, but train-labels-idx1-ubyte has 3 labels; get both from the"
    with pytest.raises(InputError, match=sentence):
        Idx(str(tmp_path)).load()


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    (write(tmp_path) / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError, match=r": 0 files are named like t10k-labels-idx\*-ubyte\[\.gz\]; exactly one is"):
        Idx(str(tmp_path)).load()


def test_the_published_mnist() -> None:
    train, test = Mnist(os.environ["COUNTERPOISE_DATA"]).load()
    assert (len(train), len(test), train.shape) == (60_000, 10_000, (1, 28, 28))
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert train.labels["digit"].bincount().tolist() == counts
    assert test.labels["digit"].bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(train.pixels.mean()) == pytest.approx(0.1307, abs=5e-5)
    assert float(train.pixels.std()) == pytest.approx(0.3081, abs=5e-5)


def test_a_limit_takes_the_same_images_each_time() -> None:
    few, more = (Mnist(os.environ["COUNTERPOISE_DATA"], limit=limit).load()[0] for limit in (50, 50))
    assert len(few) == 50
    assert torch.equal(few.pixels, more.pixels)
    assert len(set(few.labels["digit"].tolist())) > 5
