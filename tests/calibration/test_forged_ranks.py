"""Ranks are proven on load: a forged test that they do not allow is refused, whoever signed it."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refutation import Boundaries, ranks_hold
from scipy.stats import beta, binom, norm

import bincp
from bincp import balls, smoothing
from bincp.calibration._label_test import line_boundaries
from bincp.calibration._mixture import top_rank
from bincp.calibration._storage import checksum
from support import quiet

DELTA = 0.24  # the ball in units of the noise
CERTIFICATE = bincp.certify(smoothing.Gaussian(0.5), balls.L2(DELTA / 2))
N, M = 99, 8
SCORES = np.random.default_rng(0).random((N, M))
CONDITIONAL = ("training-conditional", "1/10")
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "ranks": ({"p": "2/3"}, 8),
    "ranks, more draws": ({"p": "1/2"}, 16),
    "early": ({"p": "2/3", "passes": "auto"}, 8),
    "early, with draws to spare": ({"p": "2/3", "passes": "auto"}, 200),
    "early, on a budget": ({"p": "2/3", "passes": 2}, 100),
    "training-conditional": ({"guarantee": CONDITIONAL}, 8),
    "training-conditional, early": ({"guarantee": CONDITIONAL, "passes": "auto"}, 8),
}
each_case = pytest.mark.parametrize("name", CASES)


def saved(name: str, path: Path) -> dict[str, Any]:
    options, m_test = CASES[name]
    rule = bincp.BinCP(CERTIFICATE, **options).calibrate(SCORES, n_test_samples=m_test)
    assert rule.rank_
    assert rule.min_count_
    rule.save(path)
    return content_of(path)


def content_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    del content["sha256"]
    return content


def loads(path: Path, content: dict[str, Any], kind: type = bincp.BinCP) -> bool:
    """Whether a document with a true checksum loads; what refuses it must be the proof."""
    path.write_text(json.dumps({**content, "sha256": checksum(content)}))
    try:
        kind.load(path)  # type: ignore[attr-defined]
    except ValueError as error:
        if "which do not keep the coverage" not in str(error):
            raise
        return False
    return True


def holds(content: dict[str, Any]) -> bool:
    """The verdict of the other program."""
    j, n, t = content["rank_"], content["n_calibration_"], content["success_rank_"]
    share = Fraction(j, n + 1)
    if content["delta"] is not None:
        share = Fraction(float(beta.ppf(float(1 - Fraction(content["delta"])), j, n + 1 - j)))
    k, m_test = content["min_count_"], content["n_test_samples_"]
    bounds = content["boundaries_"]
    if bounds is None:
        bounds = {"accept": [k] * (m_test + 1), "reject": range(k - 1 - m_test, k)}
    accept, reject = tuple(bounds["accept"]), tuple(bounds["reject"])
    used = next(i for i in range(m_test + 1) if accept[i] == reject[i] + 1) + 1
    test = Boundaries(accept[:used], reject[:used])
    return ranks_hold(CERTIFICATE, test, t, M, share, Fraction(content["alpha"]))


def with_count(content: dict[str, Any], k: int) -> dict[str, Any]:
    """Return the document with another k, and with boundaries that lead there."""
    forged = {**content, "min_count_": k}
    if content["boundaries_"] is not None:
        rule = line_boundaries(k, content["n_test_samples_"], Fraction(6, 5))
        forged["boundaries_"] = {"accept": rule.accept.tolist(), "reject": rule.reject.tolist()}
    return forged


@each_case
def test_a_rule_that_was_calibrated_is_proven(name: str, tmp_path: Path) -> None:
    content = saved(name, tmp_path / "rule.json")
    assert holds(content)
    assert loads(tmp_path / "rule.json", content)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][1] <= 16])
def test_a_forged_count_loads_exactly_where_the_ranks_allow_it(name: str, tmp_path: Path) -> None:
    content = saved(name, tmp_path / "rule.json")
    verdicts = []
    for k in range(1, content["n_test_samples_"] + 1):
        forged = with_count(content, k)
        verdicts.append(holds(forged))
        assert loads(tmp_path / "rule.json", forged) == verdicts[-1], k
    assert set(verdicts) == {True, False}


@each_case
def test_forged_boundaries_are_refused(name: str, tmp_path: Path) -> None:
    """Refusals that come earlier than those that the calibration paid for."""
    content = saved(name, tmp_path / "rule.json")
    if content["boundaries_"] is None:
        content = {**with_count(content, content["n_test_samples_"])}
    else:
        accept, reject = content["boundaries_"]["accept"], content["boundaries_"]["reject"]
        raised = [min(max(r, 0), a - 1) for a, r in zip(accept, reject, strict=True)]
        content["boundaries_"] = {
            "accept": accept,
            "reject": np.maximum.accumulate(raised).tolist(),
        }
    assert not holds(content)
    assert not loads(tmp_path / "rule.json", content)


@each_case
def test_forged_ranks_and_levels_load_exactly_where_they_allow_the_test(
    name: str, tmp_path: Path
) -> None:
    content = saved(name, tmp_path / "rule.json")
    forgeries: list[dict[str, Any]] = [{"alpha": "1/11"}, {"alpha": "1/5"}, {"n_calibration_": 89}]
    if content["p"] is None:
        for t in range(1, M + 1):
            p = t / M
            certified = float(norm.cdf(norm.ppf(p) - DELTA)) if t < M else 1.0
            taken = min(certified, p) * (1 - 1e-12)
            forgeries.append({"success_rank_": t, "p_": p.hex(), "certified_p_": taken.hex()})
    verdicts = []
    for fields in forgeries:
        forged = {**content, **fields}
        if "success_rank_" not in fields:  # the largest rank may be smaller
            delta = None if forged["delta"] is None else Fraction(forged["delta"])
            top = top_rank(forged["n_calibration_"], Fraction(forged["alpha"]), delta)
            forged["rank_"] = min(forged["rank_"], top)
        verdicts.append(holds(forged))
        assert loads(tmp_path / "rule.json", forged) == verdicts[-1], fields
    assert True in verdicts


def test_the_ranks_of_each_class_are_proven(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    labels = np.arange(N) % 2
    rule = bincp.MondrianBinCP(CERTIFICATE, n_classes=3, p="2/3")
    quiet(rule.calibrate, SCORES, labels).save(path)
    content = content_of(path)
    assert loads(path, content, bincp.MondrianBinCP)
    shared = {name: content[name] for name in ("alpha", "delta", "n_test_samples_")}
    for label in range(2):
        own = content["classes"][label]
        for k in range(own["min_count_"], M + 1):
            forged = {**own, "min_count_": k}
            classes = [*content["classes"]]
            classes[label] = forged
            got = loads(path, {**content, "classes": classes}, bincp.MondrianBinCP)
            assert got == holds({**shared, **forged}), k
        assert not got


def test_the_count_at_a_fixed_threshold_is_proven(tmp_path: Path) -> None:
    """With m = m' it must keep v(p) <= alpha (n + 1) / j u(p) for every p."""
    path = tmp_path / "rule.json"
    bincp.BinCP(CERTIFICATE, tau=0.5).calibrate(SCORES).save(path)
    content = content_of(path)
    z = np.linspace(-6, 6, 2001)
    u = binom.cdf(content["success_rank_"] - 1, M, norm.cdf(z))
    slope = float(Fraction(content["alpha"]) * (N + 1) / content["rank_"])
    for k in range(1, M + 1):
        v = binom.cdf(k - 1, M, norm.cdf(z - DELTA))
        allowed = bool((v <= slope * u + 1e-9).all())
        assert loads(path, {**content, "min_count_": k}) == allowed, k
        assert allowed or k > 1
