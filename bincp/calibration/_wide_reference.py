"""A wide reference population, in which valid rules are compared before there are any data.

A label of a clean input reaches tau with probability Phi(z). Over the inputs z is Gaussian: with a
standard deviation of 3 for true labels, and for wrong ones lower by 6 with a standard deviation of
2. Where the centre of the true labels lies depends on tau, and so on the rule: calibration makes
their mean failure, or mean loss, a level near alpha. The level is random, over calibration sets.
Arrays hold one value for each centre, from left to right.
"""

from functools import cache, lru_cache

import numpy as np
from scipy import special

from bincp._core._mixture import normal_probabilities
from bincp.calibration._curve import Array, Curve
from bincp.calibration._label_test import LabelTest, undecided
from bincp.calibration._loss_fitting import binomial_masses
from bincp.certificates import Certificate

SPREAD, SPREAD_OF_WRONG, GAP = 3.0, 2.0, 6.0

WRONG_LABELS = 3
"""Wrong labels of an input that compete for its passes; most of ten classes are refused at once.

So many give about the passes that were measured on CIFAR-10.
"""

_SELDOM = 1e-6  # draws that are needed less often than this do not count

CENTRES = np.linspace(-8.0, 16.0, 121)

_Z = np.linspace(-24.0, 24.0, 321)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


class _Population:
    def __init__(self) -> None:
        self.p, self.q = np.empty_like(_Z), np.empty_like(_Z)
        normal_probabilities(_Z, self.p, self.q)
        self.true = distribution(CENTRES[:, None], SPREAD)
        self.wrong = distribution(CENTRES[:, None] - GAP, SPREAD_OF_WRONG)


def distribution(centre: Array, spread: float) -> Array:
    """Return the shares of the inputs with each z, along the last axis."""
    density = np.exp(-(((centre - _Z) / spread) ** 2) / 2)
    return np.asarray(density / density.sum(axis=-1, keepdims=True))


@cache
def _population() -> _Population:
    return _Population()


def accepted(test: LabelTest) -> Array:
    """Return the share of wrong labels that a test accepts, at each centre."""
    population = _population()
    return np.asarray(1 - population.wrong @ test.refusals(population.p, population.q))


def passes(test: LabelTest, centre: float) -> float:
    """Return the mean number of forward passes of an input.

    An input is drawn until the last of its labels is decided, and at least once.
    """
    if test.spread is None:
        return float(test.m_test)
    left = undecided(test.rule, _population().p, _population().q, _SELDOM)[1:-1]
    true = left @ distribution(np.array(centre), SPREAD)
    wrong = left @ distribution(np.array(centre - GAP), SPREAD_OF_WRONG)
    return float(1 + (1 - (1 - true) * (1 - wrong) ** WRONG_LABELS).sum())


class Levels:
    """Where the true labels lie after a calibration with m samples a point."""

    def __init__(self, m: int) -> None:
        masses = binomial_masses(_population().p, _population().q, m)
        self._masses = _population().true @ masses
        below = np.cumsum(self._masses, axis=1)
        self._failures = np.ascontiguousarray(np.insert(below, 0, 0.0, axis=1).T)

    def prices(self, charge: float, centre: float) -> Array:
        """Return what raising w(0), ..., w(s) by 1 adds to the mean loss and the charge of w(0).

        The charge is 1 / n for the test point, and as much for each poisoned one.
        """
        i = int(np.argmin(np.abs(CENTRES - centre)))
        return np.asarray(np.cumsum(self._masses[i]) + charge)

    def by_rank(self, t: int, rank: float, n: int) -> Array:
        """Return where a p-fixed rule leads to, for each node of the distribution of its level."""
        return _where(self._failures[t], _quantiles_of_rank(rank, n))

    def by_losses(self, losses: Array, budget: float, n: int) -> Array:
        """Return where losses lead to that may add up to a budget over n points.

        A sum that stops at the budget has a mean n E[w] of the budget and half the slope of the
        variance of w in its mean, for points that have paid cannot pay again. The level varies by
        the variance of w over n.
        """
        mean = self._masses @ losses
        variance = np.maximum(self._masses @ losses**2 - mean**2, 0)
        at = _where(mean, np.array([budget / n]))[0]
        i = min(max(int(np.searchsorted(CENTRES, at)), 1), len(CENTRES) - 1)
        slope = (variance[i] - variance[i - 1]) / min(mean[i] - mean[i - 1], -1e-12)
        top = float(losses[0])
        level = min(max((budget + slope / 2) / n / top, 1e-9), 1 - 1e-9)
        spread = float(np.interp(at, CENTRES, variance)) / n / top**2
        size = max(level * (1 - level) / max(spread, 1e-12) - 1, 1e-3)
        quantiles = special.betaincinv(size * level, size * (1 - level), _NODES)
        return _where(mean, top * quantiles)


def at_equal_coverage(test: LabelTest, certificate: Certificate, rank: int, n: int) -> float:
    """Return the share of wrong labels that a test accepts where the attacked coverage is given.

    The test refuses a share of the true labels at the worst inputs whose distribution is that of
    the rank-th smallest of n. So tests of rules that do not keep their level can be compared, too.
    """
    v = test.worst_refusals(Curve(certificate, _Z))
    at = _where(_population().true @ v, _quantiles_of_rank(rank, n))
    return mean_over_nodes(accepted(test), at)


@lru_cache(8)
def levels(m: int) -> Levels:
    """Return the levels of calibrations with m samples."""
    return Levels(m)


def mean_over_nodes(values: Array, at: Array) -> float:
    """Return the mean of a function of the centre, given at the nodes of a distribution."""
    return float(np.interp(at, CENTRES, values) @ _WEIGHTS)


@lru_cache(4096)
def _quantiles_of_rank(rank: float, n: int) -> Array:
    """Return quantiles of the share of points below the rank-th smallest of n."""
    return np.asarray(special.betaincinv(rank, n + 1 - rank, _NODES))


def _where(function: Array, values: Array) -> Array:
    """Return the centres where a falling function has the values."""
    return np.interp(-values, -function, CENTRES)
