"""Robust sets of real labels from a model in one object: sample, calibrate, sweep."""

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, Self, Unpack, cast

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike, as_regressor
from bincp._utils.arrays import ArrayLike, on_host
from bincp._utils.validation import check_flag
from bincp.balls import Ball
from bincp.calibration import BinCP
from bincp.regression import IntervalSets, conformity_scores, predict_sets
from bincp.regression._prediction import check_settings, fitted
from bincp.regression._scores import (
    IntervalScore,
    as_doubles,
    as_labels,
    is_no_spread,
    score_of,
)
from bincp.sampling import _engine
from bincp.sampling._inputs import Key, LabelKind
from bincp.sampling._jobs import Job
from bincp.sampling._predictor import Predictor
from bincp.sampling._rules import Rule, RuleSettings, SampledScores, calibrate, is_calibrated
from bincp.sampling._saved import Saved, Who
from bincp.smoothing import GraphFlip, Smoothing

Predictions = npt.NDArray[np.floating[Any]]


def _reals(name: str, labels: Any, first: int) -> npt.NDArray[np.float64]:
    return as_labels(name, on_host(name, labels), first)


def _real(name: str, label: Any) -> float:
    value = as_doubles(name, on_host(name, label))
    if value.ndim:
        raise ValueError(f"`{name}` must be one number an input, got one of shape {value.shape}")
    return float(value)


class RobustRegressor(Predictor):
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
        those of its calibration, and others are refused where the rule knows them, see the notes.
    n_samples : int
        Draws for each calibration input, m. May be left out where `rule` is calibrated.
    n_test_samples : int, optional
        Draws for each test input, m'; by default m, or that of a calibrated rule.
    batch_size, device, progress
        As in `sample_scores`.
    seed : int, optional
        In [0, 2**64). By default each call draws a secret seed of its own from the system. A given
        one makes calls repeatable: whoever knows it knows the test noise.
    n_threads, input_range : optional
        As in `RobustClassifier`.
    model_id : str, optional
        What names a model that is no torch module, with its version: its code cannot be compared.
        `save` needs it. Of a pair, both must be modules, or the pair needs a name.
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
        rule, or its certificate is for other noise or another ball; if its settings do not fit
        real labels; or if the scheme is one of graphs, whose nodes have labels in common noise.

    See Also
    --------
    bincp.regression : The same for arrays of predictions.

    Notes
    -----
    *Noise.* The noise of an input is keyed by a seed and the id of the input, as in
    `RobustClassifier`. By default each call of `calibrate` and `predict` draws a seed of its own,
    so no two calls share noise, also not in copies, clones, forked processes, replicas and after
    restarts. With a `seed` each call takes the next ids that the object has not handed out yet, and
    a copy, a clone, a pickle or a forked process refuses to calibrate and to predict until `reseed`
    is called. Ids that are given as `indices` are taken as they are: give them in all calls or in
    none.

    *What is compared.* A calibration keeps the score, the fingerprint of the model, its precision,
    the dtype of its predictions, and the shape and the range of the inputs with the rule
    (`BinCP.provenance_`). A rule that was calibrated with others is refused, by name, where it is
    given and in `predict`. A fingerprint is that of the weights and the structure of a torch
    module; of eager modules it does not see code and plain attributes.

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

    To serve it elsewhere, load it with the same model:

    >>> import pathlib, tempfile
    >>> model = torch.nn.Linear(4, 1)
    >>> regressor = RobustRegressor(model, Gaussian(0.25), L2(0.1), alpha=0.1, n_samples=64)
    >>> regressor = regressor.calibrate(x[:200], y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     regressor.save(pathlib.Path(folder, "regressor.json"))
    ...     served = RobustRegressor.load(pathlib.Path(folder, "regressor.json"), model)
    >>> len(served.predict(x[200:]))
    100
    """

    _who = Who("regressor", "predictions")
    _labels = LabelKind("y", _reals, _real)

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
        input_range: tuple[float, float] | None = None,
        model_id: str | None = None,
        **settings: Unpack[RuleSettings],
    ) -> None:
        if isinstance(smoothing, GraphFlip):
            raise TypeError(
                "`smoothing` must not be a scheme of graphs for real labels, got "
                f"{smoothing!r}; use RobustClassifier for labels of nodes"
            )
        self._score = score_of(score)
        super().__init__(
            as_regressor(model),
            smoothing,
            ball,
            rule,
            settings,
            score=_unchanged,
            n_samples=n_samples,
            n_test_samples=n_test_samples,
            batch_size=batch_size,
            seed=seed,
            device=device,
            progress=progress,
            n_threads=n_threads,
            input_range=input_range,
            model_id=model_id,
        )

    def __repr__(self) -> str:
        return (
            f"RobustRegressor({self._smoothing!r}, {self._ball!r}, score={self.score!r}, "
            f"rule={self._rule!r})"
        )

    def _defaults(self) -> dict[str, Any]:
        own = super()._defaults()
        return own | {"passes": None} if "passes" in own else own

    def _new_rule(self, settings: RuleSettings) -> BinCP:
        return BinCP(self._certificate, **settings)

    def _score_content(self) -> dict[str, Any]:
        return {"name": self.score}

    @property
    def score(self) -> str:
        """The name of the score."""
        return self._score.name

    @property
    def rule(self) -> BinCP:
        """The decision rule; after `calibrate` it has the threshold and the smallest count.

        Another one may be assigned; one whose certificate is for other noise or another ball, that
        was calibrated with another model, score or range of inputs, or that does not fit real
        labels, is refused.
        """
        return cast("BinCP", self._rule)

    @rule.setter
    def rule(self, rule: BinCP) -> None:
        self._assign(rule)

    def _assign(self, rule: Rule) -> None:
        if not isinstance(rule, BinCP):
            raise TypeError(f"`rule` must be a BinCP, got {rule!r}")
        check_settings(rule)
        if is_calibrated(rule):
            fitted(rule)
        super()._assign(rule)

    def calibrate(
        self,
        x: ArrayLike | Iterable[Any],
        y: ArrayLike | None = None,
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        key: Key = None,
    ) -> Self:
        """Sample the predictions of the calibration set and find the decision rule.

        Parameters
        ----------
        x : tensor or array (n, ...), or source of inputs with labels
            Clean calibration inputs, as in `sample_scores`; or a dataset, a loader or an iterable
            of batches, of pairs of inputs and labels.
        y : array-like (n,) of real numbers
            Their labels, finite; given with an array only.
        indices : array-like (n,) of int, optional
            Ids of the inputs, in their order over all batches of a loader; no two are equal. By
            default ids that no call on this object was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.
        key : (str, str), optional
            The names of inputs and labels, where `x` yields dicts.

        Returns
        -------
        RobustRegressor
            Itself.

        Raises
        ------
        RuntimeError
            If this is a copy, a clone or a forked process of a regressor with a seed, see
            `reseed`.
        TypeError, ValueError
            As in `sample_scores`; if a label is not finite; if the model does not return the
            numbers that the score takes; if the calibration set is empty, or inputs are outside the
            declared range.
        """
        scores: list[npt.NDArray[np.float64]] = []
        model, content, dtype = self.model, self._content(), None
        for job, own, seen in self._labelled_jobs(x, y, key, indices, first_draw):
            predictions = self._sampled(job, dtype, "before")
            scores.append(conformity_scores(predictions, own, score=self.score))
            dtype = predictions.dtype.name
            content |= {**seen, "output_dtype": dtype}
        points = SampledScores(np.concatenate(scores), None, None, content)
        calibrate(self.rule, points, self.n_test_samples, self._options.n_threads)
        self._compared = model, points.provenance()
        return self

    def predict(
        self,
        x: ArrayLike | Iterable[Any],
        *,
        hulls: bool = False,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        key: Key = None,
    ) -> IntervalSets:
        """Return the sets of real labels of new inputs, which may have been perturbed.

        Every call draws new noise, unless `indices` asks for that of an earlier one. An adversary
        who adapts the next input to the last answers learns nothing about the noise to come.

        Parameters
        ----------
        x : tensor or array (n, ...), or source of inputs
            Test inputs, as in `sample_scores`; labels that come with them do not matter.
        hulls : bool, optional
            Return the least interval around each set, which covers what the set covers, and more.
        indices : array-like (n,) of int, optional
            Ids of the inputs; equal ids get equal noise where the regressor has a `seed`. By
            default ids that no call on this object was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.
        key : str or (str, str), optional
            The name of the inputs, where `x` yields dicts.

        Returns
        -------
        IntervalSets
            Of n sets.

        Raises
        ------
        NotCalibratedError
            If neither `calibrate` was called nor a rule given that is calibrated.
        RuntimeError
            If this is a copy, a clone or a forked process of a regressor with a seed, see
            `reseed`.
        TypeError, ValueError
            As in `sample_scores`; if the model gives predictions of another dtype than in
            calibration, or not the numbers that the score takes; if inputs are outside the declared
            range, or their shape or the precision is not that of the calibration.
        """
        parts = list(self._predictions(x, hulls, indices, first_draw, key, whole=True))
        if not parts:
            raise ValueError("`x` must hold at least one input, got an empty loader")
        return parts[0] if len(parts) == 1 else IntervalSets._joined(parts)

    def predict_iter(
        self,
        x: ArrayLike | Iterable[Any],
        *,
        hulls: bool = False,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        key: Key = None,
    ) -> Iterator[IntervalSets]:
        """Yield the sets of a stream of inputs, batch by batch.

        One batch is in memory at a time. All batches are decided by the rule that the regressor has
        now, and have ids of their own.

        Parameters
        ----------
        x : tensor or array (n, ...), or source of inputs
            As in `predict`. Arrays, memory maps and datasets are read in batches of `batch_size`
            inputs; other sources come as their batches are.
        hulls, indices, first_draw, key
            As in `predict`.

        Yields
        ------
        IntervalSets

        Raises
        ------
        NotCalibratedError, RuntimeError, TypeError, ValueError
            As in `predict`. What a later batch is refused for is raised in its place. A process
            that was forked in the midst of the stream gets a RuntimeError if it goes on.

        Examples
        --------
        >>> import torch
        >>> from bincp.balls import L2
        >>> from bincp.sampling import RobustRegressor
        >>> from bincp.smoothing import Gaussian
        >>> x = torch.randn(200, 4, generator=torch.manual_seed(0))
        >>> regressor = RobustRegressor(
        ...     lambda x: x.sum(1), Gaussian(0.25), L2(0.1), alpha=0.1, n_samples=64
        ... ).calibrate(x[:150], x[:150].sum(1))
        >>> stream = (x[i : i + 20] for i in range(150, 200, 20))
        >>> [len(sets) for sets in regressor.predict_iter(stream)]
        [20, 20, 10]
        """
        return self._predictions(x, hulls, indices, first_draw, key, whole=False)

    def _predictions(
        self,
        x: Any,
        hulls: bool,
        indices: ArrayLike | None,
        first_draw: int,
        key: Key,
        *,
        whole: bool,
    ) -> Iterator[IntervalSets]:
        """Check what can be checked now, and return the sets of the pieces to come."""
        check_flag("hulls", hulls)
        rule, known = self._start()
        assert isinstance(rule, BinCP)
        assert rule.n_test_samples_ is not None  # calibrated on samples
        dtype = None if known is None else known.get("output_dtype")
        m_test, score = rule.n_test_samples_, self._score
        jobs = self._jobs(x, None, key, "test", m_test, indices, first_draw, whole, known)
        return (
            predict_sets(
                rule, self._sampled(job, dtype, "in calibration"), score=score.name, hulls=hulls
            )
            for job, _ in jobs
        )

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        model: ModelLike,
        *,
        model_id: str | None = None,
        check_fingerprint: bool = True,
        seed: int | None = None,
        first_id: int | None = None,
        batch_size: int = 256,
        device: torch.device | str | None = None,
        progress: bool | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Read a regressor that `save` wrote, for the same model.

        Nothing is taken from the file that can be made again: the certificate is made from the
        noise and the ball, and must prove the rule. Modules are put in evaluation mode and stay
        there.

        Parameters
        ----------
        path : str or path-like
        model : as in the class
            The model that was calibrated.
        model_id, check_fingerprint, seed, first_id
            As in `RobustClassifier.load`.
        batch_size, device, progress, n_threads
            As in the class.

        Returns
        -------
        RobustRegressor

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError
            If an argument has a wrong type.
        ValueError
            If the file is damaged; if the model or its precision is another one, which is named; or
            if a file with a seed is loaded with neither `seed` nor `first_id`.

        Examples
        --------
        See the class.
        """
        return cls._loaded(
            path,
            model,
            _score_in,
            check_fingerprint=check_fingerprint,
            model_id=model_id,
            seed=seed,
            first_id=first_id,
            batch_size=batch_size,
            device=device,
            progress=progress,
            n_threads=n_threads,
        )

    def _sampled(self, job: Job, dtype: str | None, when: str) -> Predictions:
        """Return sampled predictions, (n, m) or (n, q, m) as the score takes them."""
        columns = _engine.all_scores(job)
        _check_numbers(self._score, columns.shape[1])
        if dtype not in (None, columns.dtype.name):
            raise ValueError(
                f"`model` must give predictions of dtype {dtype} as {when}, "
                f"got {columns.dtype.name}"
            )
        if "spread" in self._score.numbers:
            _check_spreads(job, columns[:, 1])
        return columns[:, 0] if columns.shape[1] == 1 else columns


def _unchanged(predictions: torch.Tensor) -> torch.Tensor:
    return predictions


def _score_in(saved: Saved) -> dict[str, Any]:
    return {"score": saved.provenance["score"]["name"]}


def _check_numbers(score: IntervalScore, got: int) -> None:
    if got != len(score.numbers):
        raise ValueError(
            f"`model` must return {len(score.numbers)} numbers an input for the score "
            f"{score.name!r} ({', '.join(score.numbers)}), got {got}"
        )


def _check_spreads(job: Job, spreads: Predictions) -> None:
    bad = is_no_spread(spreads)
    if bad.any():
        row, draw = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"`model` must give spreads that are positive and finite, got {spreads[row, draw]} for "
            f"{job.named(row)}, draw {job.first_draw + draw}"
        )
