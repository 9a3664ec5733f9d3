"""Certificates made of certificates: one change after the other, noise in levels, several parts.

Each operand must be valid for randomised events, with values in [0, 1], and not only for sets: the
proofs apply it to what is left of an event once one part of the noise is known. Ours are. Of bounds
from outside it is assumed, and `Certificate.describe` says so under ``note``.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from bincp._utils.validation import check_flag, check_integer, check_probability
from bincp.certificates._certificate import (
    Certificate,
    Recipe,
    facts_of,
    make_certificate,
    taken_apart,
)
from bincp.certificates._combined import chain, hierarchy, strict
from bincp.certificates._facts import Facts
from bincp.certificates._law import check_law
from bincp.certificates._protocols import Operator
from bincp.certificates._python_operators import PythonOperator

MAX_REPEATS = 10**6  # evaluations of a bound at one p, which cannot be interrupted


def compose(first: Certificate, second: Certificate, *more: Certificate) -> Certificate:
    """Return the certificate of one ball after another, each around where the one before ended.

    ``lower(p) = second.lower(first.lower(p))`` and ``upper(p) = first.upper(second.upper(p))``: the
    order turns round, as `upper` goes back from the perturbed input to the clean one.

    Parameters
    ----------
    first, second, *more : Certificate
        Certificates of one smoothing scheme, in the order of the changes. They must hold for
        randomised events, as those of bincp do; of bounds from outside that is assumed.

    Returns
    -------
    Certificate
        Described as tight where the shifts add up, as for two balls of one norm and Gaussian
        noise. Else it may be loose: two changes of one coordinate cost more than one certificate
        for two coordinates. So use `bincp.certify` where it knows the whole ball.

    Raises
    ------
    TypeError
        If an argument is not a `Certificate`.

    Examples
    --------
    >>> import bincp
    >>> from bincp.certificates import compose
    >>> noise = bincp.smoothing.Gaussian(0.5)
    >>> step = bincp.certify(noise, bincp.balls.L2(0.25))
    >>> whole = bincp.certify(noise, bincp.balls.L2(0.5))
    >>> round(compose(step, step).lower(0.9), 9) == round(whole.lower(0.9), 9)
    True
    """
    parts = [
        checked_operand(name, part)
        for name, part in _named(("first", "second"), "more", (first, second, *more))
    ]
    family = _common_family(parts)
    return combined(
        chain([operand(part) for part in parts]),
        {"type": "compose"},
        parts,
        facts=Facts(
            randomised=True,
            tight=family is not None,
            convex=all(facts_of(part).convex for part in parts),
            family=family,
        ),
        inverse=lambda: compose(*(part.inverse() for part in reversed(parts))),
        recipe=(compose, tuple(parts)),
    )


def repeat(certificate: Certificate, r: int) -> Certificate:
    """Return the certificate of `r` changes, one after the other, of which each is in the ball.

    Parameters
    ----------
    certificate : Certificate
        The certificate of one change, such as :func:`from_privacy` of one changed record.
    r : int
        Number of changes, in [0, 10^6]. No change leaves every probability as it is.

    Returns
    -------
    Certificate
        That of `compose` with r equal operands. For a trade-off function it is the iterated one,
        which is at least the group privacy formula
        ``(r epsilon, delta (e^(r epsilon) - 1) / (e^epsilon - 1))``, and tight.

    Raises
    ------
    TypeError
        If `certificate` is not a `Certificate`, or `r` not an integer.
    ValueError
        If `r` is outside [0, 10^6].

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, on group privacy.

    Examples
    --------
    >>> import bincp
    >>> from bincp.certificates import repeat
    >>> one = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.125))
    >>> round(repeat(one, 3).lower(0.9), 9)
    0.525
    """
    part = checked_operand("certificate", certificate)
    r = check_integer("r", r, low=0, high=MAX_REPEATS)
    known = facts_of(part)
    return combined(
        chain([operand(part)], r),
        {"type": "repeat", "r": r},
        [part],
        facts=Facts(
            randomised=True,
            tight=r == 0 or known.family is not None or (r == 1 and known.tight),
            convex=known.convex,
            family=known.family,
        ),
        inverse=lambda: repeat(part.inverse(), r),
        recipe=(repeat, (part, r)),
    )


def hierarchical(certificate: Certificate, q: float, r: int, *, shown: bool = False) -> Certificate:
    """Return the certificate of noise in two levels: select elements at random, then smooth them.

    Each element, such as a node, a row or a pixel, is selected with probability `q`, independently
    of the others, and only selected ones get noise. With w = q^r, the probability that all changed
    elements are selected,
    ``lower(p) = w c.lower(max(0, 1 - (1 - p) / w))`` and
    ``upper(p) = 1 - w (1 - c.upper(min(1, p / w)))``.

    Parameters
    ----------
    certificate : Certificate
        That of the noise on the selected elements. Its ball must hold the whole change of `r`
        elements, not that of one of them. It must hold for randomised events, as those of bincp do.
    q : float
        Probability that an element is selected, in [0, 1].
    r : int
        Number of elements that may change, in [0, 2^31); at most the number that there are.
    shown : bool
        Whether a changed element that is not selected betrays itself: the selection is part of the
        noisy input, or the noise is continuous, so that no selected element has its old value.
        The bounds hold in any case; this says whether no better ones do. For discrete noise with a
        hidden selection, ``(1 - q)`` times the identity and ``q`` times the noise is one kernel,
        such as ``SparseFlip(q p_plus, q p_minus)``, whose certificate is better.

    Returns
    -------
    Certificate
        With w below the smallest double it is the trivial one. If nothing is changed, r = 0, it is
        the identity.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If `q` is outside [0, 1], or `r` out of range.

    References
    ----------
    Scholten, Schuchardt, Bojchevski and Günnemann, "Hierarchical randomized smoothing",
    NeurIPS 2023.

    Examples
    --------
    >>> import bincp
    >>> from bincp.certificates import hierarchical
    >>> inner = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    >>> round(hierarchical(inner, q=0.9, r=1).lower(0.95), 6)
    0.651134
    """
    part = checked_operand("certificate", certificate)
    q = check_probability("q", q)
    r = check_integer("r", r, low=0, high=2**31 - 1)
    shown = check_flag("shown", shown)
    known = facts_of(part)
    return combined(
        hierarchy(operand(part), Fraction(q), r),
        {"type": "hierarchical", "q": q, "r": r, "shown": shown},
        [part],
        facts=Facts(randomised=True, tight=known.tight and shown, convex=known.convex),
        inverse=lambda: hierarchical(part.inverse(), q, r, shown=shown),
        recipe=(_hierarchical, (part, q, r, shown)),
    )


# ---- what all combinators share -----------------------------------------------------------------


def checked_operand(name: str, value: object) -> Certificate:
    """Return an operand, which must be a certificate."""
    if not isinstance(value, Certificate):
        raise TypeError(f"`{name}` must be a Certificate, got {value!r}")
    return value


def operand(certificate: Certificate) -> Operator:
    """Return the operator of an operand; a subclass may have bounds of its own."""
    operator, _ = taken_apart(certificate)
    if type(certificate) is not Certificate:
        return PythonOperator(operator.name, certificate.lower, certificate.upper)
    return strict(operator)


def combined(
    operator: Operator,
    content: dict[str, Any],
    parts: Sequence[Certificate],
    *,
    facts: Facts,
    inverse: Callable[[], Certificate],
    recipe: Recipe,
) -> Certificate:
    """Return a certificate made of others, described by them; check the law if one is foreign."""
    described = [part.describe() for part in parts]
    details: dict[str, Any] = {"made_by": {**content, "parts": described}, "tight": facts.tight}
    assumed = sorted({taken_apart(part)[0].name for part in parts if not facts_of(part).randomised})
    if assumed:
        details["note"] = f"holds if the bounds {assumed} do for randomised events"
    made = make_certificate(
        Certificate,
        operator,
        details | _assumptions(described),
        inverse=inverse,
        recipe=recipe,
        facts=facts,
    )
    if assumed:
        check_law(made)
    return made


def _assumptions(described: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return what the parts assume of the model; nothing is said where a part does not say."""
    stated = {part.get("assumes") for part in described}
    texts = sorted(text for text in stated if text not in (None, "nothing"))
    if texts:
        return {"assumes": "; ".join(texts)}
    return {"assumes": "nothing"} if stated == {"nothing"} else {}


def _named(names: Sequence[str], rest: str, values: Sequence[object]) -> list[tuple[str, object]]:
    """Return arguments with their names, for messages."""
    more = [f"{rest}[{i}]" for i in range(len(values) - len(names))]
    return list(zip((*names, *more), values, strict=True))


def _common_family(parts: Sequence[Certificate]) -> str | None:
    """Return the family that all parts are of; None if there is none."""
    families = {facts_of(part).family for part in parts}
    return families.pop() if len(families) == 1 else None


def _hierarchical(certificate: Certificate, q: float, r: int, shown: bool) -> Certificate:
    return hierarchical(certificate, q, r, shown=shown)
