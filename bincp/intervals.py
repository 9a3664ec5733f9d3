"""One-sided confidence bounds on a success probability or a mean, and the band of a CDF.

Every bound is rounded outward: a lower bound is never above the exact one, an upper bound never
below.

Any number of threads may call these functions at once. Counts and levels are copied before they are
checked. Samples are not: if another thread writes to them meanwhile, the bound means nothing.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bincp._core import _binomial
from bincp._utils.arrays import (
    ArrayLike,
    as_array,
    as_counts,
    as_probabilities,
    as_scores,
    where,
)
from bincp._utils.levels import Level, check_level, float_below
from bincp._utils.validation import MAX_COUNT, check_integer, check_real

__all__ = [
    "bernstein_lower",
    "bernstein_upper",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "confidence_sequence_lower",
    "confidence_sequence_upper",
    "dkw_band",
    "hoeffding_kl_lower",
    "hoeffding_kl_upper",
    "hoeffding_lower",
    "hoeffding_upper",
    "randomized_clopper_pearson_lower",
    "randomized_clopper_pearson_upper",
]

EPS = 2.0**-52

Bound: TypeAlias = float | npt.NDArray[np.float64]
Number = TypeVar("Number", bound=np.generic)


def clopper_pearson_lower(successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike) -> Bound:
    """Return the one-sided lower Clopper-Pearson bound on a success probability.

    With probability at least ``1 - eta`` over the trials, the bound is at most the success
    probability.

    Parameters
    ----------
    successes : int or array of int
        Number of successes, in [0, trials].
    trials : int or array of int
        Number of independent trials, in [1, 2**31 - 1].
    eta : int, float, str, Decimal, Fraction, or array of float
        Error probability of this one bound, in (0, 1). A single level is the decimal that was
        written, rounded down to a double; an array is taken at its exact binary values.

    Returns
    -------
    float or ndarray of float64
        The bound, in the shape to which the arguments broadcast: the ``eta`` quantile of
        Beta(successes, trials - successes + 1), 0 for no success. It is rounded down: for the
        double ``p`` that is returned, P[Bin(trials, p) >= successes] <= eta. The relative error is
        below 1e-13 for up to 1e6 trials and 1e-11 for up to 1e9 (``eta >= 1e-15``).

    Raises
    ------
    TypeError
        If ``successes`` or ``trials`` are not integers, or ``eta`` is not a number.
    ValueError
        If an argument is out of its range, or the shapes do not broadcast.

    See Also
    --------
    clopper_pearson_upper : The upper bound, ``1 - lower(trials - successes)``.

    Notes
    -----
    The whole of ``eta`` goes to the one side; a two-sided interval needs both bounds at half of it.
    Where ``trials`` and ``eta`` are scalars and many bounds are asked for, all ``trials + 1`` are
    computed once and looked up; they agree with single ones to 1.6e-14.

    References
    ----------
    .. [1] C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated
       in the case of the binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> import bincp
    >>> round(bincp.clopper_pearson_lower(90, 150, "0.05"), 6)
    0.529812
    >>> bincp.clopper_pearson_lower([0, 75, 150], 150, 0.05).round(6)
    array([0.      , 0.429977, 0.980227])
    """
    return _clopper_pearson(successes, trials, eta, lower=True)


def clopper_pearson_upper(successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike) -> Bound:
    """Return the one-sided upper Clopper-Pearson bound on a success probability.

    With probability at least ``1 - eta`` over the trials, the bound is at least the success
    probability.

    Parameters
    ----------
    successes : int or array of int
        Number of successes, in [0, trials].
    trials : int or array of int
        Number of independent trials, in [1, 2**31 - 1].
    eta : int, float, str, Decimal, Fraction, or array of float
        Error probability of this one bound, in (0, 1). A single level is the decimal that was
        written, rounded down to a double; an array is taken at its exact binary values.

    Returns
    -------
    float or ndarray of float64
        The bound, in the shape to which the arguments broadcast: the ``1 - eta`` quantile of
        Beta(successes + 1, trials - successes), 1 where every trial succeeds. It is rounded up: for
        the double ``p`` that is returned, P[Bin(trials, p) <= successes] <= eta. The relative error
        is below 1e-13 for up to 1e6 trials and 1e-11 for up to 1e9 (``eta >= 1e-15``).

    Raises
    ------
    TypeError
        If ``successes`` or ``trials`` are not integers, or ``eta`` is not a number.
    ValueError
        If an argument is out of its range, or the shapes do not broadcast.

    See Also
    --------
    clopper_pearson_lower : The lower bound, with notes and the reference.

    Examples
    --------
    >>> import bincp
    >>> round(bincp.clopper_pearson_upper(0, 10, "0.16"), 6)
    0.167447
    >>> bincp.clopper_pearson_upper([0, 75, 150], 150, 0.05).round(6)
    array([0.019773, 0.570023, 1.      ])
    """
    return _clopper_pearson(successes, trials, eta, lower=False)


def randomized_clopper_pearson_lower(
    successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike, uniform: ArrayLike
) -> Bound:
    """Return the randomised one-sided lower Clopper-Pearson bound on a success probability.

    With probability exactly ``1 - eta`` over the trials and the uniform number, up to rounding, the
    bound is at most the success probability. It is never below the bound without a random number.

    Parameters
    ----------
    successes : int or array of int
        Number of successes, in [0, trials].
    trials : int or array of int
        Number of independent trials, in [1, 2**31 - 1].
    eta : int, float, str, Decimal, Fraction, or array of float
        Error probability of this one bound, in (0, 1), as in `clopper_pearson_lower`.
    uniform : float or array of float
        A number in [0, 1] that was drawn uniformly, independently of the trials. It must be drawn
        once: of several bounds of the same trials, the best one errs more often.

    Returns
    -------
    float or ndarray of float64
        The bound, in the shape to which the arguments broadcast, rounded down: the largest p with
        P[Bin(trials, p) > successes] + uniform P[Bin(trials, p) = successes] <= eta; 0 if there is
        none, and 1 where every p is. The relative error is below 1e-12 for up to 1e6 trials.

    Raises
    ------
    TypeError
        If ``successes`` or ``trials`` are not integers, or ``eta`` or ``uniform`` no numbers.
    ValueError
        If an argument is out of its range, or the shapes do not broadcast.

    See Also
    --------
    randomized_clopper_pearson_upper, clopper_pearson_lower

    Notes
    -----
    ``uniform = 1`` gives the bound of Clopper and Pearson, and ``uniform = 0`` that of one success
    more. With few trials and a small level the random number matters most: where every trial
    succeeds and ``uniform <= eta``, the bound is 1.

    References
    ----------
    .. [1] W. L. Stevens, "Fiducial limits of the parameter of a discontinuous distribution",
       Biometrika 37, 1950.

    Examples
    --------
    >>> from bincp.intervals import randomized_clopper_pearson_lower
    >>> randomized_clopper_pearson_lower(90, 100, 0.05, [1.0, 0.5, 0.0]).round(4)
    array([0.8363, 0.8415, 0.8482])
    """
    return _randomized(successes, trials, eta, uniform, lower=True)


def randomized_clopper_pearson_upper(
    successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike, uniform: ArrayLike
) -> Bound:
    """Return the randomised one-sided upper Clopper-Pearson bound on a success probability.

    With probability exactly ``1 - eta`` over the trials and the uniform number, up to rounding, the
    bound is at least the success probability. It is never above the bound without a random number.

    Parameters
    ----------
    successes, trials, eta, uniform
        As in `randomized_clopper_pearson_lower`.

    Returns
    -------
    float or ndarray of float64
        The bound, in the shape to which the arguments broadcast, rounded up: the least p with
        P[Bin(trials, p) < successes] + uniform P[Bin(trials, p) = successes] <= eta; 1 if there is
        none, and 0 where every p is.

    Raises
    ------
    TypeError, ValueError
        As in `randomized_clopper_pearson_lower`.

    See Also
    --------
    randomized_clopper_pearson_lower : The lower bound, with notes and the reference.

    Examples
    --------
    >>> from bincp.intervals import randomized_clopper_pearson_upper
    >>> randomized_clopper_pearson_upper(10, 100, 0.05, [1.0, 0.5, 0.0]).round(4)
    array([0.1637, 0.1585, 0.1518])
    """
    return _randomized(successes, trials, eta, uniform, lower=False)


def confidence_sequence_lower(
    successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike
) -> Bound:
    """Return a lower bound on a success probability that holds after every trial at once.

    With probability at least ``1 - eta`` the bounds after 1, 2, 3, ... trials of one sequence are
    all at most the success probability. So the trials may be stopped, or go on, as the results
    look.

    Parameters
    ----------
    successes : int or array of int
        Number of successes so far, in [0, trials].
    trials : int or array of int
        Number of independent trials so far, in [1, 2**31 - 2].
    eta : int, float, str, Decimal, Fraction, or array of float
        Error probability of the whole sequence, in (0, 1), as in `clopper_pearson_lower`.

    Returns
    -------
    float or ndarray of float64
        The bound, in the shape to which the arguments broadcast, rounded down: the largest p for
        which the mean likelihood ratio below is at least 1 / eta, and 0 if there is none.

    Raises
    ------
    TypeError, ValueError
        As in `clopper_pearson_lower`.

    See Also
    --------
    confidence_sequence_upper
    clopper_pearson_lower : A sharper bound for a number of trials that is fixed in advance.

    Notes
    -----
    For s successes in m trials let M(p) be the mean over q, uniform in [p, 1], of the likelihood of
    q over that of p. If p is the success probability or above it, M is a supermartingale with the
    mean 1 at the start, so it ever reaches 1 / eta with probability at most eta (Ville). It does
    not increase with p, so what is refused lies below the bound. In closed form

        M(p) = P[Bin(m + 1, p) <= s] / ((m + 1 - s) P[Bin(m + 1, p) = s]).

    The largest bound so far may be taken in place of the last one.

    References
    ----------
    .. [1] H. Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of
       Mathematical Statistics 41, 1970.

    Examples
    --------
    >>> from bincp.intervals import clopper_pearson_lower, confidence_sequence_lower
    >>> confidence_sequence_lower([9, 90, 900], [10, 100, 1000], 0.05).round(4)
    array([0.4946, 0.7947, 0.8684])
    >>> clopper_pearson_lower([9, 90, 900], [10, 100, 1000], 0.05).round(4)
    array([0.6058, 0.8363, 0.883 ])
    """
    return _sequence(successes, trials, eta, lower=True)


def confidence_sequence_upper(
    successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike
) -> Bound:
    """Return an upper bound on a success probability that holds after every trial at once.

    With probability at least ``1 - eta`` the bounds after 1, 2, 3, ... trials of one sequence are
    all at least the success probability.

    Parameters
    ----------
    successes, trials, eta
        As in `confidence_sequence_lower`.

    Returns
    -------
    float or ndarray of float64
        1 minus the lower bound of the failures, rounded up.

    Raises
    ------
    TypeError, ValueError
        As in `clopper_pearson_lower`.

    See Also
    --------
    confidence_sequence_lower : The lower bound, with notes and the reference.

    Examples
    --------
    >>> from bincp.intervals import confidence_sequence_upper
    >>> confidence_sequence_upper([1, 10, 100], [10, 100, 1000], 0.05).round(4)
    array([0.5054, 0.2053, 0.1316])
    """
    return _sequence(successes, trials, eta, lower=False)


def hoeffding_lower(
    samples: ArrayLike, eta: Level, *, bounds: tuple[float, float] = (0, 1), axis: int = -1
) -> Bound:
    """Return Hoeffding's one-sided lower bound on the mean of bounded samples.

    With probability at least ``1 - eta`` over the samples, the bound is at most their expectation.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``, each within ``bounds``.
    eta : int, float, str, Decimal or Fraction
        Error probability of this one bound, in (0, 1).
    bounds : pair of float, default (0, 1)
        Known bounds ``low < high`` of a sample, both finite.
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float or ndarray of float64
        mean - (high - low) sqrt(log(1/eta) / (2 m)), not below ``low``; in the shape of ``samples``
        without ``axis``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a sample is NaN or outside ``bounds`` (the message says where), there is no sample, or
        an argument is out of its range.

    See Also
    --------
    hoeffding_upper, bernstein_lower, clopper_pearson_lower

    Notes
    -----
    The bound is Theorem 1 of [1]_, rounded down: the worst case of any order of summation,
    ``m + 1`` units of 2.2e-16 times the larger of ``|low|`` and ``|high|``, is subtracted from the
    mean.

    References
    ----------
    .. [1] W. Hoeffding, "Probability inequalities for sums of bounded random variables", Journal of
       the American Statistical Association 58, 1963.

    Examples
    --------
    >>> import bincp
    >>> import numpy as np
    >>> round(bincp.hoeffding_lower(np.full(100, 0.5), 0.05), 6)
    0.377613
    """
    return _mean_bound(samples, eta, bounds, axis, _hoeffding_width, sign=-1)


def hoeffding_upper(
    samples: ArrayLike, eta: Level, *, bounds: tuple[float, float] = (0, 1), axis: int = -1
) -> Bound:
    """Return Hoeffding's one-sided upper bound on the mean of bounded samples.

    With probability at least ``1 - eta`` over the samples, the bound is at least their expectation.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``, each within ``bounds``.
    eta : int, float, str, Decimal or Fraction
        Error probability of this one bound, in (0, 1).
    bounds : pair of float, default (0, 1)
        Known bounds ``low < high`` of a sample, both finite.
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float or ndarray of float64
        mean + (high - low) sqrt(log(1/eta) / (2 m)), rounded up and not above ``high``; in the
        shape of ``samples`` without ``axis``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a sample is NaN or outside ``bounds`` (the message says where), there is no sample, or
        an argument is out of its range.

    See Also
    --------
    hoeffding_lower : The lower bound, with notes and the reference.

    Examples
    --------
    >>> import bincp
    >>> import numpy as np
    >>> round(bincp.hoeffding_upper(np.full(100, 0.5), 0.05), 6)
    0.622387
    """
    return _mean_bound(samples, eta, bounds, axis, _hoeffding_width, sign=1)


def hoeffding_kl_lower(
    samples: ArrayLike, eta: Level, *, bounds: tuple[float, float] = (0, 1), axis: int = -1
) -> Bound:
    """Return Hoeffding's one-sided lower bound on a mean in its sharper form, by relative entropy.

    With probability at least ``1 - eta`` over the samples, the bound is at most their expectation.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``, each within ``bounds``.
    eta : int, float, str, Decimal or Fraction
        Error probability of this one bound, in (0, 1).
    bounds : pair of float, default (0, 1)
        Known bounds ``low < high`` of a sample, both finite.
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float or ndarray of float64
        low + (high - low) q for the least q with m kl(x, q) <= log(1/eta), where x in [0, 1] is the
        place of the mean between the bounds, and
        kl(x, q) = x log(x / q) + (1 - x) log((1 - x) / (1 - q)). Rounded down; in the shape of
        ``samples`` without ``axis``.

    Raises
    ------
    TypeError, ValueError
        As in `hoeffding_lower`.

    See Also
    --------
    hoeffding_kl_upper, hoeffding_lower, bernstein_lower, clopper_pearson_lower

    Notes
    -----
    It is (2.1) of [1]_, from which `hoeffding_lower` follows by kl(x, q) >= 2 (x - q)^2: it is
    never the worse one of the two, and much better where the mean is near a bound. The mean is
    rounded as there.

    References
    ----------
    .. [1] W. Hoeffding, "Probability inequalities for sums of bounded random variables", Journal of
       the American Statistical Association 58, 1963.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.intervals import hoeffding_kl_lower
    >>> round(hoeffding_kl_lower(np.full(100, 0.99), 0.05), 6)
    0.943906
    """
    return _kl_bound(samples, eta, bounds, axis, sign=-1)


def hoeffding_kl_upper(
    samples: ArrayLike, eta: Level, *, bounds: tuple[float, float] = (0, 1), axis: int = -1
) -> Bound:
    """Return Hoeffding's one-sided upper bound on a mean in its sharper form, by relative entropy.

    With probability at least ``1 - eta`` over the samples, the bound is at least their expectation.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``, each within ``bounds``, such as losses.
    eta : int, float, str, Decimal or Fraction
        Error probability of this one bound, in (0, 1).
    bounds : pair of float, default (0, 1)
        Known bounds ``low < high`` of a sample, both finite.
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float or ndarray of float64
        low + (high - low) q for the largest q with m kl(x, q) <= log(1/eta), as in
        `hoeffding_kl_lower`, rounded up.

    Raises
    ------
    TypeError, ValueError
        As in `hoeffding_lower`.

    See Also
    --------
    hoeffding_kl_lower : The lower bound, with notes and the reference.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.intervals import hoeffding_kl_upper
    >>> losses = np.repeat([1.0, 0.0], [20, 80])
    >>> round(hoeffding_kl_upper(losses, 0.1), 6)
    0.294179
    """
    return _kl_bound(samples, eta, bounds, axis, sign=1)


def bernstein_lower(
    samples: ArrayLike, eta: Level, *, bounds: tuple[float, float] = (0, 1), axis: int = -1
) -> Bound:
    """Return the one-sided lower empirical Bernstein bound on the mean of bounded samples.

    With probability at least ``1 - eta`` over the samples, the bound is at most their expectation.
    It is sharper than Hoeffding's where the samples vary little.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``, each within ``bounds``.
    eta : int, float, str, Decimal or Fraction
        Error probability of this one bound, in (0, 1).
    bounds : pair of float, default (0, 1)
        Known bounds ``low < high`` of a sample, both finite.
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float or ndarray of float64
        mean - sqrt(2 V log(2/eta) / m) - 7 (high - low) log(2/eta) / (3 (m - 1)), not below
        ``low``, where V is the sample variance with divisor m - 1; in the shape of ``samples``
        without ``axis``. One sample has no variance and gives ``low``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a sample is NaN or outside ``bounds`` (the message says where), there is no sample, or
        an argument is out of its range.

    See Also
    --------
    bernstein_upper, hoeffding_lower, clopper_pearson_lower

    Notes
    -----
    The bound is Theorem 4 of [1]_, scaled to ``bounds`` and rounded down: mean and variance carry
    the worst case of any order of summation, as in :func:`hoeffding_lower`.

    References
    ----------
    .. [1] A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample variance penalization",
       COLT 2009.

    Examples
    --------
    >>> import bincp
    >>> import numpy as np
    >>> round(bincp.bernstein_lower(np.full(100, 0.5), 0.05), 6)
    0.413057
    """
    return _mean_bound(samples, eta, bounds, axis, _bernstein_width, sign=-1)


def bernstein_upper(
    samples: ArrayLike, eta: Level, *, bounds: tuple[float, float] = (0, 1), axis: int = -1
) -> Bound:
    """Return the one-sided upper empirical Bernstein bound on the mean of bounded samples.

    With probability at least ``1 - eta`` over the samples, the bound is at least their expectation.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``, each within ``bounds``.
    eta : int, float, str, Decimal or Fraction
        Error probability of this one bound, in (0, 1).
    bounds : pair of float, default (0, 1)
        Known bounds ``low < high`` of a sample, both finite.
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float or ndarray of float64
        mean + sqrt(2 V log(2/eta) / m) + 7 (high - low) log(2/eta) / (3 (m - 1)), rounded up and
        not above ``high``, where V is the sample variance with divisor m - 1; in the shape of
        ``samples`` without ``axis``. One sample has no variance and gives ``high``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a sample is NaN or outside ``bounds`` (the message says where), there is no sample, or
        an argument is out of its range.

    See Also
    --------
    bernstein_lower : The lower bound, with notes and the reference.

    Examples
    --------
    >>> import bincp
    >>> import numpy as np
    >>> round(bincp.bernstein_upper(np.full(100, 0.5), 0.05), 6)
    0.586943
    """
    return _mean_bound(samples, eta, bounds, axis, _bernstein_width, sign=1)


def dkw_band(samples: ArrayLike, eta: Level, *, axis: int = -1) -> float:
    """Return the half-width of the two-sided confidence band of a CDF.

    With probability at least ``1 - eta`` over the samples, their empirical distribution function
    is within the half-width of the true one, above and below, at every point at once.

    Parameters
    ----------
    samples : array of float16, bfloat16 (torch), float32 or float64
        Independent samples along ``axis``; infinities are ordinary values.
    eta : int, float, str, Decimal or Fraction
        Error probability of the whole band, both sides together, in (0, 1).
    axis : int, default -1
        Axis of the m samples.

    Returns
    -------
    float
        sqrt(log(2/eta) / (2 m)), rounded up and not above 1. It depends on m alone, so it holds for
        each row of ``samples``.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a sample is NaN (the message says where), there is no sample, or an argument is out of
        its range.

    See Also
    --------
    clopper_pearson_lower : A sharper bound for the CDF at a single point.

    Notes
    -----
    The band is that of the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant [1]_. One
    side alone has error probability at most eta / 2.

    References
    ----------
    .. [1] P. Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality", Annals of
       Probability 18, 1990.

    Examples
    --------
    >>> import bincp
    >>> import numpy as np
    >>> round(bincp.dkw_band(np.linspace(0, 1, 150), 0.05), 6)
    0.110889
    """
    values = sample_values("samples", samples, axis, -math.inf, math.inf)
    log_term = math.log(2) + _log_inverse(check_level("eta", eta))
    width = math.sqrt(log_term / (2 * values.shape[-1]))
    return min(width * (1 + 8 * EPS), 1.0)


# ---- Clopper-Pearson -----------------------------------------------------------------------------


def _clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike, *, lower: bool
) -> Bound:
    s, m = _counts(successes, trials, MAX_COUNT)
    levels = _levels(eta)
    shape = _common_shape(successes=s, trials=m, eta=levels)
    _check_at_most_trials(s, m)
    if not shape:
        single = _binomial.cp_lower if lower else _binomial.cp_upper
        return single(int(s), int(m), float(levels))
    if m.ndim == 0 and levels.ndim == 0 and 2 * s.size > m:
        return _look_up(s, int(m), float(levels), lower=lower)
    many = _binomial.cp_lower_many if lower else _binomial.cp_upper_many
    out = np.empty(math.prod(shape))
    many(_flat(s, shape), _flat(m, shape), _flat(levels, shape), out)
    return out.reshape(shape)


def _randomized(
    successes: ArrayLike,
    trials: ArrayLike,
    eta: Level | ArrayLike,
    uniform: ArrayLike,
    *,
    lower: bool,
) -> Bound:
    s, m = _counts(successes, trials, MAX_COUNT)
    levels, u = _levels(eta), as_probabilities("uniform", uniform)
    shape = _common_shape(successes=s, trials=m, eta=levels, uniform=u)
    _check_at_most_trials(s, m)
    out = np.empty(math.prod(shape))
    counts = _flat(s, shape), _flat(m, shape)
    _binomial.randomized_many(*counts, _flat(levels, shape), _flat(u, shape), lower, out)
    return _float_if_scalar(out.reshape(shape))


def _sequence(
    successes: ArrayLike, trials: ArrayLike, eta: Level | ArrayLike, *, lower: bool
) -> Bound:
    s, m = _counts(successes, trials, MAX_COUNT - 1)
    levels = _levels(eta)
    shape = _common_shape(successes=s, trials=m, eta=levels)
    _check_at_most_trials(s, m)
    out = np.empty(math.prod(shape))
    counts = _flat(s, shape), _flat(m, shape)
    _binomial.sequence_many(*counts, _flat(levels, shape), lower, out)
    return _float_if_scalar(out.reshape(shape))


def _counts(
    successes: ArrayLike, trials: ArrayLike, most: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    s = as_counts("successes", successes, high=MAX_COUNT)
    return s, as_counts("trials", trials, low=1, high=most)


def _common_shape(**arrays: npt.NDArray[Any]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        *names, last = (f"`{name}`" for name in arrays)
        *shapes, end = (str(array.shape) for array in arrays.values())
        raise ValueError(
            f"{', '.join(names)} and {last} must broadcast to one shape, "
            f"got {', '.join(shapes)} and {end}"
        ) from None


def _flat(array: npt.NDArray[Number], shape: tuple[int, ...]) -> npt.NDArray[Number]:
    return np.ascontiguousarray(np.broadcast_to(array, shape)).reshape(-1)


def _levels(eta: Level | ArrayLike) -> npt.NDArray[np.float64]:
    """Return levels as doubles: a single one rounded down, an array as it is."""
    if not hasattr(eta, "__len__") or isinstance(eta, str):
        return np.asarray(float_below(check_level("eta", eta)))
    levels = as_array("eta", eta).copy()
    if levels.dtype.kind != "f" or levels.dtype.itemsize > 8:
        raise TypeError(f"`eta` must be float64 or narrower, got dtype {levels.dtype}")
    bad = ~((levels > 0) & (levels < 1))
    if bad.any():
        raise ValueError(f"`eta` must be in (0, 1), got {levels[bad][0]} {where(bad)}")
    return levels.astype(np.float64, copy=False)


def _check_at_most_trials(s: npt.NDArray[np.int64], m: npt.NDArray[np.int64]) -> None:
    bad = s > m
    if bad.any():
        got, most = (np.broadcast_to(a, bad.shape)[bad][0] for a in (s, m))
        raise ValueError(f"`successes` must be at most `trials`, got {got} of {most} {where(bad)}")


def _look_up(
    s: npt.NDArray[np.int64], m: int, eta: float, *, lower: bool
) -> npt.NDArray[np.float64]:
    """Compute all m + 1 bounds, each for less than half the cost of a single one."""
    table = np.empty(m + 1)
    _binomial.cp_table(m, eta, table if lower else None, None if lower else table)
    return table[s]


# ---- bounds on a mean ----------------------------------------------------------------------------


def _mean_bound(
    samples: ArrayLike,
    eta: Level,
    bounds: tuple[float, float],
    axis: int,
    width: Callable[[npt.NDArray[Any], npt.NDArray[np.float64], float, Fraction], Bound],
    *,
    sign: int,
) -> Bound:
    low, high = check_bounds(bounds)
    values = sample_values("samples", samples, axis, low, high)
    m = values.shape[-1]
    mean = np.asarray(values.mean(axis=-1, dtype=np.float64))
    # The sum errs by m - 1 half units, in any order, the quotient and the bound by one each.
    rounding = (m + 1) * EPS * max(abs(low), abs(high))
    spread = high - low
    margin = (
        spread * width(values, mean, spread, check_level("eta", eta)) * (1 + 8 * EPS) + rounding
    )
    return _float_if_scalar(np.clip(mean + sign * margin, low, high))


def _kl_bound(
    samples: ArrayLike, eta: Level, bounds: tuple[float, float], axis: int, *, sign: int
) -> Bound:
    low, high = check_bounds(bounds)
    values = sample_values("samples", samples, axis, low, high)
    m, spread = values.shape[-1], high - low
    mean = np.asarray(values.mean(axis=-1, dtype=np.float64))
    sizes = np.asarray(np.abs(values).mean(axis=-1, dtype=np.float64))
    # The sum errs by m - 1 half units of the sum of all sizes, in any order.
    place = (mean - low + sign * (m + 1) * EPS * sizes) / spread
    place = np.clip(np.nextafter(place * (1 + sign * 4 * EPS), sign * math.inf), 0.0, 1.0)
    budget = _log_inverse(check_level("eta", eta)) / m * (1 + 4 * EPS)
    end = low + spread * _last_near(place, budget, max(sign, 0)) * (1 + sign * 4 * EPS)
    rounding = sign * 2 * EPS * abs(low)
    return _float_if_scalar(np.clip(end + rounding, low, high))


def _last_near(x: npt.NDArray[np.float64], budget: float, end: float) -> npt.NDArray[np.float64]:
    """Return the last q on the way from x to an end of [0, 1] with kl(x, q) <= budget, or beyond.

    kl grows on the way, so the way is halved.
    """
    near, far = x, np.full_like(x, end)
    while True:
        middle = near + (far - near) / 2
        if ((middle == near) | (middle == far)).all():
            return far
        inside = _kl_below(x, middle) <= budget
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)


def _kl_below(x: npt.NDArray[np.float64], q: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the relative entropy of coins of the probabilities x and q, rounded down.

    Logarithms are taken of 1 + a difference, which is exact where x and q are near. A tiny q is
    scaled, as x / q may be beyond all doubles; where it is, the other quotient is not used. It is
    infinite or NaN, which is within no budget, only for q = 0 and 1.
    """
    scale = np.where(q < 2.0**-960, 2.0**64, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        far = np.log(x / (q * scale)) + np.log(scale)
        one = np.where((x < q / 2) | ((scale > 1) & (x > 2 * q)), far, np.log1p((x - q) / q))
        other = np.where(
            1 - x < (1 - q) / 2, np.log((1 - x) / (1 - q)), np.log1p((q - x) / (1 - q))
        )
        one = np.where(x > 0, x * one, 0.0)
        other = np.where(x < 1, (1 - x) * other, 0.0)
        return one + other - 16 * EPS * (np.abs(one) + np.abs(other))


def _hoeffding_width(
    values: npt.NDArray[Any], mean: npt.NDArray[np.float64], spread: float, eta: Fraction
) -> Bound:
    """Return Hoeffding's half-width in units of the spread of the bounds."""
    return math.sqrt(_log_inverse(eta) / (2 * values.shape[-1]))


def _bernstein_width(
    values: npt.NDArray[Any], mean: npt.NDArray[np.float64], spread: float, eta: Fraction
) -> Bound:
    """Return the empirical Bernstein half-width in units of the spread of the bounds."""
    m = values.shape[-1]
    if m == 1:
        return math.inf
    log_term = math.log(2) + _log_inverse(eta)
    # Squares about the rounded mean add up to at least those about the mean itself. So only the
    # rounding of a sum of m positive terms remains to be guarded against.
    squares = np.square((values - mean[..., np.newaxis]) / spread).sum(axis=-1)
    variance = squares / (m - 1) * (1 + (m + 8) * EPS)
    return np.asarray(np.sqrt(2 * variance * log_term / m) + 7 * log_term / (3 * (m - 1)))


def _log_inverse(eta: Fraction) -> float:
    """Return log(1 / eta), also where eta is below the range of a double."""
    value = float_below(eta)
    return -math.log(value) if value > 0 else math.log(eta.denominator) - math.log(eta.numerator)


def check_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise TypeError(f"`bounds` must be a pair (low, high), got {bounds!r}") from None
    low, high = check_real("bounds", low), check_real("bounds", high)
    # Within these, neither the sum of 2^31 samples nor the outward step leaves the normal numbers.
    if not (max(abs(low), abs(high)) <= 1e290 and high - low >= 1e-290):
        raise ValueError(
            "`bounds` must be (low, high), low < high, at most 1e290 in size and 1e-290 apart, "
            f"got {bounds!r}"
        )
    return low, high


def sample_values(
    name: str, samples: ArrayLike, axis: int, low: float, high: float
) -> npt.NDArray[np.floating[Any]]:
    """Return the samples with their axis last, none of them NaN or outside [low, high]."""
    values = as_scores(name, samples).values()
    if values.ndim == 0:
        raise ValueError(f"`{name}` must have at least one axis, got a scalar")
    axis = check_integer("axis", axis, low=-values.ndim, high=values.ndim - 1)
    if values.shape[axis] == 0:
        raise ValueError(f"`{name}` must hold at least one sample, got shape {values.shape}")
    # Compared in double precision, so that no bound is rounded to float32: with arrays, as NumPy 1
    # rounds scalars to the dtype of the array. NaN fails.
    bad = ~((values >= np.array([low])) & (values <= np.array([high])))
    if bad.any():
        wanted = "not be NaN" if low == -math.inf else f"be in [{low:g}, {high:g}]"
        raise ValueError(f"`{name}` must {wanted}, got {values[bad][0]} {where(bad)}")
    return np.moveaxis(values, axis, -1)


def _float_if_scalar(values: npt.NDArray[np.float64]) -> Bound:
    return float(values) if values.ndim == 0 else values
