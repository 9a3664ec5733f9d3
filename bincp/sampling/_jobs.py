"""The checked arguments of one sampling run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from bincp._utils.arrays import ArrayLike, as_array, is_tensor
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.adapters import ModelLike, as_model
from bincp.noise import _keys
from bincp.noise._keys import IntArray, Keys, Phase
from bincp.noise._samplers import Sampler, check_inputs, sampler_of
from bincp.scores import NAMED_SCORES

Model: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""A torch.nn.Module or another callable: a batch (b, ...) to logits (b, K)."""

Score: TypeAlias = str | Callable[[torch.Tensor], torch.Tensor]
"""The name of a score in `bincp.scores`, or a callable: logits (b, K) to scores (b, K)."""


@dataclass(frozen=True)
class Job:
    """Validated arguments of one sampling run."""

    model: Model
    x: npt.NDArray[np.floating[Any]]
    sampler: Sampler
    n_samples: int
    phase: Phase
    ids: IntArray
    score: Score
    batch_size: int
    seed: int
    device: torch.device
    progress: bool

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
        first_id: int = 0,
        score: Score,
        batch_size: int,
        seed: int,
        device: torch.device | str | None,
        progress: bool,
    ) -> Self:
        evaluated = as_model(model)
        inputs = _host_inputs(x)
        sampler = sampler_of(smoothing)
        check_inputs(sampler, inputs)
        _keys.check_phase(phase)
        if indices is None:
            indices = np.arange(first_id, first_id + len(inputs))
        check_options(score, batch_size, seed, device, progress)
        place = _place(evaluated, x, device)
        _check_dtypes(evaluated, inputs)
        return cls(
            model=evaluated,
            x=inputs,
            sampler=sampler,
            n_samples=check_integer("n_samples", n_samples, low=1, high=MAX_COUNT),
            phase=phase,
            ids=_keys.check_indices(_on_host(indices), len(inputs), phase),
            score=score,
            batch_size=check_integer("batch_size", batch_size, low=1),
            seed=_keys.check_seed(seed),
            device=place,
            progress=progress,
        )

    def keys(self, sources: IntArray, draws: IntArray) -> Keys:
        """Return the keys of some draws of inputs."""
        return Keys(self.seed, self.phase, self.ids[sources], draws)


def check_options(score: Any, batch_size: Any, seed: Any, device: Any, progress: Any) -> None:
    if not (isinstance(score, str) or callable(score)):
        raise TypeError(f"`score` must be a name or a callable, got {score!r}")
    if isinstance(score, str) and score not in NAMED_SCORES:
        raise ValueError(f"`score` must be one of {', '.join(NAMED_SCORES)}, got {score!r}")
    check_integer("batch_size", batch_size, low=1)
    _keys.check_seed(seed)
    if not isinstance(device, torch.device | str | None):
        raise TypeError(f"`device` must be a torch.device or a str, got {device!r}")
    if not isinstance(progress, bool):
        raise TypeError(f"`progress` must be a bool, got {progress!r}")


def _place(model: Model, x: object, device: torch.device | str | None) -> torch.device:
    """Return where to evaluate, and move a module there if it was said where."""
    if device is not None:
        try:
            place = torch.device(device)
            torch.empty(0, device=place)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"`device` must be a torch device, got {device!r}: {error}") from None
        if isinstance(model, torch.nn.Module):
            model.to(place)
        return place
    if isinstance(model, torch.nn.Module):
        for tensor in (*model.parameters(), *model.buffers()):
            return tensor.device
    return x.device if isinstance(x, torch.Tensor) else torch.device("cpu")


def _check_dtypes(model: Model, inputs: npt.NDArray[Any]) -> None:
    """Refuse float64 inputs of a float32 module here: torch names neither."""
    if not isinstance(model, torch.nn.Module):
        return
    for parameter in model.parameters():
        if parameter.dtype == torch.float32 and inputs.dtype == np.float64:
            raise ValueError(
                "`x` must have the dtype of the model's parameters, float32, got float64; "
                "use x.astype(np.float32) or x.float()"
            )
        return


def integers(name: str, value: ArrayLike) -> IntArray:
    """Return integers of any sign; their range is checked where it is known."""
    array = as_array(name, _on_host(value))
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be integers, got dtype {array.dtype}")
    return array.astype(np.int64)


def _on_host(value: Any) -> Any:
    return value.detach().cpu() if is_tensor(value) else value


def _host_inputs(x: object) -> npt.NDArray[Any]:
    if not isinstance(x, torch.Tensor | np.ndarray):
        raise TypeError(f"`x` must be a tensor or an array, got {type(x).__name__}")
    if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16:
        raise ValueError("`x` must be float32 or float64, got torch.bfloat16")
    return as_array("x", _on_host(x))
