"""Noise in two levels: what is selected, what gets noise, and what the certificate says of it."""

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp.balls import L2, Elements, Flips, TrainingPoints
from bincp.certificates import described, hierarchical
from bincp.noise import Keys, draw
from bincp.noise._keys import selected
from bincp.smoothing import Ablation, Gaussian, Hierarchical, Laplace, Partition, SparseFlip

IMAGES = np.random.default_rng(0).random((2, 3, 4, 5))


def changed(scheme, x, n=200, **options):
    noisy = draw(scheme, x, n_samples=n, phase="test", **options)
    return noisy != np.asarray(x)[:, None]


@pytest.mark.parametrize(
    ("element", "axis"), [("row", (-1, -2)), ("pixel", (-3,))], ids=["rows", "pixels"]
)
@pytest.mark.parametrize("inner", [Gaussian(0.5), Laplace(0.5), Gaussian(0.5, grid=100)])
def test_an_element_gets_noise_as_a_whole_or_not_at_all(element, axis, inner):
    x = np.round(IMAGES * 100) / 100
    moved = changed(Hierarchical(inner, 0.5, element), x)
    if inner == Gaussian(0.5, grid=100):  # integer noise may be 0
        whole = moved.any(axis=axis, keepdims=True)
        assert moved.mean() > 0.9 * np.broadcast_to(whole, moved.shape).mean()
    else:
        assert np.array_equal(moved.all(axis=axis), moved.any(axis=axis))


def test_elements_are_selected_independently_with_their_probability():
    n, q, rows = 20_000, 0.3, 3
    moved = changed(Hierarchical(Gaussian(1.0), q), np.zeros((1, rows, 2)), n)[0, :, :, 0]
    counts = Counter(tuple(row) for row in moved.tolist())
    for pattern in itertools.product([False, True], repeat=rows):
        p = math.prod(q if chosen else 1 - q for chosen in pattern)
        # Five standard errors for eight counts: wrong once in 200,000 runs of a right sampler.
        assert abs(counts[pattern] / n - p) <= 5 * math.sqrt(p * (1 - p) / n)


def test_what_is_selected_tells_nothing_about_the_noise():
    """The words of selections are in streams of their own."""
    x, n = np.zeros((1, 4)), 20_000
    plain = draw(Gaussian(1.0), x, n_samples=n, phase="test")[0]
    part = draw(Hierarchical(Gaussian(1.0), 0.5), x, n_samples=n, phase="test")[0]
    chosen = part != 0
    assert np.array_equal(part[chosen], plain[chosen])
    inside = plain[chosen]
    assert abs(inside.mean()) <= 5 / math.sqrt(inside.size)
    assert abs((inside**2).mean() - 1) <= 5 * math.sqrt(2 / inside.size)


@pytest.mark.parametrize("q", [0.0, 1.0])
def test_all_or_nothing(q):
    x = np.ones((2, 3), np.float32)
    moved = changed(Hierarchical(Gaussian(1.0), q), x)
    assert moved.all() if q else not moved.any()


def test_draws_depend_on_their_key_alone():
    scheme = Hierarchical(SparseFlip(0.2, 0.3), 0.5)
    x = np.random.default_rng(1).integers(0, 2, (5, 6, 3)).astype(np.float32)
    all_ = draw(scheme, x, n_samples=6, phase="test")
    one = draw(scheme, x[3:4], n_samples=2, phase="test", indices=[3])
    assert np.array_equal(all_[3:4, :2], one)
    for other in ({"phase": "calibration"}, {"phase": "test", "seed": 1}):
        assert not np.array_equal(draw(scheme, x, n_samples=6, **other), all_)


def test_selections_have_their_probability_to_the_last_bit():
    keys = Keys(seed=1, phase="test", ids=np.arange(500), draws=np.zeros(500, int))
    words = np.empty((500, 8), np.uint64)
    from bincp._core import _noise

    _noise.words(1, _noise.TEST_SELECTION, keys.ids, keys.draws, words)
    tie = int(words[7, 3])  # decided by 64 more bits
    below, above = selected(keys, 8, tie << 64), selected(keys, 8, (tie + 1) << 64)
    assert not below[7, 3]
    assert above[7, 3]
    assert np.array_equal(above, words <= np.uint64(tie))
    assert selected(keys, 8, 0).sum() == 0
    assert selected(keys, 8, 2**128).all()


def test_the_certificate_is_the_combinator():
    inner = bincp.certify(Gaussian(0.25), L2(0.1))
    certificate = bincp.certify(Hierarchical(Gaussian(0.25), 0.9), Elements(2, L2(0.1)))
    wanted = hierarchical(inner, 0.9, 2, shown=True)
    p = np.linspace(0, 1, 101)
    assert np.array_equal(certificate.lower(p), wanted.lower(p))
    description = certificate.describe()
    assert description["tight"]
    assert description["assumes"] == inner.describe()["assumes"]
    again = described(json.loads(json.dumps(description)))
    assert again is not None
    assert again.describe() == description


def test_hidden_discrete_noise_is_better_as_one_kernel():
    certificate = bincp.certify(Hierarchical(SparseFlip(0.1, 0.6), 0.5), Elements(1, Flips(0, 1)))
    kernel = bincp.certify(SparseFlip(0.05, 0.3), Flips(0, 1))
    p = np.linspace(0, 1, 101)
    assert np.all(certificate.lower(p) <= kernel.lower(p) + 1e-12)
    assert not certificate.describe()["tight"]


def test_partition_counts_models():
    certificate = bincp.certify(Partition(50), TrainingPoints(3))
    for count in range(51):
        assert certificate.lower(count / 50) == pytest.approx(max(count - 3, 0) / 50, abs=1e-15)
        assert certificate.upper(count / 50) == pytest.approx(min(count + 3, 50) / 50, abs=1e-15)
    assert bincp.certify(Partition(2), TrainingPoints(5)).lower(1.0) == 0
    # The votes of models in the place of noisy copies: three changed points move three votes.
    votes = np.random.default_rng(2).integers(0, 2, 50)
    for changed_models in itertools.combinations(range(6), 3):
        attacked = votes.copy()
        attacked[list(changed_models)] = 0
        assert Fraction(int(attacked.sum()), 50) >= Fraction(certificate.lower(votes.sum() / 50))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Hierarchical(0.25, 0.5), "`inner` must be a smoothing scheme"),
        (
            lambda: Hierarchical(Hierarchical(Gaussian(1.0), 0.5), 0.5),
            "`inner` must not be hierarchical",
        ),
        (lambda: Hierarchical(Gaussian(1.0), 1.5), r"`q` must be in \[0, 1\]"),
        (lambda: Hierarchical(Gaussian(1.0), 0.5, "node"), "`element` must be 'row' or 'pixel'"),
        (lambda: Elements(1, 0.5), "`within` must be a ball"),
        (lambda: Elements(-1, L2(1)), "`r` must be in"),
        (lambda: Partition(0), "`models` must be in"),
        (
            lambda: bincp.certify(Hierarchical(Gaussian(1.0), 0.5), Elements(1, Flips(1, 1))),
            r"no certificate for \(Gaussian, Flips\)",
        ),
        (
            lambda: draw(
                Hierarchical(Gaussian(1.0), 0.5, "pixel"),
                np.zeros((1, 4)),
                n_samples=1,
                phase="test",
            ),
            r"`x` must have shape \(n, channels, height, width\)",
        ),
        (
            lambda: draw(
                Hierarchical(Ablation(2, 4), 0.5), np.zeros((1, 5)), n_samples=1, phase="test"
            ),
            "`x` must have 4 elements",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((TypeError, ValueError, bincp.CertificateError), match=message):
        call()
