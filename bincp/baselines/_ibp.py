"""Interval bound propagation: score bounds over a box of inputs, for small torch networks.

A box [lower, upper] is pushed through the layers one by one. Each layer maps it to a box that holds
every output in exact arithmetic, widened by the most that rounding can add, in a run of the layer
and in this computation. For sums of n products that is 2 (n + 4) eps times the sum of the sizes of
the terms, which is more than the usual bound n eps / 2 for each of the two, in any order of
summation; eps is that of the dtype of the network (1.2e-7 for float32).
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import torch

__all__ = ["interval_bounds", "tps_bounds"]

Tensor: TypeAlias = "torch.Tensor"


class _Box(NamedTuple):
    """Bounds in float64, and the precision of the network that they are for."""

    lower: Tensor
    upper: Tensor
    finfo: Any

    def size(self) -> Tensor:
        import torch

        return torch.maximum(self.lower.abs(), self.upper.abs())

    def widened(self, lower: Tensor, upper: Tensor, sizes: Tensor, n_terms: int) -> "_Box":
        """Return the box [lower, upper] of sums of ``n_terms`` products, widened for rounding."""
        share = 2 * (n_terms + 4) * self.finfo.eps
        if share >= 0.5:
            raise ValueError(
                f"`model` must not sum {n_terms} terms in {self.finfo.dtype}: no bound is left"
            )
        width = share * sizes + n_terms * self.finfo.tiny  # products that underflow
        return self._replace(lower=lower - width, upper=upper + width)


def interval_bounds(model: Any, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Bound the outputs of a network over a box of inputs, by interval arithmetic.

    Parameters
    ----------
    model : torch.nn.Sequential
        Network of Linear, Conv2d (zero padding), ReLU, Flatten, AvgPool2d, BatchNorm2d and Dropout
        (both in evaluation mode), possibly nested; on the device of the bounds.
    lower, upper : torch.Tensor, shape (n, ...)
        Bounds of each entry of each input, float32 or float64; for the linf ball of radius r
        around x, ``x.double() - r`` and ``x.double() + r``.

    Returns
    -------
    lower, upper : torch.Tensor of float64, shape (n, ...)
        Bounds of the outputs at every input in the box, in exact arithmetic *and* as the network
        computes them in its own dtype, in any order of summation, with or without fused
        multiply-add. Not covered: arithmetic that is less precise than the dtype (TF32, autocast)
        and transforms that sum other terms (Winograd or FFT convolutions).

    Raises
    ------
    TypeError
        If the model is not a Sequential or has a forward of its own, or the bounds are not tensors.
    ValueError
        If a layer is of another kind (the message names it), has hooks or a replaced forward, or is
        in training mode; if a lower bound is above its upper bound, NaN or infinite; or if a bound
        leaves the range of the dtype.

    References
    ----------
    S. Gowal et al., "On the effectiveness of interval bound propagation for training verifiably
    robust models", 2018.

    Examples
    --------
    >>> import torch
    >>> from bincp.baselines import interval_bounds
    >>> layer = torch.nn.Linear(2, 1)
    >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, -2.0]])), layer.bias.data.zero_()
    >>> x = torch.tensor([[1.0, 1.0]]).double()
    >>> lower, upper = interval_bounds(torch.nn.Sequential(layer), x - 0.5, x + 0.5)
    >>> round(lower.item(), 5), round(upper.item(), 5)
    (-2.50001, 0.50001)
    """
    import torch

    if getattr(type(model), "forward", None) is not torch.nn.Sequential.forward:
        raise TypeError(
            "`model` must be a torch.nn.Sequential, with the forward of that class, "
            f"got {type(model).__name__}"
        )
    _check_plain("the model", model)
    _check_box(lower, upper)
    dtype = next((p.dtype for p in model.parameters()), lower.dtype)
    box = _Box(lower.double(), upper.double(), torch.finfo(dtype))
    rules = _rules()
    with torch.no_grad():
        for name, layer in _layers(model):
            rule = rules.get(type(layer))
            if rule is None:
                known = ", ".join(kind.__name__ for kind in rules)
                raise ValueError(
                    f"`model` must be made of {known}, got {type(layer).__name__} as layer {name}"
                )
            box = rule(layer, box)
            if not bool((box.size() <= box.finfo.max).all()):
                raise ValueError(f"`model` must stay in the range of {dtype}: layer {name} may not")
    return box.lower, box.upper


def tps_bounds(lower: Tensor, upper: Tensor, *, dtype: Any = None) -> tuple[Tensor, Tensor]:
    """Bound the softmax probability of each label, from bounds of the logits.

    The probability of y is least where its logit is least and all others are largest.

    Parameters
    ----------
    lower, upper : torch.Tensor of float64, shape (n, K)
        Bounds of the logits, for example from `interval_bounds`.
    dtype : torch.dtype, optional
        Dtype of the softmax whose results are to be within the bounds; torch.float32 if not given.

    Returns
    -------
    lower, upper : torch.Tensor of float64, shape (n, K)
        In [0, 1], widened by a share of (K + 16 + 4 R) eps for the rounding of a softmax that
        subtracts the largest logit first; R is the range of the logits, eps that of `dtype`.

    Raises
    ------
    TypeError
        If the bounds are not tensors.
    ValueError
        If the shape is not (n, K), or a lower bound is above its upper bound, NaN or infinite.

    Examples
    --------
    >>> import torch
    >>> from bincp.baselines import tps_bounds
    >>> lower = torch.tensor([[0.0, 0.0]], dtype=torch.float64)
    >>> [bound.numpy().round(4).tolist() for bound in tps_bounds(lower, lower + 1)]
    [[[0.2689, 0.2689]], [[0.7311, 0.7311]]]
    """
    import torch

    _check_box(lower, upper)
    if lower.ndim != 2 or lower.shape[1] == 0:
        raise ValueError(f"`lower` must have shape (n, K), got {tuple(lower.shape)}")
    finfo = torch.finfo(torch.float32 if dtype is None else dtype)
    low, high = lower.double(), upper.double()
    spread = high.amax(dim=1, keepdim=True) - low.amin(dim=1, keepdim=True)
    share = (low.shape[1] + 16 + 4 * spread) * finfo.eps
    unusable = share >= 0.5
    least = _softmax_of_each(low, high) * (1 - share) - finfo.tiny
    most = _softmax_of_each(high, low) * (1 + share) + finfo.tiny
    return (
        least.clamp(min=0).masked_fill(unusable, 0.0),
        most.clamp(max=1).masked_fill(unusable, 1.0),
    )


def _softmax_of_each(own: Tensor, others: Tensor) -> Tensor:
    """Return 1 / (1 + sum over k != y of exp(others_k - own_y)) for each label y."""
    import torch

    result = torch.empty_like(own)
    for y in range(own.shape[1]):
        excess = torch.exp(others - own[:, y : y + 1])
        excess[:, y] = 0
        result[:, y] = 1 / (1 + excess.sum(dim=1))
    return result


def _check_box(lower: Any, upper: Any) -> None:
    import torch

    for name, bound in (("lower", lower), ("upper", upper)):
        if not isinstance(bound, torch.Tensor):
            raise TypeError(f"`{name}` must be a torch tensor, got {type(bound).__name__}")
        if bound.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"`{name}` must be float32 or float64, got {bound.dtype}")
        if not bool(torch.isfinite(bound).all()):
            raise ValueError(f"`{name}` must be finite")
    if lower.shape != upper.shape or not bool((lower.double() <= upper.double()).all()):
        raise ValueError("`lower` must have the shape of `upper` and nowhere be above it")


def _layers(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the layers with their names, in order; a nested Sequential layer by layer."""
    import torch

    # named_children() leaves out a layer that comes again, such as one ReLU in two places.
    for name, layer in model._modules.items():
        _check_plain(f"layer {name}", layer)
        if type(layer) is torch.nn.Sequential:
            yield from ((f"{name}.{inner}", module) for inner, module in _layers(layer))
        else:
            yield name, layer


def _check_plain(name: str, module: Any) -> None:
    """Refuse a module whose call does more than the forward of its class."""
    if module._forward_hooks or module._forward_pre_hooks:
        raise ValueError(f"`model` must have no hooks, got one on {name}")
    if "forward" in vars(module):
        raise ValueError(f"`model` must not have its forward replaced, got one on {name}")


# ---- one rule for each kind of layer ------------------------------------------------------------


def _rules() -> dict[type, Callable[[Any, _Box], _Box]]:
    from torch import nn

    return {
        nn.Linear: _linear,
        nn.Conv2d: _conv2d,
        nn.ReLU: _relu,
        nn.Flatten: _flatten,
        nn.AvgPool2d: _avg_pool2d,
        nn.BatchNorm2d: _batch_norm2d,
        nn.Dropout: _dropout,
    }


def _linear(layer: Any, box: _Box) -> _Box:
    from torch.nn.functional import linear

    return _affine(layer, box, linear)


def _conv2d(layer: Any, box: _Box) -> _Box:
    from torch.nn.functional import conv2d

    if layer.padding_mode != "zeros":
        raise ValueError(f"`model` must pad with zeros, got Conv2d with {layer.padding_mode!r}")

    def apply(x: Tensor, weight: Tensor, bias: "Tensor | None" = None) -> Tensor:
        return conv2d(x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups)

    return _affine(layer, box, apply)


def _affine(layer: Any, box: _Box, apply: Callable[..., Tensor]) -> _Box:
    """Bound weight x + bias: positive weights take the bound itself, negative ones the other."""
    weight = layer.weight.double()
    bias = None if layer.bias is None else layer.bias.double()
    positive, negative = weight.clamp(min=0), weight.clamp(max=0)
    return box.widened(
        apply(box.lower, positive, bias) + apply(box.upper, negative),
        apply(box.upper, positive, bias) + apply(box.lower, negative),
        apply(box.size(), weight.abs(), None if bias is None else bias.abs()),
        weight[0].numel() + 1,
    )


def _relu(layer: Any, box: _Box) -> _Box:
    return box._replace(lower=box.lower.clamp(min=0), upper=box.upper.clamp(min=0))


def _flatten(layer: Any, box: _Box) -> _Box:
    return box._replace(lower=layer(box.lower), upper=layer(box.upper))


def _avg_pool2d(layer: Any, box: _Box) -> _Box:
    if layer.divisor_override is not None:
        raise ValueError("`model` must have no AvgPool2d with a divisor_override")
    size = layer.kernel_size
    n_terms = size * size if isinstance(size, int) else size[0] * size[1]
    return box.widened(layer(box.lower), layer(box.upper), layer(box.size()), n_terms)


def _batch_norm2d(layer: Any, box: _Box) -> _Box:
    import torch

    if layer.training or layer.running_mean is None:
        raise ValueError("`model` must have its BatchNorm2d in evaluation mode, with statistics")
    mean, variance = layer.running_mean.double(), layer.running_var.double()
    scale = 1 / torch.sqrt(variance + layer.eps)
    shift = torch.zeros_like(scale)
    if layer.affine:
        scale, shift = scale * layer.weight.double(), layer.bias.double()
    scale, shift, mean = (value[:, None, None] for value in (scale, shift, mean))
    at_lower, at_upper = ((bound - mean) * scale + shift for bound in (box.lower, box.upper))
    return box.widened(
        torch.minimum(at_lower, at_upper),
        torch.maximum(at_lower, at_upper),
        (box.size() + mean.abs()) * scale.abs() + shift.abs(),
        8,  # roundings of the scale and the two products and sums
    )


def _dropout(layer: Any, box: _Box) -> _Box:
    if layer.training:
        raise ValueError("`model` must have its Dropout in evaluation mode")
    return box
