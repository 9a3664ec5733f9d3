"""Certificates: how far an adversary can lower the probability that a score reaches tau.

A certificate is two maps on [0, 1] that do not decrease, up to rounding: ``lower`` over the
perturbation ball and ``upper`` over the inverted ball, tied by the law
``upper(p) >= q  <=>  p >= lower(q)``. Because of the law one scalar certificate serves a whole
data set. (It holds where a bound is clipped or saturated, too, unlike the identity
``lower(upper(p)) == p``, which needs strictly increasing bounds.)
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_probabilities
from bincp._utils.threads import run_all, shares
from bincp._utils.validation import check_flag, check_integer, check_probability, check_real
from bincp.certificates._facts import NOTHING_KNOWN, Facts
from bincp.certificates._law import check_law
from bincp.certificates._native_operators import native_operator
from bincp.certificates._protocols import Bound, Operator
from bincp.certificates._python_operators import (
    AdditiveRadius,
    HalfRadius,
    Mirror,
    PythonOperator,
    check_radius,
)
from bincp.certificates._regions import check_masses, completed, regions_operator

# A thread is started for at least this many values, some 0.1 ms of Gaussian bounds; for fewer its
# start costs more than it saves.
_THREAD_VALUES = 1 << 15

Recipe = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments that make a certificate again, for pickle."""


class Certificate:
    """The certificate of one smoothing scheme for one perturbation ball.

    `lower` maps the probability that a score of the clean input reaches a threshold to the least
    probability at any input in the ball. `upper` maps the probability at the perturbed input to
    the largest probability at the clean one. `lower` is rounded down and `upper` up.

    A certificate is made by :func:`bincp.certify`, :meth:`from_regions`, :meth:`from_radius`,
    :meth:`from_bounds` or :meth:`from_native`.

    Notes
    -----
    A certificate never changes, so any number of threads may share it; one made of functions from
    outside is as thread-safe as those. Arrays of probabilities are copied before they are checked,
    so that another thread may write to them meanwhile. Certificates of built-in pairs, of
    regions and of module-level Python functions can be pickled; those of lambdas and of compiled
    functions cannot.

    Each value is rounded to its safe side, so a bound can fall by its rounding where the exact
    bound rises by less. Over 1,500 neighbouring doubles at 350 places down to 1e-300, bounds of the
    uniform and Laplace shifts, of counts and of regions never fell. Those of Gaussian noise fell by
    up to 5e-15 of themselves, and by 2.3e-13 where a probability is tiny; those of Pareto noise by
    20 units in the last place, of Expp and Exp2 by 230.

    Examples
    --------
    >>> import bincp
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    >>> round(certificate.lower(0.9), 6), round(certificate.upper(0.9), 6)
    (0.610856, 0.988742)
    """

    __slots__ = ("_details", "_facts", "_inverse", "_operator", "_pair", "_recipe")

    _operator: Operator
    _details: dict[str, Any]  # entries of `describe` beside the name of the operator
    _pair: dict[str, Any]  # the smoothing and the ball, as `describe` shows them; empty if unknown
    _inverse: Callable[[], "Certificate"]
    _recipe: Recipe | None
    _facts: Facts

    def __init__(self) -> None:
        raise TypeError(
            "`Certificate` is not made directly: use bincp.certify, Certificate.from_regions, "
            "Certificate.from_radius, Certificate.from_bounds or Certificate.from_native"
        )

    @property
    def operator(self) -> Any:
        """The object that evaluates the bounds.

        Where the certificate is made of compiled code, Cython code gets its class by
        ``from bincp cimport Operator`` and calls it without the GIL; its attribute ``capsule`` is
        the same for C code, a capsule named ``"bincp.operator.v1"``. The page on embedding has
        examples.
        """
        return self._operator

    @overload
    def lower(self, p: float, *, n_threads: int = 1) -> float: ...
    @overload
    def lower(self, p: ArrayLike, *, n_threads: int = 1) -> Any: ...
    def lower(self, p: ArrayLike, *, n_threads: int = 1) -> Any:
        """Return the worst-case probability over the ball, rounded down.

        Parameters
        ----------
        p : float or array_like
            Probability in [0, 1] that a score of the clean input reaches the threshold.
        n_threads : int, default=1
            Number of threads that may share a large array; the bounds are the same. Certificates
            made of Python functions use one.

        Returns
        -------
        float or ndarray of float64
            Certified lower bound at any input in the ball, of the shape of `p`; at most `p`.

        Raises
        ------
        TypeError
            If `p` does not hold real numbers, or `n_threads` is not an integer.
        ValueError
            If a value is outside [0, 1] or NaN, or `n_threads` is below 1.
        """
        if type(n_threads) is not int or n_threads < 1:  # no call for an int: scalars are quick
            n_threads = check_integer("n_threads", n_threads, low=1)
        if isinstance(p, float) and 0.0 <= p <= 1.0:
            return self._operator.lower(p)
        if isinstance(self._operator, PythonOperator):
            n_threads = 1  # Python runs one thread at a time
        return _evaluate(self._operator.lower, self._operator.lower_fill, p, n_threads)

    @overload
    def upper(self, p: float, *, n_threads: int = 1) -> float: ...
    @overload
    def upper(self, p: ArrayLike, *, n_threads: int = 1) -> Any: ...
    def upper(self, p: ArrayLike, *, n_threads: int = 1) -> Any:
        """Return the best-case probability over the inverted ball, rounded up.

        Parameters
        ----------
        p : float or array_like
            Probability in [0, 1] that a score of the perturbed input reaches the threshold.
        n_threads : int, default=1
            Number of threads that may share a large array; the bounds are the same. Certificates
            made of Python functions use one.

        Returns
        -------
        float or ndarray of float64
            Certified upper bound at the clean input, of the shape of `p`; at least `p`.

        Raises
        ------
        TypeError
            If `p` does not hold real numbers, or `n_threads` is not an integer.
        ValueError
            If a value is outside [0, 1] or NaN, or `n_threads` is below 1.
        """
        if type(n_threads) is not int or n_threads < 1:  # no call for an int: scalars are quick
            n_threads = check_integer("n_threads", n_threads, low=1)
        if isinstance(p, float) and 0.0 <= p <= 1.0:
            return self._operator.upper(p)
        if isinstance(self._operator, PythonOperator):
            n_threads = 1  # Python runs one thread at a time
        return _evaluate(self._operator.upper, self._operator.upper_fill, p, n_threads)

    def inverse(self) -> "Certificate":
        """Return the certificate of the inverted ball.

        Its `lower` is over the inverted ball and its `upper` over the ball itself.

        Raises
        ------
        CertificateError
            If the scheme has no certificate for the inverted ball.

        Examples
        --------
        >>> import bincp
        >>> scheme = bincp.smoothing.SparseFlip(0.01, 0.6)
        >>> certificate = bincp.certify(scheme, bincp.balls.Flips(additions=1, deletions=3))
        >>> certificate.inverse().describe()["ball"]
        {'type': 'Flips', 'additions': 3, 'deletions': 1}
        """
        return self._inverse()

    def describe(self) -> dict[str, Any]:
        """Return a description of the certificate in plain JSON values.

        Returns
        -------
        dict
            The name of the ``operator``; type and parameters of ``smoothing`` and ``ball`` where
            they are known; under ``note`` facts for the user, such as a norm conversion; under
            ``assumes`` what the guarantee assumes because noise is drawn by a computer, "nothing"
            where it holds to the last bit that a model sees; and under ``charge`` by how much the
            drawn noise may differ from its law, in total variation, where the bounds pay for it.

        Examples
        --------
        >>> import bincp
        >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.Linf(0.1, 4))
        >>> certificate.describe()["note"]
        'linf radius 0.1 certified as the l2 radius r sqrt(dim), dim = 4'
        """
        return copy.deepcopy(self._pair | {"operator": self._operator.name} | self._details)

    def __repr__(self) -> str:
        parts = ", ".join(f"{key}={_show(value)}" for key, value in self.describe().items())
        return f"Certificate({parts})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self._recipe is None:
            raise TypeError(f"{self!r} cannot be pickled: use bincp.certify")
        return self._recipe

    @classmethod
    def from_regions(cls, mass: ArrayLike, perturbed_mass: ArrayLike) -> Self:
        """Return the certificate of a discrete smoothing with these likelihood-ratio regions.

        Each region is a set of outcomes of the noise with one likelihood ratio. `lower` is the
        fractional knapsack (Neyman-Pearson): regions are filled in decreasing order of
        mass / perturbed_mass; `upper` is the maximum with the two masses exchanged.

        Parameters
        ----------
        mass : array_like of float, shape (n_regions,)
            Probability of each region at the clean input. Sums to 1 within 1e-9.
        perturbed_mass : array_like of float, shape (n_regions,)
            Probability of the same regions at the worst input of the ball. Sums to 1 within 1e-9.

        Returns
        -------
        Certificate
            Rounded outward for masses that are right to a relative error of 2^-50, 9e-16.

        Raises
        ------
        TypeError
            If the masses are not real numbers.
        ValueError
            If the shapes differ, a mass is outside [0, 1] or NaN, or the sums are not 1.

        Notes
        -----
        Where the masses sum to less than 1 by more than that error explains, the missing mass is
        taken for a region that was left out, with the ratio that is worst for the bound. The error
        of the sum counts as missing, too, so that the bound holds for every such region.

        References
        ----------
        Lee et al., "Tight certificates of adversarial robustness for randomly smoothed
        classifiers", NeurIPS 2019, Section 3.2.

        Examples
        --------
        >>> certificate = Certificate.from_regions([0.7, 0.3], [0.2, 0.8])
        >>> round(certificate.lower(0.9), 12)
        0.733333333333
        """
        clean = check_masses("mass", mass)
        perturbed = check_masses("perturbed_mass", perturbed_mass)
        if clean.shape != perturbed.shape:
            raise ValueError(
                f"`perturbed_mass` must have the shape of `mass`, {clean.shape}, "
                f"got {perturbed.shape}"
            )
        return make_certificate(
            cls,
            regions_operator(clean, perturbed),
            {"n_regions": len(clean)},
            inverse=lambda: cls.from_regions(perturbed, clean),
            recipe=(cls.from_regions, (clean, perturbed)),
            facts=Facts(
                randomised=True,
                tight=True,
                convex=True,
                single=True,
                masses=lambda: completed(clean, perturbed),
            ),
        )

    @classmethod
    def from_radius(
        cls, radius_fn: Callable[[float], float], r: float, *, additive: bool = False
    ) -> Self:
        """Return a certificate from the certified radius of an existing binary certificate.

        A radius at the decision threshold 1/2 proves only that the probability stays at or above
        1/2 within that radius: `lower(p)` is 1/2 where ``radius_fn(p) >= r``, else 0.

        Parameters
        ----------
        radius_fn : callable
            Certified radius for a probability p in [0, 1]: a float, non-decreasing, possibly
            infinite, for floats. The ball is taken for symmetric, as that of a norm is.
        r : float
            Radius of the ball, >= 0, in the units of `radius_fn`.
        additive : bool
            Declare that radii add up: ``radius_fn(lower(p)) == radius_fn(p) - r``, as for
            Gaussian noise and other noise with R(p) = F^-1(p) up to scale. `radius_fn` must then
            be negative below 1/2; where it is clipped at 0 the bound is 0.

        Returns
        -------
        Certificate
            Bounds are the safe ends of brackets of adjacent doubles, for the values that
            `radius_fn` returns; `radius_fn` itself must round to the safe side.

        Raises
        ------
        TypeError
            If `radius_fn` is not callable, `r` not a real number, or `additive` not a bool.
        ValueError
            If `r` is negative or not finite.
        CertificateError
            If the radius decreases, raises or is NaN; the message names p.

        Examples
        --------
        >>> from statistics import NormalDist
        >>> def radius(p):
        ...     return 0.25 * NormalDist().inv_cdf(p) if 0 < p < 1 else (p - 0.5) * float("inf")
        >>> round(Certificate.from_radius(radius, 0.25, additive=True).lower(0.9), 6)
        0.610856
        >>> Certificate.from_radius(radius, 0.25).lower(0.9)
        0.5
        """
        if not callable(radius_fn):
            raise TypeError(f"`radius_fn` must be callable, got {radius_fn!r}")
        distance = check_real("r", r, low=0)
        check_flag("additive", additive)
        check_radius(radius_fn)
        name = "additive radius" if additive else "radius at 1/2"
        bounds = (AdditiveRadius if additive else HalfRadius)(radius_fn, distance)
        certificate = make_certificate(
            cls,
            PythonOperator(name, bounds.lower, bounds.upper),
            {"r": distance},
            inverse=lambda: certificate,
            recipe=(_rebuild_radius, (cls, radius_fn, distance, additive)),
        )
        check_law(certificate, irregular=False)  # they were for the radius itself
        return certificate

    @classmethod
    def from_bounds(cls, lower: Bound, upper: Bound | None = None, *, name: str = "bounds") -> Self:
        """Return a certificate from a pair of Python functions, or from the lower bound alone.

        Parameters
        ----------
        lower : callable
            Worst-case probability over the ball for one probability: float to float,
            non-decreasing, at most its argument, and already rounded down.
        upper : callable, optional
            Best-case probability over the inverted ball. Without it, the generalised inverse of
            `lower` is used: the largest q with ``lower(q) <= p``.
        name : str
            Name for messages.

        Returns
        -------
        Certificate

        Raises
        ------
        TypeError
            If a bound is not callable, or `name` not a string.
        CertificateError
            If the pair breaks the law of certificates; the message names p.

        Examples
        --------
        >>> certificate = Certificate.from_bounds(lambda p: max(p - 0.1, 0.0))
        >>> certificate.upper(0.5) >= 0.6
        True
        """
        for argument, bound in (("lower", lower), ("upper", upper)):
            if not (callable(bound) or (argument == "upper" and bound is None)):
                raise TypeError(f"`{argument}` must be callable, got {bound!r}")
        if not isinstance(name, str):
            raise TypeError(f"`name` must be a string, got {name!r}")
        certificate = make_certificate(
            cls,
            PythonOperator(name, lower, upper),
            {},
            inverse=lambda: cls._mirrored(certificate),
            recipe=(_rebuild_bounds, (cls, lower, upper, name)),
        )
        check_law(certificate)
        return certificate

    @classmethod
    def from_native(
        cls, lower: Any, upper: Any = None, *, name: str | None = None, user_data: Any = None
    ) -> Self:
        """Return a certificate from compiled code, called without the GIL and without Python.

        Parameters
        ----------
        lower : capsule or compiled function
            Both bounds, as a capsule named ``"bincp.operator.v1"`` that holds a ``bincp_operator``
            of ``bincp/bincp.h``; or the worst-case probability over the ball, as a function
            ``double (double)`` or ``double (double, void *)`` in one of these forms: a
            `scipy.LowLevelCallable`, a ctypes function pointer (with `restype` and `argtypes`), a
            cffi function pointer, or a numba cfunc.
        upper : compiled function, optional
            Best-case probability over the inverted ball, in any of these forms but a capsule.
            Without it, or with NULL for it in the struct, the generalised inverse of `lower` is
            used: the largest q with ``lower(q) <= p``, rounded up.
        name : str, optional
            Name for messages. Default: the name in the struct, or "native".
        user_data : pointer or buffer, optional
            The second argument of a function ``double (double, void *)``, required for it: a ctypes
            or cffi pointer, a capsule, or an object with one contiguous buffer, such as a NumPy
            array or a ctypes structure. A `scipy.LowLevelCallable` brings its own.

        Returns
        -------
        Certificate
            It holds references to all arguments.

        Raises
        ------
        TypeError
            If an argument is of another kind, or a function of another type.
        ValueError
            If a capsule has another name, a pointer is NULL, or `user_data` is missing or unwanted.
        CertificateABIError
            If the struct is of another version of the header.
        CertificateError
            If the bounds break the law of certificates; the message names p. Calls of the bounds
            raise it, too, where a function returns NaN or leaves [0, 1].

        Notes
        -----
        The functions must be safe to call from any thread, and round outward as
        :meth:`from_bounds` says. Changing the user data changes the bounds; they are not checked
        again. It must not be changed while another thread calls the certificate.

        Examples
        --------
        >>> import ctypes
        >>> bound = ctypes.CDLL(None).log1p  # log(1 + p) <= p
        >>> bound.restype, bound.argtypes = ctypes.c_double, (ctypes.c_double,)
        >>> certificate = Certificate.from_native(bound, name="log1p")
        >>> round(certificate.lower(0.5), 6), round(certificate.upper(0.5), 6)
        (0.405465, 0.648721)
        """
        certificate = make_certificate(
            cls,
            native_operator(lower, upper, name, user_data),
            {},
            inverse=lambda: cls._mirrored(certificate),
            recipe=None,
        )
        check_law(certificate)
        return certificate

    @classmethod
    def _mirrored(cls, certificate: "Certificate") -> Self:
        """Return the certificate of the inverted ball; it obeys the law where the other does."""
        mirror, name = Mirror(certificate), f"inverse of {certificate._operator.name}"
        mirrored = make_certificate(
            cls,
            PythonOperator(name, mirror.lower, mirror.upper),
            {},
            inverse=lambda: cls._mirrored(mirrored),
            recipe=(_rebuild_bounds, (cls, mirror.lower, mirror.upper, name)),
        )
        return mirrored


C = TypeVar("C", bound=Certificate)


def make_certificate(
    cls: type[C],
    operator: Operator,
    details: dict[str, Any],
    *,
    inverse: Callable[[], Certificate],
    recipe: Recipe | None,
    pair: dict[str, Any] | None = None,
    facts: Facts = NOTHING_KNOWN,
) -> C:
    """Return a certificate made of an operator; every certificate is made here."""
    certificate = object.__new__(cls)
    certificate._operator = operator
    certificate._details = details
    certificate._pair = pair or {}
    certificate._inverse = inverse
    certificate._recipe = recipe
    certificate._facts = facts
    return certificate


def facts_of(certificate: Certificate) -> Facts:
    """Return what is proven of a certificate; of a subclass, with bounds of its own, nothing is."""
    return certificate._facts if type(certificate) is Certificate else NOTHING_KNOWN


def given_masses(certificate: Certificate) -> tuple[Any, ...] | None:
    """Return the masses that `Certificate.from_regions` got, None for other certificates."""
    recipe = certificate._recipe
    return recipe[1] if recipe is not None and recipe[0] == Certificate.from_regions else None


def taken_apart(certificate: Certificate) -> tuple[Operator, dict[str, Any]]:
    """Return the operator of a certificate and its details, for a certificate of another pair."""
    return certificate._operator, certificate._details


def as_certificate(value: object) -> Certificate:
    """Return ``value``, which must be a certificate."""
    if not isinstance(value, Certificate):
        raise TypeError(f"`certificate` must be a Certificate, got {value!r}")
    return value


def _evaluate(
    bound: Bound,
    fill: Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], None],
    p: ArrayLike,
    n_threads: int,
) -> float | npt.NDArray[np.float64]:
    if np.isscalar(p):
        return bound(check_probability("p", p))
    values = as_probabilities("p", p)
    out = np.empty(values.shape)
    flat, flat_out = values.reshape(-1), out.reshape(-1)
    parts = shares(flat.size, n_threads, _THREAD_VALUES)
    run_all([partial(fill, flat[part], flat_out[part]) for part in parts])
    return out


def _show(value: Any) -> str:
    if isinstance(value, dict):
        parameters = ", ".join(f"{k}={v!r}" for k, v in value.items() if k != "type")
        return f"{value['type']}({parameters})"
    return repr(value)


def _rebuild_radius(
    cls: type[Certificate], radius_fn: Callable[[float], float], r: float, additive: bool
) -> Certificate:
    return cls.from_radius(radius_fn, r, additive=additive)


def _rebuild_bounds(
    cls: type[Certificate], lower: Bound, upper: Bound | None, name: str
) -> Certificate:
    return cls.from_bounds(lower, upper, name=name)
