"""A reference population, to compare valid rules in before there are any data."""

from functools import cache

import numpy as np

from bincp._core._mixture import binomial_means, failures, normal_probabilities
from bincp.calibration._curve import Array


class _Reference:
    """Clean inputs with Gaussian scores.

    Success probabilities are Phi(z). Over the inputs z is Gaussian with variance 1; for a wrong
    label it is lower by `GAP`. Where its centre lies for the true label depends on tau, and so on
    the rule. Arrays hold one value for each centre.
    """

    GAP = 2.0  # standard deviations; it moves the choice among valid rules, not their validity

    def __init__(self) -> None:
        self._centres = np.linspace(-9, 9, 181)
        z = np.linspace(-14, 14, 281)
        self._p, self._q = np.empty_like(z), np.empty_like(z)
        normal_probabilities(z, self._p, self._q)
        law = np.exp(-((self._centres[:, None] - z) ** 2) / 2)
        self._law = law / law.sum(axis=1, keepdims=True)

    def failures(self, t: int, m: int) -> Array:
        """Return the mean of P[Bin(m, p) < t] at each centre."""
        out = np.empty_like(self._p)
        failures(t, m, self._p, self._q, out)
        return self._mean(out)

    def expected(self, losses: Array) -> Array:
        """Return the mean of E[losses[S]], S ~ Bin(m, p), at each centre."""
        out = np.empty_like(self._p)
        binomial_means(losses, self._p, self._q, out)
        return self._mean(out)

    def _mean(self, values: Array) -> Array:
        return np.asarray(self._law @ values)

    def wrong_labels(self, loss: Array, budget: float, k: int, m_test: int) -> float:
        """Return the share of wrong labels that k accepts if tau makes the mean loss the budget."""
        centre = np.interp(-budget, -loss, self._centres)
        refused = np.interp(centre - self.GAP, self._centres, self.failures(k, m_test))
        return float(1 - refused)


@cache
def reference() -> _Reference:
    """Return the reference population."""
    return _Reference()
