"""Staircase noise on words: every replacement in small vocabularies, and what is drawn."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp.balls import Substitutions
from bincp.certificates import from_privacy, product, repeat
from bincp.noise import draw
from bincp.smoothing import Staircase
from support import least, most

ERROR = Fraction(1, 10**12)
CHARGE = Fraction(1, 10**24)  # more than twice the sampling error, through slopes of a hundred


def laws(scheme, moves):
    """Return the laws of words at place 0, and of the same words moved, in exact arithmetic."""
    law = scheme.law()
    clean, attacked = [Fraction(1)], [Fraction(1)]
    for move in moves:
        clean = [a * b for a in clean for b in law]
        attacked = [a * law[(j - move) % scheme.k] for a in attacked for j in range(scheme.k)]
    return clean, attacked


@pytest.mark.parametrize("ratio", [0.5, 0.3, 1.0])
@pytest.mark.parametrize(("k", "step"), [(2, 1), (5, 1), (6, 2), (8, 2), (7, 3), (4, 5)])
@pytest.mark.parametrize("r", [0, 1, 2])
def test_no_replacement_beats_the_bound_and_the_worst_attains_it(k, step, ratio, r):
    scheme = Staircase(k, ratio, step)
    for distance in range(step + 1):
        certificate = bincp.certify(scheme, Substitutions(r, distance))
        found = range(-distance, distance + 1)
        pairs = [laws(scheme, moves) for moves in itertools.combinations_with_replacement(found, r)]
        for p in (0.0, 1e-300, 0.05, 0.3, 0.5, 0.9, 0.999, 1.0):
            lower = min(least(*pair, Fraction(p)) for pair in pairs)
            upper = max(most(*pair[::-1], Fraction(p)) for pair in pairs)
            assert certificate.lower(p) <= lower
            assert certificate.lower(p) >= lower * (1 - ERROR) - CHARGE
            assert certificate.upper(p) >= upper
            assert certificate.upper(p) <= upper * (1 + ERROR) + CHARGE


def test_regions_are_better_than_privacy_alone():
    p = np.linspace(0, 1, 101)
    certificate = bincp.certify(Staircase(12, 0.5, 2), Substitutions(3, 2))
    private = repeat(from_privacy(math.log(2)), 3)
    assert np.all(certificate.lower(p) >= private.lower(p) - 1e-12)
    assert np.any(certificate.lower(p) > private.lower(p) + 0.05)


def test_products_have_the_regions_of_words():
    scheme = Staircase(4, 0.5, 1)
    clean, attacked = laws(scheme, [1])
    other = [Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]
    certificate = product(
        bincp.certify(scheme, Substitutions(1, 1)),
        bincp.Certificate.from_regions(*([float(x) for x in law] for law in other)),
    )
    both = [
        [a * b for a in law for b in second]
        for law, second in zip((clean, attacked), other, strict=True)
    ]
    for p in (Fraction(i, 16) for i in range(17)):
        lower = least(*both, p)
        # Bounds that are charged for how noise is drawn have no regions: the product finds them.
        assert lower * (1 - Fraction(1, 10**9)) - CHARGE <= certificate.lower(float(p)) <= lower


def test_more_words_than_a_bound_takes_are_refused():
    with pytest.raises(ValueError, match="`ball` must have r <= 10000, got Substitutions"):
        bincp.certify(Staircase(4, 0.5, 1), Substitutions(10**4 + 1, 1))


def test_words_become_synonyms_with_the_probabilities_of_the_law():
    scheme, n = Staircase(6, 0.4, 2), 30_000
    x = np.array([[0, 7, 17]], np.float32)  # three sets, at the places 0, 1 and 5
    noisy = draw(scheme, x, n_samples=n, phase="test")[0].astype(int)
    for word, token in zip(noisy.T, x[0].astype(int), strict=True):
        assert set(word // 6) == {token // 6}
        counts = Counter(((word - token) % 6).tolist())
        for move, mass in enumerate(scheme.law()):
            p = float(mass)
            # Five standard errors for 18 counts.
            assert abs(counts[move] / n - p) <= 5 * math.sqrt(p * (1 - p) / n)
    again = draw(scheme, x, n_samples=5, phase="test")[0]
    assert np.array_equal(again, noisy[:5])


def test_moves_are_decided_by_more_bits_where_a_word_ties(monkeypatch):
    from bincp.noise import Keys
    from bincp.noise._keys import more_words
    from bincp.noise._samplers import sampler_of

    sampler = sampler_of(Staircase(3, 0.5))
    keys = Keys(seed=3, phase="test", ids=[5], draws=[0])
    high, low = int(keys.words(2)[0, 1]), int(more_words(keys, 2)[0, 1])
    for thresholds, move in (([(high, low)], 1), ([(high, low + 1)], 0)):
        monkeypatch.setattr(sampler, "thresholds", thresholds)
        assert sampler._moves(keys, 2)[0, 1] == move


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Staircase(1, 0.5), r"`k` must be in \[2, 1024\]"),
        (lambda: Staircase(3, 1.5), r"`ratio` must be in \[0.001, 1\]"),
        (lambda: Staircase(3, 0.5, 0), "`step` must be at least 1"),
        (lambda: Substitutions(-1), "`r` must be in"),
        (
            lambda: bincp.certify(Staircase(8, 0.5, 2), Substitutions(1, 3)),
            "a distance of more than one step",
        ),
        (
            lambda: draw(Staircase(3, 0.5), np.array([[0.5]]), n_samples=1, phase="test"),
            "`x` must be whole numbers",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((TypeError, ValueError, bincp.CertificateError), match=message):
        call()
