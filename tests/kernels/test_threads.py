"""Threads: nothing crashes, whatever another thread writes, and shared state loses nothing."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bincp
from bincp import balls, smoothing
from bincp._core import _noise, _operators, _sequential
from bincp.noise import draw
from bincp.noise._alias import table_of

HAMMER = Path(__file__).with_name("hammer.py")


@pytest.mark.slow
def test_no_function_crashes_while_another_thread_overwrites_its_arguments() -> None:
    # In a process of its own: a crash is one failed test, not the end of all of them.
    command = [sys.executable, str(HAMMER), "0.1"]
    environment = os.environ | {"PYTHONPATH": str(Path(str(bincp.__file__)).parents[1])}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout[-500:] + result.stderr[-2000:]
    assert result.stderr == ""
    assert result.stdout.endswith(" functions lived\n")


# ---- what is wrong in the memory that a kernel reads ----------------------------------------


@pytest.mark.parametrize("wrong", [np.nan, 7.0, np.inf], ids=["nan", "seven", "infinity"])
@pytest.mark.parametrize("place", [0, 250, 499])
def test_the_grid_ends_on_values_that_are_no_probabilities(wrong: float, place: int) -> None:
    # The walk along the lines of a bound once went on beyond the last of them.
    p = np.linspace(0, 1, 500)
    right = np.empty((2, 3, 500))
    _operators.sparse_grid(0.01, 0.6, p, None, right)
    p[place] = wrong
    out = np.empty((2, 3, 500))
    _operators.sparse_grid(0.01, 0.6, p, None, out)
    assert np.array_equal(out[..., :place], right[..., :place])


def test_a_place_beyond_the_grid_is_not_written_to() -> None:
    p = np.linspace(0, 1, 5)
    order = np.array([0, 1, 2**32 - 1, 5, 4], dtype=np.uint32)
    out = np.full((2, 2, 5), -1.0)
    _operators.sparse_grid(0.01, 0.6, p, order, out)
    assert (out[..., [2, 3]] == -1).all()
    assert (out[..., [0, 1, 4]] >= 0).all()


def state_of(n_inputs: int, n_labels: int) -> dict[str, Any]:
    return {
        "draws": np.zeros(n_inputs, np.int32),
        "counts": np.zeros((n_inputs, n_labels), np.int32),
        "exits": np.full((n_inputs, n_labels), -1, np.int32),
    }


@pytest.mark.parametrize("wrong", [-1, 3, 2**40, -(2**63)])
def test_an_input_that_does_not_exist_is_refused_by_the_kernel(wrong: int) -> None:
    rule, state = bincp.SequentialRule.curtailed(3, 5), state_of(3, 2)
    hits, inputs = np.ones((3, 2), np.uint8), np.array([0, wrong, 1])
    with pytest.raises(ValueError, match=f"`inputs` must name inputs below 3 .*, got {wrong}"):
        _sequential.replay(rule.accept[:, None], rule.reject[:, None], hits, inputs, **state)
    assert state["draws"].tolist() == [1, 0, 0]


def test_a_draw_beyond_the_last_is_refused_by_the_kernel() -> None:
    rule, state = bincp.SequentialRule.curtailed(3, 5), state_of(1, 2)
    hits, inputs = np.ones((6, 2), np.uint8), np.zeros(6, np.int64)
    with pytest.raises(ValueError, match="that have had fewer than 5 draws, got 0 in row 5"):
        _sequential.replay(rule.accept[:, None], rule.reject[:, None], hits, inputs, **state)
    assert state["draws"].tolist() == [5]


def test_any_byte_but_0_is_one_hit() -> None:
    rule, state = bincp.SequentialRule.curtailed(5, 5), state_of(1, 3)
    hits = np.array([[0, 1, 255], [0, 2, 128]], np.uint8)
    _sequential.replay(
        rule.accept[:, None], rule.reject[:, None], hits, np.zeros(2, np.int64), **state
    )
    assert state["counts"].tolist() == [[0, 2, 2]]


@pytest.mark.parametrize("source", [-1, 2, 2**62])
def test_a_row_that_does_not_exist_is_refused_by_the_noise(source: int) -> None:
    ids, sources = np.arange(2), np.array([0, source])
    with pytest.raises(ValueError, match=f"`sources` must be rows of `x`, below 2, got {source}"):
        _noise.flip(0.1, 0.6, 0, 1, ids, ids, sources, np.zeros((2, 8)), np.zeros((2, 8)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_no_category_is_left_alone(dtype: Any) -> None:
    x = np.array([[np.nan, np.inf, -1.0, 1e30, 2.0] * 20], dtype)
    out, ids = np.empty_like(x), np.zeros(1, np.int64)
    _noise.change_categories(4, 1.0, 1.0, 0, 1, ids, ids, ids, x, out)
    assert np.array_equal(out[0].reshape(20, 5)[:, :4], x[0].reshape(20, 5)[:, :4], equal_nan=True)
    assert np.isin(out[0, 4::5], [0, 1, 3]).all()


# ---- shared state ---------------------------------------------------------------------------


def test_a_tracker_loses_no_draw_of_several_threads() -> None:
    # The draws are all hits: each input must end with m' draws and m' hits, whoever brought them.
    m, n, n_threads = 300, 4, 3
    rule = bincp.SequentialRule.curtailed(m, m)
    tracker = rule.start((n, 500))
    hits, inputs = np.ones((n, 500), bool), np.arange(n)

    def bring(_: int) -> None:
        for _ in range(m // n_threads):
            tracker.update_rows(hits, inputs)

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(bring, range(n_threads)))
    assert tracker.draws.tolist() == [m] * n
    assert (tracker.counts == m).all()
    assert (tracker.exits == m).all()
    with pytest.raises(ValueError, match="`hits` must not hold more than the m' = 300 draws"):
        tracker.update_rows(hits, inputs)


def test_a_tracker_with_its_lock_is_pickled() -> None:
    tracker = bincp.SequentialRule.curtailed(3, 5).start((2, 2))
    tracker.update_rows(np.ones((2, 2), bool), [0, 1])
    again = pickle.loads(pickle.dumps(tracker))
    again.update_rows(np.ones((2, 2), bool), [0, 0])
    assert again.draws.tolist() == [3, 1]
    assert tracker.draws.tolist() == [1, 1]


PAIRS: dict[str, tuple[Any, Any]] = {
    "regions": (smoothing.SparseFlip(0.01, 0.6), balls.Flips(20, 20)),
    "gaussian": (smoothing.Gaussian(0.25), balls.L2(0.25)),
    "laplace": (smoothing.Laplace(0.25), balls.L1(0.25)),
    "uniform": (smoothing.Uniform(0.5), balls.L1(0.25)),
    "steps": (smoothing.SplittingNoise(0.5), balls.L1(10 / 255)),
    "exponential power": (smoothing.Expp(0.5, p=4), balls.L1(0.25)),
    "half power": (smoothing.Expp(0.5, p=0.5), balls.L1(0.25)),
    "hyperbolic secant": (smoothing.Exp2(0.01), balls.L2(0.25, dim=784)),
    "pareto": (smoothing.Pareto(0.5, a=3), balls.L1(0.25)),
    "charged gaussian": (smoothing.Gaussian(0.25, grid=255), balls.L2(0.25)),
    "charged off the grid": (
        smoothing.Gaussian(0.25, grid=255, off_grid=True),
        balls.L2(0.25),
    ),
    "charged laplace": (smoothing.Laplace(0.25, grid=255), balls.L1(0.25)),
    "charged uniform": (smoothing.Uniform(0.5, grid=255), balls.L1(0.25)),
    "charged exponential power": (smoothing.Expp(0.25, p=4, grid=255), balls.L1(0.25)),
    "charged pareto": (smoothing.Pareto(0.25, a=3, grid=255), balls.L1(0.25)),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_threads_share_a_certificate(pair: tuple[Any, Any]) -> None:
    certificate = bincp.certify(*pair)
    p = np.random.default_rng(0).random(3000)
    for bound in (certificate.lower, certificate.upper):
        wanted = bound(p)
        with ThreadPoolExecutor(4) as pool:
            for got in pool.map(bound, [p] * 12):
                assert np.array_equal(got, wanted)


@pytest.mark.parametrize(
    "scheme",
    [
        smoothing.Gaussian(0.2, grid=255),
        smoothing.Laplace(0.2, grid=255),
        smoothing.Uniform(0.2, grid=255),
        smoothing.Expp(0.2, p=4, grid=255),
        smoothing.Pareto(0.2, a=3, grid=255),
        smoothing.Gaussian(0.2, grid=255, off_grid=True),
    ],
    ids=repr,
)
def test_threads_that_draw_at_once_get_what_one_gets_alone(scheme: Any) -> None:
    """The first of them make the table, which all of them share."""
    table_of.cache_clear()
    x = np.linspace(0, 255, 12 * 256, dtype=np.float32).reshape(12, 256).round() / np.float32(255)
    start = threading.Barrier(4)

    def rows(_: int) -> Any:
        start.wait()
        return [draw(scheme, x, 16, phase="test", n_threads=2) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        drawn = [one for several in pool.map(rows, range(4)) for one in several]
    table_of.cache_clear()
    alone = draw(scheme, x, 16, phase="test")
    assert all(one.tobytes() == alone.tobytes() for one in drawn)
