"""What every smoothing scheme is: a frozen dataclass of parameters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Smoothing:
    """Base of the smoothing schemes; a subclass is a frozen dataclass of its parameters."""


def set_parameters(scheme: Smoothing, **parameters: object) -> None:
    """Store checked parameters on a frozen scheme."""
    for name, value in parameters.items():
        object.__setattr__(scheme, name, value)
