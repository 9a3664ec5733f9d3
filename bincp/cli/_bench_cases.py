"""What `bincp bench` measures.

Bounds and noise of each built-in scheme, and those on a grid; and counting. The names of the
kernels stay the same from version to version: histories of figures go by them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from bincp import balls, smoothing
from bincp.certificates._builtins._distance import GRID_ROUNDING
from bincp.certificates._builtins.flips import categorical_regions, joint_regions
from bincp.certificates._builtins.words import staircase_regions
from bincp.smoothing._additive import OnGrid

Array = npt.NDArray[np.float64]
Expression = Callable[[Any], Any]

SIDE = 28  # of the images that get noise


@dataclass(frozen=True)
class Case:
    """A pair to measure, and the expression that it is compared with.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    ball : bincp.balls.Ball
        The perturbation ball.
    baseline : str
        The expression in words.
    make_baseline : callable
        Takes the scheme and the ball, and returns the lower bound as a function of a probability
        or an array of them.
    in_tails : bool, optional
        Whether the probabilities lie between 1e-300 and 1e-3, and not anywhere in (0, 1).
    """

    smoothing: smoothing.Smoothing
    ball: balls.Ball
    baseline: str
    make_baseline: Callable[[Any, Any], Expression]
    in_tails: bool = False

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        name = f"{_name(self.smoothing)} against {type(self.ball).__name__}"
        return f"{name}, tails" if self.in_tails else name

    def probabilities(self, u: Array) -> Array:
        """Return probabilities of numbers in (0, 1)."""
        return 10 ** (-3 - 297 * u) if self.in_tails else u


@dataclass(frozen=True)
class NoiseCase:
    """A scheme whose noise is measured.

    Parameters
    ----------
    smoothing : bincp.smoothing.Smoothing
        The smoothing scheme.
    """

    smoothing: smoothing.Smoothing

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        return _name(self.smoothing)

    def x(self, n: int) -> npt.NDArray[Any]:
        """Return n inputs of 784 ones, which are valid inputs of all schemes."""
        images = isinstance(
            self.smoothing,
            smoothing.BlockAblation | smoothing.BandAblation | smoothing.Translation,
        )
        levels = isinstance(self.smoothing, OnGrid) and self.smoothing.grid == 255
        off_grid = getattr(self.smoothing, "off_grid", False)
        dtype = np.uint8 if levels and not off_grid else np.float32
        return np.ones((n, SIDE, SIDE) if images else (n, SIDE**2), dtype)


@dataclass(frozen=True)
class CountCase:
    """Scores that are counted.

    Parameters
    ----------
    dtype : str
        Their dtype.
    tail : tuple of int
        Their shape after the first axis.
    axis : int
        The axis of the samples.
    """

    dtype: str
    tail: tuple[int, ...]
    axis: int

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        layout = "samples last" if self.axis == len(self.tail) else "labels last"
        return f"{self.dtype}, {layout}"

    def scores(self, n_bytes: int) -> npt.NDArray[Any]:
        """Return random scores of about so many bytes."""
        one = np.dtype(self.dtype).itemsize * math.prod(self.tail)
        rng = np.random.default_rng(0)
        return rng.random((max(n_bytes // one, 1), *self.tail), np.float32).astype(self.dtype)


def _name(scheme: smoothing.Smoothing) -> str:
    """Return the name of a scheme, and whether its noise is on a grid."""
    kind = ""
    if getattr(scheme, "grid", None) is not None:
        kind = ", off grid" if getattr(scheme, "off_grid", False) else ", grid"
    return type(scheme).__name__ + kind


# ---- shift and clip -------------------------------------------------------------------------


def _clip(shift: float) -> Expression:
    return lambda p: np.clip(p - shift, 0, 1)


def _uniform(scheme: smoothing.Uniform, ball: balls.L1) -> Expression:
    return _clip(ball.r / (2 * scheme.half_width))


def _uniform_ball(scheme: smoothing.UniformBall, ball: balls.L2) -> Expression:
    assert ball.dim is not None
    half = (ball.dim + 1) / 2
    central = 1 - 2 * special.betainc(half, half, 0.5 - ball.r / (4 * scheme.radius))
    return _clip(float(central))


def _exp_inf(scheme: smoothing.ExpInf, ball: balls.L1) -> Expression:
    assert ball.dim is not None
    return _clip(ball.r / (2 * scheme.scale * ball.dim))


def _pow_inf(scheme: smoothing.PowInf, ball: balls.L1) -> Expression:
    assert ball.dim is not None
    return _clip(ball.r * (scheme.a - ball.dim) / (2 * scheme.scale * ball.dim))


def _splitting(scheme: smoothing.SplittingNoise, ball: balls.L1) -> Expression:
    assert scheme.grid is not None
    return _clip(round(scheme.grid * ball.r) / scheme.levels)


def _ablation(scheme: smoothing.Ablation, ball: balls.L0) -> Expression:
    untouched = special.binom(scheme.dim - ball.r, scheme.keep)
    return _clip(1 - float(untouched / special.binom(scheme.dim, scheme.keep)))


def _block(scheme: smoothing.BlockAblation, ball: balls.Patch) -> Expression:
    meeting = (ball.height + scheme.size - 1) * (ball.width + scheme.size - 1)
    return _clip(meeting / (scheme.height * scheme.width))


def _band(scheme: smoothing.BandAblation, ball: balls.Patch) -> Expression:
    return _clip((ball.width + scheme.size - 1) / scheme.width)


def _deletion(scheme: smoothing.Deletion, ball: balls.EditDistance) -> Expression:
    return _clip(1 - scheme.p_delete**ball.r)


# ---- shifts in a quantile -------------------------------------------------------------------


def _gaussian(scheme: smoothing.Gaussian, ball: balls.L2) -> Expression:
    rounding = GRID_ROUNDING if scheme.takes_points else 1  # as the certificate does
    shift = float(rounding * ball.r / scheme.sigma)
    return lambda p: special.ndtr(special.ndtri(p) - shift)


def _anisotropic(scheme: smoothing.AnisotropicGaussian, ball: balls.Box) -> Expression:
    assert scheme.std is not None
    shift = float(np.linalg.norm(np.divide(ball.r, scheme.std)))
    return lambda p: special.ndtr(special.ndtri(p) - shift)


def _hierarchical(scheme: smoothing.Hierarchical, ball: balls.Elements) -> Expression:
    assert isinstance(scheme.inner, smoothing.Gaussian)
    assert isinstance(ball.within, balls.L2)
    inner, share = _gaussian(scheme.inner, ball.within), scheme.q**ball.r
    return lambda p: share * inner(np.clip(1 - (1 - p) / share, 0, 1))


def _partition(scheme: smoothing.Partition, ball: balls.TrainingPoints) -> Expression:
    return _clip(ball.r / scheme.models)


def _moved(
    scheme: smoothing.Translation | smoothing.Brightness,
    ball: balls.Translations | balls.BrightnessChange,
) -> Expression:
    shift = ball.r / scheme.sigma
    return lambda p: special.ndtr(special.ndtri(p) - shift)


def _intercepted(scheme: smoothing.MessageInterception, ball: balls.AttackedNodes) -> Expression:
    kept, seen = 1 - scheme.p_delete, 1 - scheme.p_ablate
    cut = [np.prod([1 - kept**length for length in lengths]) for lengths in ball.paths]
    return _clip(1 - float(np.prod([1 - seen * (1 - share) for share in cut])))


def _laplace(scheme: smoothing.Laplace | smoothing.Exp1, ball: balls.L1) -> Expression:
    def lower(p: Any) -> Any:
        x = np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p))) - ball.r / scheme.scale
        tail = np.exp(-np.abs(x)) / 2
        return np.where(x < 0, tail, 1 - tail)

    return lower


def _expp(scheme: smoothing.Expp, ball: balls.L1) -> Expression:
    shape = 1 / scheme.p

    def lower(p: Any) -> Any:
        x = np.sign(p - 0.5) * special.gammaincinv(shape, np.abs(2 * p - 1)) ** shape
        x = x - ball.r / scheme.scale
        return 0.5 + np.sign(x) * special.gammainc(shape, np.abs(x) ** scheme.p) / 2

    return lower


def _exp2(scheme: smoothing.Exp2, ball: balls.L2) -> Expression:
    assert ball.dim is not None
    half = (ball.dim - 1) / 2
    shift = ball.r / (scheme.scale * (ball.dim - 1))

    def lower(p: Any) -> Any:
        x = np.arctanh(1 - 2 * special.betaincinv(half, half, 1 - p)) - shift
        return 1 - special.betainc(half, half, (1 - np.tanh(x)) / 2)

    return lower


def _pareto(scheme: smoothing.Pareto, ball: balls.L1) -> Expression:
    ratio = scheme.a / (scheme.a + 1)

    def radius(p: Any) -> Any:
        u = 2 * p - 1
        series = special.hyp2f1(1, ratio, ratio + 1, np.abs(u) ** (1 / ratio))
        return scheme.scale * u / scheme.a * series

    def lower(p: Any) -> Any:
        target = radius(p) - ball.r
        low, high = np.zeros_like(p), np.ones_like(p)
        for _ in range(52):
            middle = (low + high) / 2
            below = radius(middle) < target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return low

    return lower


# ---- fractional knapsacks -------------------------------------------------------------------


def _interpolation(clean: Array, perturbed: Array) -> Expression:
    """Return the knapsack over masses in decreasing order of clean / perturbed."""
    budgets, values = (np.append(0, masses.cumsum()) for masses in (clean, perturbed))
    return lambda p: np.interp(p, budgets, values)


def _sparse(scheme: smoothing.SparseFlip, ball: balls.Flips) -> Expression:
    def masses(p_add: float, p_delete: float) -> Array:
        return np.convolve(_binomial(ball.additions, p_add), _binomial(ball.deletions, p_delete))

    return _interpolation(
        masses(scheme.p_plus, scheme.p_minus), masses(1 - scheme.p_minus, 1 - scheme.p_plus)
    )


def _of_attributes(scheme: smoothing.GraphFlip, ball: balls.Flips) -> Expression:
    return _sparse(scheme.attributes, ball)


def _binomial(n: int, p: float) -> Array:
    k = np.arange(n + 1)
    masses: Array = special.binom(n, k) * p**k * (1 - p) ** (n - k)
    return masses


def _categorical(scheme: smoothing.CategoricalFlip, ball: balls.CategoricalFlips) -> Expression:
    return _in_order(categorical_regions(scheme, ball))


def _joint(scheme: smoothing.Joint, ball: balls.Joint) -> Expression:
    return _in_order(joint_regions(scheme, ball))


def _in_order(regions: Any) -> Expression:
    order = np.argsort(-regions.clean / regions.perturbed)
    return _interpolation(regions.clean[order], regions.perturbed[order])


def _staircase(scheme: smoothing.Staircase, ball: balls.Substitutions) -> Expression:
    regions = staircase_regions(scheme, ball)
    order = np.argsort(-regions.clean / regions.perturbed)
    return _interpolation(regions.clean[order], regions.perturbed[order])


_FLIPS = smoothing.SparseFlip(0.01, 0.6)
_FEW = balls.Flips(additions=5, deletions=5)

CASES = tuple(
    Case(*case)
    for case in (
        (smoothing.Gaussian(0.25), balls.L2(0.12), "ndtr(ndtri(p) - shift)", _gaussian),
        (smoothing.Gaussian(0.25), balls.L2(0.12), "ndtr(ndtri(p) - shift)", _gaussian, True),
        (
            smoothing.Gaussian(0.25, grid=255),
            balls.L2(0.12),
            "ndtr(ndtri(p) - shift)",
            _gaussian,
        ),
        (
            smoothing.AnisotropicGaussian([0.5, 2.0] * (SIDE**2 // 2)),
            balls.Box([0.01, 0.02] * (SIDE**2 // 2)),
            "ndtr(ndtri(p) - shift)",
            _anisotropic,
        ),
        (smoothing.Uniform(0.5), balls.L1(0.25), "clip(p - shift, 0, 1)", _uniform),
        (smoothing.Laplace(0.25), balls.L1(0.25), "exp and log by pieces", _laplace),
        (smoothing.Exp1(0.25), balls.L1(0.25), "exp and log by pieces", _laplace),
        (smoothing.Expp(0.5, p=4), balls.L1(0.25), "gammainc of gammaincinv", _expp),
        (smoothing.Exp2(0.01), balls.L2(0.25, dim=784), "betainc of betaincinv", _exp2),
        (smoothing.Pareto(0.5, a=3), balls.L1(0.25), "bisection on hyp2f1", _pareto),
        (
            smoothing.UniformBall(5.0),
            balls.L2(0.25, dim=784),
            "clip(p - shift, 0, 1)",
            _uniform_ball,
        ),
        (smoothing.ExpInf(0.25), balls.L1(0.25, dim=784), "clip(p - shift, 0, 1)", _exp_inf),
        (smoothing.PowInf(0.25, a=794), balls.L1(0.25, dim=784), "clip(p - shift, 0, 1)", _pow_inf),
        (smoothing.SplittingNoise(0.5), balls.L1(10 / 255), "clip(p - shift, 0, 1)", _splitting),
        (smoothing.Ablation(20, dim=784), balls.L0(5), "clip(p - shift, 0, 1)", _ablation),
        (
            smoothing.BlockAblation(10, SIDE, SIDE),
            balls.Patch(3, 3),
            "clip(p - shift, 0, 1)",
            _block,
        ),
        (smoothing.BandAblation(4, SIDE), balls.Patch(3, 3), "clip(p - shift, 0, 1)", _band),
        (
            smoothing.Hierarchical(smoothing.Gaussian(0.25), 0.9),
            balls.Elements(2, balls.L2(0.12)),
            "ndtr(ndtri(p) - shift)",
            _hierarchical,
        ),
        (
            smoothing.Staircase(8, 0.5, 2),
            balls.Substitutions(3, 2),
            "interp on cumulative masses",
            _staircase,
        ),
        (smoothing.Translation(3.0), balls.Translations(2), "ndtr(ndtri(p) - shift)", _moved),
        (smoothing.Brightness(0.2), balls.BrightnessChange(0.1), "ndtr(ndtri(p) - shift)", _moved),
        (
            smoothing.MessageInterception(0.3, 0.6),
            balls.AttackedNodes([[1, 2], [2]]),
            "clip(p - shift, 0, 1)",
            _intercepted,
        ),
        (smoothing.Partition(50), balls.TrainingPoints(3), "clip(p - shift, 0, 1)", _partition),
        (smoothing.Deletion(0.9), balls.EditDistance(2), "clip(p - shift, 0, 1)", _deletion),
        (_FLIPS, _FEW, "interp on cumulative masses", _sparse),
        (
            smoothing.GraphFlip(2810, 2879, attributes=_FLIPS),
            _FEW,
            "interp on cumulative masses",
            _of_attributes,
        ),
        (
            smoothing.CategoricalFlip(5, 0.1, 0.2),
            balls.CategoricalFlips(2, 2, 1),
            "interp on cumulative masses",
            _categorical,
        ),
        (
            smoothing.Joint(_FLIPS, smoothing.SparseFlip(0.1, 0.3), n_adjacency=SIDE**2 // 2),
            balls.Joint(adjacency=_FEW, attributes=_FEW),
            "interp on cumulative masses",
            _joint,
        ),
    )
)
"""Each built-in scheme."""

BOX_MULLER = NoiseCase(smoothing.Gaussian(0.25))

NOT_DRAWN = (smoothing.MessageInterception, smoothing.Partition, smoothing.GraphFlip)
"""Schemes without a sampler, or with one of their own."""

NOISE_CASES = (
    *(
        NoiseCase(case.smoothing)
        for case in CASES
        if not (case.in_tails or isinstance(case.smoothing, NOT_DRAWN))
    ),
    NoiseCase(smoothing.Gaussian(0.25, grid=255, off_grid=True)),
    NoiseCase(smoothing.Laplace(0.12, grid=255)),
    NoiseCase(smoothing.Uniform(0.25, grid=255)),
    NoiseCase(smoothing.Expp(0.25, p=4, grid=255)),
    NoiseCase(smoothing.Pareto(0.25, a=3, grid=255)),
)
"""Each built-in scheme that is drawn, and each law on a grid."""

COUNT_CASES = (
    CountCase("float16", (10, 2000), 2),
    CountCase("float32", (10, 2000), 2),
    CountCase("float64", (10, 2000), 2),
    CountCase("float32", (200, 100), 1),
)
