"""Attacks on smoothed models, which measure how much coverage an adversary can take in practice.

An attack looks for the input of a ball at which the smoothed score of the true label is lowest: the
mean score over draws of the noise, or the share of draws that reach a threshold. Coverage stays at
least nominal under any attack; its fall below that of clean inputs says how much of the certified
ball an adversary of this strength can use. No attack proves robustness.

The adversary of the guarantee does not know the test noise. Give the attack a seed of its own, not
that of the classifier: then it optimises over noise of its own, as such an adversary would.

Every input that is returned lies in the ball and in the box, after rounding to its dtype.

Several threads may attack one model at once, under the conditions of `sampling.sample_scores`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._models import ModelLike
from bincp._utils.arrays import ArrayLike, as_array, as_counts, where
from bincp._utils.progress import check_progress, progress_bar
from bincp._utils.validation import MAX_COUNT, check_integer, check_real, check_threshold
from bincp.balls import L1, L2, Ball, Flips, Linf
from bincp.noise._samplers import check_inputs
from bincp.smoothing import Smoothing

if TYPE_CHECKING:
    import torch

    from bincp.sampling._jobs import Job
    from bincp.sampling._scoring import Score

__all__ = ["pgd", "project", "random_flips"]

FloatArray = npt.NDArray[np.floating[Any]]
NormBall: TypeAlias = L1 | L2 | Linf
Doubles = npt.NDArray[np.float64]

_EPS = 2.0**-52
_L1_SHARE = 100
"""An l1 step moves one coordinate in so many.

Moving the steepest coordinate alone takes many steps; moving all follows no steep direction.
"""


def project(perturbations: ArrayLike, ball: Ball) -> Doubles:
    """Return the nearest perturbations that lie in a ball of a norm.

    Parameters
    ----------
    perturbations : float array (n, ...)
        One perturbation a row.
    ball : L1, L2 or Linf
        The ball around zero.

    Returns
    -------
    float64 array (n, ...)
        Inside the ball, not only up to rounding: the result is shrunk by a few units in the last
        place (a relative ``(d + 8) 2.3e-16`` for d coordinates) where it would be on the surface.

    Raises
    ------
    TypeError
        If the ball is of another kind, or the perturbations are not floating-point numbers.
    ValueError
        If there are no perturbations, or a number is not finite.

    Notes
    -----
    "Nearest" means in the Euclidean norm. For l1 all coordinates move towards zero by the amount
    that leaves a norm of r, which sorting finds [1]_.

    References
    ----------
    .. [1] Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for
       learning in high dimensions", ICML 2008.

    Examples
    --------
    >>> from bincp.attacks import project
    >>> from bincp.balls import L1, L2
    >>> project([[3.0, 4.0]], L2(1.0)).round(6)
    array([[0.6, 0.8]])
    >>> project([[3.0, 4.0]], L1(2.0)).round(6)
    array([[0.5, 1.5]])
    """
    values = as_array("perturbations", perturbations)
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise TypeError(f"`perturbations` must be floating-point numbers, got {values.dtype}")
    if values.ndim == 0 or values.size == 0:
        raise ValueError(
            f"`perturbations` must have shape (n, ...) and not be empty, got {values.shape}"
        )
    bad = ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"`perturbations` must be finite, got {values[bad][0]} {where(bad)}")
    norm_ball = _check_norm_ball(ball)
    rows = values.astype(np.float64).reshape(len(values), -1)
    return _projected(rows, norm_ball).reshape(values.shape)


def pgd(
    model: ModelLike,
    x: ArrayLike,
    labels: ArrayLike,
    smoothing: Smoothing,
    ball: Ball,
    *,
    seed: int,
    n_samples: int = 32,
    steps: int = 20,
    step_size: float | None = None,
    box: tuple[float, float] | None = None,
    score: "Score" = "tps",
    tau: float | None = None,
    temperature: float = 0.1,
    batch_size: int = 256,
    device: "torch.device | str | None" = None,
    progress: bool | None = None,
) -> FloatArray:
    """Attack by projected gradient descent on the smoothed score of the true label.

    Parameters
    ----------
    model : torch.nn.Module or callable
        As in `bincp.sampling.sample_scores`, with gradients.
    x : tensor or array (n, ...)
        Clean inputs, float32 or float64, inside the box if there is one. Grey levels in uint8 are
        refused: divide them by 255.
    labels : int array (n,)
        True labels.
    smoothing : Smoothing
        The scheme of the classifier.
    ball : L1, L2 or Linf
        The perturbations that the adversary may make.
    seed : int
        Seed of the adversary's noise, in [0, 2**64); not the seed of the classifier.
    n_samples : int, optional
        Draws of the noise for each input, the same in every step.
    steps : int, optional
        Number of steps.
    step_size : float, optional
        Length of a step in the norm of the ball; by default 2.5 r / steps.
    box : pair of float, optional
        Range (low, high) of every coordinate, ends included, in the units of `x`: (0, 1) for images
        divided by 255. All of `x` must be in it, and all that is returned is, after rounding. For a
        scheme on a grid, a coordinate moves to grid points in it only, so an end that is no grid
        point is not reached. By default there is none, and the attack may return what is no image.
    score : str, (str, dict) or callable, optional
        As in `bincp.sampling.sample_scores`. The attack lowers its mean over the draws.
    tau : float, optional
        If given, the attack lowers a smooth count of the scores that reach it instead: the mean of
        ``sigmoid((score - tau) / temperature)``.
    temperature : float, optional
        Width of the sigmoid, in units of the score, > 0.
    batch_size : int, optional
        Rows of a forward pass; an input takes `n_samples` rows, and at least one fits.
    device, progress
        As in `bincp.sampling.sample_scores`.

    Returns
    -------
    array (n, ...)
        For each input the best point that was visited, the clean one included, in the dtype of `x`.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the ball is of another kind.
    ValueError
        If an argument has a wrong value, shape or dtype, `x` is outside the box, or the score has
        no gradient (a model of scikit-learn or ART, say).

    See Also
    --------
    random_flips : For binary inputs.

    Notes
    -----
    A step goes along the steepest descent in the norm of the ball: the gradient for l2, its sign
    for linf, and the sign of the largest hundredth of its coordinates for l1. It is projected onto
    the ball and clipped to the box. Noise is keyed by (seed, position, draw), so the batch size
    changes the result only through the model. The gradient passes through the noise as if it were
    added. For a scheme on a grid the points are grid points: moves are cut to whole steps.

    References
    ----------
    .. [1] Madry, Makelov, Schmidt, Tsipras and Vladu, "Towards deep learning models resistant to
       adversarial attacks", ICLR 2018.
    .. [2] Salman, Yang, Li, Zhang, Zhang, Razenshteyn and Bubeck, "Provably robust deep learning
       via adversarially trained smoothed classifiers", NeurIPS 2019.
    .. [3] Tramèr and Boneh, "Adversarial training and robustness for multiple perturbations",
       NeurIPS 2019, for l1.

    Examples
    --------
    >>> import torch
    >>> from bincp.attacks import pgd
    >>> from bincp.balls import L2
    >>> from bincp.smoothing import Gaussian
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> model.weight.data = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    >>> x = torch.tensor([[1.0, 1.0]])
    >>> pgd(model, x, [0], Gaussian(0.5), L2(0.5), seed=1).round(4)
    array([[0.5, 1. ]], dtype=float32)
    """
    norm_ball = _check_norm_ball(ball)
    n_steps = check_integer("steps", steps, low=1)
    length = 2.5 * norm_ball.r / n_steps
    if step_size is not None:
        length = check_real("step_size", step_size, low=0, open_low=True)
    goal = _Goal.checked(tau, temperature)
    shown = check_progress(progress)
    job = _job(model, x, smoothing, n_samples, score, batch_size, seed, device)
    if job.x.dtype == np.uint8:
        raise ValueError("`x` must be float32 or float64 (use x / 255), got uint8")
    y = _labels(labels, len(job.x))
    low, high = _box(box, job.x)

    grid = None if getattr(smoothing, "off_grid", False) else getattr(smoothing, "grid", None)

    best: FloatArray = job.x.copy()
    lowest = np.full(len(best), np.inf)
    current, deltas = best.copy(), np.zeros(best.shape)
    with progress_bar(shown, n_steps + 1, "attack", "step") as bar:
        for step in range(n_steps + 1):
            values, gradients = _smoothed(job, current, y, goal)
            better = values < lowest
            best[better], lowest[better] = current[better], values[better]
            if step < n_steps:
                if grid is None:
                    deltas = current.astype(np.float64) - job.x
                moved = deltas - length * _steepest(gradients, norm_ball)
                deltas = _projected(moved.reshape(len(moved), -1), norm_ball).reshape(job.x.shape)
                if grid is None:
                    current = _placed(job.x, deltas, low, high)
                else:  # steps shorter than those of the grid add up in `deltas`
                    current = _placed_on_grid(job.x, deltas, low, high, grid)
            bar.update()
    return best


def random_flips(
    model: ModelLike,
    x: ArrayLike,
    labels: ArrayLike,
    smoothing: Smoothing,
    ball: Flips,
    *,
    seed: int,
    n_samples: int = 32,
    steps: int = 100,
    score: "Score" = "tps",
    tau: float | None = None,
    temperature: float = 0.1,
    batch_size: int = 256,
    device: "torch.device | str | None" = None,
    progress: bool | None = None,
) -> FloatArray:
    """Attack binary inputs by random search over the flips that the ball allows.

    Parameters
    ----------
    model : torch.nn.Module or callable, or a classifier of scikit-learn or ART
        As in `bincp.sampling.sample_scores`. No gradients are used.
    x : tensor or array (n, ...)
        Clean inputs of zeros and ones, float32 or float64.
    labels : int array (n,)
        True labels.
    smoothing : Smoothing
        The scheme of the classifier.
    ball : Flips
        The numbers of zeros that may become ones, and of ones that may become zeros.
    seed : int
        Seed of the adversary's noise and of the search, in [0, 2**64); not that of the classifier.
    n_samples : int, optional
        Draws of the noise for each input, the same in every step.
    steps : int, optional
        Number of tries for each input.
    score, tau, temperature
        As in `pgd`.
    batch_size, device, progress
        As in `bincp.sampling.sample_scores`.

    Returns
    -------
    array (n, ...)
        Zeros and ones, of the dtype of `x`: the best point that was tried, the clean one included.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the ball is of another kind.
    ValueError
        If an argument has a wrong value, shape or dtype, or the inputs are not zeros and ones.

    Notes
    -----
    Each try gives back a random share of the flips of the best point so far, and spends the rest of
    the budget on other random coordinates: all of it, or for one try in four a random part.

    Examples
    --------
    >>> import torch
    >>> from bincp.attacks import random_flips
    >>> from bincp.balls import Flips
    >>> from bincp.smoothing import SparseFlip
    >>> model = torch.nn.Linear(6, 2, bias=False)
    >>> model.weight.data = torch.tensor([[4.0, 2, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    >>> x = torch.tensor([[1.0, 1, 1, 0, 0, 0]])
    >>> random_flips(model, x, [0], SparseFlip(0.0, 0.2), Flips(1, 1), seed=1)
    array([[0., 1., 1., 0., 0., 1.]], dtype=float32)
    """
    if not isinstance(ball, Flips):
        raise TypeError(f"`ball` must be Flips, got {ball!r}")
    n_steps = check_integer("steps", steps, low=1)
    goal = _Goal.checked(tau, temperature)
    shown = check_progress(progress)
    job = _job(model, x, smoothing, n_samples, score, batch_size, seed, device)
    bad = (job.x != 0) & (job.x != 1)
    if bad.any():
        raise ValueError(f"`x` must be zeros and ones, got {job.x[bad][0]} {where(bad)}")
    y = _labels(labels, len(job.x))

    clean = job.x.reshape(len(job.x), -1).astype(bool)
    flips = np.zeros_like(clean)  # the flips of the best point so far
    lowest = _values(job, job.x, y, goal)
    searches = [np.random.default_rng([job.seed, row]) for row in range(len(clean))]
    with progress_bar(shown, n_steps, "attack", "try") as bar:
        for _ in range(n_steps):
            tried = np.stack(
                [_other_flips(*row, ball) for row in zip(searches, clean, flips, strict=True)]
            )
            values = _values(job, (clean ^ tried).astype(job.x.dtype).reshape(job.x.shape), y, goal)
            better = values < lowest
            flips[better], lowest[better] = tried[better], values[better]
            bar.update()
    changed: FloatArray = (clean ^ flips).astype(job.x.dtype)
    return changed.reshape(job.x.shape)


# ---- geometry ------------------------------------------------------------------------------------


def _check_norm_ball(ball: Ball) -> NormBall:
    if not isinstance(ball, L1 | L2 | Linf):
        raise TypeError(f"`ball` must be L1, L2 or Linf, got {ball!r}")
    return ball


def _projected(rows: Doubles, ball: NormBall) -> Doubles:
    """Project rows (n, d); a row from outside ends inside by more than the rounding."""
    radius = ball.r * (1 - (rows.shape[1] + 8) * _EPS)
    if isinstance(ball, Linf):
        return np.clip(rows, -radius, radius)
    if isinstance(ball, L1):
        sizes = np.abs(rows)
        far = sizes.sum(axis=1) > radius
        sizes[far] = _l1_sizes(sizes[far], radius)
        rows, norms = np.copysign(sizes, rows), sizes.sum(axis=1)
    else:
        largest = np.abs(rows).max(axis=1, initial=0.0)  # squares of the rest do not overflow
        scales = np.where(largest > 0, largest, 1)
        norms = scales * np.sqrt(np.square(rows / scales[:, None]).sum(axis=1))
    outside = norms > radius
    shrink = np.ones(len(rows))
    shrink[outside] = radius / norms[outside]
    return rows * shrink[:, None]


def _l1_sizes(sizes: Doubles, radius: float) -> Doubles:
    """Move the sizes of each row towards zero by the amount that leaves a sum of `radius`.

    The new size of the largest coordinate is computed, not its move: the difference of two large
    numbers would cancel.
    """
    behind = sizes - sizes.max(axis=1, keepdims=True)
    ranked = -np.sort(-behind, axis=1)
    largest = (radius - ranked.cumsum(axis=1)) / np.arange(1, sizes.shape[1] + 1)
    active = np.maximum((ranked + largest > 0).sum(axis=1), 1)  # these stay away from zero
    left = np.take_along_axis(largest, active[:, None] - 1, axis=1)
    return np.asarray(np.maximum(behind + left, 0))


def _steepest(gradients: Doubles, ball: NormBall) -> Doubles:
    """Return the direction of unit norm along which the gradient is largest."""
    rows = gradients.reshape(len(gradients), -1)
    if isinstance(ball, Linf):
        return np.sign(gradients)
    if isinstance(ball, L2):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(norms > 0, norms, 1)).reshape(gradients.shape)
    chosen = max(1, rows.shape[1] // _L1_SHARE)
    largest = np.argpartition(-np.abs(rows), chosen - 1, axis=1)[:, :chosen]
    directions = np.zeros_like(rows)
    signs = np.sign(np.take_along_axis(rows, largest, axis=1)) / chosen
    np.put_along_axis(directions, largest, signs, axis=1)
    return directions.reshape(gradients.shape)


def _placed(x: FloatArray, deltas: Doubles, low: float, high: float) -> FloatArray:
    """Return x + deltas in the box and in the dtype of x; no coordinate exceeds its delta.

    Each sum is rounded towards x, so the norm of the real change is at most that of `deltas`.
    """
    target = np.clip(x.astype(np.float64) + deltas, low, high)
    placed = target.astype(x.dtype)
    allowed = np.minimum(np.abs(deltas), np.abs(target - x))
    beyond = np.abs(placed.astype(np.float64) - x) > allowed
    placed[beyond] = np.nextafter(placed[beyond], x[beyond])
    return placed


def _placed_on_grid(
    x: FloatArray, deltas: Doubles, low: float, high: float, grid: int
) -> FloatArray:
    """Return x moved by deltas, cut to whole steps of the grid towards x, in the box.

    A delta may be short of whole steps by the 2^-22 of itself by which certificates enlarge radii.
    """
    start = np.rint(x.astype(np.float64) * grid)
    steps = np.trunc(deltas * grid * (1 + 2.0**-22))
    cut = np.clip(start + steps, np.ceil(low * grid), np.floor(high * grid)) - start
    # x itself may be outside by its rounding: then the box is no reason to move, or to move back.
    inside = np.where(cut * steps > 0, cut, 0)
    return (start + inside).astype(x.dtype) / x.dtype.type(grid)


def _other_flips(
    search: np.random.Generator,
    clean: npt.NDArray[np.bool_],
    flips: npt.NDArray[np.bool_],
    ball: Flips,
) -> npt.NDArray[np.bool_]:
    """Return flips of one input: some of the given ones, and others up to the budget."""
    kept = flips & (search.random(len(flips)) < search.random())
    tried = kept.copy()
    for budget, side in ((ball.additions, ~clean), (ball.deletions, clean)):
        free = np.flatnonzero(side & ~kept)
        left = min(budget - int((kept & side).sum()), len(free))
        number = search.integers(left + 1) if search.random() < 0.25 else left
        tried[search.choice(free, number, replace=False)] = True
    return tried


# ---- the smoothed score --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Goal:
    """The quantity to lower: the mean score, or a smooth count of the scores that reach tau."""

    tau: float | None
    temperature: float

    @classmethod
    def checked(cls, tau: float | None, temperature: float) -> "_Goal":
        threshold = None if tau is None else check_threshold("tau", tau)
        return cls(threshold, check_real("temperature", temperature, low=0, open_low=True))

    def of(self, scores: Any) -> Any:
        return scores if self.tau is None else ((scores - self.tau) / self.temperature).sigmoid()


def _smoothed(
    job: "Job", x: FloatArray, y: npt.NDArray[np.int64], goal: _Goal
) -> tuple[Doubles, Doubles]:
    """Return the smoothed score of each label, and its gradient in the input."""
    import torch

    from bincp.sampling._modes import evaluation_mode

    assert job.sampler is not None  # only nodes of graphs have none
    check_inputs(job.sampler, x)  # a step may lead to inputs that the scheme refuses
    values, gradients = np.empty(len(x)), np.empty(x.shape)
    with evaluation_mode(job.model), torch.enable_grad():
        for rows in _chunks(job, len(x)):
            inputs, scores = _label_scores(job, x, y, rows, gradient=True)
            means = goal.of(scores).mean(dim=1)
            if not means.requires_grad:
                raise ValueError(
                    "`model` must have gradients, got scores without (models of NumPy arrays, "
                    "scikit-learn and ART have none)"
                )
            (gradient,) = torch.autograd.grad(means.sum(), inputs)
            by_draw = gradient.reshape(len(means), job.n_samples, *x.shape[1:])
            values[rows] = means.detach().double().cpu().numpy()
            gradients[rows] = by_draw.double().sum(dim=1).cpu().numpy()
    bad = np.isnan(gradients).reshape(len(x), -1).any(axis=1)
    if bad.any():
        raise ValueError(f"`model` must not have NaN gradients, got one for input {bad.argmax()}")
    return values, gradients


def _values(job: "Job", x: FloatArray, y: npt.NDArray[np.int64], goal: _Goal) -> Doubles:
    """Return the smoothed score of each label."""
    import torch

    from bincp.sampling._modes import evaluation_mode

    values = np.empty(len(x))
    with evaluation_mode(job.model), torch.no_grad():
        for rows in _chunks(job, len(x)):
            _, scores = _label_scores(job, x, y, rows, gradient=False)
            values[rows] = goal.of(scores).mean(dim=1).double().cpu().numpy()
    return values


def _chunks(job: "Job", n: int) -> Iterator[npt.NDArray[np.int64]]:
    size = max(1, job.batch_size // job.n_samples)
    for start in range(0, n, size):
        yield np.arange(start, min(start + size, n))


def _label_scores(
    job: "Job",
    x: FloatArray,
    y: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    *,
    gradient: bool,
) -> tuple[Any, Any]:
    """Return the noisy inputs of some rows, and the scores (rows, m) of their labels."""
    import torch

    from bincp.sampling import _engine

    sources = np.repeat(rows, job.n_samples)
    draws = np.tile(np.arange(job.n_samples), len(rows))
    noisy = _engine.noisy(job, sources, draws, x).to(job.device)
    assert isinstance(noisy, torch.Tensor)
    noisy.requires_grad_(gradient)
    # A copy, for a model that works in place may not write to what has a gradient.
    scores = _engine.scores_of(job, noisy.clone() if gradient else noisy, sources, draws)
    if bool(torch.isnan(scores).any()):
        raise ValueError("`model` must not give NaN scores, got one")
    as_counts("labels", y, high=scores.shape[1] - 1)
    own = torch.from_numpy(y[sources]).to(scores.device)[:, None]
    return noisy, scores.gather(1, own).reshape(len(rows), job.n_samples)


# ---- arguments -----------------------------------------------------------------------------------


def _job(
    model: ModelLike,
    x: ArrayLike,
    smoothing: Smoothing,
    n_samples: int,
    score: "Score",
    batch_size: int,
    seed: int,
    device: Any,
) -> "Job":
    from bincp.sampling._jobs import Job

    return Job.checked(
        model,
        x,
        smoothing,
        n_samples,
        phase="test",
        score=score,
        batch_size=batch_size,
        seed=seed,
        device=device,
        progress=False,
    ).on_host()


def _labels(labels: ArrayLike, n: int) -> npt.NDArray[np.int64]:
    from bincp.sampling._jobs import integers

    y = as_counts("labels", integers("labels", labels), high=MAX_COUNT)
    if y.shape != (n,):
        raise ValueError(f"`labels` must have shape {(n,)}, got {y.shape}")
    return y


def _box(box: tuple[float, float] | None, x: FloatArray) -> tuple[float, float]:
    if box is None:
        return -np.inf, np.inf
    try:
        low, high = box
    except (TypeError, ValueError):
        raise TypeError(f"`box` must be a pair (low, high), got {box!r}") from None
    low, high = check_real("box", low), check_real("box", high)
    outside = ~((x >= low) & (x <= high))
    if outside.any():
        raise ValueError(f"`x` must be in the box {box!r}, got {x[outside][0]} {where(outside)}")
    return low, high
