"""Rows of noise and of scores have the same bits for any number of threads."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bincp.noise._draw
import bincp.scores
from bincp import noise, smoothing
from bincp._utils.threads import shares

IMAGES = np.random.default_rng(1).random((5, 3, 8, 8), dtype=np.float32)
BITS = (IMAGES > 0.5).astype(np.float32)
LEVELS = (IMAGES * 255).astype(np.uint8)
CODES = (IMAGES * 4).astype(np.int64).astype(np.float32)

DRAWS: list[tuple[Any, Any]] = [
    (smoothing.Gaussian(0.25), IMAGES),
    (smoothing.Gaussian(0.25), IMAGES.astype(np.float64)),
    (smoothing.Gaussian(0.25), IMAGES.transpose(0, 2, 3, 1)),
    (smoothing.Gaussian(0.25, grid=255), LEVELS),
    (smoothing.Gaussian(0.25, grid=255, off_grid=True), IMAGES),
    (smoothing.Laplace(0.25), IMAGES),
    (smoothing.Uniform(0.5, grid=255), LEVELS),
    (smoothing.Expp(0.5, 4), IMAGES),
    (smoothing.Pareto(0.5, 3), IMAGES),
    (smoothing.Exp2(0.01), IMAGES),
    (smoothing.UniformBall(2.0), IMAGES),
    (smoothing.SparseFlip(0.1, 0.6), BITS),
    (smoothing.CategoricalFlip(5, 0.1, 0.2), CODES),
    (smoothing.Ablation(20, dim=192), IMAGES),
    (smoothing.BlockAblation(3, 8, 8), IMAGES),
    (smoothing.SplittingNoise(0.5), np.round(IMAGES * 255) / np.float32(255)),
]


def name_of(value: Any) -> str | None:
    return type(value).__name__ if isinstance(value, smoothing.Smoothing) else None


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are shared, too."""
    monkeypatch.setattr("bincp.noise._draw._THREAD_VALUES", 1)
    monkeypatch.setattr("bincp.scores._THREAD_VALUES", 1)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("scheme", "x"), DRAWS, ids=name_of)
def test_noise(scheme: Any, x: Any) -> None:
    drawn = {
        n: noise.draw(scheme, x, 7, phase="test", seed=3, n_threads=n) for n in (1, 2, 3, 16, 1000)
    }
    for rows in drawn.values():
        assert rows.tobytes() == drawn[1].tobytes()


SCORES: list[Callable[..., Any]] = [
    lambda p, u, n: bincp.scores.aps(p, u, n_threads=n),
    lambda p, u, n: bincp.scores.raps(p, u, penalty=0.1, k_reg=2, n_threads=n),
    lambda p, u, n: bincp.scores.margin(p, n_threads=n),
    lambda p, u, n: bincp.scores.ptt(p, p[0, 0], u, n_threads=n),
]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("score", SCORES, ids=["aps", "raps", "margin", "ptt"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape_of_u", [(), (11, 6), (11, 6, 1), (11, 6, 10)])
def test_scores(score: Callable[..., Any], dtype: Any, shape_of_u: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    p = (rng.integers(4, size=(11, 6, 10)) / 4).astype(dtype)  # with many ties
    u = rng.random(shape_of_u)
    one = score(p, u, 1)
    for n_threads in (2, 3, 16, 1000):
        shared = score(p, u, n_threads)
        assert (shared.dtype, shared.shape) == (dtype, p.shape)
        assert shared.tobytes() == one.tobytes()
    if u.ndim == 3 and score is not SCORES[3]:  # which takes its tuning scores from p
        moved = score(p.transpose(1, 0, 2), u.transpose(1, 0, 2), 3)
        np.testing.assert_array_equal(moved.transpose(1, 0, 2), one)


@pytest.mark.usefixtures("eager")
def test_several_threads_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    formula, both = bincp.scores._margin, threading.Barrier(2, timeout=60)

    def watched(p: Any) -> Any:
        both.wait()  # which one thread alone would never pass
        names.add(threading.current_thread().name)
        return formula(p)

    monkeypatch.setattr("bincp.scores._margin", watched)
    bincp.scores.margin(IMAGES, n_threads=2)
    assert len(names) == 2


@pytest.mark.usefixtures("eager")
def test_a_sampler_from_outside_is_called_by_one_thread() -> None:
    threads = set()

    class Shift:
        pass

    @noise.register(Shift, examples=[(Shift(), np.zeros((1, 2), np.float32))])
    def rows(scheme: Any, x: Any, keys: Any) -> Any:
        threads.add(threading.current_thread())
        return x + keys.units(2).astype(np.float32)

    noise.draw(Shift(), np.zeros((50, 2), np.float32), 4, phase="test", n_threads=4)
    assert threads == {threading.current_thread()}


def test_small_arrays_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def counted(jobs: Any) -> Any:
        counts.append(len(jobs))
        return [job() for job in jobs]

    monkeypatch.setattr("bincp.noise._draw.run_all", counted)
    for n_samples in (1, 3000):
        noise.draw(smoothing.Gaussian(1.0), IMAGES, n_samples, phase="test", n_threads=4)
    assert counts == [1, 4]


def test_shares_are_even_and_complete() -> None:
    for n, n_threads, least in [
        (0, 4, 1),
        (1, 4, 1),
        (10, 3, 1),
        (10, 3, 4),
        (10, 50, 0),
        (7, 1, 1),
    ]:
        parts = shares(n, n_threads, least)
        assert [i for part in parts for i in range(n)[part]] == list(range(n))
        sizes = [part.stop - part.start for part in parts]
        assert 1 <= len(parts) <= n_threads
        assert max(sizes) - min(sizes) <= 1
        assert len(parts) == 1 or min(sizes) >= least


@pytest.mark.parametrize(("n_threads", "error"), [(0, ValueError), (1.5, TypeError)])
def test_a_number_of_threads_is_checked(n_threads: Any, error: type[Exception]) -> None:
    p = np.full((2, 2), 0.5)
    for call in (
        lambda: noise.draw(smoothing.Gaussian(1.0), IMAGES, 2, phase="test", n_threads=n_threads),
        *(lambda score=score: score(p[None], 0.5, n_threads) for score in SCORES),
    ):
        with pytest.raises(error, match="`n_threads` must be"):
            call()
