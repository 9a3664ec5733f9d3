"""Prediction sets from a model in one object: sample, calibrate, count, decide."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from bincp._utils.arrays import ArrayLike
from bincp._utils.levels import Level
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.adapters import ModelLike, as_model
from bincp.balls import Ball
from bincp.calibration import BinCP, SequentialRule
from bincp.certificates import certify
from bincp.errors import NotCalibratedError
from bincp.noise._keys import IntArray, Phase
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, Score, check_options
from bincp.smoothing import Smoothing


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
    know the test noise (see `bincp.sampling`). The probability is over the calibration data,
    the test input and all noise. No assumption is made about the model, but that it does not read
    the bits below float32 that noise leaves (see `bincp.noise`).

    Parameters
    ----------
    model : torch.nn.Module or callable, or a classifier of scikit-learn or ART
        As in `sample_scores`. Must not change between calibration and prediction, and must not have
        been trained or selected on the calibration data.
    smoothing : Smoothing
        The smoothing scheme, one of `bincp.smoothing`.
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
        model: ModelLike,
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
        self.model = as_model(model)
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
        most = MAX_COUNT
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
        check_options(**self._options)
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
            scores, found = _engine.label_scores(job, labels)
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

    def _predict_all(self, job: Job) -> PredictionSets:
        counts, dtype = _engine.count(job, self.rule.tau_)
        self._check_dtype(dtype)
        sets = self.rule.predict_set_from_counts(counts, n_samples=self.n_test_samples)
        return PredictionSets(sets, counts, np.full(len(counts), self.n_test_samples))

    def _predict_early(self, job: Job, sequential: bool) -> PredictionSets:
        if sequential:
            if self._sequential is None:
                self._sequential = self.rule.sequential_rule()
            boundaries = self._sequential
        else:
            assert self.rule.min_count_ is not None  # calibrated on samples
            boundaries = SequentialRule.curtailed(self.rule.min_count_, self.n_test_samples)
        labels, dtype = _engine.decide(job, self.rule.tau_, boundaries, self.rule.n_classes_)
        self._check_dtype(dtype)
        return PredictionSets(labels.accepted, labels.counts, labels.draws.astype(np.int64))

    def _check_dtype(self, dtype: str) -> None:
        if dtype != self.rule.dtype_:
            raise ValueError(
                f"`model` must give scores of dtype {self.rule.dtype_} as in calibration, "
                f"got {dtype}"
            )

    def _job(self, x: Any, n_samples: int, phase: Phase, first_id: int) -> Job:
        options: dict[str, Any] = self._options
        job = Job.checked(
            self.model, x, self.smoothing, n_samples, phase=phase, first_id=first_id, **options
        )
        dim = getattr(self.ball, "dim", None)
        if dim is not None and job.x.size != dim * len(job.x):
            raise ValueError(
                f"`x` must have {dim} elements an input, as {self.ball}, got shape {job.x.shape}"
            )
        return job


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
