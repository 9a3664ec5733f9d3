"""Prediction sets from a model in one object: sample, calibrate, count, decide."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, Unpack, cast

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike, as_model
from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import check_flag
from bincp.balls import Ball
from bincp.calibration import BinCP, Counts
from bincp.calibration._counts import How, joined_counts, known_counts
from bincp.calibration._sequential import Tests
from bincp.noise._keys import IntArray
from bincp.sampling import _engine
from bincp.sampling._inputs import Key
from bincp.sampling._jobs import Job, integers
from bincp.sampling._looks import Looks, check_looks
from bincp.sampling._rules import (
    Rule,
    RuleSettings,
    SampledScores,
    calibrate,
    classes_of,
    provenance_of,
    tests_of,
)
from bincp.sampling._run._task import score_content
from bincp.sampling._saved import Who
from bincp.sampling._scoring import Score
from bincp.sampling._sets import ReadableSets
from bincp.sampling._sweeping import Sweeping
from bincp.smoothing import Smoothing


@dataclass(frozen=True, repr=False, eq=False)
class PredictionSets(ReadableSets):
    """Prediction sets of n inputs over K labels.

    Parameters
    ----------
    sets : bool array (n, K)
        Which labels are in the set of each input.
    counts : bincp.Counts (n, K)
        How many of the sampled scores reach the threshold, of those up to the draw at which the
        label was decided (of all, where no draw is saved). An int32 array that knows how it was
        counted.
    forward_passes : int64 array (n,)
        Evaluations of the model that each input took, those that turned out not to be needed
        included.
    ids : int64 array (n,), optional
        The ids of the inputs, which key their noise.
    seed : int, optional
        The seed of the noise. Keep it secret until the answers are out; it is not in the repr.
    """

    sets: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int32]
    forward_passes: IntArray
    ids: IntArray | None = None
    seed: int | None = None


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
        calibration, and others are refused where the rule knows them, see the notes. `calibrate`
        calibrates this very object.
    n_samples : int
        Draws for each calibration input, m. May be left out where `rule` is calibrated.
    n_test_samples : int, optional
        Draws for each test input, m'; by default m, or that of a calibrated rule.
    score : str, (str, dict) or callable, optional
        As in `sample_scores`.
    batch_size, device, progress
        As in `sample_scores`.
    seed : int, optional
        In [0, 2**64). By default each call draws a secret seed of its own from the system. A given
        one makes calls repeatable: whoever knows it knows the test noise.
    n_threads : int, optional
        Threads, >= 1, that draw the noise of a batch where the CPU draws it, and that count the
        scores of calibration. They start for large batches only, of some 2**18 elements a thread,
        and change no result. The model has threads of its own (`torch.set_num_threads`).
    input_range : (float, float), optional
        The range of clean inputs, (0, 1) for images in these units. Inputs outside are refused, in
        calibration and prediction; perturbed ones may leave it by the radius of a norm ball. Grey
        levels k in uint8 stand for k / 255.
    model_id, score_id : str, optional
        What names a model that is no torch module, and a score that is a function, with their
        versions: their code cannot be compared. `save` needs them.
    **settings
        Settings of the rule, where `rule` is not given: `alpha`, which is needed, and `p`, `tau`,
        `correction`, `union`, `eta`, `guarantee`, `poisoned`, `label_noise`, `shift`,
        `attacked_calibration` and `passes`, as in `BinCP`; but `passes` is
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
    *Noise.* The noise of an input is keyed by a seed and the id of the input. By default each call
    of `calibrate` and `predict` draws a seed of its own, with ids from 0. So no two calls share
    noise, also not in copies, forked processes, replicas and after restarts. With a `seed` each
    call takes the next ids that the object has not handed out yet, also where a call failed, and
    where a seed comes back after another one. Then a copy, a clone, a pickle or a forked process
    would draw the same noise as the original, which an adversary may have seen: they refuse to
    calibrate and to predict until `reseed` is called. Two objects that are made with one seed draw
    the same noise. Ids that are given as `indices` are taken as they are, and may meet those handed
    out: give them in all calls or in none.

    *What is compared.* A calibration by this object, or on a run, keeps the score, the fingerprint
    of the model, its precision, the shape of the inputs and their range with the rule
    (`BinCP.provenance_`). A rule that was calibrated with others is refused, by name, where it is
    given and in `predict`. A fingerprint is that of the weights and the structure of a module; of
    eager modules it does not see code and plain attributes. It is taken in `calibrate`, where a
    rule is given, and in `predict` where another module was assigned to `model`.

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

    To serve it elsewhere, load it with the same model:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classifier.save(pathlib.Path(folder, "classifier.json"))
    ...     served = RobustClassifier.load(
    ...         pathlib.Path(folder, "classifier.json"), classifier.model
    ...     )
    >>> served.predict(x[150:]).sets.shape
    (50, 3)
    """

    _who = Who("classifier", "logits")

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
        seed: int | None = None,
        device: torch.device | str | None = None,
        progress: bool | None = None,
        n_threads: int = 1,
        input_range: tuple[float, float] | None = None,
        model_id: str | None = None,
        score_id: str | None = None,
        **settings: Unpack[RuleSettings],
    ) -> None:
        self._score, self._score_id = score, score_id
        super().__init__(
            as_model(model),
            smoothing,
            ball,
            rule,
            settings,
            score=score,
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
        return f"RobustClassifier({self._smoothing!r}, {self._ball!r}, rule={self._rule!r})"

    def _new_rule(self, settings: RuleSettings) -> BinCP:
        return BinCP(self._certificate, **cast("RuleSettings", {"passes": "auto", **settings}))

    def _score_content(self) -> dict[str, Any] | None:
        if callable(self._score) and self._score_id is None:
            return None
        return score_content(self._score, self._score_id)

    @property
    def rule(self) -> BinCP:
        """The decision rule; after `calibrate` it has the threshold and the smallest count.

        Another one may be assigned; one whose certificate is for other noise or another ball, or
        that was calibrated with another model, score or range of inputs, is refused.
        """
        return cast("BinCP", self._rule)  # where it is of another class, the caller knows

    @rule.setter
    def rule(self, rule: Rule) -> None:
        self._assign(rule)

    def calibrate(
        self,
        x: ArrayLike | Iterable[Any],
        y: ArrayLike | None = None,
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        key: Key = None,
    ) -> Self:
        """Sample the scores of the calibration set and find the decision rule.

        Parameters
        ----------
        x : tensor or array (n, ...), or source of inputs with labels
            Clean calibration inputs, as in `sample_scores`; or a dataset, a loader or an iterable
            of batches, of pairs of inputs and labels.
        y : array-like (n,) of int
            Their labels in [0, K); given with an array only.
        indices : array-like (n,) of int, optional
            Ids of the inputs, in their order over all batches of a loader; no two are equal. By
            default ids that no call on this object was given before, see the notes of the class.
        first_draw : int, optional
            As in `sample_scores`.
        key : (str, str), optional
            The names of inputs and labels, where `x` yields dicts.

        Returns
        -------
        RobustClassifier
            Itself.

        Raises
        ------
        RuntimeError
            If this is a copy, a clone or a forked process of a classifier with a seed, see
            `reseed`.
        TypeError, ValueError
            As in `sample_scores`; if the calibration set is empty, or inputs are outside the
            declared range.
        """
        scores: list[npt.NDArray[Any]] = []
        labels: list[IntArray] = []
        model, content, n_classes = self.model, self._content(), classes_of(self.rule)
        for job, own, seen in self._labelled_jobs(x, y, key, indices, first_draw):
            whose = "logits as before" if scores else "logits, K of `rule`"
            values, found = _engine.label_scores(job, own)
            if n_classes not in (None, found):
                raise ValueError(f"`model` must return {n_classes} {whose}, got {found}")
            if scores and scores[0].dtype != values.dtype:
                raise ValueError(
                    f"`model` must give scores of dtype {scores[0].dtype} as before, "
                    f"got {values.dtype}"
                )
            scores.append(values)
            labels.append(integers("labels", own))
            n_classes, content = found, {**content, **seen}
        points = SampledScores(np.concatenate(scores), np.concatenate(labels), n_classes, content)
        calibrate(self.rule, points, self.n_test_samples, self._options.n_threads)
        self._compared = model, points.provenance()
        return self

    def predict(
        self,
        x: ArrayLike | Iterable[Any],
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        sequential: bool | None = None,
        curtail: bool = True,
        looks: str | ArrayLike | None = None,
        key: Key = None,
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
        x : tensor or array (n, ...), or source of inputs
            Test inputs, as in `sample_scores`; labels that come with them do not matter.
        indices : array-like (n,) of int, optional
            Ids of the inputs; equal ids get equal noise where the classifier has a `seed`. By
            default ids that no call on this object was given before, see the notes of the class.
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
        key : str or (str, str), optional
            The name of the inputs, where `x` yields dicts.

        Returns
        -------
        PredictionSets

        Raises
        ------
        NotCalibratedError
            If neither `calibrate` was called nor a rule given that is calibrated on sampled scores.
        RuntimeError
            If this is a copy, a clone or a forked process of a classifier with a seed, see
            `reseed`.
        TypeError, ValueError
            As in `sample_scores`; if `sequential` or `curtail` does not fit the rule, as above; if
            `looks` is not "doubling" or increasing numbers from 1 on; if inputs are outside the
            declared range, or their shape or the precision is not that of the calibration.
        """
        options = (indices, first_draw, sequential, curtail, looks, key)
        return _joined(list(self._predictions(x, *options, whole=True)))

    def predict_iter(
        self,
        x: ArrayLike | Iterable[Any],
        *,
        indices: ArrayLike | None = None,
        first_draw: int = 0,
        sequential: bool | None = None,
        curtail: bool = True,
        looks: str | ArrayLike | None = None,
        key: Key = None,
    ) -> Iterator[PredictionSets]:
        """Yield the prediction sets of a stream of inputs, batch by batch.

        One batch is in memory at a time. All batches are decided by the rule that the classifier
        has now, and have ids of their own.

        Parameters
        ----------
        x : tensor or array (n, ...), or source of inputs
            As in `predict`. Arrays, memory maps and datasets are read in batches of `batch_size`
            inputs; other sources come as their batches are.
        indices, first_draw, sequential, curtail, looks, key
            As in `predict`.

        Yields
        ------
        PredictionSets

        Raises
        ------
        NotCalibratedError, RuntimeError, TypeError, ValueError
            As in `predict`. What a later batch is refused for is raised in its place. A process
            that was forked in the midst of the stream gets a RuntimeError if it goes on.

        Examples
        --------
        >>> import torch
        >>> from bincp.balls import L2
        >>> from bincp.sampling import RobustClassifier
        >>> from bincp.smoothing import Gaussian
        >>> _ = torch.manual_seed(0)
        >>> x, y = torch.randn(200, 4), torch.randint(3, (200,))
        >>> classifier = RobustClassifier(
        ...     torch.nn.Linear(4, 3), Gaussian(0.5), L2(0.1), alpha=0.1, n_samples=64
        ... ).calibrate(x[:150], y[:150])
        >>> stream = (x[i : i + 20] for i in range(150, 200, 20))
        >>> [len(prediction.sets) for prediction in classifier.predict_iter(stream)]
        [20, 20, 10]
        """
        options = (indices, first_draw, sequential, curtail, looks, key)
        return self._predictions(x, *options, whole=False)

    def _predictions(
        self,
        x: Any,
        indices: ArrayLike | None,
        first_draw: int,
        sequential: bool | None,
        curtail: bool,
        looks: str | ArrayLike | None,
        key: Key,
        *,
        whole: bool,
    ) -> Iterator[PredictionSets]:
        """Check what can be checked now, and return the sets of the pieces to come."""
        rule, known = self._start()
        m_test = rule.n_test_samples_
        assert m_test is not None  # calibrated on samples
        boundaries = _boundaries(rule, sequential, curtail)
        schedule = check_looks(looks if curtail else [m_test], m_test)
        jobs = self._jobs(x, None, key, "test", m_test, indices, first_draw, whole, known)
        return (_decided(job, rule, boundaries, schedule) for job, _ in jobs)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        model: ModelLike,
        *,
        score: Score | None = None,
        model_id: str | None = None,
        score_id: str | None = None,
        check_fingerprint: bool = True,
        seed: int | None = None,
        first_id: int | None = None,
        batch_size: int = 256,
        device: torch.device | str | None = None,
        progress: bool | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Read a classifier that `save` wrote, for the same model.

        Nothing is taken from the file that can be made again: the certificate is made from the
        noise and the ball, and must prove the rule. The module is put in evaluation mode and stays
        there.

        Parameters
        ----------
        path : str or path-like
        model : torch.nn.Module or callable, or a classifier of scikit-learn or ART
            The model that was calibrated.
        score : callable, optional
            The score, where it is a function.
        model_id, score_id : str, optional
            As when it was saved, where the model is no torch module or the score is a function.
        check_fingerprint : bool, optional
            False takes a module with another fingerprint, such as one that was compiled to another
            structure. Its answers to four noisy zeros are compared anyway, to 1e-3 of the largest.
        seed : int, optional
            As in the class: by default each call draws a secret seed of its own. A file with a seed
            needs a new one, or `first_id`.
        first_id : int, optional
            Go on with the seed in the file, from this id on; it must be beyond all ids in use.
        batch_size, device, progress, n_threads
            As in the class.

        Returns
        -------
        RobustClassifier

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError
            If an argument has a wrong type.
        ValueError
            If the file is damaged; if the model, its precision or the score is another one, which
            is named; or if a file with a seed is loaded with neither `seed` nor `first_id`.

        Examples
        --------
        See the class.
        """
        return cls._loaded(
            path,
            model,
            lambda saved: {"score": saved.score(score, score_id), "score_id": score_id},
            check_fingerprint=check_fingerprint,
            model_id=model_id,
            seed=seed,
            first_id=first_id,
            batch_size=batch_size,
            device=device,
            progress=progress,
            n_threads=n_threads,
        )


def _decided(job: Job, rule: Rule, boundaries: Tests | None, looks: Looks | None) -> PredictionSets:
    if boundaries is None:
        return _predict_all(job, rule)
    labels, dtype = _engine.decide(job, rule.tau_, boundaries, rule.n_classes_, looks)
    _check_dtype(rule, dtype)
    counts = _counts(job, rule, labels.counts, stopped_early=True)
    draws = labels.draws.astype(np.int64)
    return PredictionSets(labels.accepted, counts, draws, job.ids, job.seed)


def _counts(job: Job, rule: Rule, counts: npt.NDArray[np.int32], *, stopped_early: bool) -> Counts:
    known = provenance_of(rule)
    return known_counts(counts, How(job.n_samples, rule.tau_, "test", stopped_early, known))


def _joined(parts: list[PredictionSets]) -> PredictionSets:
    """Return the sets of one call, whose pieces share a seed."""
    if not parts:
        raise ValueError("`x` must hold at least one input, got an empty loader")
    if len(parts) == 1:
        return parts[0]
    names = ("sets", "forward_passes", "ids")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    counts = joined_counts([part.counts for part in parts])
    return PredictionSets(**arrays, counts=counts, seed=parts[0].seed)


def _predict_all(job: Job, rule: Rule) -> PredictionSets:
    counts, dtype = _engine.count(job, rule.tau_, rule.n_classes_)
    _check_dtype(rule, dtype)
    sets = rule.predict_set_from_counts(counts, n_samples=job.n_samples)
    draws = np.full(len(counts), job.n_samples)
    known = _counts(job, rule, counts, stopped_early=False)
    return PredictionSets(sets, known, draws, job.ids, job.seed)


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
    return tests_of(rule) if curtail else None


def _check_dtype(rule: Rule, dtype: str) -> None:
    if dtype != rule.dtype_:
        raise ValueError(
            f"`model` must give scores of dtype {rule.dtype_} as in calibration, got {dtype}"
        )
