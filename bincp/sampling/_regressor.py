"""Robust sets of real labels from a model in one object: sample, calibrate, sweep."""

import copy
import math
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import PathLike
from threading import Lock
from typing import Any, Self, Unpack, cast

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike, as_regressor
from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import MAX_COUNT, check_flag, check_integer
from bincp.balls import Ball
from bincp.calibration import BinCP
from bincp.certificates import Certificate, certify
from bincp.errors import NotCalibratedError
from bincp.noise._keys import IntArray, Phase, check_indices
from bincp.regression import IntervalSets, conformity_scores, predict_sets
from bincp.regression._prediction import check_settings, fitted
from bincp.regression._scores import IntervalScore, as_labels, score_of
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, Options, integers
from bincp.sampling._parameters import RuleOwner
from bincp.sampling._regressor_files import Saved, read, write
from bincp.sampling._rules import RuleSettings, check_rule, is_calibrated
from bincp.smoothing import Smoothing

_id_lock = Lock()

Predictions = npt.NDArray[np.floating[Any]]


class RobustRegressor(RuleOwner):
    """Robust sets of real labels from a model: sample, calibrate, sweep.

    After `calibrate`, the set that `predict` returns for a new input contains its true label with
    probability at least 1 - alpha, also if the input was perturbed inside the ball, provided that
    calibration inputs and the clean test input are exchangeable, and that the adversary does not
    know the test noise and does not move the label. The probability is over the calibration data,
    the test input and all noise. `bincp.sampling` and `bincp.noise` say what is assumed of noise.

    Parameters
    ----------
    model : torch.nn.Module or callable, a regressor of scikit-learn, or a pair of these
        Maps a batch (b, ...) to the numbers that the score takes, (b,) or (b, q), in the units of
        the labels; a pair gives one each. `bincp.adapters.as_regressor` says which models there
        are. Must not change between calibration and prediction, and must not have been trained,
        selected or tuned on the calibration or test data, nor on their noise.
    smoothing : Smoothing
        The smoothing scheme, one of `bincp.smoothing`.
    ball : Ball
        The perturbations to withstand, in the units of the tensor that gets the noise.
    score : {"residual", "normalized", "cqr", "lower", "upper"}, optional
        The score, as in `bincp.regression.conformity_scores`. "normalized" takes a prediction and
        its spread, "cqr" a lower and an upper quantile.
    rule : BinCP, optional
        The decision rule, in place of its settings. Its certificate must be that of `smoothing` and
        `ball`. A rule that is calibrated already predicts at once; `model` and `score` must then be
        those of its calibration, which the rule does not know: `save` and `load` keep the score.
    n_samples : int
        Draws for each calibration input, m. May be left out where `rule` is calibrated.
    n_test_samples : int, optional
        Draws for each test input, m'; by default m, or that of a calibrated rule.
    batch_size, device, progress
        As in `sample_scores`.
    seed : int, optional
        As in `sample_scores`. By default a secret one. Whoever knows it knows the test noise.
    n_threads : int, optional
        As in `RobustClassifier`.
    **settings
        Settings of the rule, where `rule` is not given: `alpha`, which is needed, and those of
        `BinCP`. `passes` must be None, and "clopper-pearson" needs union="two-bounds": real labels
        are not decided one by one, and have no number K.

    Attributes
    ----------
    n_samples, n_test_samples : int
        m, and the m' that `calibrate` asks for. `predict` makes as many draws as the rule is for.

    Raises
    ------
    CertificateError
        If no certificate is registered for the scheme and the ball.
    TypeError, ValueError
        As in `BinCP` and `sample_scores`; if `rule` is no `BinCP`, is given with settings of a
        rule, or its certificate is for other noise or another ball; or if its settings do not fit
        real labels.

    See Also
    --------
    bincp.regression : The same for arrays of predictions.

    Notes
    -----
    *Ids.* The noise of an input is keyed by its id. Each call of `calibrate` and `predict` takes
    the next ids that the object has not handed out yet, from 0 in each phase. Ids that are given as
    `indices` are taken as they are: give them in all calls or in none.

    *Threads.* Several threads may call `predict` on one object at once, and get different ids. A
    rule may be calibrated meanwhile: each call of `predict` keeps to the rule that it found at its
    start. No thread may change the module (its weights, mode or device) while another one predicts.

    Examples
    --------
    >>> import torch
    >>> from bincp.balls import L2
    >>> from bincp.sampling import RobustRegressor
    >>> from bincp.smoothing import Gaussian
    >>> x = torch.randn(300, 4, generator=torch.manual_seed(0))
    >>> y = x.sum(1)
    >>> regressor = RobustRegressor(
    ...     lambda x: x.sum(1), Gaussian(0.25), L2(0.1), alpha=0.1, n_samples=64, seed=1
    ... ).calibrate(x[:200], y[:200])
    >>> sets = regressor.predict(x[200:])
    >>> len(sets), bool(sets.contains(y[200:]).mean() >= 0.9)
    (100, True)
    """

    _rule: BinCP

    def __init__(
        self,
        model: ModelLike,
        smoothing: Smoothing,
        ball: Ball,
        *,
        score: str = "residual",
        rule: BinCP | None = None,
        n_samples: int | None = None,
        n_test_samples: int | None = None,
        batch_size: int = 256,
        seed: int | None = None,
        device: torch.device | str | None = None,
        progress: bool | None = None,
        n_threads: int = 1,
        **settings: Unpack[RuleSettings],
    ) -> None:
        self.model = as_regressor(model)
        self._smoothing, self._ball = smoothing, ball
        self._certificate = certify(smoothing, ball)
        self._score = score_of(score)
        if rule is not None and settings:
            names = ", ".join(settings)
            raise TypeError(f"`rule` must be given without settings of a rule, got {names}, too")
        if rule is None and "alpha" not in settings:
            got = ", ".join(settings) or "no setting"
            raise TypeError(f"`alpha` must be given where `rule` is not, got {got}")
        self.rule = BinCP(self._certificate, **settings) if rule is None else rule
        self._first_rule = self._rule
        self.n_samples, self.n_test_samples = _sizes(self.rule, n_samples, n_test_samples)
        self._options = Options.checked(
            score=_unchanged,
            batch_size=batch_size,
            seed=secrets.randbits(64) if seed is None else seed,
            device=device,
            progress=progress,
            n_threads=n_threads,
        )
        self._dtype: str | None = None  # of the predictions in calibration
        self._next_id = {"calibration": 0, "test": 0}

    def _defaults(self) -> dict[str, Any]:
        own = super()._defaults()
        return own | {"passes": None} if "passes" in own else own

    def __repr__(self) -> str:
        return (
            f"RobustRegressor({self._smoothing!r}, {self._ball!r}, score={self.score!r}, "
            f"rule={self._rule!r})"
        )

    @property
    def smoothing(self) -> Smoothing:
        """The smoothing scheme."""
        return self._smoothing

    @property
    def ball(self) -> Ball:
        """The perturbations to withstand."""
        return self._ball

    @property
    def certificate(self) -> Certificate:
        """The certified bounds of `smoothing` over `ball`."""
        return self._certificate

    @property
    def score(self) -> str:
        """The name of the score."""
        return self._score.name

    @property
    def rule(self) -> BinCP:
        """The decision rule; after `calibrate` it has the threshold and the smallest count.

        Another one may be assigned; one whose certificate is for other noise or another ball is
        refused, as is one that does not fit real labels.
        """
        return self._rule

    @rule.setter
    def rule(self, rule: BinCP) -> None:
        if not isinstance(rule, BinCP):
            raise TypeError(f"`rule` must be a BinCP, got {rule!r}")
        check_settings(rule)
        check_rule(rule, self._certificate)
        if is_calibrated(rule):
            fitted(rule)
        self._rule = rule
        self._dtype = None

    def calibrate(
        self,
        x: ArrayLike | Iterable[Any],
        y: ArrayLike | None = None,
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
    ) -> Self:
        """Sample the predictions of the calibration set and find the decision rule.

        Parameters
        ----------
        x : tensor or array (n, ...), or iterable of pairs
            Clean calibration inputs, or a loader that yields batches of inputs and labels.
        y : array-like (n,) of real numbers
            Their labels, finite; not given with a loader.
        indices : array-like (n,) of int, optional
            Ids of the inputs, in their order over all batches of a loader; no two are equal. By
            default ids that no call on this object was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.

        Returns
        -------
        RobustRegressor
            Itself.

        Raises
        ------
        TypeError, ValueError
            As in `sample_scores`; if a label is not finite; if the model does not return the
            numbers that the score takes; or if the calibration set is empty.
        """
        ids = None if indices is None else _all_ids(indices)
        scores, dtypes, start = [], set(), 0
        for inputs, labels in _labelled(x, y):
            n = next(iter(getattr(inputs, "shape", ())), 0)
            own = None if ids is None else ids[start : start + n]
            checked = as_labels("y", labels)
            if checked.shape != (n,):
                raise ValueError(f"`y` must have shape ({n},), got {checked.shape}")
            predictions = self._predictions(inputs, self.n_samples, "calibration", own, first_draw)
            scores.append(conformity_scores(predictions, checked, score=self.score))
            dtypes.add(predictions.dtype.name)
            start += n
        if not scores:
            raise ValueError("`x` must hold at least one calibration input, got an empty loader")
        if ids is not None and len(ids) != start:
            raise ValueError(f"`indices` must have shape ({start},), got {ids.shape}")
        if len(dtypes) > 1:
            raise ValueError(
                f"`model` must give predictions of one dtype, got {' and '.join(sorted(dtypes))}"
            )
        self.rule.calibrate(
            np.concatenate(scores),
            n_test_samples=self.n_test_samples,
            n_threads=self._options.n_threads,
        )
        self._dtype = dtypes.pop()
        return self

    def predict(
        self,
        x: ArrayLike,
        *,
        hulls: bool = False,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
    ) -> IntervalSets:
        """Return the sets of real labels of new inputs, which may have been perturbed.

        Every call draws new noise, unless `indices` asks for that of an earlier one.

        Parameters
        ----------
        x : tensor or array (n, ...)
            Test inputs.
        hulls : bool, optional
            Return the least interval around each set, which covers what the set covers, and more.
        indices : array-like (n,) of int, optional
            Ids of the inputs; equal ids get equal noise. By default ids that no call on this object
            was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.

        Returns
        -------
        IntervalSets
            Of n sets.

        Raises
        ------
        NotCalibratedError
            If neither `calibrate` was called nor a rule given that is calibrated.
        TypeError, ValueError
            As in `sample_scores`; if the model gives predictions of another dtype than in
            calibration, or not the numbers that the score takes.
        """
        check_flag("hulls", hulls)
        rule, dtype = copy.copy(self._rule), self._dtype  # also if it is calibrated meanwhile
        if not is_calibrated(rule):
            raise NotCalibratedError("call calibrate() before predict()")
        assert rule.n_test_samples_ is not None  # calibrated on samples
        predictions = self._predictions(x, rule.n_test_samples_, "test", indices, first_draw)
        if dtype not in (None, predictions.dtype.name):
            raise ValueError(
                f"`model` must give predictions of dtype {dtype} as in calibration, "
                f"got {predictions.dtype.name}"
            )
        return predict_sets(rule, predictions, score=self.score, hulls=hulls)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the score and the calibrated rule as versioned JSON; the model is not written.

        Parameters
        ----------
        path : str or path-like
            File to write, as in `BinCP.save`.

        Raises
        ------
        NotCalibratedError
            If nothing has been calibrated.
        TypeError
            If `path` is no path.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile, torch
        >>> from bincp.balls import L2
        >>> from bincp.sampling import RobustRegressor
        >>> from bincp.smoothing import Gaussian
        >>> x = torch.randn(100, 4)
        >>> def model(x):
        ...     return x.sum(1)
        >>> regressor = RobustRegressor(model, Gaussian(0.25), L2(0.1), alpha=0.1, n_samples=16)
        >>> regressor = regressor.calibrate(x, x.sum(1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     regressor.save(pathlib.Path(folder, "regressor.json"))
        ...     loaded = RobustRegressor.load(pathlib.Path(folder, "regressor.json"), model)
        >>> loaded.score, loaded.rule.tau_ == regressor.rule.tau_
        ('residual', True)
        """
        rule = copy.copy(self._rule)
        write(path, Saved(self.score, self._dtype, rule._require_rule("save()")))

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        model: ModelLike,
        *,
        smoothing: Smoothing | None = None,
        ball: Ball | None = None,
        batch_size: int = 256,
        seed: int | None = None,
        device: torch.device | str | None = None,
        progress: bool | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Make a regressor from a file that `save` wrote and the model of its calibration.

        Parameters
        ----------
        path : str or path-like
        model
            The model that was calibrated. The file does not know it.
        smoothing, ball : optional
            Needed where they are of classes from outside, of which the file has a description only.
            Others than those of the file are refused.
        batch_size, seed, device, progress, n_threads
            As in the constructor.

        Returns
        -------
        RobustRegressor

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError, ValueError
            If it is no file of `save`, is damaged or of another version; or as in the constructor.
        """
        saved, rule, pair = read(path)
        if pair is None and (smoothing is None or ball is None):
            raise ValueError(
                f"{path}: `smoothing` and `ball` must be given, as the rule is for "
                f"{saved.rule.certificate!r}, got {smoothing!r} and {ball!r}"
            )
        known = pair or (smoothing, ball)
        made = cls(
            model,
            cast("Smoothing", known[0] if smoothing is None else smoothing),
            cast("Ball", known[1] if ball is None else ball),
            score=saved.score,
            rule=rule,
            batch_size=batch_size,
            seed=seed,
            device=device,
            progress=progress,
            n_threads=n_threads,
        )
        made._dtype = saved.dtype
        return made

    def _predictions(
        self, x: Any, n_samples: int, phase: Phase, indices: ArrayLike | None, first_draw: int
    ) -> Predictions:
        """Return sampled predictions, (n, m) or (n, q, m) as the score takes them."""
        job = self._job(x, n_samples, phase, indices, first_draw)
        columns = _engine.all_scores(job)
        _check_numbers(self._score, columns.shape[1])
        return columns[:, 0] if columns.shape[1] == 1 else columns

    def _job(
        self, x: Any, n_samples: int, phase: Phase, indices: ArrayLike | None, first_draw: int
    ) -> Job:
        job = Job.of(
            self.model,
            x,
            self.smoothing,
            n_samples,
            self._options,
            phase=phase,
            indices=indices,
            first_draw=first_draw,
        )
        dim, shape = getattr(self.ball, "dim", None), tuple(job.x.shape)
        if dim is not None and math.prod(shape[1:]) != dim:
            raise ValueError(
                f"`x` must have {dim} elements an input, as {self.ball}, got shape {shape}"
            )
        return job if indices is not None else replace(job, ids=self._new_ids(phase, len(job.x)))

    def _new_ids(self, phase: Phase, n: int) -> IntArray:
        """Return ids that no other call gets, of whatever thread and however this one ends."""
        with _id_lock:
            first = self._next_id[phase]
            self._next_id[phase] = first + n
        return np.arange(first, first + n)


def _unchanged(predictions: torch.Tensor) -> torch.Tensor:
    return predictions


def _check_numbers(score: IntervalScore, got: int) -> None:
    if got != len(score.numbers):
        raise ValueError(
            f"`model` must return {len(score.numbers)} numbers an input for the score "
            f"{score.name!r} ({', '.join(score.numbers)}), got {got}"
        )


def _sizes(rule: BinCP, n_samples: int | None, n_test_samples: int | None) -> tuple[int, int]:
    """Return m and m'; a calibrated rule has both, and is for its own m' only."""
    known, known_test = (
        (rule.n_samples_, rule.n_test_samples_) if is_calibrated(rule) else (None, None)
    )
    given = known if n_samples is None else n_samples
    if given is None:
        raise TypeError("`n_samples` must be given unless `rule` is a calibrated one, got None")
    m = check_integer("n_samples", given, low=1, high=MAX_COUNT)
    if n_test_samples is None:
        return m, known_test or m
    m_test = check_integer("n_test_samples", n_test_samples, low=1, high=MAX_COUNT)
    if known_test not in (None, m_test):
        raise ValueError(
            f"`n_test_samples` must be the m' = {known_test} that `rule` was calibrated for, "
            f"got {m_test}"
        )
    return m, m_test


def _all_ids(indices: ArrayLike) -> IntArray:
    """Return the ids of a whole calibration set, which differ over all its batches."""
    ids = integers("indices", indices)
    return check_indices(ids, ids.size, "calibration")


def _labelled(x: Any, y: ArrayLike | None) -> Iterator[tuple[Any, Any]]:
    """Yield batches of inputs and labels."""
    is_array = isinstance(x, torch.Tensor | np.ndarray)
    if is_array != (y is not None):
        raise TypeError(
            "`y` must be given with an array of inputs, and only then, "
            f"got {type(y).__name__} with {type(x).__name__}"
        )
    if is_array:
        yield x, y
        return
    if not isinstance(x, Iterable):
        raise TypeError(f"`x` must be an array or an iterable of pairs, got {type(x).__name__}")
    for batch in x:
        if not (isinstance(batch, tuple | list) and len(batch) == 2):
            raise ValueError(
                f"`x` must yield pairs of inputs and labels, got {type(batch).__name__}"
            )
        yield batch[0], batch[1]
