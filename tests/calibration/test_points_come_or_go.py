"""Calibration points that were only deleted or only inserted: ranks, sums of losses, one test."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import bincp
from bincp import shifts
from bincp.balls import L2
from bincp.baselines import RCP1, SmoothedCP, VanillaCP
from bincp.calibration._departures import Departures
from bincp.calibration._risk_threshold import largest_threshold
from bincp.cli import main
from bincp.smoothing import Gaussian
from support import forge, golden, quiet

EXACT = golden("poisoning")
GAUSSIAN = bincp.certify(Gaussian(0.5), L2(0.125))
SCORES = np.random.default_rng(3).normal(1, 0.3, (300, 32))
KINDS = ["deletions", "insertions"]


# ---- ranks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_exact_ranks(kind):
    for n, level, d, rank in EXACT[kind]:
        rule = quiet(VanillaCP(alpha=level, poisoned=(kind, d)).calibrate, np.arange(float(n)))
        assert rule.rank_ == rank
        assert rule.tau_ == (rank - 1 if rank else -math.inf)


def seen_sets(kind, points, d):
    """Yield all that an adversary can show of clean points: fewer of them, or more."""
    for size in range(d + 1):
        if kind == "deletions":
            yield from itertools.combinations(points, len(points) - size)
        else:
            # Next to each point, below all and above all: only order matters.
            places = sorted({*points, *(p + 0.5 for p in points), -1.0})
            for more in itertools.combinations_with_replacement(places, size):
                yield (*points, *more)


def coverage(kind, n, d, threshold):
    """The share of places of the test point that are covered whatever the adversary does."""
    covered = 0
    for test in range(n + 1):
        points = [float(p) for p in range(n + 1) if p != test]
        covered += all(test >= threshold(seen) for seen in seen_sets(kind, points, d) if seen)
    return Fraction(covered, n + 1)


def plain(level, shift_size, lost):
    """The rank floor(level (n + shift_size + 1)) - lost of n points that are seen."""

    def threshold(seen):
        rank = math.floor(Fraction(level) * (len(seen) + shift_size + 1)) - lost
        return sorted(seen)[rank - 1] if 0 < rank <= len(seen) else -math.inf

    return threshold


@pytest.mark.parametrize("kind", KINDS)
def test_all_adversaries_of_small_worlds(kind):
    """The guaranteed coverage is as worked out, and at least the nominal one."""
    refuted = {"unmodified": 0, "no points taken off": 0}
    for found, n, level, d, exact in EXACT["one_sided"]:
        if found != kind or n > 6:
            continue
        rule = VanillaCP(alpha=level, poisoned=(kind, d))

        def threshold(seen, rule=rule):
            return quiet(rule.calibrate, np.array(seen)).tau_

        reached = coverage(kind, n, d, threshold)
        assert reached == Fraction(exact)
        nominal = 1 - Fraction(math.floor(Fraction(level) * (n + 1)), n + 1)
        assert reached >= nominal
        refuted["unmodified"] += coverage(kind, n, d, plain(level, 0, 0)) < nominal
        wrong = plain(level, d, 0)  # as if d more points had been seen
        refuted["no points taken off"] += coverage(kind, n, d, wrong) < nominal
    assert min(refuted.values()) > 0


def test_it_costs_less_than_arbitrary_points():
    for n, d in ((99, 5), (300, 12)):
        values = np.arange(float(n))
        replaced = VanillaCP(alpha=0.2, poisoned=d).calibrate(values)
        for kind in KINDS:
            assert VanillaCP(alpha=0.2, poisoned=(kind, d)).calibrate(values).rank_ > replaced.rank_
            nobody = VanillaCP(alpha=0.2, poisoned=(kind, 0)).calibrate(values)
            assert nobody.rank_ == VanillaCP(alpha=0.2).calibrate(values).rank_


# ---- rules with samples -----------------------------------------------------------------------

OPTIONS = [
    {},
    {"passes": "auto"},
    {"p": 0.7},
    {"guarantee": ("training-conditional", "0.2")},
    {"shift": shifts.TotalVariation("0.02"), "attacked_calibration": True},
    {"label_noise": ("count", 2)},
    {"correction": "clopper-pearson", "union": "two-bounds"},
    {"correction": "none"},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_test_for_every_number_of_points(kind, options):
    """The adversary chooses n, so only the rank may depend on it."""
    rules = [
        quiet(bincp.BinCP(GAUSSIAN, alpha=0.2, poisoned=(kind, 4), **options).calibrate, part)
        for part in (SCORES, SCORES[:151], SCORES[:90])
    ]
    for rule in rules:
        assert rule.min_count_ > 0
        assert rule.losses_ is None
        assert rule.success_rank_ == rules[0].success_rank_
        assert rule._rule.tests == rules[0]._rule.tests
    smaller = [rule._rule.share for rule in rules]
    assert smaller[0] == smaller[1] == smaller[2]


@pytest.mark.parametrize("kind", KINDS)
def test_no_adversary_raises_tau_above_that_of_the_clean_points(kind):
    rng = np.random.default_rng(5)
    rule = bincp.BinCP(GAUSSIAN, alpha=0.2, poisoned=(kind, 6), passes=None)
    worse = 0
    for _ in range(12):
        clean = SCORES[rng.choice(300, 120, replace=False)]
        size = int(rng.integers(0, 7))
        own = np.sort(clean, axis=1)
        if kind == "deletions":
            order = np.argsort(own[:, 10])
            seen = np.delete(clean, order[:size], axis=0)
        else:
            seen = np.concatenate([clean, rng.choice([-9.0, 9.0]) * np.ones((size, 32))])
        made = rule.calibrate(seen)
        t, share = made.success_rank_, made._rule.share
        rank = math.floor(share * 121)
        highest = np.sort(own[:, 32 - t])[rank - 1]
        assert made.tau_ <= highest
        unmodified = np.sort(np.sort(seen, axis=1)[:, 32 - t])
        worse += unmodified[math.floor(share * (len(seen) + 1)) - 1] > highest
    assert worse > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_plans_files_and_classes(kind, options, tmp_path):
    options = {"alpha": 0.2, "poisoned": (kind, 4), **options}
    rule = quiet(bincp.BinCP(GAUSSIAN, **options).calibrate, SCORES)
    plan = quiet(bincp.plan, GAUSSIAN, n=300, m=32, n_classes=10, **options)
    assert (plan.min_count, plan.success_rank, plan.rank) == (
        rule.min_count_,
        rule.success_rank_,
        rule.rank_,
    )
    assert plan.paper is None
    assert f"4 {kind}" in str(plan)
    rule.save(tmp_path / "rule.json")
    loaded = bincp.BinCP.load(tmp_path / "rule.json")
    assert loaded._rule == rule._rule
    assert loaded.poisoned == (kind, 4)
    assert loaded.certificate is not None
    if "shift" not in options:
        labels = np.arange(300) % 2
        rules = quiet(
            bincp.MondrianBinCP(GAUSSIAN, n_classes=2, **options).calibrate, SCORES, labels
        )
        one = rules.rules_[0]
        assert (one.min_count_, one.success_rank_) == (rule.min_count_, rule.success_rank_)
        rules.save(tmp_path / "rules.json")
        assert bincp.MondrianBinCP.load(tmp_path / "rules.json")._rule == rules._rule


def test_tau_fixed_and_exact_probabilities():
    p = np.linspace(0.3, 1, 99)
    for kind, rank in (("deletions", 16), ("insertions", 19)):
        rule = bincp.BinCP(GAUSSIAN, alpha=0.2, poisoned=(kind, 4)).calibrate_exact(p, tau=0.4)
        assert (rule.rank_, rule.p_) == (rank, p[rank - 1])
        fixed = bincp.BinCP(GAUSSIAN, alpha=0.2, tau=0.8, poisoned=(kind, 4)).calibrate(SCORES[:99])
        counts = np.sort((SCORES[:99] >= 0.8).sum(axis=1))
        assert (fixed.rank_, fixed.success_rank_) == (rank, counts[rank - 1])


def test_baselines_take_both_kinds():
    values = np.clip(SCORES[:99], 0, 1)
    for kind, rank in (("deletions", 16), ("insertions", 19)):
        made = SmoothedCP(alpha=0.2, poisoned=(kind, 4)).calibrate(values)
        assert made.rank_ == rank
        one = quiet(RCP1(GAUSSIAN, alpha=0.3, poisoned=(kind, 4)).calibrate, values[:, :1])
        assert one.poisoned == (kind, 4)
        assert one.get_params()["poisoned"] == (kind, 4)


# ---- losses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_adversary_raises_the_threshold_of_losses(kind):
    """All deletions and many insertions, against the same level for the clean points."""
    rng, unpaid = np.random.default_rng(11), 0
    for _ in range(60):
        n, d = 6, int(rng.integers(1, 3))
        level = Fraction(int(rng.integers(2, 6)), 8)
        labels = rng.random((n, 2)) < 0.7
        values = rng.integers(0, 8, (n, 2)).astype(float)

        def tau(values, labels, poisoned, level=level):
            points = Departures(alpha=level, poisoned=poisoned)
            size = points.clean_size(len(values))
            loss = "false-negative-rate"
            return largest_threshold(values, labels, loss, level, points.lost, size=size).value

        clean = tau(values, labels, 0)
        for size in range(d + 1):
            for rows in itertools.combinations(range(n), size):
                if kind == "deletions":
                    kept = np.delete(np.arange(n), rows)
                    seen = values[kept], labels[kept]
                else:
                    extra = rng.integers(-1, 10, (size, 2)).astype(float)
                    seen = (
                        np.concatenate([values, extra]),
                        np.concatenate([labels, np.ones((size, 2), bool)]),
                    )
                assert tau(*seen, (kind, d)) <= clean
                unpaid += tau(*seen, 0) > clean
    assert unpaid > 0


@pytest.mark.parametrize("kind", KINDS)
def test_risk_rules_have_one_test(kind, tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.random((200, 3)) < 0.5
    scores = rng.normal(np.where(labels, 1, -1)[..., None], 0.3, (200, 3, 32))
    for options in ({}, {"correction": "clopper-pearson"}, {"passes": "auto"}):
        rules = [
            bincp.RobustRiskControl(GAUSSIAN, alpha=0.2, poisoned=(kind, 5), **options).calibrate(
                scores[:n], labels[:n]
            )
            for n in (200, 120)
        ]
        assert rules[0].min_count_ == rules[1].min_count_ > 0
        assert rules[0].success_rank_ == rules[1].success_rank_
        assert rules[0]._rule.share == rules[1]._rule.share
        rules[0].save(tmp_path / "rule.json")
        assert bincp.RobustRiskControl.load(tmp_path / "rule.json")._rule == rules[0]._rule


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("poisoned", "message"),
    [
        (("deletions",), "must be an integer >= 0, "),
        (("moves", 2), r"must be an integer >= 0, \(\"deletions\", d\)"),
        (("deletions", -1), r"`poisoned` must be in \[0, 2147483647\], got -1"),
        (("deletions", 2**31), r"`poisoned` must be in \[0, 2147483647\], got 2147483648"),
        (("deletions", 1.0), "`poisoned` must be an integer, got 1.0"),
        ("deletions", "`poisoned` must be an integer, got 'deletions'"),
        (["deletions", 2], "`poisoned` must be an integer"),
    ],
)
def test_other_values_are_refused(poisoned, message):
    for make in (
        lambda: bincp.BinCP(GAUSSIAN, poisoned=poisoned),
        lambda: bincp.RobustRiskControl(GAUSSIAN, poisoned=poisoned),
        lambda: VanillaCP(poisoned=poisoned),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            make()


def test_rules_that_depend_on_n_are_refused():
    with pytest.raises(ValueError, match='`union` must be "two-bounds" where points may have'):
        bincp.BinCP(GAUSSIAN, correction="clopper-pearson", poisoned=("deletions", 1))
    with pytest.raises(ValueError, match="`poisoned` must be a number of replaced points"):
        bincp.BinCP(GAUSSIAN, correction="shared-draws", poisoned=("insertions", 1))


CHANGES = [
    {"poisoned": {"kind": "deletions", "size": 0}},
    {"poisoned": {"kind": "deletions", "size": 12}},
    {"poisoned": {"kind": "insertions", "size": 4}},
    {"poisoned": {"kind": "moves", "size": 4}},
    {"poisoned": {"kind": "deletions", "size": 4.0}},
    {"poisoned": 4},
    {"share_": "1/4"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_files_that_promise_more_are_refused(change, tmp_path):
    path = tmp_path / "rule.json"
    bincp.BinCP(GAUSSIAN, alpha=0.2, poisoned=("deletions", 4)).calibrate(SCORES).save(path)
    content = json.loads(path.read_text())
    del content["sha256"]
    forge(path, content)
    assert bincp.BinCP.load(path).poisoned == ("deletions", 4)
    forge(path, {**content, **change})
    with pytest.raises(ValueError, match="damaged"):
        bincp.BinCP.load(path)


def test_the_command_line_takes_both_kinds(tmp_path, capsys):
    np.save(tmp_path / "scores.npy", SCORES)
    arguments = ["calibrate", str(tmp_path / "scores.npy"), "--smoothing", "gaussian:sigma=0.5"]
    arguments += ["--ball", "l2:r=0.125", "--out", str(tmp_path / "rule.json"), "--json"]
    assert main([*arguments, "--poisoned", "deletions:3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["poisoned"] == {"kind": "deletions", "size": 3}
    assert bincp.BinCP.load(tmp_path / "rule.json").poisoned == ("deletions", 3)
    for text in ("moves:3", "deletions:x", "deletions:-1"):
        assert main([*arguments, "--poisoned", text]) == 2
