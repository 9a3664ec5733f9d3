"""Torch models of probabilities as models of logits."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bincp._models._probabilities import log_probabilities


class LogModule(torch.nn.Module):
    """A module of logits around a module of probabilities, with the modes and device of that."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of the probabilities."""
        return _logits(self.model(x))


@dataclass(frozen=True)
class LogOf:
    """A function of logits around a function of probabilities."""

    function: Callable[[torch.Tensor], torch.Tensor]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return _logits(self.function(x))


def _logits(output: torch.Tensor) -> torch.Tensor:
    # The caller refuses other outputs, with the same message as for logits.
    if not (isinstance(output, torch.Tensor) and output.ndim == 2 and output.is_floating_point()):
        return output
    logits: torch.Tensor = log_probabilities(output)
    return logits
