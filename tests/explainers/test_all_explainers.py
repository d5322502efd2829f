"""What every explainer of the room promises, by any of its names, and on the networks that trip others."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import torch
from opacus import GradSampleModule
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers import BUILTIN
from counterpoise.interface import Trained
from counterpoise.testing import check_explainer

FEW: dict[str, dict[str, Any]] = {
    "rise": {"samples": 12},
    "class-model": {"steps": 5},
    "integrated-gradients": {"steps": 4},
}
"""Options that make the slow ones quick."""

POWER: dict[str, float] = {"robust-topk": 1, "smoothgrad-squared": 4, "vargrad": 4}
"""What the map is multiplied with where the score is doubled, if not with 2."""


def rng(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(n: int, channels: int = 1, side: int = 8) -> tuple[Tensor, Tensor]:
    return torch.rand(n, channels, side, side, generator=rng(7)), torch.randint(3, (n,), generator=rng(8))


def made(name: str, **options: Any) -> Any:
    """As a study makes it: from its degree."""
    part: Any = BUILTIN[name]
    degree = Decimal(1) if part.kind.low == 1 else Decimal("0.3")
    return part(**{part.degree_field: degree}, **FEW.get(name, {}), **options)


@pytest.mark.parametrize("name", BUILTIN)
def test_it_keeps_its_promises(name: str) -> None:
    assert BUILTIN[name].name == name
    check_explainer(made(name))


@pytest.mark.parametrize("name", BUILTIN)
def test_what_cannot_be_explained_is_one_sentence_from_every_explainer(name: str) -> None:
    """A map of NaN, or a class counted from the end, would pass for an answer; a certificate of NaN for a proof."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 3))
    (images, _), explainer = some(2), made(name)
    for missing in (float("nan"), float("inf")):
        broken = images.clone()
        broken[1, 0, 2, 3] = missing
        with pytest.raises(
            InputError, match=r"images\[1\] has a pixel that is no finite number; leave the image out\.$"
        ):
            explainer.explain(model, broken, torch.tensor([0, 1]), rng())
    with pytest.raises(InputError, match=r"target must hold class indices below 3, as the model has, not 3\.$"):
        explainer.explain(model, images, torch.tensor([0, 3]), rng())
    with pytest.raises(InputError, match=r"target must hold class indices, 0 or above, not -1\.$"):
        explainer.explain(model, images, torch.tensor([-1, 0]), rng())
    with pytest.raises(
        InputError, match=r"images must be at least one, and floating point .* not torch\.float32 \[1, 8, 8\]"
    ):
        explainer.explain(model, images[0], torch.tensor([0]), rng())
    told = (
        r"the model does not take images of 3 channels and 8 x 8 pixels \(.*1 channels.*\); give it images of the size"
    )
    with pytest.raises(InputError, match=told):
        explainer.explain(model, images.repeat(1, 3, 1, 1), torch.tensor([0, 1]), rng())
    assert explainer.explain(model, images, torch.tensor([0, 2]), rng()).maps.isfinite().all()


class Trouble(nn.Module):
    """One ReLU, in place, used three times; group normalisation; dropout; half of it functional."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.conv2 = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.dropout = nn.Dropout(0.5)
        self.fc1 = nn.Linear(96, 12)
        self.fc2 = nn.Linear(12, 3)
        self.relu = nn.ReLU(inplace)

    def forward(self, images: Tensor) -> Tensor:
        x = self.relu(self.norm(self.conv1(images)))
        x = self.relu(self.conv2(x))
        logits: Tensor = self.fc2(self.dropout(self.relu(self.fc1(x.flatten(1)))))
        return logits


@pytest.mark.parametrize("name", BUILTIN)
def test_activations_in_place_and_used_again_change_nothing(name: str) -> None:
    images, target = some(3)
    kept, changed = (made(name).explain(Trouble(inplace), images, target, rng()).maps for inplace in (False, True))
    assert float(kept.abs().max()) > 0
    torch.testing.assert_close(changed, kept)


@pytest.mark.parametrize("name", BUILTIN)
def test_a_privately_trained_wrapper_is_explained_as_its_network_and_given_back(name: str) -> None:
    images, target = some(3)
    network = Trouble(inplace=True)
    truth = made(name).explain(network, images, target, rng()).maps
    wrapped = GradSampleModule(network)
    wrapped.train()
    hooks = {module: (dict(module._forward_hooks), dict(module._backward_hooks)) for module in network.modules()}
    found = made(name).explain(Trained(wrapped, nn.Identity()), images, target, rng()).maps
    torch.testing.assert_close(found, truth)
    assert wrapped.training
    assert network.training
    assert wrapped.hooks_enabled
    assert hooks == {
        module: (dict(module._forward_hooks), dict(module._backward_hooks)) for module in network.modules()
    }
    assert all(weight.requires_grad and weight.grad is None for weight in network.parameters())
    assert not any(hasattr(weight, "grad_sample") and weight.grad_sample is not None for weight in network.parameters())
    network.relu.inplace = False
    wrapped(images.requires_grad_()).sum().backward()  # and it still collects gradients for every example
    assert getattr(network.fc2.weight, "grad_sample").shape == (3, 3, 12)  # noqa: B009


class Inverted(nn.Module):
    """Somebody's wrapper, which is no Opacus one although it uses the same name."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._module = network

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self._module(1 - images)
        return logits


def test_another_wrapper_is_part_of_the_model() -> None:
    images, target = some(3)
    network = Trouble(inplace=False)
    inner = made("saliency").explain(network, 1 - images, target, rng()).maps
    torch.testing.assert_close(made("saliency").explain(Inverted(network), images, target, rng()).maps, inner)
    assert not torch.allclose(made("saliency").explain(network, images, target, rng()).maps, inner)


@pytest.mark.parametrize("name", sorted(set(BUILTIN) - {"rise", "class-model", "grad-cam++"}))
def test_scaling_the_score_scales_the_map(name: str) -> None:
    """The three left out are no linear functions of the score: a probability, a maximum, a quotient."""
    images, target = some(3)
    network = Trouble(inplace=False).double()
    one: Tensor = made(name).explain(network, images.double(), target, rng()).maps
    with torch.no_grad():
        network.fc2.weight.mul_(2)
        network.fc2.bias.mul_(2)
    two: Tensor = made(name).explain(network, images.double(), target, rng()).maps
    torch.testing.assert_close(two, one * POWER.get(name, 2), rtol=1e-4, atol=1e-7)
