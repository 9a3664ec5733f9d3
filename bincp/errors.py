"""Errors and warnings that bincp raises beside the built-in ``TypeError`` and ``ValueError``."""

from bincp._core.exceptions import CertificateABIError, CertificateError

__all__ = [
    "AbstentionWarning",
    "CertificateABIError",
    "CertificateError",
    "NotCalibratedError",
    "TrivialSetWarning",
]


class NotCalibratedError(RuntimeError):
    """A prediction was asked for before the calibration that it needs."""


class AbstentionWarning(UserWarning):
    """A smoothed classifier abstains on every input; the message says how many draws can decide."""


class TrivialSetWarning(UserWarning):
    """Every prediction set will hold every label; the message names the cause and the cure."""
