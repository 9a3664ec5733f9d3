"""Torch models of probabilities as models of logits."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bincp.adapters._probabilities import log_probabilities


class LogModule(torch.nn.Module):
    """A module that returns probabilities, as one of logits; its modes and device are its own."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of the probabilities."""
        return _logits(self.model(x))


@dataclass(frozen=True)
class LogOf:
    """A function that returns probabilities, as one of logits."""

    function: Callable[[torch.Tensor], torch.Tensor]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return _logits(self.function(x))


def _logits(output: torch.Tensor) -> torch.Tensor:
    # The caller refuses other outputs in the words that it has for logits.
    if not (isinstance(output, torch.Tensor) and output.ndim == 2 and output.is_floating_point()):
        return output
    logits: torch.Tensor = log_probabilities(output)
    return logits
