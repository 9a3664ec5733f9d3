"""Torch models of probabilities as models of logits, and of predictions as models of columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bincp._models._outputs import logits_in, named_logits
from bincp._models._probabilities import log_probabilities


class LogModule(torch.nn.Module):
    """A module of logits around a module of probabilities, with the modes and device of that."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of the probabilities."""
        return _logits(self.model(x))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class LogOf:
    """A function of logits around a function of probabilities."""

    function: Callable[[torch.Tensor], torch.Tensor]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return _logits(self.function(x))  # type: ignore[no-any-return]


def _logits(output: Any) -> Any:
    if named_logits(output) is not None:
        raise ValueError(
            "`outputs` must be 'logits' for a model that returns an object with `.logits`, "
            "got 'probabilities'"
        )
    if isinstance(output, tuple | list):
        output = logits_in(output)
    # The caller refuses other outputs, with the same message as for logits.
    if not (isinstance(output, torch.Tensor) and output.ndim == 2 and output.is_floating_point()):
        return output
    return log_probabilities(output)


class Columns(torch.nn.Module):
    """A module whose outputs (b, q) are the columns of one model, or of several side by side.

    Those that are modules keep their modes and devices, and follow those of this one.
    """

    def __init__(self, models: Sequence[Callable[[torch.Tensor], torch.Tensor]]) -> None:
        super().__init__()
        self.models = list(models)
        self.held = torch.nn.ModuleList([m for m in models if isinstance(m, torch.nn.Module)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the columns of all models."""
        if len(self.models) == 1:
            return _columns(self.models[0](x), len(x))
        # Each has a copy, for one that works in place would change what the next one sees.
        return torch.cat([_columns(model(x.clone()), len(x)) for model in self.models], dim=1)


def _columns(output: object, n_rows: int) -> torch.Tensor:
    if not isinstance(output, torch.Tensor):
        raise TypeError(f"`model` must return a tensor of predictions, got {type(output).__name__}")
    if output.ndim not in (1, 2) or len(output) != n_rows or not output.numel():
        raise ValueError(
            f"`model` must return predictions of shape ({n_rows},) or ({n_rows}, q) for a batch of "
            f"{n_rows}, got shape {tuple(output.shape)}"
        )
    if not output.is_floating_point():
        raise ValueError(f"`model` must return floating-point predictions, got {output.dtype}")
    return output[:, None] if output.ndim == 1 else output
