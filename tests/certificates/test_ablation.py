"""Ablation: against the exact worst case of tiny spaces, and samplers against their laws."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import stats

from bincp import BinCP, certify
from bincp.balls import L0, EditDistance, Flips, Patch
from bincp.errors import CertificateError
from bincp.noise import all_copies, draw
from bincp.smoothing import Ablation, BandAblation, BlockAblation, Deletion
from bincp.testing import check_certificate

torch = pytest.importorskip("torch")

from bincp.sampling import RobustClassifier, exact_probabilities  # noqa: E402

PAIRS = [
    (Ablation(3, 10), L0(2)),
    (Ablation(45, 150_528), L0(20)),
    (BlockAblation(3, 8, 9), Patch(2, 3)),
    (BandAblation(2, 8), Patch(8, 2)),
    (Deletion(0.9), EditDistance(3)),
]
PROBABILITIES = [Fraction(k, 24) for k in range(25)]


def worst_case(clean, perturbed):
    """Least P[event] under `perturbed` of all randomised events of p under `clean`, for each p."""
    ratios = {outcome: perturbed.get(outcome, 0) / mass for outcome, mass in clean.items()}
    order = sorted(clean, key=ratios.__getitem__)
    values = []
    for p in PROBABILITIES:
        total = Fraction(0)
        for outcome in order:
            part = min(p, clean[outcome])
            total, p = total + part * ratios[outcome], p - part
        values.append(total)
    return values


def check_against(certificate, clean, perturbed, *, tight):
    """Compare both bounds with the exact worst case between two laws, {outcome: mass}.

    `upper` is over what could have led to an input, so for it the two trade places: what an event
    gains there, its complement loses.
    """
    losses = worst_case(clean, perturbed)
    for p, exact in zip(PROBABILITIES, losses, strict=True):
        below, above = math.nextafter(float(p), 0), math.nextafter(float(1 - p), 1)
        assert Fraction(certificate.lower(below)) <= exact
        assert Fraction(certificate.upper(above)) >= 1 - exact
        if tight:
            assert certificate.lower(float(p)) == pytest.approx(float(exact), rel=0, abs=1e-15)
            assert certificate.upper(float(1 - p)) == pytest.approx(1 - float(exact), abs=1e-15)


# ---- certificates -------------------------------------------------------------------------------


@pytest.mark.parametrize(("smoothing", "ball"), PAIRS, ids=repr)
def test_law(smoothing, ball):
    certificate = certify(smoothing, ball)
    check_certificate(certificate)
    assert certificate.inverse().lower(0.7) == certificate.lower(0.7)
    assert certificate.describe()["smoothing"]["type"] == type(smoothing).__name__


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize(
    ("smoothing", "ball"),
    [
        (Ablation(3, 10), L0(0)),
        (BlockAblation(3, 8, 9), Patch(0, 3)),
        (BlockAblation(3, 8, 9), Patch(3, 0)),
        (BandAblation(2, 8), Patch(0, 2)),
        (BandAblation(2, 8), Patch(5, 0)),
        (Deletion(0.9), EditDistance(0)),
        (Deletion(1.0), EditDistance(2**31 - 1)),
    ],
    ids=repr,
)
def test_nothing_changes_for_an_empty_ball_or_where_nothing_is_seen(smoothing, ball):
    certificate = certify(smoothing, ball)
    for count in range(73):
        p = count / 72
        assert p - 1.2e-16 <= certificate.lower(p) <= p <= certificate.upper(p) <= p + 1.2e-16


@pytest.mark.parametrize(
    ("smoothing", "ball"),
    [
        (Ablation(3, 10), L0(8)),
        (Ablation(3, 10), L0(100)),
        (BlockAblation(3, 8, 9), Patch(6, 7)),
        (BandAblation(2, 8), Patch(1, 7)),
        (Deletion(0.0), EditDistance(1)),
        (Deletion(0.5), EditDistance(2**31 - 1)),
    ],
    ids=repr,
)
def test_nothing_is_left_where_every_copy_sees_the_change(smoothing, ball):
    certificate = certify(smoothing, ball)
    assert certificate.lower(1.0) == 0.0
    assert certificate.upper(0.0) == 1.0


@pytest.mark.parametrize("dim", [1, 2, 4, 5])
def test_ablation_is_the_worst_case_over_all_classifiers(dim):
    """A classifier sees which coordinates are kept and their values; all that changed differ."""
    for keep, r in itertools.product(range(1, dim + 1), range(dim + 2)):
        sets = list(itertools.combinations(range(dim), keep))
        mass = Fraction(1, len(sets))
        clean = {(kept, False): mass for kept in sets}
        touched = {kept: min(kept) < r for kept in sets}  # coordinates 0, ..., r - 1 are changed
        perturbed = dict.fromkeys(touched.items(), mass)
        check_against(certify(Ablation(keep, dim), L0(r)), clean, perturbed, tight=True)


@pytest.mark.usefixtures("exact_draws")
@pytest.mark.parametrize(
    ("keep", "dim", "r"),
    [
        (45, 784, 8),
        (75, 784, 1),
        (2000, 150_528, 10),
        (10, 3072, 5000),
        (9_999, 20_000, 10_000),
        (1, 2**31 - 1, 1),
        (500, 1024, 24),
    ],
)
def test_ablation_constant_is_exact_and_rounded_up(keep, dim, r):
    certificate = certify(Ablation(keep, dim), L0(r))
    shift = 1.0 - certificate.lower(1.0)
    with mpmath.workdps(60):
        if r + keep > dim:
            untouched = mpmath.mpf(0)
        else:
            log = mpmath.loggamma
            untouched = mpmath.exp(
                log(dim - r + 1) - log(dim - r - keep + 1) - log(dim + 1) + log(dim - keep + 1)
            )
        assert 0 <= untouched - certificate.lower(1.0) <= 1.2e-16
        assert 0 <= certificate.upper(0.0) - (1 - untouched) <= 1.2e-16
    assert 0 <= shift <= 1


def as_law(copies):
    copies = [tuple(copy.ravel().tolist()) for copy in copies]
    return {copy: Fraction(number, len(copies)) for copy, number in Counter(copies).items()}


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3), (4, 4)])
def test_blocks_against_all_patches(height, width):
    """Pixels are told apart by their values, so a classifier may do anything with a copy."""
    x = np.arange(1.0, height * width + 1).reshape(1, height, width)
    for size in range(1, min(height, width) + 1):
        scheme = BlockAblation(size, height, width)
        clean = as_law(all_copies(scheme, x)[0])
        for rows, columns in itertools.product(range(1, height + 1), range(1, width + 1)):
            certificate = certify(scheme, Patch(rows, columns))
            corners = itertools.product(range(height - rows + 1), range(width - columns + 1))
            for top, left in corners:
                changed = x.copy()
                changed[0, top : top + rows, left : left + columns] += 100
                perturbed = as_law(all_copies(scheme, changed)[0])
                check_against(certificate, clean, perturbed, tight=True)


@pytest.mark.parametrize("width", [1, 2, 5, 6])
def test_bands_against_all_patches(width):
    x = np.arange(1.0, 2 * width + 1).reshape(1, 2, width)
    for size, columns in itertools.product(range(1, width + 1), repeat=2):
        scheme = BandAblation(size, width)
        clean = as_law(all_copies(scheme, x)[0])
        certificate = certify(scheme, Patch(1, columns))
        for left, row in itertools.product(range(width - columns + 1), range(2)):
            changed = x.copy()
            changed[0, row, left : left + columns] += 100
            perturbed = as_law(all_copies(scheme, changed)[0])
            check_against(certificate, clean, perturbed, tight=True)


def test_patches_larger_than_the_image_are_those_of_its_size():
    scheme = BlockAblation(2, 6, 7)
    larger, same = certify(scheme, Patch(9, 2)), certify(scheme, Patch(6, 2))
    assert larger.lower(0.9) == same.lower(0.9) > 0


@cache
def edit_distance(x, y):
    if not x or not y:
        return len(x) + len(y)
    changed = edit_distance(x[1:], y[1:]) + (x[0] != y[0])
    return min(changed, 1 + edit_distance(x[1:], y), 1 + edit_distance(x, y[1:]))


def deletion_law(x, p):
    law = Counter()
    for kept in itertools.product([False, True], repeat=len(x)):
        left = "".join(itertools.compress(x, kept))
        law[left] += p ** (len(x) - sum(kept)) * (1 - p) ** sum(kept)
    return law


@pytest.mark.parametrize("p_delete", [0.1, 0.5, 0.75])
def test_deletion_against_all_pairs_of_short_sequences(p_delete):
    """The exact worst case (Neyman-Pearson on the whole law) never beats the bound."""
    p = Fraction(p_delete)
    words = ["".join(w) for n in range(4) for w in itertools.product("ab", repeat=n)]
    words += ["abab", "aabb", "bbbb"]
    laws = {word: deletion_law(word, p) for word in words}
    for x, y in itertools.product(words, repeat=2):
        r = edit_distance(x, y)
        check_against(certify(Deletion(p_delete), EditDistance(r)), laws[x], laws[y], tight=False)


def test_deletion_bound_is_reached():
    """One token that is substituted by another, and r of them that were all alike."""
    p = Fraction(0.75)
    for r, (x, y) in enumerate([("a", "b"), ("aa", "bb"), ("aaa", "bbb")], start=1):
        certificate = certify(Deletion(0.75), EditDistance(r))
        clean, perturbed = deletion_law(x, p), deletion_law(y, p)
        check_against(certificate, clean, perturbed, tight=True)


@pytest.mark.parametrize("p_delete", [0.1, 0.9, 0.995, 1 - 2.0**-53, 1e-300])
@pytest.mark.parametrize("r", [1, 2, 3, 17, 128, 100_000])
def test_deletion_constant_is_rounded_up(p_delete, r):
    certificate = certify(Deletion(p_delete), EditDistance(r))
    with mpmath.workdps(400):
        power = mpmath.mpf(p_delete) ** r
        assert 0 <= power - certificate.lower(1.0) <= 1.2e-16
        assert 0 <= certificate.upper(0.0) - (1 - power) <= 1.2e-16


# ---- samplers -----------------------------------------------------------------------------------


def test_kept_sets_are_uniform_and_of_their_size():
    x = np.arange(1, 7, dtype=np.float32)[None]
    noisy = draw(Ablation(3, 6, fill=-1), x, 20_000, phase="test", seed=4)[0]
    kept = noisy != -1
    assert (kept.sum(axis=1) == 3).all()
    assert (noisy == np.where(kept, x, -1)).all()
    frequencies = Counter(map(tuple, kept.tolist()))
    assert len(frequencies) == 20
    assert stats.chisquare(list(frequencies.values())).pvalue > 1e-6


@pytest.mark.parametrize(("keep", "dim"), [(1, 1), (1, 3000), (1500, 3000), (2999, 3000), (7, 7)])
def test_exactly_so_many_are_kept_in_long_rows(keep, dim):
    noisy = draw(Ablation(keep, dim), np.ones((2, dim)), 50, phase="calibration", seed=1)
    assert (noisy.sum(axis=2) == keep).all()
    if keep == 1500:
        means = noisy.reshape(100, dim).mean(axis=0)
        share = keep / dim
        assert np.abs(means - share).max() < 6.5 * math.sqrt(share * (1 - share) / 100)


def test_channels_of_a_pixel_are_kept_together():
    x = np.random.default_rng(0).random((3, 3, 4, 5)) + 1
    noisy = draw(Ablation(6, 20), x, 10, phase="test")
    kept = noisy != 0
    assert (kept.all(axis=2) == kept.any(axis=2)).all()
    assert (kept[:, :, 0].sum(axis=(2, 3)) == 6).all()
    assert (noisy == np.where(kept, x[:, None], 0)).all()
    single = draw(Ablation(6, 60), x, 10, phase="test") != 0
    assert (single.sum(axis=(2, 3, 4)) == 6).all()


@pytest.mark.parametrize("scheme", [BlockAblation(2, 3, 4, fill=-1), BandAblation(2, 4, fill=-1)])
def test_sampled_blocks_are_all_copies_alike(scheme):
    x = np.random.default_rng(0).random((1, 2, 3, 4)).astype(np.float32)
    copies = all_copies(scheme, x)[0]
    assert len(copies) == scheme.levels == len(np.unique(copies, axis=0))
    seen = 2 * 4 if isinstance(scheme, BlockAblation) else 2 * 3 * 2
    assert ((copies != -1).sum(axis=(1, 2, 3)) == seen).all()
    assert ((copies == -1) | (copies == x)).all()
    noisy = draw(scheme, x, 3000, phase="test", seed=2)[0]
    which = (noisy[:, None] == copies).all(axis=(2, 3, 4))
    assert (which.sum(axis=1) == 1).all()
    assert stats.chisquare(which.sum(axis=0)).pvalue > 1e-6


def test_block_wraps_around():
    x = np.arange(1.0, 10).reshape(1, 3, 3)
    last = all_copies(BlockAblation(2, 3, 3), x)[0, -1]
    np.testing.assert_array_equal(last, [[1, 0, 3], [0, 0, 0], [7, 0, 9]])


def test_deletion_draws_its_law():
    law = deletion_law("aba", Fraction(3, 10))
    x = np.array([[1, 2, 1, 0, 0]], np.float32)  # a = 1, b = 2, padding 0
    noisy = draw(Deletion(0.3), x, 20_000, phase="test", seed=6)[0]
    found = Counter("".join(" ab"[int(token)] for token in row).rstrip() for row in noisy)
    assert set(found) <= set(law)
    expected = [float(law[word]) * 20_000 for word in law]
    assert stats.chisquare([found[word] for word in law], expected).pvalue > 1e-6


def test_deletion_of_all_or_nothing_and_other_padding():
    x = np.array([[3.0, 1, 2, -1], [-1, -1, -1, -1]])
    for p, expected in ((0.0, x), (1.0, np.full_like(x, -1)), (1e-300, x)):
        noisy = draw(Deletion(p, padding=-1), x, 5, phase="test")
        assert (noisy == expected[:, None]).all()
    almost = draw(Deletion(1 - 2.0**-53, padding=-1), x, 5, phase="test")
    assert (almost == -1).all()


@pytest.mark.parametrize(
    "scheme", [Ablation(3, 8), BlockAblation(2, 2, 4), BandAblation(2, 4), Deletion(0.4)]
)
def test_draws_depend_on_their_key_alone(scheme):
    x = np.random.default_rng(0).random((4, 8)) + 1
    x = x if isinstance(scheme, Deletion) else x.reshape(4, 2, 4)
    full = draw(scheme, x, 9, phase="test", seed=3)
    part = draw(scheme, x[2:], 5, phase="test", seed=3, indices=[2, 3])
    np.testing.assert_array_equal(part, full[2:, :5])
    assert (draw(scheme, x, 9, phase="calibration", seed=3) != full).any()
    single = draw(scheme, x.astype(np.float32), 9, phase="test", seed=3)
    np.testing.assert_array_equal(single, full.astype(np.float32))


# ---- prediction sets ----------------------------------------------------------------------------


def images(n, seed=0):
    """Images of one of three textures, told apart by the mean of what is seen."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = np.clip(rng.normal(y[:, None, None, None] + 1, 0.3, (n, 1, 6, 6)), 0.05, None)
    return x.astype(np.float32), y


def image_model(x):
    seen = (x > 0).sum(dim=(1, 2, 3)).clamp(min=1)
    mean = x.sum(dim=(1, 2, 3)) / seen
    return -8 * (mean[:, None] - torch.tensor([1.0, 2.0, 3.0])) ** 2


@pytest.mark.parametrize(
    ("smoothing", "ball"),
    [
        (Ablation(4, 36), L0(1)),
        (BlockAblation(2, 6, 6), Patch(1, 1)),
        (BandAblation(1, 6), Patch(6, 1)),
    ],
    ids=repr,
)
def test_sampled_sets_of_images(smoothing, ball):
    x, y = images(400)
    classifier = RobustClassifier(image_model, smoothing, ball, alpha=0.1, n_samples=64, seed=1)
    classifier.calibrate(x[:200], y[:200])
    attacked = x[200:].copy()
    rows, columns = (6, 1) if isinstance(smoothing, BandAblation) else (1, 1)
    attacked[:, :, :rows, :columns] = 9 * (y[200:, None, None, None] == 0)
    for test in (x[200:], attacked):
        sets = classifier.predict(test).sets
        assert sets[np.arange(200), y[200:]].mean() >= 0.85
        assert sets.sum(axis=1).mean() < 2.5


@pytest.mark.parametrize(
    ("smoothing", "ball"),
    [(BlockAblation(2, 6, 6), Patch(1, 2)), (BandAblation(1, 6), Patch(6, 1))],
    ids=repr,
)
def test_exact_sets_of_images_under_every_patch(smoothing, ball):
    x, y = images(120)
    p = exact_probabilities(image_model, x, smoothing, tau=0.5)
    counts = np.rint(p * smoothing.levels)
    np.testing.assert_array_equal(p, counts / smoothing.levels)
    rule = BinCP(certify(smoothing, ball), alpha=0.1)
    rule.calibrate_exact(p[np.arange(100), y[:100]], tau=0.5)
    assert rule.predict_set_exact(p).sum(axis=1).mean() < 2
    conforms = np.flatnonzero(p[np.arange(120), y] >= rule.p_)[-10:]
    for top, left in itertools.product(range(7 - ball.height), range(7 - ball.width)):
        for value in (0.05, 9.0):
            attacked = x[conforms].copy()
            attacked[:, :, top : top + ball.height, left : left + ball.width] = value
            sets = rule.predict_set_exact(
                exact_probabilities(image_model, attacked, smoothing, tau=0.5)
            )
            assert sets[np.arange(len(conforms)), y[conforms]].all()


def sequences(n, seed=0):
    """Sequences of two tokens, of 10 to 16, with a label by which of them there is more of."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    tokens = 1 + (rng.random((n, 16)) < np.where(y, 0.9, 0.1)[:, None])
    tokens[np.arange(16) >= rng.integers(10, 17, n)[:, None]] = 0
    return tokens.astype(np.float32), y


def sequence_model(x):
    balance = (x == 2).sum(dim=1) - (x == 1).sum(dim=1)
    return torch.stack([-balance, balance], dim=1).float()


def test_sampled_sets_of_sequences():
    x, y = sequences(400)
    classifier = RobustClassifier(
        sequence_model, Deletion(0.7), EditDistance(1), alpha=0.1, n_samples=64, seed=1
    )
    classifier.calibrate(x[:200], y[:200])
    attacked = x[200:].copy()
    attacked[:, 0] = 1 + (y[200:] == 0)  # one substitution
    for test in (x[200:], attacked):
        sets = classifier.predict(test).sets
        assert sets[np.arange(200), y[200:]].mean() >= 0.85
        assert sets.sum(axis=1).mean() < 1.6


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Ablation(0, 5), ValueError, r"`keep` must be in \[1, 5\], got 0"),
        (lambda: Ablation(6, 5), ValueError, r"`keep` must be in \[1, 5\], got 6"),
        (lambda: Ablation(1, 0), ValueError, r"`dim` must be in \[1, 2147483647\], got 0"),
        (lambda: Ablation(1.0, 5), TypeError, "`keep` must be an integer, got 1.0"),
        (lambda: Ablation(1, 5, math.nan), ValueError, "`fill` must be finite, got nan"),
        (lambda: BlockAblation(4, 5, 3), ValueError, r"`size` must be in \[1, 3\], got 4"),
        (lambda: BlockAblation(1, 2**20, 2**20), ValueError, "`width` must be in"),
        (lambda: BandAblation(4, 3), ValueError, r"`size` must be in \[1, 3\], got 4"),
        (lambda: Deletion(1.5), ValueError, r"`p_delete` must be in \[0, 1\], got 1.5"),
        (lambda: Deletion(0.5, "x"), TypeError, "`padding` must be a real number, got 'x'"),
        (lambda: L0(-1), ValueError, r"`r` must be in \[0, 2147483647\], got -1"),
        (lambda: L0(1.0), TypeError, "`r` must be an integer, got 1.0"),
        (lambda: Patch(1, -1), ValueError, "`width` must be in"),
        (lambda: Patch(True, 1), TypeError, "`height` must be an integer, got True"),
        (lambda: EditDistance(2**31), ValueError, "`r` must be in"),
        (lambda: certify(Ablation(1, 5), Patch(1, 1)), CertificateError, "can certify L0"),
        (lambda: certify(Deletion(0.5), Flips(1, 1)), CertificateError, "certify EditDistance"),
        (
            lambda: certify(Ablation(20_000, 10**6), L0(10_001)),
            ValueError,
            "`ball` must have r <= 10000 where more coordinates are kept",
        ),
    ],
)
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("scheme", "shape", "message"),
    [
        (Ablation(2, 5), (3, 2, 3), r"`x` must have 5 elements an input, .* got shape \(3, 2, 3\)"),
        (BlockAblation(2, 4, 5), (3, 5, 4), r"shape \(n, ..., 4, 5\), with .*, got \(3, 5, 4"),
        (BlockAblation(2, 4, 5), (4, 5), r"shape \(n, ..., 4, 5\), with .*, got \(4, 5\)"),
        (BandAblation(2, 5), (3, 4), r"shape \(n, ..., 5\), with .*, got \(3, 4\)"),
        (Deletion(0.5), (3, 4, 2), r"shape \(n, length\), one token .* got \(3, 4, 2\)"),
    ],
    ids=repr,
)
def test_inputs_of_another_shape_are_refused(scheme, shape, message):
    with pytest.raises(ValueError, match=message):
        draw(scheme, np.ones(shape), 1, phase="test")


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (Ablation(2, 5, fill=1e39), "`fill` must be a number that float32 can hold, got 1e+39"),
        (BandAblation(2, 5, fill=-1e300), "`fill` must .* float32 can hold, got -1e+300"),
        (BlockAblation(2, 2, 5, fill=1e39), "`fill` must .* float32 can hold, got 1e+39"),
        (Deletion(0.5, padding=1e39), "`padding` must .* float32 can hold, got 1e+39"),
    ],
    ids=repr,
)
def test_values_beyond_float32_are_refused_for_inputs_of_float32(scheme, message):
    shape = (2, 2, 5) if isinstance(scheme, BlockAblation) else (2, 5)
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        draw(scheme, np.ones(shape, np.float32), 1, phase="test")
    assert draw(scheme, np.ones(shape), 1, phase="test").dtype == np.float64


def test_padding_inside_a_sequence_is_refused_with_its_place():
    x = np.array([[1.0, 2, 0, 0], [1, 0, 0, 5]])
    with pytest.raises(ValueError, match=r"`x` must have the padding 0 .* got 5.0 .*\(1, 3\)"):
        draw(Deletion(0.5), x, 1, phase="test")
