"""Certificates from trade-off functions: what privacy of the prediction says about attacks.

A trade-off function f is the least type II error of a test between the laws of two outputs, at each
type I error. If an event has probability p at the clean input, the test that decides for the
attacked one outside of the event has type I error 1 - p, and its type II error is the probability
of the event at the attacked input: at least f(1 - p).
"""

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from bincp._core import _operators
from bincp._utils.levels import TRUE_MIN
from bincp._utils.validation import check_probability, check_real
from bincp.certificates._certificate import Certificate, Recipe, make_certificate
from bincp.certificates._curves import as_masses
from bincp.certificates._facts import TRADE_OFF, Facts
from bincp.certificates._law import check_law, irregular_probabilities, probability_grid
from bincp.certificates._masses import Masses
from bincp.certificates._protocols import Operator
from bincp.certificates._python_operators import Mirror, PythonOperator, called
from bincp.errors import CertificateError

_DIGITS = 60
_TOLERANCE = 1e-9
_MASS_ERROR = 2.0**-52

TradeOff = Callable[[float], float]


def from_privacy(epsilon: float, delta: float = 0.0) -> Certificate:
    """Return the certificate of a prediction that is (epsilon, delta)-differentially private.

    The event that a score of *one* draw reaches the threshold keeps at least
    ``max(0, e^-epsilon (p - delta), 1 - delta - e^epsilon (1 - p))`` of its probability p when one
    record, such as a pixel, an edge or a training point, changes; :func:`repeat` is for more.

    Parameters
    ----------
    epsilon : float
        At least 0. Privacy is that of one draw at prediction time: the certificate is for one draw,
        so the draws of an input do not add up.
    delta : float, optional
        In [0, 1].

    Returns
    -------
    Certificate
        Tight: randomised response of two values attains it.

    Raises
    ------
    TypeError
        If a parameter is not a real number.
    ValueError
        If `epsilon` is negative or not finite, or `delta` outside [0, 1].

    References
    ----------
    Lecuyer et al., "Certified robustness to adversarial examples with differential privacy", S&P
    2019; Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022.

    Examples
    --------
    >>> from bincp.certificates import from_privacy, repeat
    >>> round(from_privacy(0.5, 0.01).lower(0.9), 6)
    0.825128
    >>> round(repeat(from_privacy(0.5), 2).lower(0.9), 6), round(from_privacy(1).lower(0.9), 6)
    (0.728172, 0.728172)
    """
    epsilon = check_real("epsilon", epsilon, low=0)
    delta = check_probability("delta", delta)
    masses = _privacy_masses(epsilon, delta)
    return _tight(
        masses.operator(),
        {"type": "from_privacy", "epsilon": epsilon, "delta": delta},
        inverse=lambda: from_privacy(epsilon, delta),
        recipe=(from_privacy, (epsilon, delta)),
        masses=lambda: masses,
    )


def from_gdp(mu: float) -> Certificate:
    """Return the certificate of a prediction that is mu-Gaussian differentially private.

    It is that of Gaussian noise at the distance of mu standard deviations,
    ``lower(p) = Phi(Phi^-1(p) - mu)``. `r` changed records have r mu, which :func:`repeat` knows;
    sqrt(r) mu is for r releases about one changed record, and would be unsound here.

    Parameters
    ----------
    mu : float
        At least 0. Privacy is that of one draw at prediction time, see :func:`from_privacy`.

    Returns
    -------
    Certificate

    Raises
    ------
    TypeError
        If `mu` is not a real number.
    ValueError
        If `mu` is negative or not finite.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022.

    Examples
    --------
    >>> from bincp.certificates import from_gdp, repeat
    >>> round(from_gdp(0.5).lower(0.9), 6), round(repeat(from_gdp(0.5), 2).lower(0.9), 6)
    (0.782761, 0.610856)
    """
    mu = check_real("mu", mu, low=0)
    return _tight(
        _operators.gaussian(mu),
        {"type": "from_gdp", "mu": mu},
        inverse=lambda: from_gdp(mu),
        recipe=(from_gdp, (mu,)),
        masses=None,
    )


def from_tradeoff(f: TradeOff | Sequence[Sequence[float]]) -> Certificate:
    """Return the certificate of a prediction whose trade-off function is at least `f`.

    ``lower(p) = f(1 - p)``, and ``upper(p) = 1 - inf{a : f(a) <= p}``.

    Parameters
    ----------
    f : callable or sequence of (intercept, slope)
        A trade-off function that is at most that of every clean input (the null hypothesis) and
        every input in the ball: from type I error to type II error, float to float, convex,
        non-increasing, continuous at 0, at most 1 - a, and rounded down. Pairs stand for the
        largest of 0 and ``intercept + slope * a``; they give bounds to the last digits of small
        probabilities, for which 1 - p is 1 as a float.

    Returns
    -------
    Certificate

    Raises
    ------
    TypeError
        If `f` is neither callable nor pairs of real numbers.
    ValueError
        If pairs do not describe a trade-off function.
    CertificateError
        If `f` is not a trade-off function at one of some hundred type I errors, which the message
        names.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022.

    Examples
    --------
    >>> from bincp.certificates import from_tradeoff
    >>> round(from_tradeoff(lambda a: max(0.0, 0.9 - a)).lower(0.75), 9)
    0.65
    >>> round(from_tradeoff([(0.9, -1)]).upper(0.65), 9)
    0.75
    """
    if callable(f):
        return _from_function(f)
    lines = _lines(f)
    return _from_lines(lines, lambda: _from_lines(lines, lambda: from_tradeoff(f), inverted=True))


def _tight(
    operator: Operator,
    content: dict[str, Any],
    *,
    inverse: Callable[[], Certificate],
    recipe: Recipe | None,
    masses: Callable[[], Masses] | None,
    convex: bool = True,
) -> Certificate:
    """Return a certificate that is tight for all mechanisms with a trade-off function."""
    return make_certificate(
        Certificate,
        operator,
        {"made_by": content, "tight": True},
        inverse=inverse,
        recipe=recipe,
        facts=Facts(
            randomised=True,
            tight=True,
            convex=convex,
            family=TRADE_OFF,
            single=True,
            masses=masses,
        ),
    )


# ---- (epsilon, delta) ---------------------------------------------------------------------------


def _privacy_masses(epsilon: float, delta: float) -> Masses:
    """Return delta of each law where the other has none, and the rest with the ratios e^-+epsilon.

    The rest, 1 - delta, is split as e^epsilon to 1 in one law and 1 to e^epsilon in the other.
    """
    with localcontext(Context(prec=_DIGITS)):
        odds = (-Decimal(epsilon)).exp()  # may underflow only beyond the exponents of doubles
        rest = Decimal(1) - Decimal(delta)
        large, small = rest / (1 + odds), rest * odds / (1 + odds)
    likely, unlikely = float(large), float(small)
    if rest and unlikely == 0:
        unlikely = TRUE_MIN
    clean = np.array([delta, likely, unlikely, 0.0])
    perturbed = np.array([0.0, unlikely, likely, delta])
    return Masses(clean, perturbed, _MASS_ERROR, 4 * TRUE_MIN)


# ---- functions ----------------------------------------------------------------------------------


class _OfFunction:
    def __init__(self, f: TradeOff) -> None:
        self.f = f

    def lower(self, p: float) -> float:
        error = 1.0 - p
        if Fraction(error) < 1 - Fraction(p):  # f falls: the error is rounded up
            error = math.nextafter(error, 1.0)
        return min(self.f(error), p)  # a function that rounded up may be above 1 - a


def _from_function(f: TradeOff) -> Certificate:
    _check_function(f)
    bounds = _OfFunction(f)
    operator = PythonOperator("trade-off function", bounds.lower)
    made = _tight(
        operator,
        {"type": "from_tradeoff"},
        inverse=lambda: _mirror(made),
        recipe=(from_tradeoff, (f,)),
        masses=None,
        convex=False,  # f may round as it likes
    )
    check_law(made)
    return made


def _mirror(certificate: Certificate) -> Certificate:
    mirror = Mirror(certificate)
    return _tight(
        PythonOperator("inverse of trade-off function", mirror.lower, mirror.upper),
        {"type": "from_tradeoff"},
        inverse=lambda: certificate,
        recipe=(_mirror, (certificate,)),
        masses=None,
        convex=False,
    )


def _check_function(f: TradeOff) -> None:
    """Refuse what is no trade-off function at some hundred type I errors, by more than rounding."""
    errors = sorted({*probability_grid(), *irregular_probabilities(), TRUE_MIN})
    values = [_value(f, error) for error in errors]
    if values[0] > _value(f, TRUE_MIN) + _TOLERANCE:
        raise CertificateError(
            f"`f` must be continuous at 0, but falls from {values[0]!r} to "
            f"{_value(f, TRUE_MIN)!r} there"
        )
    for left, right in zip(range(len(errors)), range(2, len(errors)), strict=False):
        a, b, c = (Fraction(error) for error in errors[left : right + 1])
        chord = values[left] + float((b - a) / (c - a)) * (values[right] - values[left])
        if values[left + 1] > chord + _TOLERANCE:
            raise CertificateError(
                f"`f` must be convex, but f({errors[left + 1]!r}) = {values[left + 1]!r} is above "
                f"the chord of its neighbours"
            )


def _value(f: TradeOff, error: float) -> float:
    made, value = called("f", f, error)
    if not 0 <= value <= 1 - error + _TOLERANCE:
        raise CertificateError(
            f"`f` must be in [0, 1 - a], but f({error!r}) = {made!r}, which is not a trade-off "
            "function"
        )
    return value


# ---- piecewise linear functions -----------------------------------------------------------------

Line = tuple[Fraction, Fraction]
Point = tuple[Fraction, Fraction]


def _lines(f: object) -> list[Line]:
    try:
        pairs = [(intercept, slope) for intercept, slope in f]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise TypeError(
            f"`f` must be a function or pairs of (intercept, slope), got {f!r}"
        ) from None
    lines = [
        (Fraction(check_real(f"f[{i}][0]", b)), Fraction(check_real(f"f[{i}][1]", s)))
        for i, (b, s) in enumerate(pairs)
    ]
    for i, (intercept, slope) in enumerate(lines):
        if slope > 0:
            raise ValueError(f"`f[{i}][1]` must be <= 0, got {float(slope)!r}")
        if intercept > 1 or intercept + slope > 0:
            raise ValueError(
                f"`f[{i}]` must be at most 1 - a for all a in [0, 1], got {pairs[i]!r}"
            )
    return lines


def _from_lines(
    lines: Sequence[Line], inverse: Callable[[], Certificate], *, inverted: bool = False
) -> Certificate:
    points = _vertices([*lines, (Fraction(0), Fraction(0))])
    masses = _line_masses(points)
    if inverted:
        masses = masses.inverse()
    pairs = [[float(intercept), float(slope)] for intercept, slope in lines]
    return _tight(
        masses.operator(),
        {"type": "inverse of from_tradeoff" if inverted else "from_tradeoff", "f": pairs},
        inverse=inverse,
        recipe=(inverse_of_lines if inverted else from_tradeoff, (pairs,)),
        masses=lambda: masses,
    )


def inverse_of_lines(f: Sequence[Sequence[float]]) -> Certificate:
    """Return the certificate of the inverted ball for a piecewise linear trade-off function."""
    return from_tradeoff(f).inverse()


def _vertices(lines: Sequence[Line]) -> list[Point]:
    """Return the vertices of the largest of lines on [0, 1], from 0 on."""
    at, points = Fraction(0), []
    height, slope = max((b, s) for b, s in lines)
    points.append((at, height))
    while at < 1:
        ahead = [(at + (height - b - s * at) / (s - slope), -s) for b, s in lines if s > slope]
        place, minus_slope = min(ahead, default=(Fraction(1), Fraction(0)))
        if place >= 1:
            points.append((Fraction(1), height + slope * (1 - at)))
            break
        height, at, slope = height + slope * (place - at), place, -minus_slope
        points.append((at, height))
    return points


def _line_masses(points: Sequence[Point]) -> Masses:
    """Return the regions: where f falls by y over a width of x, the masses are x and y."""
    clean = [b[0] - a[0] for a, b in pairwise(points)]
    perturbed = [a[1] - b[1] for a, b in pairwise(points)]
    clean.append(Fraction(0))
    perturbed.append(1 - points[0][1])
    return Masses(
        as_masses(clean),
        as_masses(perturbed),
        _MASS_ERROR,
        2 * len(clean) * TRUE_MIN,
    )
