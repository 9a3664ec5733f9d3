"""The base of perturbation balls: frozen dataclasses of parameters that know their inverse."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, eq=False)  # a subclass that is no dataclass equals only itself
class Ball:
    """Base of the perturbation balls; a subclass is a frozen dataclass of its parameters."""

    def inverse(self) -> Self:
        """Return the inverted ball: the clean inputs that could have led to a perturbed one.

        A ball of a norm is its own inverse; a ball that treats directions differently is not, and
        overrides this method.
        """
        return self
