"""Torch models of probabilities as models of logits."""

from collections.abc import Callable
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
