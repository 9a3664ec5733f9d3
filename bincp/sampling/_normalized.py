"""Models of normalised inputs as models of raw ones."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from bincp._utils.arrays import as_array, on_host


class NormalizedModel(torch.nn.Module):
    """A model of normalised inputs as a model of raw inputs: ``model((x - mean) / std)``.

    The noise and the radius are in the units of the tensor that gets the noise. Wrapped like this,
    a network that was trained on normalised inputs is smoothed, and certified, in the units of the
    raw input (pixels in [0, 1], say), also where channels have scales of their own.

    It may be called from several threads at once if the network may.

    Parameters
    ----------
    model : torch.nn.Module
        Network of normalised inputs. The numbers go to its device, and follow it with `to`.
    mean, std : float or sequence of float
        One number, or one for each channel (axis 1 of the batch). `std` is positive.

    Raises
    ------
    TypeError
        If `model` is no module, or `mean` or `std` are no real numbers.
    ValueError
        If `mean` or `std` is not finite, `std` not positive, or their lengths differ.

    Examples
    --------
    A radius of 8/255 that somebody quotes for inputs ``(x - mean) / 0.2`` is one of 1.6/255 in
    pixels; sigma = 0.25 in pixels is 0.5 for inputs ``2 x - 1 = (x - 0.5) / 0.5``:

    >>> import torch
    >>> from bincp.sampling import NormalizedModel
    >>> model = torch.nn.Linear(4, 3)
    >>> round(255 * NormalizedModel(model, mean=0.4, std=0.2).to_raw_units(8 / 255), 12)
    1.6
    >>> NormalizedModel(model, mean=0.5, std=0.5).to_normalized_units(0.25)
    0.5
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self,
        model: torch.nn.Module,
        mean: float | Sequence[float],
        std: float | Sequence[float],
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}")
        super().__init__()
        self._scales = _channel_numbers("std", std)
        means = _channel_numbers("mean", mean)
        if not (self._scales > 0).all():
            raise ValueError(f"`std` must be positive, got {std!r}")
        if 1 != len(means) != len(self._scales) != 1:
            raise ValueError(f"`mean` and `std` must be of equal length, got {mean!r} and {std!r}")
        self.model = model
        held = (tensor.device for tensor in (*model.parameters(), *model.buffers()))
        place = next(held, torch.device("cpu"))
        self.register_buffer("mean", torch.tensor(means, device=place), persistent=False)
        self.register_buffer("std", torch.tensor(self._scales, device=place), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of the normalised batch."""
        shape = (1, -1, *[1] * (x.ndim - 2))
        mean, std = (numbers.to(x.dtype).view(shape) for numbers in (self.mean, self.std))
        logits: torch.Tensor = self.model((x - mean) / std)
        return logits

    def to_raw_units(self, length: float) -> float:
        """Convert a radius or a scale of noise from normalised to raw units."""
        return float(length * self._one_scale())

    def to_normalized_units(self, length: float) -> float:
        """Convert a radius or a scale of noise from raw to normalised units."""
        return float(length / self._one_scale())

    def _one_scale(self) -> float:
        if (self._scales != self._scales[0]).any():
            raise ValueError(
                "`std` must be the same for all channels to convert a length (a ball in normalised "
                f"units is no ball in raw units), got {self._scales.tolist()}"
            )
        return float(self._scales[0])


def _channel_numbers(name: str, value: float | Sequence[float]) -> npt.NDArray[np.float64]:
    given = as_array(name, on_host(name, value))
    if given.dtype.kind not in "fiu":
        raise TypeError(f"`{name}` must be real numbers, got dtype {given.dtype}")
    numbers = np.array(np.atleast_1d(given), np.float64)
    if numbers.ndim != 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise ValueError(f"`{name}` must be a finite number or one for each channel, got {value!r}")
    return numbers
