"""What every certificate made of certificates obeys, whatever its parts."""

import ctypes
import itertools
import json
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from certificates.test_every_operator import HOSTILE, PAIRS, P, assert_no_sign_of_zero, bits

import bincp
from bincp import Certificate
from bincp.certificates import (
    _algebra,
    check_law,
    compose,
    described,
    from_gdp,
    from_privacy,
    from_tradeoff,
    hierarchical,
    mixture,
    product,
    repeat,
)
from bincp.certificates._algebra import MAX_DEPTH, MAX_EVALUATIONS

SPARSE = bincp.certify(bincp.smoothing.SparseFlip(0.1, 0.6), bincp.balls.Flips(1, 2))
GAUSSIAN = bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(0.5))
OPERANDS = [
    *(bincp.certify(scheme, ball) for scheme, ball in PAIRS),
    from_privacy(0.5, 0.01),
    from_gdp(0.7),
    from_tradeoff([(0.9, -1.0), (0.5, -0.5)]),
    Certificate.from_regions([0.5, 0.25, 0.25, 0.0], [0.125, 0.25, 0.5625, 0.0625]),
]
FOREIGN = [
    Certificate.from_bounds(lambda p: max(p - 0.125, 0.0)),
    Certificate.from_radius(lambda p: p - 0.5, 0.25),
    from_tradeoff(lambda a: max(0.0, 0.9 - a)),
]
COMBINED: dict[str, Callable[[Certificate], Certificate]] = {
    "first": lambda part: compose(part, SPARSE),
    "second": lambda part: compose(GAUSSIAN, part, SPARSE),
    "repeat": lambda part: repeat(part, 3),
    "hierarchical": lambda part: hierarchical(part, 0.9, 2),
    "nested": lambda part: hierarchical(repeat(compose(part, GAUSSIAN), 2), 0.75, 1),
}
SLOWER: dict[str, Callable[[Certificate], Certificate]] = {
    "product": lambda part: product(part, SPARSE),
    "product of products": lambda part: product(product(SPARSE, part), SPARSE),
    "mixture": lambda part: mixture([part, SPARSE], ["1/3", "2/3"]),
}


def different_operators() -> list[Certificate]:
    """Return one operand for each operator, and one whose noise is charged."""
    return list(
        {(c.operator.name, "charge" in c.describe()): c for c in reversed(OPERANDS)}.values()
    )


def assert_lawful(certificate: Certificate) -> None:
    check_law(certificate)
    assert_no_sign_of_zero(certificate)
    for bounded in (certificate, certificate.inverse()):
        lower, upper = bounded.lower(P), bounded.upper(P)
        assert np.all((lower >= 0) & (lower <= P) & (upper >= P) & (upper <= 1))
        assert bits(lower) == bits([bounded.lower(float(p)) for p in P])
        assert bits(upper) == bits([bounded.upper(float(p)) for p in P])
        assert (bounded.lower(0.0), bounded.upper(1.0)) == (0.0, 1.0)
    for p in HOSTILE:
        back = certificate.upper(certificate.lower(p))
        assert back >= p * (1 - 1e-9) or certificate.lower(p) < 1e-290  # subnormal on the way


@pytest.mark.parametrize("kind", COMBINED | SLOWER)
@pytest.mark.parametrize("part", different_operators(), ids=lambda part: part.operator.name)
def test_the_law_holds_with_every_operator(kind: str, part: Certificate) -> None:
    assert_lawful((COMBINED | SLOWER)[kind](part))


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMBINED)
def test_the_law_holds_with_every_pair(kind: str) -> None:
    for part in OPERANDS:
        assert_lawful(COMBINED[kind](part))


@pytest.mark.parametrize("kind", COMBINED | SLOWER)
@pytest.mark.parametrize("part", FOREIGN, ids=lambda part: part.operator.name)
def test_the_law_holds_with_bounds_from_outside(kind: str, part: Certificate) -> None:
    made = (COMBINED | SLOWER)[kind](part)
    check_law(made)
    for p in HOSTILE:
        assert 0 <= made.lower(p) <= p <= made.upper(p) <= 1


@pytest.mark.parametrize("kind", COMBINED | SLOWER)
def test_bounds_from_outside_are_taken_for_ones_of_randomised_events(kind: str) -> None:
    outside, own = (COMBINED | SLOWER)[kind](FOREIGN[0]), (COMBINED | SLOWER)[kind](GAUSSIAN)
    assert "randomised events" in outside.describe()["note"]
    assert "randomised events" not in own.describe().get("note", "")


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        *itertools.product(COMBINED, [OPERANDS[0], *OPERANDS[-9:]]),
        *itertools.product(SLOWER, [OPERANDS[0], OPERANDS[-1]]),
    ],
)
def test_descriptions_and_copies_make_it_again(kind: str, part: Certificate) -> None:
    made = (COMBINED | SLOWER)[kind](part)
    description = json.loads(json.dumps(made.describe(), allow_nan=False))
    assert description == made.describe()
    assert type(description["tight"]) is bool
    copies = [pickle.loads(pickle.dumps(made)), described(description), made.inverse().inverse()]
    for copy in copies:
        assert copy is not None
        assert copy.describe() == description
        assert bits(copy.lower(P)) == bits(made.lower(P))
        assert bits(copy.upper(P)) == bits(made.upper(P))


def test_what_a_description_does_not_tell_is_not_made_again() -> None:
    for part in FOREIGN:
        assert described(compose(part, SPARSE).describe()) is None
    whole = compose(GAUSSIAN, SPARSE).describe()
    changed = json.loads(json.dumps(whole))
    changed["made_by"]["parts"][0]["ball"]["r"] = 0.25
    other = described(changed)
    assert other is not None
    assert other.lower(0.9) > compose(GAUSSIAN, SPARSE).lower(0.9)
    changed["made_by"]["type"] = "conjure"
    assert described(changed) is None


@pytest.mark.parametrize("kind", COMBINED | SLOWER)
def test_a_stored_rule_has_its_certificate_again(kind: str, tmp_path: object) -> None:
    certificate = (COMBINED | SLOWER)[kind](GAUSSIAN)
    scores = np.random.default_rng(0).random((200, 64))
    rule = bincp.BinCP(certificate, alpha=0.5).calibrate(scores, n_classes=3)
    path = tmp_path / "rule.json"  # type: ignore[operator]
    rule.save(path)
    loaded = bincp.BinCP.load(path)
    assert loaded.certificate_description == certificate.describe()
    assert bits(loaded.certificate.lower(P)) == bits(certificate.lower(P))
    assert loaded.calibrate(scores, n_classes=3).min_count_ == rule.min_count_


def test_what_is_tight_and_what_is_not() -> None:
    shift = [bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.L2(r)) for r in (0.3, 0.5)]
    other = bincp.certify(bincp.smoothing.Gaussian(2.0), bincp.balls.L2(0.3))
    ablation = bincp.certify(bincp.smoothing.BandAblation(4, 32), bincp.balls.Patch(1, 1))
    converted = bincp.certify(bincp.smoothing.Laplace(1.0), bincp.balls.Linf(0.1, 4))
    wide, high = (
        bincp.certify(bincp.smoothing.Gaussian(1.0), bincp.balls.Ellipsoid(0.5, axes))
        for axes in ([1.0, 0.25], [0.25, 1.0])
    )
    private, regions = from_privacy(1.0, 0.1), Certificate.from_regions([0.7, 0.3], [0.2, 0.8])
    tight = [
        compose(*shift),
        repeat(shift[0], 5),
        repeat(wide, 2),
        repeat(private, 5),
        compose(private, from_gdp(0.5)),
        repeat(ablation, 1),
        hierarchical(shift[0], 0.9, 2, shown=True),
        product(SPARSE, SPARSE),
        product(*shift),
        mixture([private, from_privacy(0.3)], ["1/2", "1/2"]),
        mixture([regions, regions], ["1/2", "1/2"]),
    ]
    loose = [
        compose(shift[0], other),
        compose(wide, high),  # no change is the worst for both
        compose(ablation, ablation),
        repeat(ablation, 2),
        repeat(converted, 2),
        hierarchical(shift[0], 0.9, 2),
        product(shift[0], SPARSE),
        mixture([SPARSE, SPARSE], ["1/2", "1/2"]),
        mixture(shift, ["1/2", "1/2"]),
        compose(FOREIGN[0], FOREIGN[0]),
    ]
    assert [made.describe()["tight"] for made in tight] == [True] * len(tight)
    assert [made.describe()["tight"] for made in loose] == [False] * len(loose)


def test_a_note_tells_where_different_schemes_follow_each_other() -> None:
    noise = bincp.smoothing.Gaussian(1.0)
    other = bincp.certify(noise, bincp.balls.Linf(0.1, dim=4))
    for one_scheme in (compose(GAUSSIAN, other), compose(GAUSSIAN, from_gdp(0.5), GAUSSIAN)):
        assert "note" not in one_scheme.describe()
    text = "holds if the schemes are one law, or noise of independent parts of an input"
    wider = bincp.certify(bincp.smoothing.Gaussian(2.0), bincp.balls.L2(0.5))
    for schemes in (compose(GAUSSIAN, wider), compose(SPARSE, from_gdp(0.5), GAUSSIAN)):
        assert schemes.describe()["note"] == schemes.inverse().describe()["note"] == text
    outside = compose(SPARSE, GAUSSIAN, FOREIGN[0]).describe()["note"]
    assert outside == f"{text}; holds if the bounds ['bounds'] do for randomised events"


def test_assumptions_of_the_parts_are_kept() -> None:
    text = "the model does not read the last bits of x + noise"
    assert compose(GAUSSIAN, SPARSE).describe()["assumes"] == text
    assert compose(SPARSE, SPARSE).describe()["assumes"] == "nothing"
    assert "assumes" not in compose(SPARSE, FOREIGN[0]).describe()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compose(SPARSE, 0.5), "`second` must be a Certificate, got 0.5"),
        (lambda: compose(SPARSE, SPARSE, None), r"`more\[0\]` must be a Certificate, got None"),
        (lambda: repeat(SPARSE, -1), r"`r` must be in \[0, 1000000\], got -1"),
        (lambda: repeat(SPARSE, 2.0), "`r` must be an integer, got 2.0"),
        (lambda: hierarchical(SPARSE, 1.5, 1), r"`q` must be in \[0, 1\], got 1.5"),
        (lambda: hierarchical(SPARSE, 0.5, 1, shown=1), "`shown` must be"),
        (lambda: product(SPARSE, "x"), "`second` must be a Certificate, got 'x'"),
        (lambda: mixture(SPARSE, [1]), "`certificates` must be a sequence of certificates"),
        (lambda: mixture([SPARSE], [1, 0]), "`weights` must have one element for each of 1"),
        (lambda: mixture([SPARSE] * 3, [0.3333] * 3), "must be >= 0 and sum to 1 exactly"),
        (lambda: mixture([SPARSE] * 2, [1.5, -0.5]), "must be >= 0 and sum to 1 exactly"),
        (lambda: mixture([], []), "`certificates` must not be empty"),
        (lambda: from_privacy(-0.1), "`epsilon` must be finite and >= 0, got -0.1"),
        (lambda: from_privacy(1.0, 2), r"`delta` must be in \[0, 1\], got 2"),
        (lambda: from_gdp(float("inf")), "`mu` must be finite and >= 0, got inf"),
        (lambda: from_tradeoff(3), "`f` must be a function or pairs"),
        (lambda: from_tradeoff([(0.9, 1.0)]), r"`f\[0\]\[1\]` must be <= 0, got 1.0"),
        (lambda: from_tradeoff([(1.1, -1.1)]), r"`f\[0\]` must be at most 1 - a"),
        (lambda: from_tradeoff(lambda a: 1 - a / 2), r"`f` must be in \[0, 1 - a\]"),
        (lambda: from_tradeoff(lambda a: float(a == 0)), "`f` must be continuous at 0"),
        (lambda: from_tradeoff(lambda a: min(0.5, 1 - a)), "`f` must be convex"),
        (lambda: from_tradeoff(lambda a: None), r"f\(0.0\) raised TypeError"),
        (lambda: from_tradeoff(lambda a: "0"), r"`f` must be in \[0, 1 - a\], but f\(0.0\) = '0'"),
        (lambda: from_tradeoff(lambda a: float("nan")), r"`f` must be in \[0, 1 - a\]"),
        (lambda: mixture(np.array(0.5), [1]), "`certificates` must be a sequence of certificates"),
        (lambda: mixture([SPARSE], np.array(1)), "`weights` must be a sequence of numbers"),
        (lambda: mixture([SPARSE], [1 + 2.0**-52]), "must be >= 0 and sum to 1 exactly"),
        (lambda: from_privacy(float("nan")), "`epsilon` must be finite and >= 0, got nan"),
        (lambda: from_privacy(1.0, 1 + 2.0**-52), r"`delta` must be in \[0, 1\], got 1.0"),
        (lambda: repeat(SPARSE, 10**30), r"`r` must be in \[0, 1000000\]"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Certificate], message: str) -> None:
    with pytest.raises((TypeError, ValueError, bincp.CertificateError), match=message):
        call()


def test_extreme_parameters() -> None:
    for made in (
        from_privacy(1e308),
        from_privacy(5e-324, 5e-324),
        from_gdp(1e308),
        hierarchical(SPARSE, 5e-324, 2**31 - 1),
        from_tradeoff([]),
        from_tradeoff(lambda a: 5e-324),
    ):
        for p in HOSTILE:
            assert 0 <= made.lower(p) <= p <= made.upper(p) <= 1


def test_decimal_weights_are_what_was_written() -> None:
    both = [SPARSE, GAUSSIAN]
    assert mixture(both, [0.3, 0.7]).lower(0.9) == mixture(both, ["3/10", "7/10"]).lower(0.9)


@ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
def half(p: float) -> float:
    return p / 2


def test_a_name_proves_nothing_about_an_operator_from_outside() -> None:
    """One that is called as ours is taken at its bounds, not for what ours would be."""
    for name in ("identity", "uniform", "gaussian", "regions"):
        outside = Certificate.from_native(half, name=name)
        for made in (mixture([outside], [1]), product(outside, outside), compose(outside, outside)):
            assert made.lower(0.9) <= 0.45
            assert "note" in made.describe()


def test_an_identity_with_a_charge_is_none() -> None:
    """Noise that is not quite its law is charged for, also where nothing is changed."""
    part = bincp.certify(bincp.smoothing.SparseFlip(1e-40, 0.6), bincp.balls.Flips(0, 0))
    assert part.operator.name == "identity"
    assert part.describe()["charge"] > 0
    for made in (mixture([part], [1]), compose(part, part)):
        assert np.all(made.lower(P) <= part.lower(P))
        assert np.all(made.upper(P) >= part.upper(P))


def test_more_regions_than_a_product_takes() -> None:
    many = bincp.certify(bincp.smoothing.SparseFlip(0.25, 0.25), bincp.balls.Flips(150_000, 0))
    few = bincp.certify(bincp.smoothing.SparseFlip(0.1, 0.1), bincp.balls.Flips(1500, 0))
    for part in (many, few):
        for made in (compose(part, GAUSSIAN), product(part, SPARSE)):
            assert np.all(made.lower(P) <= part.lower(P) * (1 + 1e-12))


def test_what_takes_too_long_for_one_probability_is_refused() -> None:
    most = repeat(SPARSE, MAX_EVALUATIONS)
    assert most.lower(0.9) == 0
    assert repeat(most, 0).lower(0.9) == 0.9
    assert repeat(repeat(GAUSSIAN, 10**6), 10**6).lower(0.9) == 0  # shifts add up: one evaluation
    more = f"must need at most {MAX_EVALUATIONS} evaluations of bounds for one probability, got"
    with pytest.raises(ValueError, match=f"`repeat` {more} {10**12}"):
        repeat(repeat(SPARSE, 10**6), 10**6)
    for call in (
        lambda: repeat(most, 2),
        lambda: compose(most, SPARSE),
        lambda: hierarchical(most, 0.5, 1),
        lambda: repeat(repeat(FOREIGN[0], 10**3), 10**4),
        lambda: compose(certified(repeat(SPARSE, 10**6)), SPARSE),
    ):
        with pytest.raises(ValueError, match=more):
            call()


def certified(certificate: Certificate) -> Certificate:
    """Return a certificate as that of a pair from outside; its bounds stay as costly."""

    class Scheme(bincp.smoothing.Smoothing):
        def sampling_error(self) -> float:
            return 1e-9

    class Around(bincp.balls.Ball):
        pass

    bincp.register(Scheme, Around)(lambda scheme, ball: certificate)
    return bincp.certify(Scheme(), Around())


DEEPER: dict[str, Callable[[Certificate], Certificate]] = {
    "compose": lambda part: compose(part, GAUSSIAN),
    "repeat": lambda part: repeat(part, 1),
    "hierarchical": lambda part: hierarchical(part, 0.99, 1),
    "mixture": lambda part: mixture([part, from_privacy(0.25)], ["3/4", "1/4"]),
}


@pytest.mark.parametrize("kind", DEEPER)
def test_the_deepest_certificate_works_and_a_deeper_one_is_refused(kind: str) -> None:
    made = from_privacy(0.01) if kind == "mixture" else GAUSSIAN
    for _ in range(MAX_DEPTH):
        made = DEEPER[kind](made)
    description = json.loads(json.dumps(made.describe()))
    copies = (described(description), pickle.loads(pickle.dumps(made)), made.inverse().inverse())
    for copy in copies:
        assert copy is not None
        assert (copy.lower(0.99), copy.upper(0.01)) == (made.lower(0.99), made.upper(0.01))
    with pytest.raises(ValueError, match=f"must be at most {MAX_DEPTH} certificates deep, got 101"):
        DEEPER[kind](made)
    deeper = {"made_by": {"type": "repeat", "r": 1, "parts": [description]}, "tight": False}
    assert described(deeper | {"operator": description["operator"], "assumes": "nothing"}) is None


def test_a_product_that_is_too_large_is_refused_before_its_regions_are_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = compose(SPARSE, repeat(SPARSE, MAX_EVALUATIONS // 2))
    monkeypatch.setattr(_algebra, "masses_of", lambda *_: pytest.fail("sought"))
    with pytest.raises(ValueError, match="`product` must need at most 1000000 evaluations"):
        product(made, made)


def test_the_number_of_parts_is_bounded_and_not_only_the_depth() -> None:
    made = GAUSSIAN
    for _ in range(12):
        made = compose(made, made)
    with pytest.raises(ValueError, match="must be made of at most 10000 certificates, got 16383"):
        compose(made, made)
