"""Prediction sets from a model in one object: sample, calibrate, count, decide."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self, Unpack, cast

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike, as_model
from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import MAX_COUNT, check_flag, check_integer
from bincp.balls import Ball
from bincp.calibration import BinCP, SequentialRule
from bincp.calibration._sequential import Tests
from bincp.certificates import Certificate, certify
from bincp.errors import NotCalibratedError
from bincp.noise._keys import IntArray, Phase, check_indices
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, Options, integers
from bincp.sampling._looks import check_looks
from bincp.sampling._rules import (
    Rule,
    RuleSettings,
    calibrate,
    check_fitted,
    check_rule,
    classes_of,
    is_calibrated,
    snapshot,
)
from bincp.sampling._scoring import Score
from bincp.sampling._sets import ReadableSets
from bincp.sampling._sweeping import Sweeping
from bincp.smoothing import Smoothing

_id_lock = Lock()


@dataclass(frozen=True, repr=False)
class PredictionSets(ReadableSets):
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


class RobustClassifier(Sweeping):
    """Robust prediction sets from a model: sample, calibrate, count, decide.

    After `calibrate`, the set that `predict` returns for a new input contains its true label with
    probability at least 1 - alpha, also if the input was perturbed inside the ball, provided that
    calibration inputs and the clean test input are exchangeable, and that the adversary does not
    know the test noise (see `bincp.sampling`). The probability is over the calibration data,
    the test input and all noise. No assumption is made about the model where the noise is drawn on
    a grid, as by ``Gaussian(0.25, grid=255)`` for images of 8 bits, which may then be given in
    uint8; other additive noise assumes that it does not read the last bits of x + noise (see
    `bincp.noise`).

    Parameters
    ----------
    model : torch.nn.Module or callable, or a classifier of scikit-learn or ART
        As in `sample_scores`. Must not change between calibration and prediction, and must not have
        been trained, selected or tuned on the calibration or test data, nor on their noise: sample
        separate points for that by `sample_scores` in the phase "tuning".
    smoothing : Smoothing
        The smoothing scheme, one of `bincp.smoothing`.
    ball : Ball
        The perturbations to withstand, in the units of the tensor that gets the noise.
    rule : BinCP or MondrianBinCP, optional
        The decision rule, in place of its settings: a `BinCP`, or a `MondrianBinCP`, which covers
        each class, or an object with the methods `calibrate`, `predict_set_from_counts` and
        `sequential_rule` of `BinCP`, its `certificate_description` and its fitted attributes; where
        all draws are counted, `boundaries_` is None. Its certificate must be that of `smoothing`
        and `ball`. A rule that is calibrated already, such as one that
        `BinCP.load` read, predicts at once; `model` and `score` must then be those of its
        calibration, which the rule does not know. `calibrate` calibrates this very object.
    n_samples : int
        Draws for each calibration input, m. May be left out where `rule` is calibrated.
    n_test_samples : int, optional
        Draws for each test input, m'; by default m, or that of a calibrated rule.
    score : str, (str, dict) or callable, optional
        As in `sample_scores`.
    batch_size, device, progress
        As in `sample_scores`.
    seed : int, optional
        As in `sample_scores`. Whoever knows it knows the test noise: where the adversary may, or
        may learn of it from repeated answers, draw it from a secret source.
    n_threads : int, optional
        Threads, >= 1, that draw the noise of a batch where the CPU draws it, and that count the
        scores of calibration. They start for large batches only, of some 2**18 elements a thread,
        and change no result. The model has threads of its own (`torch.set_num_threads`).
    **settings
        Settings of the rule, where `rule` is not given: `alpha`, which is needed, and `p`, `tau`,
        `correction`, `union`, `eta`, `guarantee` and `passes`, as in `BinCP`; but `passes` is
        "auto" if it is not given: predictions stop early where that has a proof.

    Attributes
    ----------
    n_samples, n_test_samples : int
        m, and the m' that `calibrate` asks for. `predict` makes as many draws as the rule is for.

    Raises
    ------
    CertificateError
        If no certificate is registered for the scheme and the ball.
    TypeError, ValueError
        As in `BinCP` and `sample_scores`; if `rule` is given with settings of a rule, or its
        certificate is for other noise or another ball.

    Notes
    -----
    *Ids.* The noise of an input is keyed by its id. Each call of `calibrate` and `predict` takes
    the next ids that the object has not handed out yet, from 0 in each phase, so no two calls share
    noise, also where one of them failed. Ids that are given as `indices` are taken as they are, and
    may meet those handed out: give them in all calls or in none. Two objects with one seed, such as
    a copy, a pickle or a forked process, start from equal ids and draw equal test noise. That keeps
    the guarantee of each input, but an adversary may have seen the noise: give each its own seed.

    *Threads.* Several threads may call `predict` on one object at once, and get different ids. The
    module is in evaluation mode until the last of them is done. A rule may be calibrated meanwhile:
    each call of `predict` keeps to the `BinCP` or `MondrianBinCP` that it found at its start. No
    thread may calibrate a rule of another class, or change the module (its weights, mode or
    device), while another one predicts.

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

    Saving the rule, and restoring the classifier from it, with a seed of its own:

    >>> import bincp, pathlib, secrets, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classifier.rule.save(pathlib.Path(folder, "rule.json"))
    ...     rule = bincp.BinCP.load(pathlib.Path(folder, "rule.json"))
    >>> restored = RobustClassifier(
    ...     classifier.model, Gaussian(sigma=0.5), L2(0.1), rule=rule, seed=secrets.randbits(64)
    ... )
    >>> restored.predict(x[150:]).sets.shape
    (50, 3)
    """

    def __init__(
        self,
        model: ModelLike,
        smoothing: Smoothing,
        ball: Ball,
        *,
        rule: Rule | None = None,
        n_samples: int | None = None,
        n_test_samples: int | None = None,
        score: Score = "tps",
        batch_size: int = 256,
        seed: int = 0,
        device: torch.device | str | None = None,
        progress: bool = False,
        n_threads: int = 1,
        **settings: Unpack[RuleSettings],
    ) -> None:
        self.model = as_model(model)
        self._smoothing, self._ball = smoothing, ball
        self._certificate = certify(smoothing, ball)
        self.rule = self._new_rule(settings) if rule is None else rule
        self._first_rule = self._rule
        if rule is not None and settings:
            names = ", ".join(settings)
            raise TypeError(f"`rule` must be given without settings of a rule, got {names}, too")
        self.n_samples, self.n_test_samples = _sizes(self.rule, n_samples, n_test_samples)
        self._options = Options.checked(
            score=score,
            batch_size=batch_size,
            seed=seed,
            device=device,
            progress=progress,
            n_threads=n_threads,
        )
        self._next_id = {"calibration": 0, "test": 0}

    def __repr__(self) -> str:
        return f"RobustClassifier({self._smoothing!r}, {self._ball!r}, rule={self._rule!r})"

    def _new_rule(self, settings: RuleSettings) -> BinCP:
        if "alpha" not in settings:
            got = ", ".join(settings) or "no setting"
            raise TypeError(f"`alpha` must be given where `rule` is not, got {got}")
        if "passes" not in settings:
            settings["passes"] = "auto"
        return BinCP(self._certificate, **settings)

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
    def rule(self) -> BinCP:
        """The decision rule; after `calibrate` it has the threshold and the smallest count.

        Another one may be assigned; one whose certificate is for other noise or another ball is
        refused.
        """
        return cast("BinCP", self._rule)  # where it is of another class, the caller knows

    @rule.setter
    def rule(self, rule: Rule) -> None:
        check_rule(rule, self._certificate)
        self._rule = rule

    def calibrate(
        self,
        x: ArrayLike | Iterable[Any],
        y: ArrayLike | None = None,
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
    ) -> Self:
        """Sample the scores of the calibration set and find the decision rule.

        Parameters
        ----------
        x : tensor or array (n, ...), or iterable of pairs
            Clean calibration inputs, or a loader that yields batches of inputs and labels.
        y : array-like (n,) of int
            Their labels in [0, K); not given with a loader.
        indices : array-like (n,) of int, optional
            Ids of the inputs, in their order over all batches of a loader; no two are equal. By
            default ids that no call on this object was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.

        Returns
        -------
        RobustClassifier
            Itself.

        Raises
        ------
        TypeError, ValueError
            As in `sample_scores`, and if the calibration set is empty.
        """
        ids = None if indices is None else _all_ids(indices)
        all_scores: list[npt.NDArray[np.floating[Any]]] = []
        all_labels: list[IntArray] = []
        n_classes, start = classes_of(self.rule), 0
        for inputs, labels in _labelled_batches(x, y):
            own = None if ids is None else ids[start : start + _length(inputs)]
            job = self._job(inputs, self.n_samples, "calibration", own, first_draw)
            scores, found = _engine.label_scores(job, labels)
            if n_classes not in (None, found):
                whose = "logits as before" if all_scores else "logits, K of `rule`"
                raise ValueError(f"`model` must return {n_classes} {whose}, got {found}")
            if all_scores and all_scores[0].dtype != scores.dtype:
                raise ValueError(
                    f"`model` must give scores of dtype {all_scores[0].dtype} as before, "
                    f"got {scores.dtype}"
                )
            all_scores.append(scores)
            all_labels.append(integers("labels", labels))
            n_classes, start = found, start + len(scores)
        if not all_scores:
            raise ValueError("`x` must hold at least one calibration input, got an empty loader")
        if ids is not None and len(ids) != start:
            raise ValueError(f"`indices` must have shape ({start},), got {ids.shape}")
        assert n_classes is not None
        calibrate(
            self.rule,
            np.concatenate(all_scores),
            np.concatenate(all_labels),
            n_classes,
            self.n_test_samples,
            self._options.n_threads,
        )
        return self

    def predict(
        self,
        x: ArrayLike,
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        sequential: bool | None = None,
        curtail: bool = True,
        looks: str | ArrayLike | None = None,
    ) -> PredictionSets:
        """Return the prediction sets of new inputs, which may have been perturbed.

        Every call draws new noise, unless `indices` asks for that of an earlier one. An adversary
        who adapts the next input to the last answers learns nothing about the noise to come.

        An input is drawn until its last label is decided. The draws come in rounds over the inputs
        that are still undecided: many inputs in one call keep the batches full. Each label is
        decided on the draws in their order, and the noise of an input depends neither on the batch
        size nor on the other inputs. The scores may: many models round differently in batches of
        another size, in the last bits, which decides a score that is that close to the threshold.

        Parameters
        ----------
        x : tensor or array (n, ...)
            Test inputs.
        indices : array-like (n,) of int, optional
            Ids of the inputs; equal ids get equal noise. By default ids that no call on this object
            was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.
        sequential : bool, optional
            How to decide. By default as the rule was calibrated for: by its boundaries, or by the
            count of all m' draws. True asks a rule without boundaries for those of
            `BinCP.sequential_rule`, which keep the guarantee with fewer draws; the sets differ.
            False is refused where the rule has boundaries.
        curtail : bool, optional
            Stop once the remaining draws cannot change a set, which saves draws and changes no set.
            False makes all m' draws, and counts them all for a rule that decides by that count.
        looks : "doubling" or array-like of int, optional
            After how many draws of an input its labels are looked at, in increasing order; the last
            look is after m' draws in any case. "doubling" looks after 1, 2, 4, 8, ... draws. The
            sets do not depend on it, for each label is decided on its draws in their order: fewer
            looks waste some draws and make fewer rounds, which suits a model that is slow to
            answer. By default the next look is where the input can be decided first.

        Returns
        -------
        PredictionSets

        Raises
        ------
        NotCalibratedError
            If neither `calibrate` was called nor a rule given that is calibrated on sampled scores.
        TypeError, ValueError
            As in `sample_scores`; if `sequential` or `curtail` does not fit the rule, as above; or
            if `looks` is not "doubling" or increasing numbers from 1 on.
        """
        rule = snapshot(self._rule)  # also if it is calibrated or another is assigned meanwhile
        if not is_calibrated(rule):
            raise NotCalibratedError("call calibrate() before predict()")
        check_fitted(rule)
        assert rule.n_test_samples_ is not None  # calibrated on samples
        boundaries = _boundaries(rule, sequential, curtail)
        schedule = check_looks(looks if curtail else [rule.n_test_samples_], rule.n_test_samples_)
        job = self._job(x, rule.n_test_samples_, "test", indices, first_draw)
        if boundaries is None:
            return _predict_all(job, rule)
        labels, dtype = _engine.decide(job, rule.tau_, boundaries, rule.n_classes_, schedule)
        _check_dtype(rule, dtype)
        return PredictionSets(labels.accepted, labels.counts, labels.draws.astype(np.int64))

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


def _predict_all(job: Job, rule: Rule) -> PredictionSets:
    counts, dtype = _engine.count(job, rule.tau_, rule.n_classes_)
    _check_dtype(rule, dtype)
    sets = rule.predict_set_from_counts(counts, n_samples=job.n_samples)
    return PredictionSets(sets, counts, np.full(len(counts), job.n_samples))


def _boundaries(rule: Rule, sequential: Any, curtail: Any) -> Tests | None:
    """Return the boundaries to decide by, None to count all draws."""
    check_flag("curtail", curtail)
    if sequential is not None:
        check_flag("sequential", sequential)
    if sequential and not curtail:
        raise ValueError("`curtail` must be True for sequential prediction, got False")
    if rule.boundaries_ is not None and sequential is False:
        raise ValueError(
            "`sequential` must not be False for a rule that stops early, whose level the count of "
            "all draws would break; calibrate with passes=None for counts"
        )
    if sequential or rule.boundaries_ is not None:
        return rule.sequential_rule()
    if not curtail:
        return None
    assert rule.min_count_ is not None  # calibrated on samples
    assert rule.n_test_samples_ is not None
    if isinstance(rule.min_count_, np.ndarray):
        return [SequentialRule.curtailed(int(k), rule.n_test_samples_) for k in rule.min_count_]
    return SequentialRule.curtailed(rule.min_count_, rule.n_test_samples_)


def _check_dtype(rule: Rule, dtype: str) -> None:
    if dtype != rule.dtype_:
        raise ValueError(
            f"`model` must give scores of dtype {rule.dtype_} as in calibration, got {dtype}"
        )


def _sizes(rule: Rule, n_samples: int | None, n_test_samples: int | None) -> tuple[int, int]:
    """Return m and m'; a calibrated rule has both, and is for its own m' only."""
    known, known_test = (
        (rule.n_samples_, rule.n_test_samples_) if is_calibrated(rule) else (None, None)
    )
    if n_samples is None and known is None:
        raise TypeError("`n_samples` must be given unless `rule` is a calibrated one, got None")
    m = check_integer("n_samples", known if n_samples is None else n_samples, low=1, high=MAX_COUNT)
    if n_test_samples is None:
        return m, known_test or m
    m_test = check_integer("n_test_samples", n_test_samples, low=1, high=MAX_COUNT)
    if known_test not in (None, m_test):
        raise ValueError(
            f"`n_test_samples` must be the m' = {known_test} that `rule` was calibrated for, "
            f"got {m_test}"
        )
    return m, m_test


def _length(inputs: Any) -> int:
    """Return how many inputs there are; 0 for what is no array, which is refused later."""
    return next(iter(getattr(inputs, "shape", ())), 0)


def _all_ids(indices: ArrayLike) -> IntArray:
    """Return the ids of a whole calibration set, which differ over all its batches."""
    ids = integers("indices", indices)
    return check_indices(ids, ids.size, "calibration")


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
