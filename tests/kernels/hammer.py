"""Calls every function over compiled code while another thread overwrites its arguments.

Run as a program, so that a crash is the end of this process and not of the tests:
``python tests/kernels/hammer.py [seconds for each function]``. Each answer must be an error of the
kinds that are documented, or arrays of the right shape. What the values are does not matter.
"""

import inspect
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import bincp
from bincp import balls, intervals, radii, smoothing
from bincp._core import (
    _binomial,
    _count,
    _foreign,
    _mixture,
    _noise,
    _operators,
    _sequential,
    _sweep,
)
from bincp.certificates import _certificate
from bincp.noise import _draw, all_copies, draw, grid_table

Arrays = dict[str, np.ndarray]

N = 2000  # long enough for a kernel to run while the other thread writes
RNG = np.random.default_rng(0)
P = np.sort(RNG.random(N))
Q = 1 - P


@dataclass(frozen=True)
class Case:
    """A call, its arrays (which the other thread overwrites), and the shape of the answer."""

    call: Callable[..., Any]
    arrays: Arrays
    shape: tuple[int, ...] | None = None  # of the answer; None: the call writes to an array


def public_cases() -> dict[str, Case]:
    flips = smoothing.SparseFlip(0.01, 0.6)
    pairs = {
        "gaussian": (smoothing.Gaussian(0.25), balls.L2(0.25)),
        "uniform": (smoothing.Uniform(0.5), balls.L1(0.1)),
        "laplace": (smoothing.Laplace(0.5), balls.L1(0.1)),
        "charged": (smoothing.Gaussian(0.25, grid=255), balls.L2(0.25)),
        "charged, off_grid": (
            smoothing.Gaussian(0.25, grid=255, off_grid=True),
            balls.L2(0.25),
        ),
        "charged, laplace": (smoothing.Laplace(0.25, grid=255), balls.L1(0.25)),
        "charged, uniform": (smoothing.Uniform(0.5, grid=255), balls.L1(0.25)),
        "charged, expp": (smoothing.Expp(0.25, p=4, grid=255), balls.L1(0.25)),
        "charged, pareto": (smoothing.Pareto(0.25, a=3, grid=255), balls.L1(0.25)),
        "expp": (smoothing.Expp(1.0, p=4), balls.L1(0.1)),
        "half power": (smoothing.Expp(1.0, p=0.5), balls.L1(0.1)),
        "exp2": (smoothing.Exp2(0.1), balls.L2(0.1, dim=30)),
        "uniform ball": (smoothing.UniformBall(1.0), balls.L2(0.1, dim=30)),
        "pareto": (smoothing.Pareto(1.0, a=3), balls.L1(0.1)),
        "splitting": (smoothing.SplittingNoise(0.5, grid=255, seed=0), balls.L1(0.1)),
        "regions": (flips, balls.Flips(20, 20)),
    }
    cases: dict[str, Case] = {}
    for name, pair in pairs.items():
        certificate = bincp.certify(*pair)
        for bound in ("lower", "upper"):
            cases[f"{name}.{bound}"] = Case(getattr(certificate, bound), {"p": P.copy()}, (N,))
            cases[f"{name}.{bound}, by threads"] = Case(
                partial(getattr(certificate, bound), n_threads=3), {"p": P.copy()}, (N,)
            )
    masses = np.full(100, 0.01)
    cases["from_regions"] = Case(
        lambda mass, perturbed_mass: np.array(
            bincp.Certificate.from_regions(mass, perturbed_mass).lower(0.5)
        ),
        {"mass": masses.copy(), "perturbed_mass": masses[::-1].copy()},
        (),
    )
    cases["flip_grid"] = Case(lambda p: radii.flip_grid(flips, p, 2, 2), {"p": P.copy()}, (3, 3, N))
    cases["flip_grid, no order"] = Case(
        lambda p: radii.flip_grid(flips, p, 2, 2), {"p": P[::-1].copy()}, (3, 3, N)
    )
    cases["flip_frontier"] = Case(
        lambda p: radii.flip_frontier(flips, p, 2, 2), {"p": P.copy()}, (3, N)
    )
    cases["certified_radius"] = Case(
        lambda p: radii.certified_radius(smoothing.Gaussian(0.5), balls.L2, p),
        {"p": P[:2].copy()},
        (2,),
    )
    cases["certified_count"] = Case(
        lambda p: radii.certified_count(flips, lambda r: balls.Flips(r, 0), p, limit=3),
        {"p": P[:5].copy()},
        (5,),
    )
    successes, trials = RNG.integers(0, 100, N), RNG.integers(100, 200, N)
    for bound in (intervals.clopper_pearson_lower, intervals.clopper_pearson_upper):
        cases[bound.__name__] = Case(
            lambda s, m, eta, bound=bound: bound(s, m, eta),
            {"s": successes.copy(), "m": trials.copy(), "eta": np.full(N, 0.05)},
            (N,),
        )
        cases[f"{bound.__name__}, table"] = Case(
            lambda s, bound=bound: bound(s, 100, 0.05), {"s": successes.copy()}, (N,)
        )
    scores = RNG.random((50, 10, 32)).astype(np.float32)
    for dtype in ("float16", "float32", "float64"):
        cases[f"count_exceedances, {dtype}"] = Case(
            bincp.count_exceedances,
            {"scores": scores.astype(dtype), "threshold": RNG.random(10)},
            (50, 10),
        )
    cases["decide"] = Case(
        bincp.decide,
        {"scores": scores, "threshold": RNG.random(10), "min_count": np.full(10, 7)},
        (50, 10),
    )
    cases["kth_largest"] = Case(
        lambda scores: bincp.kth_largest(scores, 3), {"scores": scores}, (50, 10)
    )
    samples = RNG.random((10, 500))
    for bound in ("hoeffding", "hoeffding_kl", "bernstein"):
        for side in ("lower", "upper"):
            function = getattr(intervals, f"{bound}_{side}")
            cases[function.__name__] = Case(
                lambda x, function=function: function(x, 0.05), {"x": samples.copy()}, (10,)
            )
    schemes = {
        "Gaussian": (smoothing.Gaussian(0.25), RNG.random((4, 300))),
        "Gaussian, grid": (
            smoothing.Gaussian(0.25, grid=255),
            np.rint(RNG.random((4, 300)) * 255) / 255,
        ),
        "Gaussian, off_grid": (
            smoothing.Gaussian(0.25, grid=255, off_grid=True),
            RNG.random((4, 300)),
        ),
        "Uniform": (smoothing.Uniform(0.25), RNG.random((4, 300))),
        "UniformBall": (smoothing.UniformBall(0.25), RNG.random((4, 300))),
        "SparseFlip": (flips, RNG.integers(0, 2, (4, 300)).astype(float)),
        "CategoricalFlip": (
            smoothing.CategoricalFlip(4, 0.2, 0.3),
            RNG.integers(0, 4, (4, 300)).astype(float),
        ),
        "SplittingNoise": (smoothing.SplittingNoise(0.5), RNG.random((4, 300))),
        "SplittingNoise, grid": (
            smoothing.SplittingNoise(0.5, grid=255, seed=0),
            np.rint(RNG.random((4, 300)) * 255) / 255,
        ),
        "Ablation": (smoothing.Ablation(keep=30, dim=300), RNG.random((4, 300))),
        "BandAblation": (smoothing.BandAblation(size=4, width=30), RNG.random((4, 10, 30))),
        "Deletion": (smoothing.Deletion(0.2, padding=0.0), RNG.random((4, 300)) + 1),
    }
    for name, (scheme, x) in schemes.items():
        for dtype in ("float32", "float64"):
            cases[f"draw, {name}, {dtype}"] = Case(
                lambda x, indices, scheme=scheme: draw(scheme, x, 3, phase="test", indices=indices),
                {"x": x.astype(dtype), "indices": np.arange(len(x))},
                (4, 3, *x.shape[1:]),
            )
    grey, images = RNG.integers(0, 256, (4, 300)).astype(np.uint8), RNG.random((4, 300))
    for name, scheme, x in (
        ("grid", smoothing.Gaussian(0.25, grid=255), grey),
        ("laplace grid", smoothing.Laplace(0.25, grid=255), grey),
        ("uniform grid", smoothing.Uniform(0.5, grid=255), grey),
        ("pareto grid", smoothing.Pareto(0.25, a=3, grid=255), grey),
        ("off_grid", smoothing.Gaussian(0.25, grid=255, off_grid=True), images),
    ):
        cases[f"draw, {name}, by threads"] = Case(
            lambda x, indices, scheme=scheme: draw(
                scheme, x, 3, phase="test", indices=indices, n_threads=3
            ),
            {"x": x.copy(), "indices": np.arange(4)},
            (4, 3, 300),
        )
    cases["all_copies"] = Case(
        lambda x: all_copies(smoothing.BandAblation(size=4, width=30), x),
        {"x": RNG.random((4, 10, 30))},
        (4, 30, 10, 30),
    )
    cases.update(rule_cases())
    rule = bincp.SequentialRule.curtailed(30, 50)
    cases["SequentialRule.acceptance"] = Case(rule.acceptance, {"p": P[:300].copy()}, (300,))
    cases["SequentialRule.expected_draws"] = Case(
        rule.expected_draws, {"p": P[:300].copy()}, (300,)
    )
    cases["SequentialRule.update"] = Case(
        lambda counts, draws: rule.update(counts, draws)[0],
        {"counts": RNG.integers(0, 10, N), "draws": np.full(N, 20)},
        (N,),
    )
    hits = RNG.random((30, 10)) < 0.5
    cases["SequentialTracker.update_rows"] = Case(
        lambda hits, inputs: play_rows(rule, hits, inputs),
        {"hits": hits.copy(), "inputs": np.arange(30) % 3},
        (3, 10),
    )
    return cases


def rule_cases() -> dict[str, Case]:
    """Decision rules; every calibration finds one, so that the answer is a set at any time."""
    certificate = bincp.certify(smoothing.Gaussian(0.5), balls.L2(0.1))
    true, scores = RNG.random((200, 16)), RNG.random((20, 3, 16))
    members = RNG.random((20, 3)) < 0.5
    rule = bincp.BinCP(certificate).calibrate(true)
    exact = bincp.BinCP(certificate).calibrate_exact(P, tau=0.5)
    each = bincp.MondrianBinCP(certificate, n_classes=3).calibrate(true, np.arange(200) % 3)
    early = bincp.MondrianBinCP(certificate, n_classes=3, passes="auto")
    early.calibrate(true, np.arange(200) % 3)
    return {
        "BinCP.calibrate": Case(
            lambda true: np.array(bincp.BinCP(certificate).calibrate(true).min_count_),
            {"true": true},
            (),
        ),
        "BinCP.calibrate_exact": Case(
            lambda p: np.array(bincp.BinCP(certificate).calibrate_exact(p, tau=0.5).p_),
            {"p": P.copy()},
            (),
        ),
        "BinCP.predict_set": Case(rule.predict_set, {"scores": scores.copy()}, (20, 3)),
        "BinCP.predict_set_from_counts": Case(
            lambda counts: rule.predict_set_from_counts(counts, n_samples=16),
            {"counts": RNG.integers(0, 17, (20, 3))},
            (20, 3),
        ),
        "BinCP.predict_set_exact": Case(
            exact.predict_set_exact, {"probabilities": RNG.random((20, 3))}, (20, 3)
        ),
        "MondrianBinCP.calibrate": Case(
            lambda true, labels: (
                bincp.MondrianBinCP(certificate, n_classes=3).calibrate(true, labels).tau_
            ),
            {"true": true.copy(), "labels": np.arange(200) % 3},
            (3,),
        ),
        "MondrianBinCP.predict_set": Case(early.predict_set, {"scores": scores.copy()}, (20, 3)),
        "MondrianBinCP.predict_set_from_counts": Case(
            lambda counts: each.predict_set_from_counts(counts, n_samples=16),
            {"counts": RNG.integers(0, 17, (20, 3))},
            (20, 3),
        ),
        "RobustRiskControl.calibrate": Case(
            lambda scores, labels: np.array(
                bincp.RobustRiskControl(certificate, alpha=0.2).calibrate(scores, labels).tau_
            ),
            {"scores": scores.copy(), "labels": members},
            (),
        ),
    }


def play_rows(rule: bincp.SequentialRule, hits: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    tracker = rule.start((3, 10))
    tracker.next_round()
    tracker.update_rows(hits, inputs)
    return tracker.accepted


def kernel_cases() -> dict[str, Case]:
    """The functions of the compiled modules themselves, which copy nothing."""
    counts, trials = RNG.integers(0, 100, N), RNG.integers(100, 200, N)
    out, more = np.zeros(N), np.zeros(N)
    regions = _operators.sparse(20, 20, 0.01, 0.6)
    charged = _operators.charged(regions, 1e-9)
    table = grid_table(smoothing.Gaussian(0.25, grid=255))
    columns_of_table = {"entry": table.entry.copy(), "low": table.low.copy()}
    scores = RNG.random((N, 16)).astype(np.float32)
    accept, reject = np.full(51, 30, np.int32), np.arange(-21, 30, dtype=np.int32)
    columns = {"accept": np.repeat(accept, 10).reshape(51, 10)}
    columns["reject"] = np.repeat(reject, 10).reshape(51, 10)
    ids, rows = np.arange(20), np.arange(20) % 4
    x, noised = RNG.integers(0, 4, (4, 300)).astype(float), np.zeros((20, 300))
    key = {"ids": ids, "draws": ids.copy(), "sources": rows}
    state = {
        "draws": np.zeros(3, np.int32),
        "counts": np.zeros((3, 10), np.int32),
        "exits": np.full((3, 10), -1, np.int32),
    }
    order = RNG.permutation(N).astype(np.uint32)
    places = np.zeros((4, 300), np.int32)

    def replay(hits: np.ndarray, inputs: np.ndarray, **boundaries: np.ndarray) -> None:
        fresh = {name: array.copy() for name, array in state.items()}
        _sequential.replay(hits=hits.view(np.uint8), inputs=inputs, **boundaries, **fresh)

    hits = (RNG.random((30, 10)) < 0.5).view(np.uint8)
    played = {"hits": hits, "inputs": np.arange(30) % 3, **columns}
    return {
        "_operators.Operator": Case(lambda p: regions.lower_fill(p, out), {"p": P.copy()}),
        "_operators.ChargedOperator": Case(lambda p: charged.lower_fill(p, out), {"p": P.copy()}),
        "ChargedOperator.upper_fill": Case(lambda p: charged.upper_fill(p, out), {"p": P.copy()}),
        "Operator.upper_fill": Case(lambda p: regions.upper_fill(p, out), {"p": P.copy()}),
        "_operators.sparse_grid": Case(
            lambda p, order: _operators.sparse_grid(0.01, 0.6, p, order, np.zeros((3, 3, N))),
            {"p": P.copy(), "order": order},
        ),
        "_operators.regions": Case(
            lambda clean, perturbed: _operators.regions(clean, perturbed, 1e-15, 0.0).lower_fill(
                P, out
            ),
            {"clean": np.full(100, 0.01), "perturbed": np.full(100, 0.01)},
        ),
        "_binomial.cp_lower_many": Case(
            lambda s, m, eta: _binomial.cp_lower_many(s, m, eta, out),
            {"s": counts.copy(), "m": trials.copy(), "eta": np.full(N, 0.05)},
        ),
        "_binomial.cp_upper_many": Case(
            lambda s, m, eta: _binomial.cp_upper_many(s, m, eta, out),
            {"s": counts.copy(), "m": trials.copy(), "eta": np.full(N, 0.05)},
        ),
        "_binomial.randomized_many": Case(
            lambda s, m, eta, u: _binomial.randomized_many(s, m, eta, u, True, out),
            {"s": counts.copy(), "m": trials.copy(), "eta": np.full(N, 0.05), "u": P.copy()},
        ),
        "_binomial.sequence_many": Case(
            lambda s, m, eta: _binomial.sequence_many(s, m, eta, True, out),
            {"s": counts.copy(), "m": trials.copy(), "eta": np.full(N, 0.05)},
        ),
        "_sweep.scores": Case(
            lambda low, high, y: _sweep.scores(low, high, None, y, np.empty((N, 4))),
            {"low": RNG.random((N, 4)), "high": RNG.random((N, 4)), "y": P.copy()},
        ),
        "_sweep.ends": Case(
            lambda low, high, scale: _sweep.ends(low, high, scale, 0.5, *np.empty((2, N, 4))),
            {name: RNG.random((N, 4)) for name in ("low", "high", "scale")},
        ),
        "_sweep.mark_empty": Case(_sweep.mark_empty, {"left": P.copy(), "right": Q.copy()}),
        "_sweep.sweep": Case(
            lambda left, right: _sweep.sweep(
                left, right, 2, *np.empty((2, 3 * N)), np.empty(N + 1, np.int64)
            ),
            {name: np.sort(RNG.random((N, 4))) for name in ("left", "right")},
        ),
        "_count.count": Case(
            lambda scores, thresholds: _count.count(
                scores, thresholds, np.zeros(N, np.int32), "float32"
            ),
            {"scores": scores, "thresholds": np.full(N, 0.5, np.float32)},
        ),
        "_count.decide": Case(
            lambda scores, thresholds, least: _count.decide(
                scores, thresholds, least, np.zeros(N, bool), "float32"
            ),
            {"scores": scores, "thresholds": np.full(N, 0.5, np.float32), "least": np.full(N, 5)},
        ),
        "_mixture.failures": Case(
            lambda p, q: _mixture.failures(50, 100, p, q, out), {"p": P.copy(), "q": Q.copy()}
        ),
        "_mixture.binomial_means": Case(
            lambda w, p, q: _mixture.binomial_means(w, p, q, out),
            {"w": np.linspace(1, 0, 101), "p": P.copy(), "q": Q.copy()},
        ),
        "_mixture.normal_probabilities": Case(
            lambda z: _mixture.normal_probabilities(z, out, more), {"z": P.copy()}
        ),
        "_mixture.corner_envelope": Case(
            lambda u, v: _mixture.corner_envelope(u, v, 0.1), {"u": Q.copy(), "v": Q**2}
        ),
        "_mixture.point_envelope": Case(
            lambda u, v: _mixture.point_envelope(u, v, 0.1), {"u": Q.copy(), "v": Q**2}
        ),
        "_sequential.exits": Case(
            lambda accept, reject, p, q: _sequential.exits(
                accept, reject, p, q, np.zeros(4 * 51), out, more, np.zeros(N)
            ),
            {"accept": accept.copy(), "reject": reject.copy(), "p": P.copy(), "q": Q.copy()},
        ),
        "_sequential.undecided": Case(
            lambda accept, reject, p, q: _sequential.undecided(
                accept, reject, p, q, np.zeros(4 * 51), np.empty((51, N))
            ),
            {"accept": accept.copy(), "reject": reject.copy(), "p": P.copy(), "q": Q.copy()},
        ),
        "_sequential.replay": Case(replay, played),
        "_sequential.decide": Case(
            lambda accept, reject, hits: _sequential.decide(
                accept, reject, hits.view(np.uint8), np.zeros((4, 10), np.uint8)
            ),
            {**copied(columns), "hits": (RNG.random((4, 10, 50)) < 0.5).view(np.uint8)},
        ),
        "_noise.add_noise": Case(
            lambda x, **key: _noise.add_noise(0, 1.0, 0, 1, *key.values(), x, noised),
            {"x": x.copy(), **copied(key)},
        ),
        "_noise.add_grid_noise": Case(
            lambda k, entry, low, **key: _noise.add_grid_noise(
                entry, low, table.half, 255, 0, 1, *key.values(), k, noised
            ),
            {"k": places.copy(), **columns_of_table, **copied(key)},
        ),
        "_noise.add_off_grid_noise": Case(
            lambda x, entry, low, **key: _noise.add_off_grid_noise(
                entry, low, table.half, 255, 63.75, 0, 1, *key.values(), x, noised
            ),
            {"x": x.copy(), **copied(columns_of_table), **copied(key)},
        ),
        "_noise.flip": Case(
            lambda x, **key: _noise.flip(0.1, 0.6, 0, 1, *key.values(), x, noised),
            {"x": x.copy(), **copied(key)},
        ),
        "_noise.change_categories": Case(
            lambda x, **key: _noise.change_categories(
                4, 0.1, 0.6, 0, 1, *key.values(), x, noised
            ),
            {"x": x.copy(), **copied(key)},
        ),
        "_noise.split": Case(
            lambda x, **key: _noise.split(0.5, 0, 1, *key.values(), x, noised),
            {"x": x.copy(), **copied(key)},
        ),
        "_noise.split_copies": Case(
            lambda numbers, sources, starts, slack: _noise.split_copies(
                10, 255, numbers, sources, starts, slack, noised
            ),
            {
                "numbers": rows.copy(),
                "sources": rows.copy(),
                "starts": places.copy(),
                "slack": places,
            },
        ),
        "_noise.unit_numbers": Case(
            lambda ids, draws: _noise.unit_numbers(0, 1, ids, draws, np.zeros(20, np.float32)),
            {"ids": ids.copy(), "draws": ids.copy()},
        ),
        "_noise.wide_unit_numbers": Case(
            lambda ids, draws: _noise.wide_unit_numbers(0, 1, ids, draws, noised),
            {"ids": ids.copy(), "draws": ids.copy()},
        ),
        "_noise.words": Case(
            lambda ids, draws: _noise.words(0, 1, ids, draws, np.zeros((20, 300), np.uint64)),
            {"ids": ids.copy(), "draws": ids.copy()},
        ),
        "_noise.keep": Case(
            lambda ids, draws: _noise.keep(30, 0, 1, ids, draws, np.zeros((20, 300), np.uint8)),
            {"ids": ids.copy(), "draws": ids.copy()},
        ),
    }  # fmt: skip


def copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


# Functions of the compiled modules that are given no array whose values another thread could
# change: scalars, or memory that they only write to.
WITHOUT_ARRAYS = {
    _binomial: {"binom_pmf", "binom_log_pmf", "binom_sf", "binom_cdf", "cp_lower", "cp_upper",
                "cp_table"},
    _count: set(),
    _foreign: {"buffer_address", "capsule_addresses", "capsule_name", "from_capsule",
               "from_functions", "ForeignOperator"},
    _mixture: {"normal_quantile"},
    _noise: {"philox4x32"},
    _operators: {"chain", "best", "hierarchy", "evaluations_of", "shift_of", "shifted", "steps_of",
                 "CombinedOperator", "charged", "exponential_power", "gaussian", "identity",
                 "laplace", "laplace_or_uniform", "pareto", "half_power", "sech_power", "sparse",
                 "sparse_masses", "sparse_tiny", "steps", "uniform", "categorical_masses"},
    _sequential: {"scratch_size"},
    _sweep: set(),
}  # fmt: skip


def forgotten() -> set[str]:
    """Return the functions of the compiled modules that are in neither list."""
    names = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module, without in WITHOUT_ARRAYS.items()
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and name not in without
        if getattr(value, "__module__", None) in (module.__name__, None) or inspect.isclass(value)
        if not (inspect.isclass(value) and value.__module__ != module.__name__)
    }
    return names - kernel_cases().keys()


def bad_values(dtype: np.dtype[Any]) -> list[Any]:
    if dtype.kind == "f":
        return [np.nan, -1.0, 7.0, np.inf, float(np.finfo(dtype).max), -0.0]
    if dtype.kind == "b":
        return [True, False]
    limits = np.iinfo(dtype)
    return [limits.max, limits.min, limits.max // 2, 0, 1, 100]


def overwrite(arrays: Arrays, good: Arrays, stop: threading.Event) -> None:
    """Write bad values to one array after another, whole and in part, and then the good ones."""
    rng = np.random.default_rng(1)
    while not stop.is_set():
        for name, array in arrays.items():
            for value in bad_values(array.dtype):
                array[...] = value
                array[...] = good[name]
                array.flat[int(rng.integers(array.size))] = value
                array[...] = good[name]
            array[...] = rng.permutation(good[name].ravel()).reshape(array.shape)  # out of order
            if array.dtype == bool:  # bytes that are neither 0 nor 1
                array.view(np.uint8)[...] = 255
            array[...] = good[name]


def hammer(case: Case, seconds: float) -> tuple[int, int]:
    """Call for so long; return how many of the calls were answered, and how many refused."""
    good, stop, answers, errors = copied(case.arrays), threading.Event(), 0, 0
    writer = threading.Thread(target=overwrite, args=(case.arrays, good, stop))
    writer.start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            try:
                answer = case.call(**case.arrays)
            except (ValueError, TypeError, bincp.CertificateError):
                errors += 1
                continue
            answers += 1
            if case.shape is not None:
                assert np.shape(answer) == case.shape, (np.shape(answer), case.shape)
    finally:
        stop.set()
        writer.join()
    return answers, errors


def main(seconds: float) -> None:
    warnings.simplefilter("ignore")  # of NumPy, about values that have become NaN meanwhile
    sys.setswitchinterval(1e-5)
    _certificate._THREAD_VALUES = _draw._THREAD_VALUES = 1  # threads share small arrays, too
    missing = forgotten()
    assert not missing, f"not hammered: {missing}"
    cases = {**public_cases(), **kernel_cases()}
    for name, case in cases.items():
        print(name, flush=True, end=" ")
        print("{} answers, {} errors".format(*hammer(case, seconds)), flush=True)
    print(f"{len(cases)} functions lived", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1)
