"""Conformity scores against their definitions, written out label by label; NumPy against torch."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bincp import scores
from bincp.scores import aps, logit, margin, ptt, raps, tps

torch = pytest.importorskip("torch")


@st.composite
def evaluations(draw, dtype=np.float64):
    """Rows of probabilities, many of them equal, and one number for each row."""
    n, K = draw(st.integers(1, 4)), draw(st.integers(2, 7))
    weights = draw(st.lists(st.integers(0, 4), min_size=n * K, max_size=n * K))
    w = np.array(weights, dtype=np.float64).reshape(n, K)
    w[w.sum(axis=1) == 0] = 1
    u = draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    return (w / w.sum(axis=1, keepdims=True)).astype(dtype), np.array(u)


def by_definition(p, u, y):
    """APS of one label, summed exactly: trusted for its shortness."""
    return -math.fsum([*(q for q in p if q > p[y]), u * p[y]])


@given(evaluations())
@settings(deadline=None)
def test_aps_raps_and_margin_follow_their_definitions(evaluation):
    p, u = evaluation
    n, K = p.shape
    for i in range(n):
        for y in range(K):
            expected = by_definition(p[i].tolist(), u[i], y)
            assert aps(p, u)[i, y] == pytest.approx(expected, abs=1e-15)
            rank = (p[i] >= p[i, y]).sum()
            penalty = 0.25 * max(rank - 2, 0)
            ours = raps(p, u, penalty=0.25, k_reg=2)[i, y]
            assert ours == pytest.approx(expected - penalty, abs=1e-15)
            assert margin(p)[i, y] == p[i, y] - np.delete(p[i], y).max()
    np.testing.assert_array_equal(tps(p), p)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
@settings(deadline=None)
def test_numpy_and_torch_agree_to_the_bit(dtype, data):
    p, u = data.draw(evaluations(dtype))
    t = torch.from_numpy(p)
    pairs = [
        (tps(p), tps(t)),
        (aps(p, u), aps(t, torch.from_numpy(u))),
        (aps(p, 0.3), aps(t, 0.3)),
        (raps(p, u), raps(t, u)),
        (margin(p), margin(t)),
        (logit(p), logit(t)),
    ]
    for ours, theirs in pairs:
        assert isinstance(theirs, torch.Tensor)
        assert ours.dtype == dtype == theirs.numpy().dtype
        np.testing.assert_array_equal(ours, theirs.numpy())


@given(evaluations())
@settings(deadline=None)
def test_aps_sets_shrink_as_u_grows(evaluation):
    """The randomised set is contained in the non-randomised one (u = 0) at any threshold."""
    p, u = evaluation
    assert (aps(p, 0.0) >= aps(p, u)).all()
    assert (aps(p, u) >= aps(p, 1.0)).all()


@given(evaluations(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_scores_follow_their_labels(evaluation, random):
    """Ties by value: a permutation of the labels permutes the scores, equals get equal scores."""
    p, u = evaluation
    order = list(range(p.shape[1]))
    random.shuffle(order)
    for score in (lambda q: aps(q, u), lambda q: raps(q, u, k_reg=1), margin):
        np.testing.assert_array_equal(score(p)[:, order], score(p[:, order]))


def test_aps_on_one_hot_probabilities():
    np.testing.assert_array_equal(aps([0.0, 1.0, 0.0], [0.5, 0.5, 0.5]), [-1.0, -0.5, -1.0])


def test_aps_does_not_count_the_own_mass_at_u_0():
    result = aps([0.6, 0.3, 0.1], [0.0, 0.0, 0.0])
    np.testing.assert_allclose(result, [0.0, -0.6, -0.9], rtol=0, atol=2e-16)
    assert math.copysign(1, result[0]) == 1  # not -0.0, which would be saved as a threshold


def test_aps_coverage_has_an_upper_side():
    """Scores of the true label are uniform on (-1, 0) where the model is right and u is random."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(5), size=40_000)
    y = (p.cumsum(axis=1) > rng.random(40_000)[:, None]).argmax(axis=1)
    true = -aps(p, rng.random(40_000))[np.arange(len(y)), y]
    assert stats.kstest(true, "uniform").pvalue > 0.01


def test_u_has_the_shape_of_the_batch_or_of_the_probabilities():
    p = np.full((2, 2, 2), 0.5)
    u = np.array([[0.0, 0.25], [0.5, 1.0]])
    expected = -0.5 * np.broadcast_to(u[..., None], p.shape)
    np.testing.assert_array_equal(aps(p, u), expected)
    np.testing.assert_array_equal(aps(p, u[..., None]), expected)
    np.testing.assert_array_equal(aps(p, expected * -2), expected)
    for shape in ((2,), (1, 2), (2, 2, 3), (2, 1, 2), (3, 2, 2, 2)):
        with pytest.raises(ValueError, match="`u` must be a scalar or have shape"):
            aps(p, np.zeros(shape))


def test_half_precision_keeps_its_dtype():
    p = torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.bfloat16)
    for score in (tps(p), aps(p, 0.5), raps(p, 0.5), margin(p)):
        assert score.dtype == torch.bfloat16
    assert aps(np.array([0.5, 0.5], np.float16), 0.5).dtype == np.float16
    assert aps(p, 0.5).tolist() == [[-0.25, -0.625, -0.625]]


@pytest.mark.parametrize("as_input", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize(
    ("dtype", "beyond"),
    [("float64", 2.0**-52), ("float64", 2.0**-23), ("float32", 2.0**-23), ("float16", 2.0**-10)],
)
def test_what_exceeds_the_range_by_rounding_counts_as_its_end(as_input, dtype, beyond):
    """An average of probabilities may be 1 + 2^-52, also in float32 before it was widened."""
    p = as_input(np.array([[1 + beyond, -beyond, 0.0]], dtype))
    clean = as_input(np.array([[1, 0, 0]], dtype))
    assert (np.asarray(p) != np.asarray(clean)).any()
    for score in (tps, lambda q: aps(q, 0.5), lambda q: raps(q, 0.5), margin):
        np.testing.assert_array_equal(np.asarray(score(p)), np.asarray(score(clean)))
        assert np.asarray(p)[0, 0] > 1  # the caller's array stays as it is
    far = as_input(np.array([[1 + 2.0**-6, 0.0]], dtype))
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        tps(far)


@pytest.mark.parametrize("as_input", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("K", [2, 10, 300])
def test_many_labels_with_ties_follow_the_definitions(as_input, K):
    """Ranks and masses of groups of equal probabilities, counted label by label."""
    rng = np.random.default_rng(K)
    weights = rng.integers(0, 9, (20, K)) / 2.0**12  # sums are exact
    u = rng.integers(0, 2, 20)
    above = np.array([[sum(q for q in row if q > own) for own in row] for row in weights])
    rank = np.array([[(row >= own).sum() for own in row] for row in weights])
    expected = -(above + u[:, None] * weights)
    np.testing.assert_array_equal(np.asarray(aps(as_input(weights), as_input(u))), expected)
    ours = raps(as_input(weights), as_input(u), penalty=0.25, k_reg=2)
    np.testing.assert_array_equal(np.asarray(ours), expected - 0.25 * np.maximum(rank - 2, 0))


def test_scores_need_memory_for_the_batch_only():
    """An n x n matrix of the reference implementation would take half a gigabyte here."""
    p = np.full((8192, 10), 0.1)
    tracemalloc.start()
    aps(p, np.zeros(8192))
    raps(p, np.zeros(8192))
    margin(p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * p.nbytes


@pytest.mark.parametrize("as_input", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("score", [tps, lambda p: aps(p, 0.5), lambda p: raps(p, 0.5), margin])
def test_bad_probabilities(score, as_input):
    for bad, message in (
        (
            [[0.5, 0.5], [0.5, math.nan]],
            r"`probabilities` must be a number, got nan at index \(1, 1\)",
        ),
        ([[0.5, 1.5]], r"in \[0, 1\] \(apply a softmax to logits\), got 1.5 at index \(0, 1\)"),
        ([[-0.5, 0.5]], r"in \[0, 1\].* got -0.5"),
        ([[0, 1]], "must have one of the dtypes float16, .* got int64"),
        (0.5, r"must have shape \(..., K\), got \(\)"),
        (np.zeros((3, 0)), r"must have shape \(..., K\), got \(3, 0\)"),
    ):
        with pytest.raises(ValueError, match=message):
            score(as_input(bad))


def test_other_bad_arguments():
    p = [0.5, 0.5]
    for call, error, message in (
        (lambda: logit([math.nan]), ValueError, "`logits` must be a number"),
        (lambda: margin([1.0]), ValueError, "at least 2 labels"),
        (lambda: aps(p, 1.5), ValueError, r"`u` must be in \[0, 1\], got 1.5 as the scalar"),
        (lambda: aps(p, [0.5, math.nan]), ValueError, r"`u` must be in \[0, 1\], got nan at"),
        (lambda: raps(p, 0.5, penalty=-1), ValueError, "`penalty` must be finite and >= 0"),
        (lambda: raps(p, 0.5, k_reg=-1), ValueError, "`k_reg` must be at least 0"),
        (lambda: raps(p, 0.5, k_reg=1.0), TypeError, "`k_reg` must be an integer"),
    ):
        with pytest.raises(error, match=message):
            call()
    dense = torch.rand(2, 3)
    nested = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)], layout=torch.jagged)
    for other in (dense.to_sparse(), dense.to("meta"), nested):
        for call in (logit, margin, tps, lambda u: aps(dense, u)):
            with pytest.raises(ValueError, match="must be a dense tensor that holds data, got a"):
                call(other)
    assert logit([-math.inf, math.inf]).tolist() == [-math.inf, math.inf]


def test_every_public_score_has_a_name_for_sampling():
    public = set(scores.__all__) - {"ptt"}  # which needs tuning scores
    assert set(scores.NAMED_SCORES) == public | {"lac", "thr"}


@pytest.mark.parametrize("u", [None, "a", 1j, True])
@pytest.mark.parametrize("probabilities", [[0.5, 0.5], torch.tensor([0.5, 0.5])])
def test_u_must_be_real_numbers(probabilities, u):
    with pytest.raises(TypeError, match="`u` must be real numbers"):
        scores.aps(probabilities, u)


# ---- the ranking transformation ------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=9),
    st.lists(st.integers(-1, 6), min_size=1, max_size=6),
    st.floats(0, 1),
)
@settings(deadline=None)
def test_ptt_by_its_definition_in_numpy_and_torch(tuning, row, u):
    tuning, row = np.array(tuning, float), np.array(row, float)
    result = ptt(row, tuning, u, b=0.3, temperature=0.2)
    for s, ours in zip(row, result, strict=True):
        below, ties = (tuning < s).sum(), (tuning == s).sum()
        rank = below + min(math.floor(u * (ties + 1)), ties)
        expected = 1 / (1 + math.exp(-(rank / len(tuning) - 0.3) / 0.2))
        assert ours == pytest.approx(expected, rel=1e-13)
    order = np.argsort(row)
    assert (np.diff(result[order]) >= 0).all()
    tensors = ptt(torch.from_numpy(row), torch.from_numpy(tuning), u, b=0.3, temperature=0.2)
    np.testing.assert_allclose(tensors.numpy(), result, rtol=1e-14)


def test_ptt_breaks_ties_evenly_and_takes_infinities():
    tuning = np.array([0.0, 1.0, 1.0, 1.0, np.inf])
    shares = [ptt([1.0], tuning, u, b=0, temperature=1)[0] for u in (0.1, 0.3, 0.6, 0.9, 1.0)]
    expected = [1 / (1 + math.exp(-rank / 5)) for rank in (1, 2, 3, 4, 4)]
    np.testing.assert_allclose(shares, expected, rtol=1e-14)
    assert ptt([-np.inf, np.inf], tuning, 1.0, b=0, temperature=1)[0] == 0.5


def test_ptt_refuses_what_does_not_fit():
    scores = np.array([0.5], np.float32)
    for tuning, options, error, message in (
        ([0.5], {}, ValueError, "`tuning_scores` must have the dtype of `scores`, float32"),
        (np.zeros(0, np.float32), {}, ValueError, "`tuning_scores`"),
        (np.array([np.nan], np.float32), {}, ValueError, "`tuning_scores` must be a number"),
        (torch.zeros(3), {}, TypeError, "`tuning_scores` must be a tensor where"),
        (scores, {"temperature": 0}, ValueError, "`temperature` must be finite and > 0"),
        (scores, {"b": "x"}, TypeError, "`b` must be a real number"),
    ):
        with pytest.raises(error, match=message):
            ptt(scores, tuning, 0.5, **options)
    with pytest.raises(ValueError, match=r"`u` must be in \[0, 1\]"):
        ptt(scores, scores, 1.5)
