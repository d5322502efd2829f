"""CIFAR-10: both versions, and pickles that want more than an array of bytes."""

import gzip
import io
import lzma
import os
import pickle
import re
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoise._check import InputError
from counterpoise.datasets import _unpickle
from counterpoise.datasets._unpickle import read_batch
from counterpoise.datasets.cifar10 import CLASSES, Cifar10

BATCHES = [*(f"data_batch_{index}" for index in range(1, 6)), "test_batch"]


def batch(index: int) -> tuple[np.ndarray, list[int]]:
    rng = np.random.default_rng(index)
    return rng.integers(0, 256, (4, 3072), np.uint8), rng.integers(0, 10, 4).tolist()


def pickled(index: int, protocol: int = 2) -> bytes:
    data, labels = batch(index)
    return pickle.dumps({b"data": data, b"labels": labels, b"batch_label": b"one"}, protocol)


def write(folder: Path, binary: bool = False) -> Path:
    folder.mkdir()
    for index, name in enumerate(BATCHES):
        if binary:
            data, labels = batch(index)
            records = np.concatenate([np.array(labels, np.uint8)[:, None], data], 1)
            (folder / f"{name}.bin").write_bytes(records.tobytes())
        else:
            (folder / name).write_bytes(pickled(index))
    return folder


def packed(folder: Path, path: Path) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        tar.add(folder, folder.name)
    path.write_bytes((gzip if path.suffix == ".gz" else lzma).compress(plain.getvalue()))
    return path


def check(root: Path) -> None:
    shares: list[float] = []
    train, test = Cifar10(str(root)).load(shares.append)
    data = np.concatenate([batch(index)[0] for index in range(5)])
    assert torch.equal(train.pixels, torch.from_numpy(data.reshape(-1, 3, 32, 32)).float() / 255)
    assert train.labels["object"].tolist() == [label for index in range(5) for label in batch(index)[1]]
    assert test.labels["object"].tolist() == batch(5)[1]
    assert test.classes == {"object": CLASSES}
    assert shares == [index / 6 for index in range(1, 7)]


@pytest.mark.parametrize("binary", [False, True])
def test_folders_and_tars_of_both_versions(binary: bool, tmp_path: Path) -> None:
    folder = write(tmp_path / "cifar-10-batches-py", binary)
    check(folder)
    check(packed(folder, tmp_path / "set.tar.gz"))
    check(packed(folder, tmp_path / "set.tar.xz"))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_every_spelling_of_an_array_of_bytes(protocol: int) -> None:
    found = read_batch(pickled(1, protocol), "here")
    assert np.array_equal(np.asarray(found["data"]), batch(1)[0])
    assert found["labels"] == batch(1)[1]


def spoiled(tmp_path: Path, content: bytes, sentence: str, name: str = "data_batch_2") -> None:
    path = write(tmp_path / "set", binary=name.endswith(".bin")) / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"^{re.escape(str(path))}{sentence}") as problem:
        Cifar10(str(tmp_path / "set")).load()
    assert "\n" not in str(problem.value)


class Calls:
    """Pickles to a call of a function with arguments."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (os.mkdir, r"posix\.mkdir"),
        (eval, r"__builtin__\.eval"),
        (np.load, r"numpy\.load"),
        (np.memmap, r"numpy\.memmap"),
        (np.fromfile, r"numpy\S*\.fromfile"),
        (getattr, r"__builtin__\.getattr"),
    ],
)
def test_a_forbidden_global_is_named_and_never_run(function: Callable[..., object], named: str, tmp_path: Path) -> None:
    marker = tmp_path / "was-run"
    argument = f"__import__('os').mkdir({str(marker)!r})" if function is eval else str(marker)
    hostile = pickle.dumps({b"data": Calls(function, argument), b"labels": []}, 2)
    sentence = rf": this pickle asks for {named}, which no image data needs; nothing was run, do not trust it\.$"
    spoiled(tmp_path, hostile, sentence)
    assert not marker.exists()


def test_the_hostile_pickle_is_really_hostile(tmp_path: Path) -> None:
    """The nearby wrong thing: an ordinary unpickler runs it."""
    marker = tmp_path / "was-run"
    pickle.loads(pickle.dumps({b"data": Calls(os.mkdir, str(marker))}, 2))
    assert marker.is_dir()


def test_no_function_of_numpy_is_admitted() -> None:
    assert all(part.__module__ == _unpickle.__name__ for part in _unpickle._ADMITTED.values())


@pytest.mark.parametrize(
    "array",
    [
        np.array([{"any": "object"}], object),
        np.zeros((4, 3072), np.float32),
        np.asfortranarray(np.zeros((4, 3072), np.uint8)),
        np.array(["text"]),
        np.zeros(3, [("field", "u1")]),
    ],
)
def test_other_arrays_are_refused(array: np.ndarray, tmp_path: Path) -> None:
    content = pickle.dumps({b"data": array, b"labels": [0] * 4}, 2)
    spoiled(tmp_path, content, r" cannot be read, it is damaged or incomplete \(.+\); get it again\.$")


def test_an_array_whose_shape_lies_is_refused() -> None:
    honest = pickled(0)
    lying = honest.replace(b"K\x04M\x00\x0c\x86", b"K\x05M\x00\x0c\x86")
    assert lying != honest
    with pytest.raises(InputError, match=r"^here cannot be read.*an array of shape \(5, 3072\) with 12288 bytes"):
        read_batch(lying, "here")


@pytest.mark.parametrize("cut", [0, 1, 20, 5000])
def test_a_cut_pickle(cut: int) -> None:
    with pytest.raises(InputError, match=r"^here cannot be read, it is damaged or incomplete \(.+\); get it again\.$"):
        read_batch(pickled(0)[:cut], "here")


def test_random_damage_never_gets_past_the_reader() -> None:
    """Whatever is flipped: a dictionary or an InputError, nothing else."""
    rng = np.random.default_rng(3)
    whole = bytearray(pickle.dumps({b"data": np.zeros((1, 6), np.uint8), b"labels": [1]}, 2))
    for _ in range(800):
        damaged = whole.copy()
        for at in rng.integers(0, len(whole), 3):
            damaged[at] = rng.integers(0, 256)
        with suppress(InputError):
            assert isinstance(read_batch(bytes(damaged), "here"), dict)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([1, 2], "this pickle holds no dictionary"),
        ({b"labels": [1]}, "its 'data' is no array of 3072 bytes an image"),
        ({b"data": np.zeros((2, 3), np.uint8), b"labels": [1, 1]}, "its 'data' is no array of 3072 bytes an image"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"labels": "ab"}, "its 'labels' are no list of small whole numbers"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}, "2 images, but 1 labels; get the batch again"),
        (
            {b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]},
            r"label 10 of image 0 is out of range; labels go",
        ),
    ],
)
def test_wrong_batches(content: object, sentence: str, tmp_path: Path) -> None:
    spoiled(tmp_path, pickle.dumps(content, 2), f": {sentence}")


def test_wrong_binary_batches(tmp_path: Path) -> None:
    spoiled(tmp_path, b"\0" * 3074, ": 3074 bytes are no whole number of images of 3073 bytes", "data_batch_2.bin")


def test_a_missing_batch(tmp_path: Path) -> None:
    (write(tmp_path / "set") / "data_batch_4").unlink()
    with pytest.raises(InputError, match=r"set: there is no data_batch_4 or data_batch_4\.bin in it; get the complete"):
        Cifar10(str(tmp_path / "set")).load()


def test_the_published_subset() -> None:
    train, test = Cifar10(os.environ["COUNTERPOISE_DATA"]).load()
    assert (len(train), len(test), train.shape) == (20_000, 5_000, (3, 32, 32))
    assert train.labels["object"].bincount().tolist() == [2000] * 10
    assert test.labels["object"].bincount().tolist() == [500] * 10
    # Planes are red, green, blue: ships have more blue than frogs.
    blue = [(train.pixels[train.labels["object"] == k].mean((0, 2, 3)) @ torch.tensor([-1.0, 0, 1])) for k in (8, 6)]
    assert blue[0] > blue[1] + 0.05


def test_reading_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    packed(write(tmp_path / "set"), tmp_path / "set.tar.gz")
    before = sorted(tmp_path.rglob("*"))
    Cifar10(str(tmp_path / "set.tar.gz")).load()
    assert sorted(tmp_path.rglob("*")) == before
