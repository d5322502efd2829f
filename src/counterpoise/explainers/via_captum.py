"""Any attribution of the captum library, under this room's promises."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.explainers._layers import check_layer, find_layer
from counterpoise.explainers._noise import image_streams
from counterpoise.explainers._single import Single
from counterpoise.interface import Explanation


@dataclass(frozen=True)
class ViaCaptum(Single):
    """Any attribution of captum (extra 'captum'), by its class name: `ViaCaptum("DeepLift")`.

    `NoiseTunnel(Saliency)` puts one into another. `options` go to its `attribute`. A layer attribution gets `layer`,
    or the layer that Grad-CAM chooses. Channels are summed with their signs and a layer's map is enlarged to the image.
    captum draws from global generators; here each image is explained on its own, with draws that belong to it, and
    the generators are put back. So this is slow, and the same in any batch.
    """

    method: str = "Saliency"
    layer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "captum"

    def check_model(self, model: nn.Module, shape: tuple[int, int, int]) -> None:
        """Raise unless captum has the method and the network the layer: a study finds out before it trains."""
        if self._has_layer(_captum()):
            check_layer(model, shape, self.layer)

    def _explain(self, model: nn.Module, images: Tensor, target: Tensor, seed: int) -> Explanation:
        library = _captum()
        layer = find_layer(model, images, self.layer).name if self._has_layer(library) else None
        maps = []
        for image, label, stream in zip(images, target, image_streams(images, seed), strict=True):
            with _drawing_from(stream), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that hooks were set; they are removed again
                attribution = self._made(library, model, layer)
                pixels = image[None].clone().requires_grad_(True)
                found = attribution.attribute(pixels, target=int(label), **self.options)
            maps.append(self._reduced(found, image))
        return Explanation(torch.stack(maps))

    def _parts(self) -> list[str]:
        """'NoiseTunnel(Saliency)' is ['NoiseTunnel', 'Saliency']."""
        if not re.fullmatch(r"\w+(\(\w+\))?", self.method):
            raise InputError(
                f"method={self.method!r} must be a captum class, as 'DeepLift' or 'NoiseTunnel(Saliency)'."
            )
        return re.findall(r"\w+", self.method)

    def _class(self, library: ModuleType, name: str) -> type[Any]:
        found = getattr(library, name, None)
        if not (inspect.isclass(found) and hasattr(found, "attribute")):
            raise InputError(f"method={self.method!r}: captum.attr has no attribution {name!r}.")
        return found

    def _has_layer(self, library: ModuleType) -> bool:
        return "layer" in inspect.signature(self._class(library, self._parts()[-1])).parameters

    def _made(self, library: ModuleType, model: nn.Module, layer: str | None) -> Any:
        *outer, inner = (self._class(library, name) for name in self._parts())
        made = inner(model) if layer is None else inner(model, model.get_submodule(layer))
        return outer[0](made) if outer else made

    def _reduced(self, found: object, image: Tensor) -> Tensor:
        if not isinstance(found, Tensor) or found.ndim != 4:
            raise InputError(f"method={self.method!r} gives no map of an image; use another attribution.")
        flat = found.detach().sum(1, keepdim=True)
        if flat.shape[2:] != image.shape[1:]:
            flat = nn.functional.interpolate(flat, image.shape[1:], mode="bilinear", align_corners=False)
        return flat[0, 0]


def _captum() -> ModuleType:
    try:
        import captum.attr
    except ImportError:
        raise InputError("explainer 'captum' needs the captum library: pip install 'counterpoise[captum]'.") from None
    library: ModuleType = captum.attr
    return library


@contextmanager
def _drawing_from(stream: np.random.Generator) -> Iterator[None]:
    """Inside, the global generators of torch and numpy start from this stream; afterwards they are as they were."""
    kept = np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(stream.integers(2**62)))
        np.random.seed(int(stream.integers(2**32)))
        try:
            yield
        finally:
            np.random.set_state(kept)
