"""What a model is, and in which precision it computes: all of it that a manifest can compare."""

import hashlib
from typing import Any

import torch

from bincp._models._torch_models import Columns


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


def fingerprint(model: torch.nn.Module) -> str:
    """Return the SHA-256 of the structure, the parameters and all buffers of a module.

    Mode, device, memory format and requires_grad do not count, and wrappers around the module are
    taken off. Plain attributes and code are not seen.
    """
    module = _unwrapped(model)
    state = hashlib.sha256()
    for name, part in module.named_modules(remove_duplicate=False):
        _add(state, name, type(part).__qualname__, _extra_repr(part))
    for kind in (module.named_parameters, module.named_buffers):
        for name, tensor in kind(remove_duplicate=False):
            _add(state, name, str(tensor.dtype), str(tuple(tensor.shape)))
            state.update(_bytes(name, tensor))
    return state.hexdigest()


def precision_content(device: torch.device) -> dict[str, Any]:
    """Return what decides the precision of a forward pass on a device, besides the weights."""
    autocast = None
    if torch.is_autocast_enabled(device.type):
        autocast = str(torch.get_autocast_dtype(device.type)).removeprefix("torch.")
    return {"autocast": autocast, "float32_matmul": torch.get_float32_matmul_precision()}


def _unwrapped(model: Any) -> torch.nn.Module:
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while True:
        if isinstance(model, parallel):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):  # torch.compile
            model = model._orig_mod
        else:
            return model  # type: ignore[no-any-return]


def _extra_repr(part: torch.nn.Module) -> str:
    # That of a script module is made by a method which some of them lack.
    try:
        return str(part.extra_repr())
    except (AttributeError, NotImplementedError):
        return ""


def _bytes(name: str, tensor: torch.Tensor) -> Any:
    if tensor.device.type == "meta":
        raise ValueError(f"`model` must hold its weights, got {name} on the device 'meta'")
    dense = tensor.detach().cpu()
    dense = dense.to_dense() if dense.layout != torch.strided else dense
    flat = dense.resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""


def _add(state: Any, *texts: str) -> None:
    """Add texts so that no other texts add the same bytes."""
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little") + data)
