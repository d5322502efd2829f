"""Weights from elsewhere: what fits is loaded, what does not is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.models.resnet import resnet18
from counterpoise.models.small_cnn import small_cnn
from counterpoise.models.weights import load_weights

SHAPE = (3, 16, 16)


def network(seed: int, classes: int = 2, norm: str = "group") -> nn.Module:
    return resnet18(SHAPE, classes, torch.Generator().manual_seed(seed), norm=norm, blocks=(1, 1)).eval()


def saved(tmp_path: Path, weights: dict[str, Tensor]) -> Path:
    path = tmp_path / "weights.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, path)
    return path


@pytest.mark.parametrize("prefix", ["", "_module.", "module."])
def test_what_fits_is_loaded_also_from_a_wrapper(tmp_path: Path, prefix: str) -> None:
    theirs, ours = network(1), network(2)
    images = torch.rand(2, *SHAPE)
    assert not torch.equal(theirs(images), ours(images))
    load_weights(ours, saved(tmp_path, {prefix + name: w for name, w in theirs.state_dict().items()}))
    assert torch.equal(theirs(images), ours(images))


def test_a_layer_can_stay_as_it_is(tmp_path: Path) -> None:
    path = saved(tmp_path, dict(network(1, classes=9).state_dict()))
    ours = network(2)
    before = ours.get_parameter("fc.weight").clone()
    with pytest.raises(InputError, match=r"has 'fc.weight' as \[9, 128\], the network as \[2, 128\] \(and 1 more\)"):
        load_weights(ours, path)
    load_weights(ours, path, keep=("fc.",))
    assert torch.equal(ours.get_parameter("fc.weight"), before)
    assert torch.equal(ours.get_parameter("conv1.weight"), network(1).get_parameter("conv1.weight"))


def test_their_normalisation_replaces_ours(tmp_path: Path) -> None:
    theirs, ours = network(1), network(2)
    path = saved(tmp_path, dict(theirs.state_dict()))
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    load_weights(ours, path, mean=mean, std=std)
    images = torch.rand(2, *SHAPE)
    seen = (images - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    torch.testing.assert_close(ours(images), theirs((seen + 1) / 2))  # whose own first layer gives 2 x - 1
    with pytest.raises(InputError, match="mean and std belong together"):
        load_weights(ours, path, mean=mean)
    plain = small_cnn((1, 8, 8), 2, torch.Generator())
    with pytest.raises(InputError, match="Sequential has no layer 'centre'"):
        load_weights(plain, saved(tmp_path, dict(plain.state_dict())), mean=(0.5,), std=(0.5,))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    weights = dict(network(1).state_dict())
    weights["extra.weight"] = weights.pop("conv1.weight")
    ours = network(2)
    before = {name: w.clone() for name, w in ours.state_dict().items()}
    with pytest.raises(InputError, match=r"lacks 'conv1.weight'; has 'extra.weight', which the network does not: make"):
        load_weights(ours, saved(tmp_path, weights))
    batch = saved(tmp_path, dict(network(1, norm="batch").state_dict()))
    with pytest.raises(InputError, match=r"has 'bn1\..*' and 17 more, which the network does not: .*norm='batch'"):
        load_weights(ours, batch)
    assert all(torch.equal(w, before[name]) for name, w in ours.state_dict().items())
    with pytest.raises(InputError, match="there is no such file of weights"):
        load_weights(ours, tmp_path / "none.safetensors")
    torch.save(ours.state_dict(), tmp_path / "pickle.pt")
    with pytest.raises(InputError, match=r"pickle.pt: is no safetensors file .* convert it where you trust it"):
        load_weights(ours, tmp_path / "pickle.pt")
