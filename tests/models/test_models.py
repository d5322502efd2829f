"""Every architecture, by one table: sizes known from its source, seeded weights, and what must not happen."""

import pytest
import torch
from torch import nn

from counterpoise._check import InputError
from counterpoise.models import BUILTIN
from counterpoise.models._init import Centre
from counterpoise.training import generator

SHAPES = {"lenet5-caffe": (1, 28, 28), "tanh-cnn": (1, 28, 28)}
LARGE = {"alexnet": 32, "resnet18": 16, "resnet18-batchnorm": 16, "vgg16": 32}
PARAMETERS = {"lenet5-caffe": 431_080, "linear": 650, "mlp": 4_810, "small-cnn": 3_818, "tanh-cnn": 26_010}
OWN = sorted(PARAMETERS)


def make(name: str, seed: int = 0, shape: tuple[int, int, int] | None = None) -> nn.Module:
    return BUILTIN[name](shape or SHAPES.get(name, (1, 8, 8)), 10, generator(seed))


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("name", OWN)
def test_the_number_of_parameters_is_the_source_s(name: str) -> None:
    assert sum(p.numel() for p in make(name).parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", OWN)
def test_weights_come_from_the_given_generator_only(name: str) -> None:
    before = torch.get_rng_state()
    first = make(name, 0)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(99)
        assert torch.equal(weights(make(name, 0)), weights(first))
    assert not torch.equal(weights(make(name, 1)), weights(first))
    rng = generator(0)
    one, two = (BUILTIN[name](SHAPES.get(name, (1, 8, 8)), 10, rng) for _ in range(2))
    assert not torch.equal(weights(one), weights(two))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 48, 48), (3, 40, 56), (1, 16, 17)])
def test_any_larger_shape_gives_finite_scores(name: str, shape: tuple[int, int, int]) -> None:
    model = make(name, shape=shape)
    scores = model(torch.rand(2, *shape, generator=generator(1)))
    assert scores.shape == (2, 10)
    assert bool(torch.isfinite(scores).all())


@pytest.mark.parametrize("name", OWN)
def test_an_image_s_scores_do_not_depend_on_its_batch(name: str) -> None:
    model = make(name).train()
    pixels = torch.rand(4, *SHAPES.get(name, (1, 8, 8)), generator=generator(2))
    assert torch.allclose(model(pixels)[:1], model(pixels[:1]), atol=1e-5)


@pytest.mark.parametrize("name", OWN)
def test_the_first_layer_normalises(name: str) -> None:
    first = next(iter(make(name).children()))
    assert torch.equal(first(torch.tensor([0.0, 0.5, 1.0])), torch.tensor([-1.0, 0.0, 1.0]))
    assert not list(Centre().parameters())


@pytest.mark.parametrize(("name", "least"), [("small-cnn", 8), ("tanh-cnn", 16), ("lenet5-caffe", 16)])
def test_too_small_images_are_refused(name: str, least: int) -> None:
    make(name, shape=(1, least, least))
    with pytest.raises(InputError, match=rf"^{name} needs images of at least {least} x {least} pixels, not 20 x 7\.$"):
        make(name, shape=(1, 7, 20))


@pytest.mark.parametrize(("name", "least"), LARGE.items())
def test_large_networks_are_there_and_say_what_they_need(name: str, least: int) -> None:
    with pytest.raises(InputError, match=rf"needs images of at least {least} x {least} pixels, not 8 x 8\.$"):
        make(name)
    model = make(name, shape=(3, 32, 32)).eval()
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 10)
    assert 2_400_000 < sum(p.numel() for p in model.parameters()) < 16_000_000
    mixes = any(isinstance(module, nn.BatchNorm2d) for module in model.modules())
    assert mixes == name.endswith("batchnorm")


def test_every_builtin_is_tested() -> None:
    assert {*OWN, *LARGE, "scattering-linear", "inception-stem", "inception-v3", "xception-small"} == set(BUILTIN)


def test_global_generator_is_restored_after_an_error() -> None:
    from counterpoise.models._init import seeded

    before = torch.get_rng_state()
    with pytest.raises(RuntimeError), seeded(generator(0)):
        torch.nn.Linear(2, 2)(torch.rand(3))
    assert torch.equal(torch.get_rng_state(), before)
