"""Sweeps: each row is the rule that calibration makes by itself, and is measured by counting."""

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import bincp
from bincp import balls, smoothing
from bincp.errors import TrivialSetWarning

NOISE = smoothing.Gaussian(0.5)
RADII = (0.0, 0.1, 0.2)
CERTIFICATES = [bincp.certify(NOISE, balls.L2(r)) for r in RADII]
RNG = np.random.default_rng(0)
TRUE = RNG.normal(1, 0.3, (150, 16))
LABELS = RNG.integers(3, size=80)
CENTRES = np.where(LABELS[:, None] == np.arange(3), 1.0, 0.6)
SCORES = RNG.normal(CENTRES[:, :, None], 0.3, (80, 3, 16))


def test_each_row_is_the_rule_by_itself():
    alphas, corrections, ps = ["0.1", "0.25"], ["mixture", "none"], [None, "0.7"]
    result = bincp.sweep(
        CERTIFICATES, TRUE, SCORES, LABELS, alpha=alphas, correction=corrections, p=ps
    )
    asked = list(itertools.product(range(3), alphas, corrections, ps))
    assert len(result.rows) == len(result.rules) == len(asked) == 24
    for row, rule, (i, alpha, correction, p) in zip(result.rows, result.rules, asked, strict=True):
        alone = bincp.BinCP(CERTIFICATES[i], alpha=alpha, correction=correction, p=p)
        alone.calibrate(TRUE, n_classes=3)
        assert (rule.tau_, rule.min_count_) == (alone.tau_, alone.min_count_)
        assert (row.tau, row.min_count) == (alone.tau_, alone.min_count_)
        assert (row.ball, row.radius) == (f"L2(r={RADII[i]})", RADII[i])
        assert (row.alpha, row.correction) == (Fraction(alpha), correction)
        assert row.p == (None if p is None else Fraction(p))
        assert (row.n_calibration, row.n_samples, row.n_test_samples) == (150, 16, 16)
        sets = alone.predict_set(SCORES)
        hits = sum(bool(sets[i, label]) for i, label in enumerate(LABELS))
        sizes = [int(members.sum()) for members in sets]
        assert row.n_test == 80
        assert row.coverage == hits / 80
        assert row.average_set_size == sum(sizes) / 80
        assert row.singleton_rate == sizes.count(1) / 80
        assert row.empty_rate == sizes.count(0) / 80
        low = scipy.stats.beta.ppf(0.025, hits, 81 - hits) if hits else 0
        high = scipy.stats.beta.ppf(0.975, hits + 1, 80 - hits) if hits < 80 else 1
        assert row.coverage_low == pytest.approx(low, rel=1e-9)
        assert row.coverage_high == pytest.approx(high, rel=1e-9)
    assert len({row.average_set_size for row in result.rows}) > 10


def test_one_value_is_as_good_as_many():
    one = bincp.sweep(CERTIFICATES[1], TRUE, SCORES, LABELS, alpha="0.1", p=0.7)
    many = bincp.sweep(iter([CERTIFICATES[1]]), TRUE, SCORES, LABELS, alpha=("0.1",), p=[0.7])
    assert one.rows == many.rows
    assert len(one.rows) == 1


def test_a_sweep_without_test_points_or_labels_has_no_measures_of_them():
    alone = bincp.sweep(CERTIFICATES[0], TRUE, n_test_samples=8).rows[0]
    assert alone.n_test_samples == 8
    assert alone.n_test is alone.coverage is alone.average_set_size is alone.coverage_low is None
    unlabelled = bincp.sweep(CERTIFICATES[0], TRUE, SCORES).rows[0]
    assert unlabelled.n_test == 80
    assert unlabelled.coverage is unlabelled.coverage_low is None
    assert unlabelled.average_set_size is not None


def test_m_of_the_test_and_k_are_those_of_the_scores():
    row = bincp.sweep(CERTIFICATES[0], TRUE, SCORES[:, :, :5], LABELS).rows[0]
    assert row.n_test_samples == 5
    with pytest.raises(ValueError, match="`n_test_samples` must be the m' = 5 of `scores`, got 6"):
        bincp.sweep(CERTIFICATES[0], TRUE, SCORES[:, :, :5], n_test_samples=6)
    with pytest.raises(ValueError, match="`n_classes` must be the K = 3 of `scores`, got 4"):
        bincp.sweep(CERTIFICATES[0], TRUE, SCORES, n_classes=4)
    with pytest.raises(TypeError, match=r"calibrate\(\) needs `n_classes`"):
        bincp.sweep(CERTIFICATES[0], TRUE, correction="clopper-pearson")
    wide = np.repeat(TRUE, 20, axis=1)  # enough samples for confidence bounds
    rule = bincp.sweep(CERTIFICATES[0], wide, correction="clopper-pearson", n_classes=3).rules[0]
    alone = bincp.BinCP(CERTIFICATES[0], correction="clopper-pearson").calibrate(wide, n_classes=3)
    assert rule.p_lower_ == alone.p_lower_


def test_options_go_to_all_rules():
    result = bincp.sweep(CERTIFICATES, TRUE, SCORES, LABELS, passes=4)
    assert all(rule.boundaries_ is not None for rule in result.rules)
    assert all(rule.passes == 4 for rule in result.rules)


def test_trivial_rules_are_told_once_with_their_cause():
    with pytest.warns(TrivialSetWarning, match="of 1 of 2 rules, see their `trivial`") as seen:
        result = bincp.sweep(CERTIFICATES[0], TRUE, SCORES, LABELS, alpha=["0.001", "0.1"])
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert "calibration points" in str(result.rows[0].trivial)
    assert result.rows[0].average_set_size == 3
    assert result.rows[1].trivial is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": []}, ValueError, "`alpha` must hold at least one value, got none"),
        ({"alpha": [0.1, 2]}, ValueError, r"`alpha` must be in \(0, 1\), got 2"),
        ({"alpha": object()}, TypeError, "`alpha` must be one value or an iterable of them"),
        ({"p": [None, 2]}, ValueError, "`p` must be in"),
        ({"correction": ["mixture", "best"]}, ValueError, "`correction` must be one of"),
        ({"certificates": []}, ValueError, "`certificates` must hold at least one value"),
        ({"certificates": [None]}, TypeError, "`certificate` must be a"),
        ({"confidence": 1}, ValueError, r"`confidence` must be in \(0, 1\), got 1"),
        ({"scores": SCORES[0]}, ValueError, r"`scores` must have shape \(n', K, m'\)"),
        ({"scores": SCORES[:0], "labels": None}, ValueError, "and not be empty"),
        ({"labels": LABELS[:5]}, ValueError, r"`labels` must have shape \(80,\), got \(5,\)"),
        ({"labels": LABELS + 1}, ValueError, "`labels` must be in"),
        ({"scores": None}, TypeError, "`labels` must be given with an array of scores"),
        ({"scores": SCORES.astype(np.float32)}, ValueError, "must have the dtype calibrated with"),
        ({"gamma": 1}, TypeError, "gamma"),
        ({"n_threads": 0}, ValueError, "`n_threads` must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    given = {"certificates": CERTIFICATES, "true_scores": TRUE, "scores": SCORES, "labels": LABELS}
    with pytest.raises(error, match=message):
        bincp.sweep(**(given | options))


def test_all_combinations_are_checked_before_scores_are_looked_at():
    with pytest.raises(ValueError, match="`eta` must be below alpha"):
        bincp.sweep(
            CERTIFICATES,
            np.full((5, 5), np.nan),
            alpha=["0.1", "1e-4"],
            correction=["mixture", "clopper-pearson"],
        )


def test_the_printed_table_rounds_intervals_outward():
    result = bincp.sweep(CERTIFICATES, TRUE, SCORES, LABELS, alpha=["0.1", "0.25"], p=[None, 0.7])
    heading, _, names, *lines = str(result).split("\n")
    assert heading == (
        "n = 150 calibration points with m = 16 scores each, m' = 16 at prediction, 80 test points"
    )
    columns = names.split()
    assert columns[:4] == ["ball", "alpha", "correction", "p"]
    assert len(lines) == len(result.rows)
    for line, row in zip(lines, result.rows, strict=True):
        cells = line.split()
        assert cells[0] == row.ball
        low, high = (float(cells[columns.index(name) - len(columns)]) for name in ("from", "to"))
        assert row.coverage_low - 1e-4 < low <= row.coverage_low
        assert row.coverage_high <= high < row.coverage_high + 1e-4
    assert repr(result) == "Sweep(12 rules, confidence=19/20)"
    plain = str(bincp.sweep(CERTIFICATES, TRUE)).split("\n")[2]
    assert plain.split() == ["ball", "alpha", "correction", "tau", "k"]


def test_balls_of_any_kind_have_a_name():
    bare = bincp.Certificate.from_bounds(lambda p: p, lambda p: p)
    flips = bincp.certify(smoothing.SparseFlip(0.01, 0.3), balls.Flips(1, 2))
    cube = bincp.certify(smoothing.Gaussian(0.5), balls.Linf(0.01, 4))
    rows = bincp.sweep([bare, flips, cube], TRUE).rows
    assert [row.radius for row in rows] == [None, None, 0.01]
    assert rows[1].ball == "Flips(additions=1, deletions=2)"
    assert rows[2].ball == "Linf(r=0.01, dim=4)"
    assert rows[0].ball == bare.describe()["operator"]


def test_rows_become_a_data_frame():
    pandas = pytest.importorskip("pandas")
    result = bincp.sweep(CERTIFICATES, TRUE, SCORES, LABELS, alpha=["0.1", "0.25"])
    frame = result.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(bincp.SweepRow._fields)
    assert frame.alpha.tolist() == [0.1, 0.25] * 3
    assert frame.coverage.tolist() == [row.coverage for row in result.rows]
    assert frame.min_count.dtype.kind == "i"
    assert frame.groupby("radius").average_set_size.mean().index.tolist() == list(RADII)


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas: pip install pandas"):
        bincp.sweep(CERTIFICATES[0], TRUE).to_frame()
