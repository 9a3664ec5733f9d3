"""The checked arguments of one sampling run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from bincp._core._noise import MAX_ID
from bincp._models import ModelLike, as_model
from bincp._utils.arrays import ArrayLike, as_array, as_counts, on_host, where
from bincp._utils.progress import check_progress
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.noise import _keys
from bincp.noise._device import DeviceSampler, check_tensor, device_sampler
from bincp.noise._keys import IntArray, Keys, Phase, keys_of
from bincp.noise._samplers import Sampler, check_inputs, sampler_of
from bincp.sampling._graphs import GraphInputs, Nodes, check_graph_ids
from bincp.sampling._scoring import Score, Scoring, scoring_of
from bincp.smoothing import GraphFlip

_MOST = np.iinfo(np.int64).max

Inputs: TypeAlias = Any
"""Checked inputs: an array of the host, a tensor where the noise is drawn, or nodes of a graph."""

Model: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""A torch.nn.Module or another callable: a batch (b, ...) to logits (b, K)."""


@dataclass(frozen=True)
class Options:
    """Checked arguments of sampling that do not depend on the inputs."""

    score: Scoring
    batch_size: int
    seed: int
    device: torch.device | None
    progress: bool | None
    n_threads: int

    @classmethod
    def checked(
        cls,
        *,
        score: Score,
        batch_size: int,
        seed: int,
        device: torch.device | str | None,
        progress: bool | None,
        n_threads: int = 1,
    ) -> Self:
        scoring = scoring_of(score)
        batch_size = check_integer("batch_size", batch_size, low=1)
        seed = _keys.check_seed(seed)
        place = None if device is None else checked_device(device)
        shown = check_progress(progress)
        n_threads = check_integer("n_threads", n_threads, low=1)
        return cls(scoring, batch_size, seed, place, shown, n_threads)


@dataclass(frozen=True)
class Job:
    """Validated arguments of one sampling run."""

    model: Model
    x: Inputs
    sampler: Sampler | None  # None for graphs, which draw by themselves
    device_sampler: DeviceSampler | None  # where the device of the model draws the noise
    n_samples: int
    phase: Phase
    ids: IntArray
    first_draw: int
    score: Scoring
    batch_size: int
    seed: int
    device: torch.device
    progress: bool | None
    n_threads: int
    narrow: torch.dtype | None = None  # of a module of 16 bits, which gets its inputs in it
    start: int = 0  # position of the first input in all that the caller gave

    def __post_init__(self) -> None:
        # Also those that a classifier counts on.
        as_counts("indices", self.ids, high=MAX_ID)
        if isinstance(self.x, GraphInputs):
            check_graph_ids(self.ids)

    @classmethod
    def checked(
        cls,
        model: ModelLike,
        x: ArrayLike,
        smoothing: object,
        n_samples: int,
        *,
        phase: Phase,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        **options: Any,
    ) -> Self:
        """Check all arguments; ``options`` are those of `Options.checked`."""
        return cls.of(
            as_model(model),
            x,
            smoothing,
            check_integer("n_samples", n_samples, low=1, high=MAX_COUNT),
            Options.checked(**options),
            phase=phase,
            indices=indices,
            first_draw=first_draw,
        )

    @classmethod
    def of(
        cls,
        model: Model,
        x: ArrayLike,
        smoothing: object,
        n_samples: int,
        options: Options,
        *,
        phase: Phase,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        start: int = 0,
    ) -> Self:
        """Check the inputs and their keys: ids are positions by default; the rest is checked."""
        place = _place(model, x, options.device)
        inputs, sampler, on_device = _checked_inputs(x, smoothing, place)
        _keys.check_phase(phase)
        if isinstance(inputs, GraphInputs):
            ids = _graph_ids(inputs, on_host("indices", indices), phase)
            inputs.check_cost(n_samples)
            options = replace(options, batch_size=inputs.batch_size(options.batch_size))
        else:
            ids = _keys.check_indices(on_host("indices", indices), len(inputs), phase)
        first = _keys.check_first_draw(first_draw, n_samples)
        _check_dtypes(model, inputs)
        _check_rows_apart(model, options.batch_size)
        if isinstance(model, torch.nn.Module) and options.device is not None:
            model.to(options.device)
        return cls(
            model=model,
            x=inputs,
            sampler=sampler,
            device_sampler=on_device,
            n_samples=n_samples,
            phase=phase,
            ids=ids,
            first_draw=first,
            score=options.score,
            batch_size=options.batch_size,
            seed=options.seed,
            device=place,
            progress=options.progress,
            n_threads=options.n_threads,
            narrow=narrow_dtype(model),
            start=start,
        )

    @property
    def shares_noise(self) -> bool:
        """Whether one noisy graph in each draw serves all nodes."""
        return isinstance(self.x, GraphInputs) and self.x.shared

    def on_host(self) -> Self:
        """Return the same run with its inputs in an array of the host."""
        return (
            self
            if isinstance(self.x, np.ndarray | GraphInputs)
            else replace(self, x=host_inputs(self.x))
        )

    def some(self, first: int, last: int) -> Self:
        """Return the job of some of the inputs."""
        own = slice(first, last)
        return replace(self, x=self.x[own], ids=self.ids[own], start=self.start + first)

    def keys(self, sources: IntArray, draws: IntArray) -> Keys:
        """Return the keys of some draws of inputs, numbered from the first one of the job."""
        return keys_of(self.seed, self.phase, self.ids[sources], self.first_draw + draws)

    def named(self, source: int) -> str:
        """Return how a message calls an input: by its position, and its id if that differs."""
        own, position = self.ids[source], self.start + source
        return f"input {position}" if own == position else f"input {position} (id {own})"

    def check_finite(self, sources: IntArray) -> None:
        """Refuse the first of some inputs that is not finite."""
        if isinstance(self.x, GraphInputs):
            return
        for source in np.unique(sources):
            one = host_inputs(self.x[source : source + 1])[0]
            bad = ~np.isfinite(one)
            if bad.any():
                raise ValueError(
                    f"`x` must be finite, got {one[bad][0]} in {self.named(source)} {where(bad)}"
                )


def _checked_inputs(
    x: Any, smoothing: object, place: torch.device
) -> tuple[Inputs, Sampler | None, DeviceSampler | None]:
    """Return the inputs, and what draws their noise."""
    if isinstance(x, Nodes):
        return GraphInputs(x, smoothing), None, None
    if isinstance(smoothing, GraphFlip):
        raise TypeError(
            "`x` must be nodes of a Graph for GraphFlip, as graph.nodes(...) makes them, "
            f"got {type(x).__name__}"
        )
    sampler, on_device = sampler_of(smoothing), device_sampler(smoothing, place)
    if on_device is not None and _is_at(place, x):
        inputs: Inputs = x.detach()
        check_tensor(sampler, inputs)
        return inputs, sampler, on_device
    inputs = host_inputs(x)
    check_inputs(sampler, inputs)
    return inputs, sampler, on_device


def _graph_ids(inputs: GraphInputs, indices: Any, phase: Phase) -> IntArray:
    """Return the ids of nodes: their numbers by default, which must differ in calibration."""
    given = inputs.nodes.targets if indices is None else indices
    return _keys.check_indices(given, len(inputs), phase)


def checked_device(device: object) -> torch.device:
    """Return a device that exists and gives back what is copied to it, or refuse it."""
    if not isinstance(device, torch.device | str):
        raise TypeError(f"`device` must be a torch.device or a str, got {device!r}")
    try:
        place = torch.device(device)
        moved = torch.ones(1, device="cpu").to(place)
        kept = float(moved.to("cpu"))
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ValueError(
            f"`device` must be a torch device that exists and holds data, got {device!r}: {error}"
        ) from None
    if kept != 1:
        raise ValueError(f"`device` must hold data, got {device!r}, which turned 1 into {kept}")
    return moved.device  # with its number


def _place(model: Model, x: object, device: torch.device | None) -> torch.device:
    """Return where to evaluate."""
    if not isinstance(model, torch.nn.Module):
        given = x.device if isinstance(x, torch.Tensor) else torch.device("cpu")
        return given if device is None else device
    places = [tensor.device for tensor in (*model.parameters(), *model.buffers())]
    if any(place.type == "meta" for place in places):
        raise ValueError("`model` must hold its weights, got some on the device 'meta'")
    if device is not None:
        return device
    if places:
        return places[0]
    return x.device if isinstance(x, torch.Tensor) else torch.device("cpu")


def _is_at(place: torch.device, x: object) -> TypeGuard[torch.Tensor]:
    return isinstance(x, torch.Tensor) and x.device == place and x.layout == torch.strided


def _check_dtypes(model: Model, inputs: Inputs) -> None:
    """Refuse float64 inputs of a float32 module here: torch names neither."""
    if float_dtype(model) == torch.float32 and is_wide(inputs):
        raise ValueError(
            "`x` must have the dtype of the model's parameters, float32, got float64; "
            "use x.astype(np.float32) or x.float()"
        )


def _check_rows_apart(model: Model, batch_size: int) -> None:
    """Refuse layers that normalise over the batch: a score would depend on other rows of noise."""
    if batch_size == 1 or not isinstance(model, torch.nn.Module):
        return
    for name, layer in model.named_modules():
        if isinstance(layer, _BatchNorm) and layer.running_mean is None:
            raise ValueError(
                "`model` must treat the rows of a batch independently of each other, got "
                f"{type(layer).__name__} {name!r} without running statistics, which takes those of "
                "the batch; batch_size=1 keeps rows apart"
            )


def float_dtype(model: Model) -> torch.dtype | None:
    """Return the dtype of the first parameter of a module that is a floating-point number."""
    if not isinstance(model, torch.nn.Module):
        return None
    return next((one.dtype for one in model.parameters() if one.is_floating_point()), None)


def narrow_dtype(model: Model) -> torch.dtype | None:
    """Return the dtype of a module of 16 bits: the noise is drawn in 32 bits, and rounded to it."""
    dtype = float_dtype(model)
    return dtype if dtype in (torch.float16, torch.bfloat16) else None


def is_wide(inputs: Inputs) -> bool:
    """Say if inputs are float64, as their noisy copies are then."""
    return inputs.dtype in (np.float64, torch.float64)


def integers(name: str, value: ArrayLike) -> IntArray:
    """Return integers of any sign; their range is checked where it is known."""
    array = as_array(name, on_host(name, value))
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be integers, got dtype {array.dtype}")
    if array.dtype.kind == "u" and array.size and array.max() > _MOST:
        raise ValueError(f"`{name}` must be below 2**63, got {array.max()}")
    return array.astype(np.int64)


def check_dense(x: object) -> None:
    """Refuse sparse and nested tensors, which cannot be cut."""
    if isinstance(x, torch.Tensor) and x.is_nested:
        raise TypeError("`x` must be a dense tensor, got a nested one, whose inputs have no shape")
    if isinstance(x, torch.Tensor) and x.layout != torch.strided:
        raise TypeError(f"`x` must be a dense tensor, got {x.layout}; use x.to_dense()")


def host_inputs(x: object) -> npt.NDArray[Any]:
    if not isinstance(x, torch.Tensor | np.ndarray):
        raise TypeError(f"`x` must be a tensor or an array, got {type(x).__name__}")
    check_dense(x)
    if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16:
        raise ValueError(
            "`x` must be float32 or float64, got torch.bfloat16; x.float() serves a module of 16 "
            "bits, too: it gets its noisy inputs in its own dtype"
        )
    return as_array("x", on_host("x", x))
