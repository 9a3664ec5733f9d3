"""The base of smoothing schemes: frozen dataclasses of parameters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Smoothing:
    """Base of the smoothing schemes; a subclass is a frozen dataclass of its parameters.

    `bincp.register` gives a scheme from outside its certificates, `bincp.noise.register` its noise.
    """


def set_parameters(scheme: Smoothing, **parameters: object) -> None:
    """Store checked parameters on a frozen scheme."""
    for name, value in parameters.items():
        object.__setattr__(scheme, name, value)
