"""The experiment on the diabetes data, on one split with little effort."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from support import import_benchmarks

import_benchmarks()

from benchmarks import diabetes  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    effort = diabetes.Effort(splits=1, epochs=60, n_samples=64, steps=5, draws=8)
    return {row.method: row for row in diabetes.run(effort, radii=(0.5,))}


def test_every_method_is_audited(rows):
    promised = {method: row.promised for method, row in rows.items()}
    assert promised["CQR, clean inputs"] == 0
    assert promised["BinCP, CQR scores"] == 0.9
    assert 0 < promised["CQR, one noisy draw"] < 0.9
    assert diabetes.table(list(rows.values())).count("\n") == 4


def test_robust_sets_cover_attacked_patients(rows):
    # 121 points each for calibration and test: four standard errors are below 0.16.
    assert rows["BinCP, CQR scores"].attacked > 0.9 - 0.16
    assert rows["BinCP, CQR scores"].width >= rows["CQR, clean inputs"].width
    assert all(0 < row.width < 1000 for row in rows.values())


def test_the_attack_stays_in_the_ball_and_lowers_the_coverage(rows):
    x, y = diabetes.load()
    model = diabetes.trained(x[:200], y[:200], diabetes.Effort(epochs=60), 0)
    moved = diabetes.attack(model, x[200:], y[200:], 1.0, 0.0, diabetes.Effort(steps=8), 0)
    away = np.linalg.norm(moved.astype(np.float64) - x[200:], axis=1)
    assert 0.5 < away.mean() <= 1 + 1e-5
    plain = diabetes.plain_sets(model, x[:200], y[:200], [x[200:], moved], 0.0, 0)
    clean, attacked = (sets.contains(y[200:]).mean() for sets in plain)
    assert attacked < clean - 0.05
