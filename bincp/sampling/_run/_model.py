"""What a model is, and in which precision it computes: all of it that a manifest can compare."""

import hashlib
from typing import Any

import torch

from bincp._models._torch_models import Columns
from bincp.sampling._run._fingerprint import fingerprint


def is_comparable(model: Any) -> bool:
    """Say if a model is a torch module, or several, whose weights can be compared."""
    return all(isinstance(part, torch.nn.Module) for part in _parts(model))


def model_content(model: Any, model_id: object) -> dict[str, Any]:
    """Return the fingerprint of a module, and the id that the owner gives to other models."""
    if model_id is not None and not isinstance(model_id, str):
        raise TypeError(f"`model_id` must be a str, got {model_id!r}")
    modules = [part for part in _parts(model) if isinstance(part, torch.nn.Module)]
    if not (is_comparable(model) or model_id):
        raise ValueError(
            "`model_id` must name the model and its version where it is no torch module, as its "
            f"weights cannot be compared, got {model_id!r}"
        )
    found = [fingerprint(module) for module in modules]
    joined = hashlib.sha256(" ".join(found).encode()).hexdigest() if len(found) > 1 else None
    return {"fingerprint": joined or next(iter(found), None), "id": model_id}


def _parts(model: Any) -> list[Any]:
    """Return the models whose columns stand side by side, or the one model."""
    return model.models if isinstance(model, Columns) else [model]


def precision_content(device: torch.device) -> dict[str, Any]:
    """Return what decides the precision of a forward pass on a device, besides the weights."""
    autocast = None
    if torch.is_autocast_enabled(device.type):
        autocast = str(torch.get_autocast_dtype(device.type)).removeprefix("torch.")
    return {"autocast": autocast, "float32_matmul": _matmul_precision(device)}


_NAMES = {"none": "highest", "ieee": "highest", "tf32": "high", "bf16": "medium"}
_MEANINGS = {
    "cuda": {"highest": ("none", "ieee"), "high": ("tf32",), "medium": ("tf32", "bf16")},
    "cpu": {"highest": ("none", "ieee"), "high": ("none", "ieee", "tf32"), "medium": ("bf16",)},
}


def _matmul_precision(device: torch.device) -> str:
    """Return the precision of float32 products by the older of the two names that torch has.

    The newer setting is for each library, and counts where the older one contradicts it or, as
    torch refuses to mix them, cannot be read.
    """
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:
        older = None
    library: Any = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    newer = getattr(getattr(library, "matmul", None), "fp32_precision", None)
    meanings = _MEANINGS["cuda" if device.type == "cuda" else "cpu"]
    if older is not None and (newer is None or newer in meanings[older]):
        return older
    return _NAMES.get(str(newer), str(newer))
