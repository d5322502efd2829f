"""Load weights trained elsewhere into a network, and say exactly what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from counterpoise._check import InputError
from counterpoise.models._init import Standardise

WRAPPERS = ("_module.", "module.")
"""What wrappers for private and for parallel training put before every name."""


def load_weights(
    model: nn.Module,
    path: Path | str,
    *,
    keep: Sequence[str] = (),
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> None:
    """Load a safetensors file into the network, in place.

    Names that start with one of `keep`, as the last layer's do, stay as the network has them. Our networks take
    pixels in [0, 1] and centre them; weights trained behind another normalisation need its `mean` and `std`, such as
    (.485, .456, .406) and (.229, .224, .225), or they see other colours than they know.
    """
    path = Path(path)
    found = _without_wrapper(_read(path))
    wanted = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(tuple(keep))}
    found = {name: tensor for name, tensor in found.items() if not name.startswith(tuple(keep))}
    _check_fit(path, found, wanted)
    if (mean is None) != (std is None):
        raise InputError("mean and std belong together: give both, or neither.")
    if mean is not None and std is not None:
        if not hasattr(model, "centre"):
            raise InputError(f"{type(model).__name__} has no layer 'centre' for mean and std to replace.")
        model.centre = Standardise(mean, std)
    model.load_state_dict(found, strict=False)


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file of weights.") from None
    except (OSError, SafetensorError) as problem:
        raise InputError(
            f"{path}: is no safetensors file ({problem}); other formats can run code when they are opened, so"
            " convert it where you trust it: safetensors.torch.save_file(model.state_dict(), path)."
        ) from None


def _without_wrapper(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in WRAPPERS:
        if weights and all(name.startswith(prefix) for name in weights):
            return {name.removeprefix(prefix): tensor for name, tensor in weights.items()}
    return dict(weights)


def _check_fit(path: Path, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """One sentence that names the first missing, the first unexpected and the first mis-shaped weight."""
    missing = [name for name in wanted if name not in found]
    unexpected = [name for name in found if name not in wanted]
    shaped = [name for name in wanted if name in found and found[name].shape != wanted[name].shape]
    complaints = []
    if missing:
        complaints.append(f"lacks {_first(missing)}")
    if unexpected:
        complaints.append(f"has {_first(unexpected)}, which the network does not")
    if shaped:
        name, more = shaped[0], f" (and {len(shaped) - 1} more)" if len(shaped) > 1 else ""
        complaints.append(f"has {name!r} as {list(found[name].shape)}, the network as {list(wanted[name].shape)}{more}")
    if complaints:
        batch = any(name.endswith("running_mean") for name in unexpected)
        advice = "make the network with norm='batch'" if batch else "make the network in the size of the weights"
        raise InputError(f"{path}: {'; '.join(complaints)}: {advice}, or name what is to stay in keep=.")


def _first(names: Sequence[str]) -> str:
    return repr(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")
