"""Where data are looked for, how they are fetched, and where their pixels go."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoise._check import InputError
from counterpoise.datasets import _fetch, _pictures
from counterpoise.datasets._archive import opened
from counterpoise.datasets._locate import cache_folder, locate
from counterpoise.datasets._pictures import allocate, decode, scaled, stack


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOISE_DATA", str(tmp_path / "shared"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def find(root: str | None = None) -> Path:
    return locate(root, ("faces.zip", "faces*"), "Faces", "https://example.org/faces")


def test_the_given_root_comes_first_then_the_variable_then_the_cache(tmp_path: Path) -> None:
    places = [tmp_path / "own" / "faces", tmp_path / "shared" / "faces-small.zip", cache_folder() / "faces.zip"]
    for place in places:
        place.parent.mkdir(parents=True)
        place.touch()
    assert find(str(tmp_path / "own")) == places[0]
    assert find(str(places[0])) == places[0]
    assert find() == places[1]
    places[1].unlink()
    assert find() == places[2]
    (tmp_path / "shared" / "faces.zip").touch()
    assert find() == tmp_path / "shared" / "faces.zip"


def test_a_root_without_the_usual_names_is_the_data_itself(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert find(str(tmp_path / "mine")) == tmp_path / "mine"


def test_what_is_not_found_is_said_with_the_publisher_s_page(tmp_path: Path) -> None:
    sentence = (
        rf"^Faces is not in {re.escape(str(tmp_path))}/shared or {re.escape(str(tmp_path))}/cache/counterpoise; get it"
        r" from https://example\.org/faces and put it there as faces\.zip, or give its path as root\.$"
    )
    with pytest.raises(InputError, match=sentence):
        find()
    with pytest.raises(InputError, match=r"^root='/absent': there is no such file or folder; Faces is offered at http"):
        find("/absent")


def test_looking_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        find()
    assert list(tmp_path.iterdir()) == []


def test_a_fetched_file_is_checked_and_then_kept(tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.write_bytes(b"pixels" * 1000)
    sha256 = hashlib.sha256(published.read_bytes()).hexdigest()
    target = tmp_path / "deep" / "kept"
    shares: list[float] = []
    assert _fetch.fetch(published.as_uri(), sha256, target, shares.append) == target
    assert target.read_bytes() == published.read_bytes()
    assert shares[-1] == 1
    published.unlink()
    assert _fetch.fetch(published.as_uri(), sha256, target) == target


def test_a_file_with_another_sum_is_not_kept(tmp_path: Path) -> None:
    published = tmp_path / "published"
    published.write_bytes(b"tampered")
    target = tmp_path / "deep" / "kept"
    with pytest.raises(InputError, match=rf"has SHA-256 [0-9a-f]{{64}}, not {'0' * 64}; it is not kept\.$"):
        _fetch.fetch(published.as_uri(), "0" * 64, target)
    assert list(target.parent.iterdir()) == []


def test_an_address_that_does_not_answer(tmp_path: Path) -> None:
    absent = (tmp_path / "absent").as_uri()
    with pytest.raises(
        InputError, match=rf"^{re.escape(absent)} cannot be fetched \(.+\); get the file another way and"
    ):
        _fetch.fetch(absent, "0" * 64, tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_the_network_is_used_only_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from counterpoise.datasets.cifar10 import Cifar10
    from counterpoise.datasets.idx import Mnist

    asked: list[str] = []

    def answer(address: str, timeout: float) -> None:
        asked.append(address)
        raise TimeoutError("no network in tests")

    monkeypatch.setattr(_fetch, "urlopen", answer)
    for kind in (Mnist, Cifar10):
        with pytest.raises(InputError, match="is not in"):
            kind().load()
    assert asked == []
    for kind in (Mnist, Cifar10):
        with pytest.raises(InputError, match=r"^https://.* cannot be fetched \(no network in tests\)"):
            kind(fetch=True).load()
    assert [address.split("/")[2] for address in asked] == ["storage.googleapis.com", "www.cs.toronto.edu"]


def test_pixels_above_memory_are_mapped_to_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0).integers(0, 256, (5000, 1, 3, 2), np.uint8)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    in_memory = scaled(values)
    monkeypatch.setattr(_pictures, "_memory", lambda: 1000)
    mapped = scaled(values)
    assert torch.equal(mapped, in_memory)
    assert torch.equal(in_memory, torch.from_numpy(values).float() / 255)
    assert list(tmp_path.iterdir()) == []
    assert str(tmp_path) in Path("/proc/self/maps").read_text()
    assert allocate((2, 1, 1, 1)).shape == (2, 1, 1, 1)


def test_pictures_are_read_in_the_archive_s_order_and_returned_in_the_asked_one(tmp_path: Path) -> None:
    for index in range(4):
        Image.fromarray(np.full((2, 2), index, np.uint8)).save(tmp_path / f"{index}.png")
    read: list[str] = []
    with opened(tmp_path) as source:
        pixels = stack(
            source, ["3.png", "0.png", "2.png"], size=None, grey=True, progress=lambda d: read.append(f"{d:.2f}")
        )
    assert (pixels[:, 0, 0, 0] * 255).tolist() == [3, 0, 2]
    assert read == ["0.33", "0.67", "1.00"]


def test_grey_and_colour(tmp_path: Path) -> None:
    array = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    Image.fromarray(array).save(tmp_path / "c.png")
    content = (tmp_path / "c.png").read_bytes()
    assert torch.equal(decode(content, "c", None, grey=False), torch.from_numpy(array).permute(2, 0, 1))
    assert decode(content, "c", None, grey=True).shape == (1, 5, 7)
    assert decode(content, "c", 4, grey=False).shape == (3, 4, 4)


def test_a_picture_that_claims_too_many_pixels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Image.fromarray(np.zeros((50, 50), np.uint8)).save(tmp_path / "bomb.png")
    content = (tmp_path / "bomb.png").read_bytes()
    monkeypatch.setattr(_pictures, "MOST_PIXELS", 2499)
    sentence = r"^bomb: this image has more than 2499 pixels, as a decompression bomb has; remove or shrink it\.$"
    with pytest.raises(InputError, match=sentence):
        decode(content, "bomb", 4, grey=True)
    for limit in (1000, 2000):  # Pillow refuses above twice its own limit, and warns above it.
        monkeypatch.setattr(_pictures, "MOST_PIXELS", 2499)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(InputError, match=sentence):
            decode(content, "bomb", 4, grey=True)
