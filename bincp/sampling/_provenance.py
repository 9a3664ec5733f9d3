"""What the scores of a classifier are made with, by the names of `bincp.sampling.run`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bincp._utils.validation import check_real
from bincp.balls import L1, L2, Ball, Linf
from bincp.sampling._jobs import Job
from bincp.sampling._normalized import NormalizedModel
from bincp.sampling._run._canonical import hexed
from bincp.sampling._run._model import is_comparable, model_content
from bincp.sampling._run._task import NOISE_VERSION

_ROUNDING = 1e-6  # of float32 inputs, and of sums with the radius
_GREY_LEVELS = 255


def content_of(model: Any, model_id: str | None) -> dict[str, Any]:
    """Return what is known of a model and of noise; None stands for what is not."""
    known = is_comparable(model) or model_id is not None
    return {
        "normalization": _normalization(model),
        "model": model_content(model, model_id) if known else {"fingerprint": None, "id": None},
        "noise_version": NOISE_VERSION,
    }


def _normalization(model: Any) -> dict[str, Any] | None:
    """Return mean and std of a `NormalizedModel`; of a module without, that there are none."""
    if isinstance(model, NormalizedModel):
        numbers = {"mean": model.mean.tolist(), "std": model.std.tolist()}
        return {"type": "NormalizedModel", **hexed(numbers)}
    return {"type": None} if isinstance(model, torch.nn.Module) else None


@dataclass(frozen=True)
class InputRange:
    """A declared range of the inputs, which perturbed ones may leave by the radius of the ball."""

    low: float
    high: float
    spare: float

    @classmethod
    def checked(cls, value: Any, ball: Ball) -> "InputRange | None":
        """Return the range that an argument ``input_range`` stands for."""
        if value is None:
            return None
        if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
            raise TypeError(f"`input_range` must be a pair of numbers, got {value!r}")
        low, high = (check_real("input_range", one) for one in value)
        if not low < high:
            raise ValueError(f"`input_range` must be two numbers in order, got {value!r}")
        return cls(low, high, ball.r if isinstance(ball, L1 | L2 | Linf) else 0.0)

    def content(self) -> list[str]:
        """Return the JSON form."""
        return [self.low.hex(), self.high.hex()]

    def check(self, job: Job) -> None:
        """Refuse inputs outside the range; grey levels k stand for k / 255."""
        x = job.x
        unit = _GREY_LEVELS if x.dtype in (np.uint8, torch.uint8) else 1
        least, most = float(x.min()) / unit, float(x.max()) / unit
        spare = self.spare + _ROUNDING * max(abs(self.low), abs(self.high), self.spare)
        if not (self.low - spare <= least and most <= self.high + spare):  # so that NaN fails
            job.check_finite(np.arange(len(x)))
            raise ValueError(
                f"`x` must be in the declared input_range ({self.low:g}, {self.high:g}), give or "
                f"take the radius {self.spare:g}, got values from {least:g} to {most:g}"
            )
