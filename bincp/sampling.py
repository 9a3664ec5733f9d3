"""Monte-Carlo scores of smoothed torch models, and prediction sets from a model in one object.

The noise is keyed by (seed, phase, input id, draw), see `bincp.noise`: results do not depend on the
batch size, the order of the inputs or the device, beyond what the model itself adds (the last bits
of a matrix product may depend on the shape of the batch). It is drawn on the CPU, in float32, and
copied to the device, while the device works on the batch before.

What the guarantee needs of the noise, in plain words:

* The draws of one calibration input are independent, and so are those of different calibration
  inputs: calibration ids must differ, over all calls that make up one calibration.
* Test draws are independent of all calibration noise. The two phases see to that; never calibrate
  on scores that were drawn in the phase "test", nor predict from those of the phase "calibration".
* The adversary who picks the test input does not know the test noise: keep the seed secret where
  that matters. Test inputs may share noise with each other, and labels of one input always do.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from bincp import noise
from bincp._arrays import ArrayLike, as_array, as_counts, is_tensor
from bincp._levels import Level
from bincp._validation import check_integer, check_threshold
from bincp.balls import Ball
from bincp.calibration import BinCP
from bincp.errors import NotCalibratedError
from bincp.noise import Phase
from bincp.registry import certify
from bincp.scores import NAMED_SCORES
from bincp.sequential import SequentialRule, SequentialTracker
from bincp.smoothing import Smoothing

__all__ = [
    "NormalizedModel",
    "PredictionSets",
    "RobustClassifier",
    "count_scores",
    "sample_scores",
]

Model: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""A torch.nn.Module or another callable: a batch (b, ...) to logits (b, K)."""

Score: TypeAlias = str | Callable[[torch.Tensor], torch.Tensor]
"""The name of a score in `bincp.scores`, or a callable: logits (b, K) to scores (b, K)."""

IntArray: TypeAlias = npt.NDArray[np.int64]


def sample_scores(
    model: Model,
    x: ArrayLike,
    smoothing: Smoothing,
    n_samples: int,
    *,
    phase: Phase,
    indices: ArrayLike | None = None,
    score: Score = "tps",
    labels: ArrayLike | None = None,
    batch_size: int = 256,
    seed: int = 0,
    device: torch.device | str | None = None,
    progress: bool = False,
) -> npt.NDArray[np.floating[Any]]:
    """Sample the scores of smoothed inputs.

    Parameters
    ----------
    model : torch.nn.Module or callable
        Maps a batch (b, ...) to logits (b, K). A module is evaluated in eval mode, and each of its
        submodules gets its own mode back afterwards; no gradients are recorded.
    x : tensor or array (n, ...)
        Inputs, float32 or float64, before any normalisation (see `NormalizedModel`). A tensor on
        another device is copied to the CPU, where the noise is drawn.
    smoothing : Gaussian, Uniform or SparseFlip
        The smoothing scheme. SparseFlip needs inputs of zeros and ones.
    n_samples : int
        Draws for each input, m.
    phase : "calibration" or "test"
        What the scores are for. The phases use independent noise (see the notes of the module).
    indices : array-like (n,) of int, optional
        Ids of the inputs in [0, 2**56), by default their positions. Equal ids get equal noise. If
        one calibration takes several calls, pass ids that differ over all of them.
    score : str or callable, optional
        "tps", "aps", "raps", "margin" or "logit" (see `bincp.scores`; aps and raps draw a new keyed
        number for each evaluation), or a callable that maps logits (b, K) to scores (b, K).
    labels : array-like (n,) of int, optional
        If given, only the scores of these labels are kept: what calibration needs.
    batch_size : int, optional
        Rows of a forward pass. A batch may hold several draws of several inputs.
    seed : int, optional
        In [0, 2**64).
    device : torch.device or str, optional
        Where the model is evaluated; a module is moved there, and stays there. By default, where
        the module is, or else where `x` is.
    progress : bool, optional
        Show a progress bar (needs tqdm).

    Returns
    -------
    array (n, K, m), or (n, m) if labels are given
        float64 if the model returns float64, else float32: logits of 16 bits are widened before the
        score is taken.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the model does not return a tensor.
    ValueError
        If an argument has a wrong value, shape or dtype (labels out of range, equal ids in the
        calibration phase, inputs of 16 bits), or the model returns a wrong shape or a NaN.

    Examples
    --------
    >>> import torch
    >>> from bincp.sampling import sample_scores
    >>> from bincp.smoothing import Gaussian
    >>> model = torch.nn.Linear(4, 3)
    >>> x = torch.zeros(5, 4)
    >>> sample_scores(model, x, Gaussian(sigma=0.5), 16, phase="test").shape
    (5, 3, 16)
    >>> y = [0, 1, 2, 0, 1]
    >>> sample_scores(model, x, Gaussian(sigma=0.5), 16, phase="calibration", labels=y).shape
    (5, 16)
    """
    job = _Job.checked(
        model,
        x,
        smoothing,
        n_samples,
        phase=phase,
        indices=indices,
        score=score,
        batch_size=batch_size,
        seed=seed,
        device=device,
        progress=progress,
    )
    return _all_scores(job) if labels is None else _label_scores(job, labels)[0]


def count_scores(
    model: Model,
    x: ArrayLike,
    smoothing: Smoothing,
    n_samples: int,
    tau: float,
    *,
    phase: Phase,
    indices: ArrayLike | None = None,
    score: Score = "tps",
    batch_size: int = 256,
    seed: int = 0,
    device: torch.device | str | None = None,
    progress: bool = False,
) -> npt.NDArray[np.int32]:
    """Count, for each input and label, the sampled scores that reach a threshold.

    The counts are those of ``count_exceedances(sample_scores(...), tau)``, but the scores of a
    batch are counted and forgotten: what is kept are n K integers.

    Parameters
    ----------
    model, x, smoothing, n_samples
        As in `sample_scores`.
    tau : float
        Threshold, compared as ``score >= tau`` in the dtype of the scores.
    phase, indices, score, batch_size, seed, device, progress
        As in `sample_scores`.

    Returns
    -------
    int32 array (n, K)

    Raises
    ------
    TypeError, ValueError
        As in `sample_scores`, and if `tau` is not a number.

    Examples
    --------
    >>> import torch
    >>> from bincp.sampling import count_scores
    >>> from bincp.smoothing import Gaussian
    >>> model = torch.nn.Linear(4, 3)
    >>> counts = count_scores(model, torch.zeros(5, 4), Gaussian(sigma=0.5), 16, 0.0, phase="test")
    >>> counts.tolist() == [[16, 16, 16]] * 5
    True
    """
    threshold = check_threshold("tau", tau)
    job = _Job.checked(
        model,
        x,
        smoothing,
        n_samples,
        phase=phase,
        indices=indices,
        score=score,
        batch_size=batch_size,
        seed=seed,
        device=device,
        progress=progress,
    )
    return _counts(job, threshold)[0]


class NormalizedModel(torch.nn.Module):
    """A model of normalised inputs as a model of raw inputs: ``model((x - mean) / std)``.

    The noise and the radius are in the units of the tensor that gets the noise. Wrapped like this,
    a network that was trained on normalised inputs is smoothed, and certified, in the units of the
    raw input (pixels in [0, 1], say), also where channels have scales of their own.

    Parameters
    ----------
    model : torch.nn.Module
        Network of normalised inputs.
    mean, std : float or sequence of float
        One number, or one for each channel (axis 1 of the batch). `std` is positive.

    Raises
    ------
    ValueError
        If `mean` or `std` is not finite, `std` not positive, or their lengths differ.

    Examples
    --------
    A radius of 8/255 that somebody quotes for inputs ``(x - mean) / 0.2`` is one of 1.6/255 in
    pixels; sigma = 0.25 in pixels is 0.5 for inputs ``2 x - 1 = (x - 0.5) / 0.5``:

    >>> import torch
    >>> from bincp.sampling import NormalizedModel
    >>> model = torch.nn.Linear(4, 3)
    >>> round(255 * NormalizedModel(model, mean=0.4, std=0.2).to_raw_units(8 / 255), 12)
    1.6
    >>> NormalizedModel(model, mean=0.5, std=0.5).to_normalized_units(0.25)
    0.5
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self,
        model: torch.nn.Module,
        mean: float | Sequence[float],
        std: float | Sequence[float],
    ) -> None:
        super().__init__()
        self._scales = _channel_numbers("std", std)
        means = _channel_numbers("mean", mean)
        if not (self._scales > 0).all():
            raise ValueError(f"`std` must be positive, got {std!r}")
        if 1 != len(means) != len(self._scales) != 1:
            raise ValueError(f"`mean` and `std` must be of equal length, got {mean!r} and {std!r}")
        self.model = model
        self.register_buffer("mean", torch.tensor(means), persistent=False)
        self.register_buffer("std", torch.tensor(self._scales), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits of the normalised batch."""
        shape = (1, -1, *[1] * (x.ndim - 2))
        mean, std = (numbers.to(x.dtype).view(shape) for numbers in (self.mean, self.std))
        logits: torch.Tensor = self.model((x - mean) / std)
        return logits

    def to_raw_units(self, length: float) -> float:
        """Convert a radius or a scale of noise from normalised to raw units."""
        return float(length * self._one_scale())

    def to_normalized_units(self, length: float) -> float:
        """Convert a radius or a scale of noise from raw to normalised units."""
        return float(length / self._one_scale())

    def _one_scale(self) -> float:
        if (self._scales != self._scales[0]).any():
            raise ValueError(
                "`std` must be the same for all channels to convert a length (a ball in normalised "
                f"units is no ball in raw units), got {self._scales.tolist()}"
            )
        return float(self._scales[0])


@dataclass(frozen=True)
class PredictionSets:
    """Prediction sets of n inputs over K labels.

    Parameters
    ----------
    sets : bool array (n, K)
        Which labels are in the set of each input.
    counts : int32 array (n, K)
        How many of the sampled scores reach the threshold, of those up to the draw at which the
        label was decided (of all, where no draw is saved).
    forward_passes : int64 array (n,)
        Evaluations of the model that each input took, those that turned out not to be needed
        included.
    """

    sets: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int32]
    forward_passes: IntArray


class RobustClassifier:
    """Robust prediction sets from a model: sample, calibrate, count, decide.

    After `calibrate`, the set that `predict` returns for a new input contains its true label with
    probability at least 1 - alpha, also if the input was perturbed inside the ball, provided that
    calibration inputs and the clean test input are exchangeable, and that the adversary does not
    know the test noise (see the notes of the module). The probability is over the calibration
    data, the test input and all noise. No assumption is made about the model.

    Parameters
    ----------
    model : torch.nn.Module or callable
        As in `sample_scores`. Must not change between calibration and prediction, and must not have
        been trained or selected on the calibration data.
    smoothing : Gaussian, Uniform or SparseFlip
        The smoothing scheme.
    ball : Ball
        The perturbations to withstand, in the units of the tensor that gets the noise.
    alpha : Level
        Miscoverage level, in (0, 1).
    n_samples : int
        Draws for each calibration input, m.
    score : str or callable, optional
        As in `sample_scores`.
    n_test_samples : int, optional
        Draws for each test input, m', by default m.
    p, tau, correction, union, eta, guarantee
        As in `BinCP`.
    batch_size, device, progress
        As in `sample_scores`.
    seed : int, optional
        As in `sample_scores`. Whoever knows it knows the test noise: where the adversary may, or
        may learn of it from repeated answers, draw it from a secret source.

    Attributes
    ----------
    certificate : Certificate
        The certified bounds of `smoothing` over `ball`.
    rule : BinCP
        The decision rule; after `calibrate` it has the threshold and the smallest count.

    Raises
    ------
    CertificateError
        If no certificate is registered for the scheme and the ball.
    TypeError, ValueError
        As in `BinCP` and `sample_scores`.

    Examples
    --------
    >>> import torch
    >>> from bincp.balls import L2
    >>> from bincp.sampling import RobustClassifier
    >>> from bincp.smoothing import Gaussian
    >>> _ = torch.manual_seed(0)
    >>> x, y = torch.randn(200, 4), torch.randint(3, (200,))
    >>> classifier = RobustClassifier(
    ...     torch.nn.Linear(4, 3), Gaussian(sigma=0.5), L2(0.1), alpha=0.1, n_samples=256
    ... )
    >>> prediction = classifier.calibrate(x[:150], y[:150]).predict(x[150:])
    >>> prediction.sets.shape
    (50, 3)
    """

    def __init__(
        self,
        model: Model,
        smoothing: Smoothing,
        ball: Ball,
        *,
        alpha: Level,
        n_samples: int,
        score: Score = "tps",
        n_test_samples: int | None = None,
        p: Level | None = None,
        tau: float | None = None,
        correction: str = "mixture",
        union: str = "paper",
        eta: Level = 1e-3,
        guarantee: str | tuple[str, Level] = "marginal",
        batch_size: int = 256,
        seed: int = 0,
        device: torch.device | str | None = None,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.smoothing = smoothing
        self.ball = ball
        self.certificate = certify(smoothing, ball)
        self.rule = BinCP(
            self.certificate,
            alpha=alpha,
            p=p,
            tau=tau,
            correction=correction,
            union=union,
            eta=eta,
            guarantee=guarantee,
        )
        most = noise.MAX_SAMPLES
        self.n_samples = check_integer("n_samples", n_samples, low=1, high=most)
        self.n_test_samples = (
            self.n_samples
            if n_test_samples is None
            else check_integer("n_test_samples", n_test_samples, low=1, high=most)
        )
        self._options = {
            "score": score,
            "batch_size": batch_size,
            "seed": seed,
            "device": device,
            "progress": progress,
        }
        _check_options(**self._options)
        self._sequential: SequentialRule | None = None

    def calibrate(self, x: ArrayLike | Iterable[Any], y: ArrayLike | None = None) -> Self:
        """Sample the scores of the calibration set and find the decision rule.

        Parameters
        ----------
        x : tensor or array (n, ...), or iterable of pairs
            Clean calibration inputs, or a loader that yields batches of inputs and labels.
        y : array-like (n,) of int
            Their labels in [0, K); not given with a loader.

        Returns
        -------
        RobustClassifier
            Itself.

        Raises
        ------
        TypeError, ValueError
            As in `sample_scores`, and if the calibration set is empty.
        """
        batches = _labelled_batches(x, y)
        all_scores, n_classes, start = [], None, 0
        for inputs, labels in batches:
            job = self._job(inputs, self.n_samples, "calibration", start)
            scores, found = _label_scores(job, labels)
            if n_classes not in (None, found):
                raise ValueError(f"`model` must return {n_classes} logits as before, got {found}")
            all_scores.append(scores)
            n_classes, start = found, start + len(scores)
        if n_classes is None:
            raise ValueError("`x` must hold at least one calibration input, got an empty loader")
        self._sequential = None
        self.rule.calibrate(
            np.concatenate(all_scores), n_classes=n_classes, n_test_samples=self.n_test_samples
        )
        return self

    def predict(
        self, x: ArrayLike, *, sequential: bool = False, curtail: bool = True
    ) -> PredictionSets:
        """Return the prediction sets of new inputs, which may have been perturbed.

        Inputs get ids by position: those of equal position in two calls share their noise. That
        keeps the guarantee of each input, but an adversary who adapts the next input to the last
        answers may learn the noise; a service that faces one should use a new object, with a new
        seed and a new calibration, now and then.

        An input is drawn until its last label is decided. The draws come in rounds over the inputs
        that are still undecided: many inputs in one call keep the batches full. Each label is
        decided on the draws in their order, so the sets, the counts and the forward passes of an
        input depend neither on the batch size nor on the other inputs.

        Parameters
        ----------
        x : tensor or array (n, ...)
            Test inputs.
        sequential : bool, optional
            Decide by the sequential rule of `BinCP.sequential_rule`, which keeps the guarantee with
            far fewer draws. Its sets are not those of the fixed rule.
        curtail : bool, optional
            Stop once the remaining draws cannot change a set of the fixed rule, which saves draws
            and changes no set. False makes all m' draws and counts them all.

        Returns
        -------
        PredictionSets

        Raises
        ------
        NotCalibratedError
            If `calibrate` has not been called.
        TypeError, ValueError
            As in `sample_scores`; and if `sequential` is true and `curtail` is not.
        """
        if not hasattr(self.rule, "tau_"):
            raise NotCalibratedError("call calibrate() before predict()")
        for name, flag in (("sequential", sequential), ("curtail", curtail)):
            if not isinstance(flag, bool):
                raise TypeError(f"`{name}` must be a bool, got {flag!r}")
        if sequential and not curtail:
            raise ValueError("`curtail` must be True for sequential prediction, got False")
        job = self._job(x, self.n_test_samples, "test", 0)
        return self._predict_early(job, sequential) if curtail else self._predict_all(job)

    def _predict_all(self, job: "_Job") -> PredictionSets:
        counts, dtype = _counts(job, self.rule.tau_)
        self._check_dtype(dtype)
        sets = self.rule.predict_set_from_counts(counts)
        return PredictionSets(sets, counts, np.full(len(counts), self.n_test_samples))

    def _predict_early(self, job: "_Job", sequential: bool) -> PredictionSets:
        if sequential:
            if self._sequential is None:
                self._sequential = self.rule.sequential_rule()
            boundaries = self._sequential
        else:
            assert self.rule.min_count_ is not None  # calibrated on samples
            boundaries = SequentialRule.curtailed(self.rule.min_count_, self.n_test_samples)
        labels, dtype = _decide(job, self.rule.tau_, boundaries, self.rule.n_classes_)
        self._check_dtype(dtype)
        return PredictionSets(labels.accepted, labels.counts, labels.draws.astype(np.int64))

    def _check_dtype(self, dtype: str) -> None:
        if dtype != self.rule.dtype_:
            raise ValueError(
                f"`model` must give scores of dtype {self.rule.dtype_} as in calibration, "
                f"got {dtype}"
            )

    def _job(self, x: Any, n_samples: int, phase: Phase, first_id: int) -> "_Job":
        options: dict[str, Any] = self._options
        job = _Job.checked(
            self.model, x, self.smoothing, n_samples, phase=phase, first_id=first_id, **options
        )
        dim = getattr(self.ball, "dim", None)
        if dim is not None and job.x.size != dim * len(job.x):
            raise ValueError(
                f"`x` must have {dim} elements an input, as {self.ball}, got shape {job.x.shape}"
            )
        return job


@dataclass(frozen=True)
class _Job:
    """Validated arguments of one sampling run."""

    model: Model
    x: npt.NDArray[np.floating[Any]]
    smoothing: object
    n_samples: int
    phase: Phase
    ids: IntArray
    score: Score
    batch_size: int
    seed: int
    device: torch.device
    progress: bool

    @classmethod
    def checked(
        cls,
        model: Model,
        x: ArrayLike,
        smoothing: object,
        n_samples: int,
        *,
        phase: Phase,
        indices: ArrayLike | None = None,
        first_id: int = 0,
        score: Score,
        batch_size: int,
        seed: int,
        device: torch.device | str | None,
        progress: bool,
    ) -> Self:
        if not callable(model):
            raise TypeError(f"`model` must be a torch module or a callable, got {model!r}")
        inputs = _host_inputs(x)
        noise.check_inputs(smoothing, inputs)
        noise.check_phase(phase)
        if indices is None:
            indices = np.arange(first_id, first_id + len(inputs))
        _check_options(score, batch_size, seed, device, progress)
        place = _place(model, x, device)
        _check_dtypes(model, inputs)
        return cls(
            model=model,
            x=inputs,
            smoothing=smoothing,
            n_samples=check_integer("n_samples", n_samples, low=1, high=noise.MAX_SAMPLES),
            phase=phase,
            ids=noise.check_indices(_on_host(indices), len(inputs), phase),
            score=score,
            batch_size=int(batch_size),
            seed=seed,
            device=place,
            progress=progress,
        )


@dataclass(frozen=True)
class _Batch:
    """The scores of some rows; row r is a draw of input ``sources[r]``."""

    sources: IntArray
    draws: IntArray
    scores: torch.Tensor


def _all_scores(job: _Job) -> npt.NDArray[np.floating[Any]]:
    result = None
    with _evaluating(job.model):
        for batch in _all_batches(job):
            scores = batch.scores.cpu().numpy()
            if result is None:
                shape = (len(job.x), scores.shape[1], job.n_samples)
                result = np.empty(shape, dtype=scores.dtype)
            result[batch.sources, :, batch.draws] = scores
    assert result is not None  # inputs and draws are not empty
    return result


def _label_scores(job: _Job, labels: ArrayLike) -> tuple[npt.NDArray[np.floating[Any]], int]:
    """Return the scores (n, m) of the given labels, and K."""
    y = _integers("labels", labels)
    if y.shape != (len(job.x),):
        raise ValueError(f"`labels` must have shape {(len(job.x),)}, got {y.shape}")
    result, n_classes = None, 0
    with _evaluating(job.model):
        for batch in _all_batches(job):
            if result is None:
                n_classes = batch.scores.shape[1]
                as_counts("labels", y, high=n_classes - 1)
                dtype = batch.scores[:0].cpu().numpy().dtype
                result = np.empty((len(y), job.n_samples), dtype=dtype)
            own = torch.from_numpy(y[batch.sources]).to(batch.scores.device)[:, None]
            result[batch.sources, batch.draws] = batch.scores.gather(1, own)[:, 0].cpu().numpy()
    assert result is not None  # inputs and draws are not empty
    return result, n_classes


def _counts(job: _Job, tau: float) -> tuple[npt.NDArray[np.int32], str]:
    """Return the counts (n, K) of scores that reach ``tau``, and the dtype of the scores."""
    counts, dtype = None, ""
    with _evaluating(job.model):
        for batch in _all_batches(job):
            scores = batch.scores
            if counts is None:
                counts = np.zeros((len(job.x), scores.shape[1]), dtype=np.int32)
                dtype = _dtype_name(scores)
            first, last = int(batch.sources[0]), int(batch.sources[-1]) + 1
            rows = torch.from_numpy(batch.sources - first).to(scores.device)
            reached = _reached(scores, tau).to(torch.int32)
            sums = reached.new_zeros(last - first, scores.shape[1]).index_add_(0, rows, reached)
            counts[first:last] += sums.cpu().numpy()
    assert counts is not None  # inputs and draws are not empty
    return counts, dtype


def _decide(
    job: _Job, tau: float, rule: SequentialRule, n_classes: int | None
) -> tuple[SequentialTracker, str]:
    """Draw each input until its last label is decided; return the labels and the scores' dtype.

    Before the first batch nobody knows the labels, so every input gets one draw at least.
    """
    labels, dtype = None, ""
    n = len(job.x)
    what = _Draws(np.arange(n), np.zeros(n, np.int64), np.full(n, max(rule.min_draws, 1)))
    with _evaluating(job.model), _progress_bar(job, n, "input") as bar:
        while len(what.inputs):
            for batch in _batches(job, what, n_classes):
                if labels is None:
                    n_classes = batch.scores.shape[1]
                    labels = rule.start((n, n_classes))
                    dtype = _dtype_name(batch.scores)
                labels.update_rows(_reached(batch.scores, tau).cpu().numpy(), batch.sources)
            assert labels is not None  # inputs and draws are not empty
            before = len(what.inputs)
            inputs, numbers = labels.next_round()
            what = _Draws(inputs, labels.draws[inputs].astype(np.int64), numbers)
            if bar is not None:
                bar.update(before - len(inputs))
    assert labels is not None
    return labels, dtype


def _reached(scores: torch.Tensor, tau: float) -> torch.Tensor:
    return scores >= torch.tensor(tau, dtype=scores.dtype)


def _dtype_name(scores: torch.Tensor) -> str:
    return str(scores.dtype).removeprefix("torch.")


@dataclass(frozen=True)
class _Draws:
    """Draws to make: ``numbers[i]`` of input ``inputs[i]``, from its draw ``first[i]`` on."""

    inputs: IntArray
    first: IntArray
    numbers: IntArray

    def batches(self, batch_size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (inputs, draws) of each batch: the draws of the first input, of the second, ..."""
        ends = np.cumsum(self.numbers)
        shifts = self.first - (ends - self.numbers)
        for start in range(0, int(ends[-1]), batch_size):
            rows = np.arange(start, min(start + batch_size, ends[-1]))
            which = np.searchsorted(ends, rows, side="right")
            yield self.inputs[which], rows + shifts[which]


def _all_batches(job: _Job) -> Iterator[_Batch]:
    """Evaluate the model on all draws of all inputs."""
    n = len(job.x)
    draws = _Draws(np.arange(n), np.zeros(n, np.int64), np.full(n, job.n_samples))
    n_batches = -(-n * job.n_samples // job.batch_size)
    with _progress_bar(job, n_batches, "batch") as bar:
        for batch in _batches(job, draws):
            yield batch
            if bar is not None:
                bar.update()


def _progress_bar(job: _Job, total: int, unit: str) -> Any:
    """Return a context: the bar, or None where none was asked for."""
    if not job.progress:
        return nullcontext()
    from tqdm import tqdm

    return tqdm(total=total, desc=job.phase, unit=unit)


def _batches(job: _Job, what: _Draws, n_classes: int | None = None) -> Iterator[_Batch]:
    """Evaluate the model on some draws, one batch of rows after the other."""
    for sources, draws, scores in _launched(job, what):
        if n_classes not in (None, scores.shape[1]):
            raise ValueError(
                f"`model` must return {n_classes} logits as before, got {scores.shape[1]}"
            )
        n_classes = scores.shape[1]
        missing = torch.isnan(scores)
        if bool(missing.any()):
            row, label = (int(i) for i in missing.nonzero()[0])
            raise ValueError(
                f"`model` must not give NaN scores, got one for input {sources[row]}, "
                f"draw {draws[row]}, label {label}"
            )
        yield _Batch(sources, draws, scores)


def _launched(job: _Job, what: _Draws) -> Iterator[tuple[IntArray, IntArray, torch.Tensor]]:
    """Yield the scores of each batch, not yet waited for if the device works on its own.

    The noise of the next batch is drawn before the scores are handed out, so that the CPU draws
    while the device computes.
    """
    upcoming = ((*rows, _noisy(job, *rows)) for rows in what.batches(job.batch_size))
    current = next(upcoming, None)
    while current is not None:
        sources, draws, inputs = current
        logits = job.model(inputs.to(job.device, non_blocking=True))
        _check_logits(logits, len(sources))
        scores = _scores(job, logits, sources, draws)
        current = next(upcoming, None)
        yield sources, draws, scores


def _noisy(job: _Job, sources: IntArray, draws: IntArray) -> torch.Tensor:
    # A fresh tensor each time: the model may keep it, and a copy to the device may still read it.
    dtype = torch.float32 if job.x.dtype == np.float32 else torch.float64
    rows = torch.empty(
        (len(sources), *job.x.shape[1:]), dtype=dtype, pin_memory=job.device.type == "cuda"
    )
    first, last = sources[0], sources[-1] + 1
    noise.fill(
        job.smoothing,
        job.x[first:last],
        rows.numpy(),
        sources - first,
        job.ids[sources],
        draws,
        phase=job.phase,
        seed=job.seed,
    )
    return rows


def _scores(job: _Job, logits: torch.Tensor, sources: IntArray, draws: IntArray) -> torch.Tensor:
    if callable(job.score):
        scores = job.score(logits)
        if not isinstance(scores, torch.Tensor):
            raise TypeError(f"`score` must return a tensor, got {type(scores).__name__}")
        if scores.shape != logits.shape or not scores.is_floating_point():
            raise ValueError(
                f"`score` must return floating-point numbers of shape {tuple(logits.shape)}, "
                f"got {scores.dtype} of shape {tuple(scores.shape)}"
            )
        return _widened(scores)
    named = NAMED_SCORES[job.score]
    logits = _widened(logits)
    values = logits if named.of_logits else logits.softmax(-1)
    if not named.random:
        return named.formula(values)  # type: ignore[no-any-return]
    u = noise.score_numbers(job.ids[sources], draws, phase=job.phase, seed=job.seed)
    numbers = torch.from_numpy(u).to(logits.device, torch.float64)[:, None]
    return named.formula(values, numbers)  # type: ignore[no-any-return]


def _widened(values: torch.Tensor) -> torch.Tensor:
    return values if values.dtype == torch.float64 else values.float()


def _check_logits(logits: object, n_rows: int) -> None:
    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"`model` must return a tensor of logits, got {type(logits).__name__}")
    if logits.ndim != 2 or logits.shape[0] != n_rows or logits.shape[1] == 0:
        raise ValueError(
            f"`model` must return logits of shape ({n_rows}, K) for a batch of {n_rows}, "
            f"got shape {tuple(logits.shape)}"
        )
    if not logits.is_floating_point():
        raise ValueError(f"`model` must return floating-point logits, got {logits.dtype}")


@contextmanager
def _evaluating(model: Model) -> Iterator[None]:
    """Set evaluation mode, without gradients; every submodule gets its own mode back."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    modes = [module.training for module in modules]
    try:
        if isinstance(model, torch.nn.Module):
            model.eval()
        with torch.no_grad():
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def _check_options(score: Any, batch_size: Any, seed: Any, device: Any, progress: Any) -> None:
    if not (isinstance(score, str) or callable(score)):
        raise TypeError(f"`score` must be a name or a callable, got {score!r}")
    if isinstance(score, str) and score not in NAMED_SCORES:
        raise ValueError(f"`score` must be one of {', '.join(NAMED_SCORES)}, got {score!r}")
    check_integer("batch_size", batch_size, low=1)
    noise.check_seed(seed)
    if not isinstance(device, torch.device | str | None):
        raise TypeError(f"`device` must be a torch.device or a str, got {device!r}")
    if not isinstance(progress, bool):
        raise TypeError(f"`progress` must be a bool, got {progress!r}")


def _place(model: Model, x: object, device: torch.device | str | None) -> torch.device:
    """Return where to evaluate, and move a module there if it was said where."""
    if device is not None:
        try:
            place = torch.device(device)
            torch.empty(0, device=place)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"`device` must be a torch device, got {device!r}: {error}") from None
        if isinstance(model, torch.nn.Module):
            model.to(place)
        return place
    if isinstance(model, torch.nn.Module):
        for tensor in (*model.parameters(), *model.buffers()):
            return tensor.device
    return x.device if isinstance(x, torch.Tensor) else torch.device("cpu")


def _check_dtypes(model: Model, inputs: npt.NDArray[Any]) -> None:
    """Refuse float64 inputs of a float32 module here: torch names neither."""
    if not isinstance(model, torch.nn.Module):
        return
    for parameter in model.parameters():
        if parameter.dtype == torch.float32 and inputs.dtype == np.float64:
            raise ValueError(
                "`x` must have the dtype of the model's parameters, float32, got float64; "
                "use x.astype(np.float32) or x.float()"
            )
        return


def _integers(name: str, value: ArrayLike) -> IntArray:
    """Return integers of any sign; their range is checked where it is known."""
    array = as_array(name, _on_host(value))
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be integers, got dtype {array.dtype}")
    return array.astype(np.int64)


def _on_host(value: Any) -> Any:
    return value.detach().cpu() if is_tensor(value) else value


def _host_inputs(x: object) -> npt.NDArray[Any]:
    if not isinstance(x, torch.Tensor | np.ndarray):
        raise TypeError(f"`x` must be a tensor or an array, got {type(x).__name__}")
    if isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16:
        raise ValueError("`x` must be float32 or float64, got torch.bfloat16")
    return as_array("x", _on_host(x))


def _labelled_batches(x: Any, y: ArrayLike | None) -> Iterator[tuple[Any, Any]]:
    is_array = isinstance(x, torch.Tensor | np.ndarray)
    if y is not None:
        if not is_array:
            raise TypeError(
                f"`y` must be given with an array of inputs only, got it with {type(x).__name__}"
            )
        yield x, y
        return
    if is_array:
        raise TypeError("`y` must be given with an array of inputs, got None")
    if not isinstance(x, Iterable):
        raise TypeError(f"`x` must be an array or an iterable of pairs, got {type(x).__name__}")
    for batch in x:
        if not (isinstance(batch, tuple | list) and len(batch) == 2):
            raise ValueError(
                f"`x` must yield pairs of inputs and labels, got {type(batch).__name__}"
            )
        yield batch[0], batch[1]


def _channel_numbers(name: str, value: float | Sequence[float]) -> npt.NDArray[np.float64]:
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if numbers.ndim != 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise ValueError(f"`{name}` must be a finite number or one for each channel, got {value!r}")
    return numbers
