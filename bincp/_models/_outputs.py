"""The logits in what a torch model returns: a tensor, or an object that names them."""

from collections.abc import Mapping
from typing import Any

import torch


def logits_in(output: Any) -> torch.Tensor:
    """Return the tensor of logits in the output of a model, or refuse it.

    A position in a tuple does not say what stands there: the first element may be a loss.
    """
    if isinstance(output, torch.Tensor):
        return output
    named = named_logits(output)
    if isinstance(named, torch.Tensor):
        return named
    if (
        isinstance(output, tuple | list)
        and len(output) == 1
        and isinstance(output[0], torch.Tensor)
    ):
        return output[0]
    what = type(output).__name__
    cure = "; pass a function that picks the logits, such as lambda x: model(x)[0]"
    if isinstance(output, Mapping):
        what += f" with the keys {', '.join(map(repr, output))}"
    elif isinstance(output, tuple | list):
        what += f" of {len(output)}"
    else:
        cure = ""
    raise TypeError(f"`model` must return a tensor of logits, got {what}{cure}")


def named_logits(output: Any) -> Any:
    """Return what an output calls its logits, by attribute or key; None if there is none."""
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    return getattr(output, "logits", None)
