"""Certificates made of certificates: one change after the other, noise in levels, several parts.

Each operand must be valid for randomised events, with values in [0, 1], and not only for sets: the
proofs apply it to what is left of an event once one part of the noise is known. Ours are. Of bounds
from outside it is assumed, and `Certificate.describe` says so under ``note``.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from bincp._utils.levels import Level, as_fraction
from bincp._utils.validation import check_flag, check_integer, check_probability
from bincp.certificates._certificate import (
    Certificate,
    Recipe,
    facts_of,
    given_masses,
    make_certificate,
    taken_apart,
)
from bincp.certificates._combined import (
    best,
    chain,
    evaluations_of,
    hierarchy,
    joint_shift,
    power,
    strict,
)
from bincp.certificates._curves import in_sequence
from bincp.certificates._facts import TRADE_OFF, Facts
from bincp.certificates._law import check_law
from bincp.certificates._masses import Masses, mixed, of_operator, outer, two_levels
from bincp.certificates._minorant import minorant
from bincp.certificates._protocols import Operator
from bincp.certificates._python_operators import PythonOperator

MAX_EVALUATIONS = 10**6  # of bounds at one p, which cannot be interrupted
MAX_DEPTH = 100  # of certificates in certificates; Python's stack holds their descriptions
MAX_PARTS = 10_000  # of a description
_MAX_ACCURATE = 64  # bounds one after the other of which the minorant knows the rounding error
_MOST_REGIONS = 2**10  # of a part of a product
_MOST_DESCRIBED = 1000  # given regions
_MOST_KNOTS = 256  # of a curve of exact fractions
_CELLS_OF_PRODUCT = 300
_CELLS_OF_MIXTURE = 1500
_UNCHANGED = Facts(tight=True, convex=True, single=True)  # of the identity, its own regions


def compose(first: Certificate, second: Certificate, *more: Certificate) -> Certificate:
    """Return the certificate of one ball after another, each around where the one before ended.

    ``lower(p) = second.lower(first.lower(p))`` and ``upper(p) = first.upper(second.upper(p))``: the
    order turns round, as `upper` goes back from the perturbed input to the clean one.

    Parameters
    ----------
    first, second, *more : Certificate
        Certificates of one smoothing scheme, in the order of the changes; or of schemes for parts
        of an input that get noise independently of each other, for which `product` is better. They
        must hold for randomised events, as those of bincp do; of bounds from outside that is
        assumed.

    Returns
    -------
    Certificate
        Its description says so under ``note`` where operands name different schemes. Described as
        tight where the shifts add up, as for two balls of one norm and Gaussian
        noise. Else it may be loose: two changes of one coordinate cost more than one certificate
        for two coordinates. So use `bincp.certify` where it knows the whole ball.

    Raises
    ------
    TypeError
        If an argument is not a `Certificate`.
    ValueError
        If the certificate would need more than 10^6 evaluations of bounds for one probability, be
        more than 100 certificates deep, or be made of more than 10^4.

    Notes
    -----
    The limits of `compose` are those of all functions that make certificates of certificates: a
    bound for one probability cannot be interrupted, and Python's stack must hold the description.

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
    operator, masses = _in_sequence(parts, 1)
    return combined(
        operator,
        {"type": "compose"},
        parts,
        facts=Facts(
            tight=family is not None,
            convex=all(facts_of(part).convex for part in parts),
            family=family,
            single=all(facts_of(part).family == TRADE_OFF for part in parts),
            masses=masses,
        ),
        inverse=lambda: compose(*(part.inverse() for part in reversed(parts))),
        recipe=(compose, tuple(parts)),
        note=_note_of_schemes(parts),
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
        If `r` is outside [0, 10^6], or the certificate too large, see `compose`.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, on group privacy.

    Examples
    --------
    >>> from bincp.certificates import from_privacy, repeat
    >>> round(repeat(from_privacy(0.5), 2).lower(0.9), 6), round(from_privacy(1).lower(0.9), 6)
    (0.728172, 0.728172)
    """
    part = checked_operand("certificate", certificate)
    r = check_integer("r", r, low=0, high=MAX_EVALUATIONS)
    known = facts_of(part)
    operator, masses = _in_sequence([part], r)
    return combined(
        operator,
        {"type": "repeat", "r": r},
        [part],
        facts=(
            replace(_UNCHANGED, family=known.family)
            if r == 0
            else Facts(
                tight=known.family is not None or (r == 1 and known.tight),
                convex=known.convex,
                family=known.family,
                single=known.family == TRADE_OFF,
                masses=masses,
            )
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
        If `q` is outside [0, 1], `r` out of range, or the certificate too large, see `compose`.

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
    operator = hierarchy(operand(part), Fraction(q), r)
    return combined(
        operator,
        {"type": "hierarchical", "q": q, "r": r, "shown": shown},
        [part],
        facts=(
            _UNCHANGED
            if r == 0
            else Facts(
                tight=known.tight and shown,
                convex=known.convex,
                single=known.single and shown,
                masses=_then(known.masses, lambda own: two_levels(own, *power(Fraction(q), r))),
            )
        ),
        inverse=lambda: hierarchical(part.inverse(), q, r, shown=shown),
        recipe=(_hierarchical, (part, q, r, shown)),
    )


def product(first: Certificate, second: Certificate) -> Certificate:
    """Return the certificate of two independent parts of an input that are attacked together.

    Both ``second.lower(first.lower(p))`` and the other order are valid: change one part, then the
    other. So is the bound of the tensor product of the two trade-off functions, from the products
    of their likelihood-ratio regions. Where a certificate is no knapsack over regions, those of a
    piecewise linear curve just below it take their place. `lower` is the largest of the three
    bounds, and `upper` the smallest.

    Parameters
    ----------
    first, second : Certificate
        Those of the two parts. The noise of one must not depend on the input of the other. They
        must hold for randomised events, as those of bincp do; of bounds from outside that is
        assumed.

    Returns
    -------
    Certificate
        Described as tight where both are, and have at most 2^10 regions or are Gaussian.

    Raises
    ------
    TypeError
        If an argument is not a `Certificate`.
    ValueError
        If the certificate would be too large, see `compose`.

    References
    ----------
    Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 2022, on tensor products.

    Examples
    --------
    >>> import bincp
    >>> from bincp.certificates import compose, product
    >>> flips = bincp.certify(bincp.smoothing.SparseFlip(0.01, 0.6), bincp.balls.Flips(1, 3))
    >>> round(product(flips, flips).lower(0.95), 4), round(compose(flips, flips).lower(0.95), 4)
    (0.0247, 0.0056)
    """
    parts = [checked_operand("first", first), checked_operand("second", second)]
    one, two = map(operand, parts)
    orders = [chain([one, two]), chain([two, one])]
    _check_size("product", parts, sum(map(evaluations_of, orders)) + 1)  # before the long work
    known = [facts_of(part) for part in parts]
    tensor, masses = joint_shift(one, two), None
    are_exact = tensor is not None
    if tensor is None:
        regions = [masses_of(part, _CELLS_OF_PRODUCT, _MOST_REGIONS) for part in parts]
        whole = outer(*(one for one, _ in regions))
        tensor = whole.operator()
        are_exact = all(exact for _, exact in regions)
        masses = (lambda: whole) if are_exact else None
    return combined(
        best([*orders, tensor]),
        {"type": "product"},
        parts,
        facts=Facts(
            tight=are_exact and all(fact.tight for fact in known),
            convex=all(fact.convex for fact in known),
            single=are_exact and all(fact.single for fact in known),
            masses=masses,
        ),
        inverse=lambda: product(*(part.inverse() for part in parts)),
        recipe=(product, tuple(parts)),
    )


def mixture(certificates: Sequence[Certificate], weights: Sequence[Level]) -> Certificate:
    """Return the certificate of a scheme that is drawn anew for each draw, and revealed.

    `lower` is the least of ``sum_s w_s c_s(p_s)`` over all p_s with ``sum_s w_s p_s = p``, the
    weighted infimal convolution; `upper` is the largest such sum of the upper bounds. The mean of
    the bounds at p itself is unsound. Certificates that are no knapsack over regions are replaced
    by a piecewise linear curve just below their lower convex envelope.

    Parameters
    ----------
    certificates : sequence of Certificate
        Those of the schemes, for one ball. They must hold for randomised events, as those of bincp
        do; of bounds from outside that is assumed.
    weights : sequence of int, float, str, Decimal or Fraction
        Probabilities of the schemes. They must sum to 1 exactly; a float stands for its shortest
        decimal, and ``Fraction(1, 3)`` for a third.

    Returns
    -------
    Certificate
        Valid, too, where the model is not told which scheme was drawn. Described as tight where
        one pair of laws is the worst for all schemes. The attack must not know the scheme.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If there is no certificate, the lengths differ, a weight is negative, or they do not sum to
        1; or if the certificate would be too large, see `compose`.

    Notes
    -----
    The scheme must be drawn for each draw. One scheme that is kept for all draws of an input makes
    them depend on each other, and voids the guarantee: use the least of the lower bounds there.

    Examples
    --------
    >>> import bincp
    >>> from bincp.certificates import mixture
    >>> mild = bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.25))
    >>> strong = bincp.certify(bincp.smoothing.Uniform(2), bincp.balls.L1(0.25))
    >>> round(mixture([mild, strong], ["1/2", "1/2"]).lower(0.9), 9)
    0.74375
    """
    parts = [
        checked_operand(f"certificates[{i}]", part)
        for i, part in enumerate(_listed("certificates", certificates, "certificates"))
    ]
    shares = _shares(weights, len(parts))
    used = [(part, share) for part, share in zip(parts, shares, strict=True) if share > 0]
    regions = [masses_of(part, _CELLS_OF_MIXTURE) for part, _ in used]
    masses = mixed([one for one, _ in regions], [share for _, share in used])
    known = [facts_of(part) for part, _ in used]
    are_single = all(fact.single for fact in known) and all(exact for _, exact in regions)
    return combined(
        masses.operator(),
        {"type": "mixture", "weights": [str(share) for share in shares]},
        parts,
        facts=Facts(
            tight=are_single and all(fact.tight for fact in known),
            convex=True,
            single=are_single,
            masses=lambda: masses,
        ),
        inverse=lambda: mixture([part.inverse() for part in parts], shares),
        recipe=(mixture, (parts, shares)),
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
        count = evaluations_of(operator)
        return PythonOperator(
            operator.name, certificate.lower, certificate.upper, evaluations=count
        )
    return strict(operator)


def combined(
    operator: Operator,
    content: dict[str, Any],
    parts: Sequence[Certificate],
    *,
    facts: Facts,
    inverse: Callable[[], Certificate],
    recipe: Recipe,
    note: str = "",
) -> Certificate:
    """Return a certificate made of others, described by them; check the law if one is foreign."""
    known = [facts_of(part) for part in parts]
    evaluations = evaluations_of(operator)
    depth, size = _check_size(content["type"], parts, evaluations)
    described = [_described(part) for part in parts]
    details: dict[str, Any] = {"made_by": {**content, "parts": described}, "tight": facts.tight}
    assumed = sorted({taken_apart(part)[0].name for part in parts if not facts_of(part).randomised})
    if assumed:
        also = f"holds if the bounds {assumed} do for randomised events"
        note = f"{note}; {also}" if note else also
    if note:
        details["note"] = note
    made = make_certificate(
        Certificate,
        operator,
        details | _assumptions(described),
        inverse=inverse,
        recipe=recipe,
        facts=replace(
            facts,
            randomised=not assumed,
            convex=facts.convex and evaluations <= _MAX_ACCURATE,
            rough=_MAX_ACCURATE * sum(fact.rough for fact in known),
            depth=depth,
            parts=size,
        ),
    )
    if assumed:
        check_law(made)
    return made


def _check_size(kind: str, parts: Sequence[Certificate], evaluations: int) -> tuple[int, int]:
    """Return the depth and the size of a certificate made of parts.

    One that takes too long, or whose description Python cannot hold, is refused.
    """
    known = [facts_of(part) for part in parts]
    depth, size = 1 + max(fact.depth for fact in known), 1 + sum(fact.parts for fact in known)
    for found, most, wanted, cure in (
        (evaluations, MAX_EVALUATIONS, "need {} evaluations of bounds for one probability", ""),
        (depth, MAX_DEPTH, "be {} certificates deep", "; `compose` takes many at once"),
        (size, MAX_PARTS, "be made of {} certificates", "; `repeat` stands for equal ones"),
    ):
        if found > most:
            limit = wanted.format(f"at most {most}")
            raise ValueError(f"`{kind}` must {limit}, got {found}{cure}")
    return depth, size


def _in_sequence(
    parts: Sequence[Certificate], rounds: int
) -> tuple[Operator, Callable[[], Masses] | None]:
    """Return the operator of parts one after the other, and the regions where all have few."""
    plain = chain([operand(part) for part in parts], rounds)
    if of_operator(plain) is not None or len(parts) * rounds > _MAX_ACCURATE:
        return plain, None
    regions = [_regions(part) for part in parts]
    known = [masses for masses in regions if masses is not None]
    knots = sum(len(masses.clean) for masses in known) * rounds
    if len(known) < len(regions) or knots > _MOST_KNOTS:
        return plain, None
    whole = in_sequence(known * rounds)
    return whole.operator(), lambda: whole


def masses_of(
    certificate: Certificate, n_cells: int, most: int | None = None
) -> tuple[Masses, bool]:
    """Return the regions of a certificate and true, or those of a curve just below it and false.

    The curve also takes the place of more than `most` regions.
    """
    own = _regions(certificate)
    if own is not None and (most is None or len(own.clean) <= most):
        return own, True
    known = facts_of(certificate)
    convex = own is not None or known.convex
    curve = minorant(operand(certificate), convex=convex, rough=known.rough, n_cells=n_cells)
    return curve, False


def _regions(certificate: Certificate) -> Masses | None:
    """Return the regions of a certificate, None if it has none."""
    masses = facts_of(certificate).masses
    return of_operator(operand(certificate)) if masses is None else masses()


def _note_of_schemes(parts: Sequence[Certificate]) -> str:
    """Return what must hold of the schemes that parts name, nothing where they name one."""
    schemes = [scheme for part in parts if (scheme := part.describe().get("smoothing"))]
    if all(scheme == schemes[0] for scheme in schemes):
        return ""
    return "holds if the schemes are one law, or noise of independent parts of an input"


def _then(
    find: Callable[[], Masses | None] | None, change: Callable[[Masses], Masses]
) -> Callable[[], Masses | None] | None:
    """Return a function that changes the regions that another one finds."""
    if find is None:
        return None
    return lambda: None if (masses := find()) is None else change(masses)


def _listed(name: str, values: object, wanted: str) -> list[Any]:
    without_axis = isinstance(values, np.ndarray) and values.ndim == 0  # says it is iterable
    if isinstance(values, str | Certificate) or not isinstance(values, Iterable) or without_axis:
        raise TypeError(f"`{name}` must be a sequence of {wanted}, got {values!r}")
    made = list(values)
    if not made:
        raise ValueError(f"`{name}` must not be empty")
    return made


def _shares(weights: object, n: int) -> list[Fraction]:
    """Return weights as exact numbers that sum to 1."""
    shares = [
        as_fraction(f"weights[{i}]", weight)
        for i, weight in enumerate(_listed("weights", weights, "numbers"))
    ]
    if len(shares) != n:
        raise ValueError(
            f"`weights` must have one element for each of {n} certificates, got {len(shares)}"
        )
    if min(shares) < 0 or sum(shares) != 1:
        raise ValueError(
            f"`weights` must be >= 0 and sum to 1 exactly, got {[str(share) for share in shares]}, "
            f"whose sum is {sum(shares)}; write a third as Fraction(1, 3) or '1/3'"
        )
    return shares


def _described(part: Certificate) -> dict[str, Any]:
    """Return the description of a part, with the masses of given regions."""
    own = part.describe()
    given = given_masses(part)
    if given is None or len(given[0]) > _MOST_DESCRIBED:
        return own
    return own | {"mass": given[0].tolist(), "perturbed_mass": given[1].tolist()}


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


def _common_family(parts: Sequence[Certificate]) -> Hashable:
    """Return the family that all parts are of; None if there is none."""
    families = {facts_of(part).family for part in parts}
    return families.pop() if len(families) == 1 else None


def _hierarchical(certificate: Certificate, q: float, r: int, shown: bool) -> Certificate:
    return hierarchical(certificate, q, r, shown=shown)
