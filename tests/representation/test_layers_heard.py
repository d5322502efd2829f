"""Any named layer is heard, the hook is gone afterwards, and a wrong name is told with the right ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.models import BUILTIN
from counterpoise.representation.layers import LAST, features, listening, names

SHAPE = (1, 28, 28)


def lenet() -> nn.Module:
    return BUILTIN["lenet5-caffe"](SHAPE, 10, torch.Generator().manual_seed(0))


def test_the_sizes_of_the_source_are_found_by_name() -> None:
    pixels = torch.rand(5, *SHAPE)
    assert [features(lenet(), at, pixels).shape[1] for at in ("2", "7", LAST)] == [2880, 500, 500]


def test_chunks_and_modes_do_not_matter_and_nothing_is_left_behind() -> None:
    model, pixels = lenet().train(), torch.rand(7, *SHAPE)
    whole, parts = features(model, "7", pixels), features(model, "7", pixels, chunk=3)
    assert torch.allclose(whole, parts, atol=1e-6)
    assert model.training
    assert all(not module._forward_hooks and not module._forward_pre_hooks for module in model.modules())
    assert torch.allclose(features(model, LAST, pixels), whole)


def test_layers_inside_a_residual_network_are_heard_and_keep_their_graph() -> None:
    model = BUILTIN["resnet18"]((3, 32, 32), 2, torch.Generator().manual_seed(0))
    inner = [name for name in names(model) if "." in name][3]
    with listening(model, inner) as heard:
        model(torch.rand(2, 3, 32, 32))
    assert heard[-1].requires_grad
    assert heard[-1].ndim == 4


def test_a_wrong_name_is_told_with_the_right_ones() -> None:
    with pytest.raises(InputError, match=r"^at='fc1': the model has no layer of that name; name one of: 0, 1, 2"):
        features(lenet(), "fc1", torch.rand(1, *SHAPE))
    with pytest.raises(InputError, match=r"the model has no linear layer; name one of: 0\.$"):
        features(nn.Sequential(nn.Conv2d(1, 1, 3)), LAST, torch.rand(1, *SHAPE))
