"""The base of smoothing schemes: frozen dataclasses of parameters."""

from dataclasses import Field, dataclass, fields
from typing import Any

WHEN_SET = {"shown": "when set"}
"""Metadata of a parameter that is shown only where it differs from its default.

A parameter of later versions has it: what an earlier version stored still describes the scheme.
"""


@dataclass(frozen=True, eq=False)  # a subclass that is no dataclass equals only itself
class Smoothing:
    """Base of the smoothing schemes; a subclass is a frozen dataclass of its parameters.

    `bincp.register` gives a scheme from outside its certificates, `bincp.noise.register` its noise.
    """

    def sampling_error(self) -> float:
        """Return how far the noise that is drawn may be from the law of the certificate.

        Returns
        -------
        float
            A bound on the total variation distance of the two laws of a whole noisy input, in
            [0, 1]. `bincp.certify` charges it to both bounds. The base returns 0, for schemes that
            are drawn exactly and for those whose error nobody has bounded; the docstring of a
            scheme says which.

        Examples
        --------
        >>> Smoothing().sampling_error()
        0.0
        """
        return 0.0

    def assumes(self) -> str | None:
        """Return what the guarantee assumes because noise is drawn by a computer.

        Returns
        -------
        str or None
            "nothing" where the guarantee holds to the last bit of what the model sees, whatever the
            model is; else the assumption, which `Certificate.describe` shows. None where nobody has
            said, as for schemes from outside that do not override this.

        Examples
        --------
        >>> from bincp.smoothing import Gaussian
        >>> Gaussian(0.25).assumes()
        'the model does not read the last bits of x + noise'
        >>> Gaussian(0.25, grid=255).assumes()
        'nothing'
        """
        return None


READS_NO_LAST_BITS = "the model does not read the last bits of x + noise"
NOTHING = "nothing"


def set_parameters(scheme: Smoothing, **parameters: object) -> None:
    """Store checked parameters on a frozen scheme."""
    for name, value in parameters.items():
        object.__setattr__(scheme, name, value)


def shown_fields(value: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass that describe it, keyword-only ones last."""
    shown = [
        part
        for part in fields(value)
        if part.metadata.get("shown") != "when set" or getattr(value, part.name) != part.default
    ]
    return sorted(shown, key=lambda part: bool(part.kw_only))
