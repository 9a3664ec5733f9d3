"""The fingerprint of a module: its structure and its weights, wherever a kind of module has them.

Eager modules keep them in submodules, parameters and buffers, and some, as quantised ones, in what
else `state_dict` holds. Scripted modules may have been frozen, and exported programs are made of
one graph: there the structure is code, and weights are constants of it.
"""

import hashlib
import re
from typing import Any

import torch

_WORD = re.compile(r"[A-Za-z_]\w*")
_MANGLED = re.compile(r"\.___torch_mangle_\d+")  # numbers that differ from process to process


def fingerprint(model: torch.nn.Module) -> str:
    """Return the SHA-256 of the structure, the parameters and all buffers of a module.

    Mode, device, memory format and requires_grad do not count, and wrappers around the module are
    taken off. Plain attributes and code are not seen, but for those of scripted modules and of
    graphs.
    """
    module = _unwrapped(model)
    state = hashlib.sha256()
    for name, part in module.named_modules(remove_duplicate=False):
        _add(state, name, _kind(part), _extra_repr(part))
    for kind in (module.named_parameters, module.named_buffers):
        for name, tensor in kind(remove_duplicate=False):
            _add_tensor(state, name, tensor)
    for name, part in module.named_modules(remove_duplicate=False):
        if not isinstance(part, torch.jit.ScriptModule):
            _add_other_state(state, name, part)
        graph = getattr(part, "graph", None)
        if isinstance(graph, torch.fx.Graph):
            _add_graph(state, name, part, graph)
    if isinstance(module, torch.jit.ScriptModule):
        _add_script(state, module)
    return state.hexdigest()


def _unwrapped(model: Any) -> torch.nn.Module:
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while True:
        if isinstance(model, parallel):
            model = model.module
        elif isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):  # torch.compile
            model = model._orig_mod
        else:
            return model  # type: ignore[no-any-return]


def _kind(part: torch.nn.Module) -> str:
    """Return the type of a module; a traced module is a script like others once it is loaded."""
    script = isinstance(part, torch.jit.ScriptModule)
    return "ScriptModule" if script else type(part).__qualname__


def _extra_repr(part: torch.nn.Module) -> str:
    # That of a script module is made by a method which some of them lack.
    try:
        return str(part.extra_repr())
    except (AttributeError, NotImplementedError):
        return ""


# ---- kinds of modules ----------------------------------------------------------------------------


def _add_other_state(state: Any, name: str, part: torch.nn.Module) -> None:
    """Add what a module saves of itself beside parameters and buffers."""
    held: dict[str, Any] = {}
    part._save_to_state_dict(held, "", keep_vars=False)
    for key in held:
        if key not in part._parameters and key not in part._buffers:
            _add_value(state, f"{name}.{key}", held[key])


def _add_graph(state: Any, name: str, part: torch.nn.Module, graph: torch.fx.Graph) -> None:
    """Add the operations of a graph in their order, and the tensors that it reads."""
    places = {node: f"%{place}" for place, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        inputs = torch.fx.map_arg((node.args, node.kwargs), places.__getitem__)
        _add(state, name, node.op, _target(node), repr(inputs))
        if node.op == "get_attr":
            _add_value(state, name, _attribute(part, node.target))


def _target(node: torch.fx.Node) -> str:
    target: Any = node.target
    if node.op in ("placeholder", "output"):
        return ""
    if isinstance(target, str):
        return target
    name = getattr(target, "__qualname__", None)
    return str(target) if name is None else f"{target.__module__}.{name}"


def _attribute(part: Any, path: str) -> Any:
    for name in path.split("."):
        part = getattr(part, name, None)
    return part


def _add_script(state: Any, module: torch.jit.ScriptModule) -> None:
    """Add the code of all methods, its constants, and the attributes that it names."""
    words: set[str] = set()
    parts: list[tuple[str, Any]] = list(module.named_modules(remove_duplicate=False))
    for name, part in parts:
        _add(state, name, part.original_name)
        for method in sorted(part._c._method_names()):
            compiled = part._c._get_method(method)
            code, constants = compiled.code_with_constants
            words |= {*_WORD.findall(code)}
            _add(state, method, _MANGLED.sub("", code))
            _add_value(state, method, dict(constants))
            _add_folded(state, method, compiled.graph)
    for name, part in parts:
        for word in sorted(word for word in words if part._c.hasattr(word)):
            _add_value(state, f"{name}.{word}", part._c.getattr(word))


def _add_folded(state: Any, name: str, graph: Any) -> None:
    """Add the constants that an optimised graph has in a layout of its own, unseen in its code."""
    for node in graph.findAllNodes("prim::ConstantMKLDNNTensor"):
        _add_tensor(state, name, node.t("value"))


# ---- kinds of values -----------------------------------------------------------------------------


def _add_value(state: Any, name: str, value: Any) -> None:
    """Add numbers, texts and tensors, also inside others; of other objects the type alone."""
    if isinstance(value, torch.Tensor):
        _add_tensor(state, name, value)
    elif isinstance(value, dict):
        _add(state, name, "dict", str(len(value)))
        for key, item in value.items():
            _add_value(state, f"{name}.{key}", item)
    elif isinstance(value, list | tuple):
        _add(state, name, "list", str(len(value)))
        for place, item in enumerate(value):
            _add_value(state, f"{name}.{place}", item)
    elif isinstance(value, torch.ScriptObject):  # packed weights
        _add_value(state, name, _state_of(value))
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
        _add(state, name, repr(value))
    elif isinstance(value, torch.dtype):
        _add(state, name, str(value))
    else:
        _add(state, name, type(value).__qualname__)


def _state_of(packed: Any) -> Any:
    try:
        return packed.__getstate__()
    except (AttributeError, RuntimeError):  # it has none
        return None


def _add_tensor(state: Any, name: str, tensor: torch.Tensor) -> None:
    if torch.nn.parameter.is_lazy(tensor):
        raise ValueError(f"`model` must hold its weights, got {name}, which no batch has made yet")
    _add(state, name, str(tensor.dtype), str(tuple(tensor.shape)))
    if tensor.is_quantized:
        _add_value(state, name, _quantizer(tensor))
        tensor = tensor.int_repr()
    state.update(_bytes(name, tensor))


def _quantizer(tensor: torch.Tensor) -> list[Any]:
    """Return what the integers of a quantised tensor stand for."""
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return [tensor.q_scale(), tensor.q_zero_point()]
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return [scales, zeros, tensor.q_per_channel_axis()]


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
