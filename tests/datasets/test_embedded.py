"""The data that need no file: real scans, and synthetic dots whose answer is known."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from counterpoise._check import InputError
from counterpoise.datasets import BUILTIN
from counterpoise.datasets._split import stratified
from counterpoise.datasets.digits import Digits
from counterpoise.datasets.dots import DARK, Dots
from counterpoise.interface import Dataset, Images


def test_every_builtin_is_a_dataset_under_its_own_name() -> None:
    for name, kind in BUILTIN.items():
        assert kind.name == name
    assert isinstance(Digits(), Dataset)


@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 100),
)
def test_a_split_is_fixed_whole_and_fair(counts: list[int], share: float, seed: int) -> None:
    labels = torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])
    train, test = stratified(labels, share, seed)
    assert sorted(train.tolist() + test.tolist()) == list(range(len(labels)))
    assert torch.equal(stratified(labels, share, seed)[1], test)
    for label, count in enumerate(counts):
        held_out = int((labels[test] == label).sum())
        assert held_out == 0 if count == 1 else 1 <= held_out <= count - 1
        assert abs(held_out - share * count) <= 1


def test_another_seed_splits_differently() -> None:
    labels = torch.zeros(100, dtype=torch.long)
    assert not torch.equal(stratified(labels, 0.5, 0)[0], stratified(labels, 0.5, 1)[0])


def test_digits_are_all_there_once() -> None:
    from sklearn.datasets import load_digits

    train, test = Digits().load()
    assert (len(train), len(test)) == (1258, 539)
    assert train.shape == (1, 8, 8)
    assert train.classes["digit"] == tuple("0123456789")
    truth = load_digits()
    together = torch.cat([train.pixels, test.pixels]).flatten(1).mul(16).int().tolist()
    assert sorted(together) == sorted(truth.data.astype(int).tolist())
    both = torch.cat([train.labels["digit"], test.labels["digit"]])
    assert both.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_keep_their_labels() -> None:
    """The mean image of a class classifies most scans: labels belong to images."""
    train, test = Digits().load()
    means = torch.stack([train.pixels[train.labels["digit"] == k].mean(0) for k in range(10)]).flatten(1)
    guess = torch.cdist(test.pixels.flatten(1), means).argmin(1)
    assert float((guess == test.labels["digit"]).float().mean()) > 0.85


@pytest.mark.parametrize(("share", "rule"), [(0, "strictly between 0 and 1"), (1.0, "strictly between 0 and 1")])
def test_digits_refuse_a_wrong_share(share: float, rule: str) -> None:
    with pytest.raises(InputError, match=rf"^test_share={share!r} must be a number {rule}\.$"):
        Digits(test_share=share)


def read_position(images: Images) -> torch.Tensor:
    brightest = images.pixels.flatten(1).argmax(1)
    row, column = brightest // images.shape[2], brightest % images.shape[2]
    return 2 * (row >= images.shape[1] // 2) + (column >= images.shape[2] // 2)


def guess_secret(images: Images) -> torch.Tensor:
    return (images.pixels.flatten(1).max(1).values > (DARK + 1) / 2).long()


@pytest.mark.parametrize("visibility", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("size", [4, 8, 11])
def test_dots_have_the_known_answer(visibility: float, size: int) -> None:
    dots = Dots(train=4000, test=500, size=size, visibility=visibility)
    train, test = dots.load()
    assert (len(train), len(test)) == (4000, 500)
    assert torch.equal(read_position(train), train.labels["position"])
    accuracy = float((guess_secret(train) == train.labels["secret"]).float().mean())
    best = dots.best_attack_accuracy()
    assert best == (1 + visibility) / 2
    assert abs(accuracy - best) <= 4 * (best * (1 - best) / 4000) ** 0.5
    assert not torch.equal(train.pixels[:500], test.pixels)


def test_dots_secret_is_independent_of_the_position() -> None:
    train, _ = Dots(train=20_000, test=1).load()
    for position in range(4):
        share = train.labels["secret"][train.labels["position"] == position].float().mean()
        assert abs(float(share) - 0.5) < 0.03


def test_dots_are_the_same_at_every_load() -> None:
    assert torch.equal(Dots(seed=3).load()[0].pixels, Dots(seed=3).load()[0].pixels)
    assert not torch.equal(Dots(seed=3).load()[0].pixels, Dots(seed=4).load()[0].pixels)


def test_dots_refuse_a_wrong_visibility() -> None:
    with pytest.raises(InputError, match=r"^visibility=1\.2 must be a number in \[0, 1\]\.$"):
        Dots(visibility=1.2)
