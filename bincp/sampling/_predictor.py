"""What a classifier and a regressor have in common: noise and its ids, the rule, and the file."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch

from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import MAX_COUNT, check_flag, check_integer
from bincp.balls import Ball
from bincp.calibration._provenance import check_same
from bincp.certificates import Certificate, certify
from bincp.errors import NotCalibratedError
from bincp.noise._keys import IntArray, Phase
from bincp.noise._seeds import Call, Seeds
from bincp.sampling import _engine
from bincp.sampling._graphs import GraphInputs, Nodes
from bincp.sampling._inputs import CLASSES, Ids, Key, LabelKind, check_shape, pieces
from bincp.sampling._jobs import Job, Options
from bincp.sampling._parameters import RuleOwner
from bincp.sampling._provenance import InputRange, content_of
from bincp.sampling._rules import (
    Rule,
    RuleSettings,
    check_fitted,
    check_rule,
    is_calibrated,
    provenance_of,
    snapshot,
)
from bincp.sampling._run._model import precision_content
from bincp.sampling._saved import Saved, Who, probe
from bincp.sampling._scoring import Score
from bincp.smoothing import GraphFlip, Smoothing


class Predictor(RuleOwner):
    """A model that is sampled under noise, a rule that decides, and the seeds of the noise."""

    _who: ClassVar[Who]
    _labels: ClassVar[LabelKind] = CLASSES
    model: Any

    def __init__(
        self,
        model: Any,
        smoothing: Smoothing,
        ball: Ball,
        rule: Rule | None,
        settings: RuleSettings,
        *,
        score: Score,
        n_samples: int | None,
        n_test_samples: int | None,
        seed: int | None,
        input_range: tuple[float, float] | None,
        model_id: str | None,
        **options: Any,
    ) -> None:
        self.model = model
        self._compared: Any = None  # a model, and what a rule that it fits was made with
        self._smoothing, self._ball = smoothing, ball
        self._certificate = certify(smoothing, ball)
        self._options = Options.checked(score=score, seed=0, **options)
        self._seeds = Seeds(seed)
        self._range = InputRange.checked(input_range, ball)
        self._model_id = model_id
        self._assign(self._checked_rule(settings) if rule is None else rule)
        self._first_rule = self._rule
        if rule is not None and settings:
            names = ", ".join(settings)
            raise TypeError(f"`rule` must be given without settings of a rule, got {names}, too")
        self.n_samples, self.n_test_samples = _sizes(self._rule, n_samples, n_test_samples)

    def _checked_rule(self, settings: RuleSettings) -> Rule:
        """Return a new rule with these settings, of which alpha is needed."""
        if "alpha" not in settings:
            got = ", ".join(settings) or "no setting"
            raise TypeError(f"`alpha` must be given where `rule` is not, got {got}")
        return self._new_rule(settings)

    def _new_rule(self, settings: RuleSettings) -> Rule:
        raise NotImplementedError

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

    def _assign(self, rule: Rule) -> None:
        """Take a rule, unless its certificate is another one or it was calibrated otherwise."""
        check_rule(rule, self._certificate)
        if (known := provenance_of(rule)) is not None:
            self._compare(known)
        self._rule = rule

    def _compare(self, known: dict[str, Any]) -> None:
        """Refuse a rule that was calibrated with something else than this object has."""
        model = self.model
        check_same(known, self._content(), f"the {self._who.noun}")
        self._compared = model, known

    def _is_compared(self, known: dict[str, Any]) -> bool:
        """Say if nobody has changed the model or calibrated the rule since they were compared."""
        model, seen = self._compared or (None, None)
        return self.model is model and seen == known

    def _content(self) -> dict[str, Any]:
        """Return what is known of the scores before any input is."""
        declared = None if self._range is None else self._range.content()
        content = content_of(self.model, self._model_id)
        return {"score": self._score_content(), **content, "input_range": declared}

    def _score_content(self) -> dict[str, Any] | None:
        """Return the score by its name and parameters or its id, None if it has none."""
        raise NotImplementedError

    def _start(self) -> tuple[Rule, dict[str, Any] | None]:
        """Return the rule of one prediction and what its scores were made with, as far as known."""
        rule = snapshot(self._rule)  # also if it is calibrated or another is assigned meanwhile
        if not is_calibrated(rule):
            raise NotCalibratedError("call calibrate() before predict()")
        check_fitted(rule)
        known = provenance_of(rule)
        if known is not None and not self._is_compared(known):
            self._compare(known)
        return rule, known

    def save(self, path: str | PathLike[str], *, with_seed: bool = False) -> None:
        """Write all that a service needs beside the model, as JSON with a checksum.

        The file holds the decision rule with its certificate, noise, ball and numbers of draws; the
        score and its parameters, the shape, dtype and range of the inputs, the fingerprint of the
        model and its precision; and what the model answers to four noisy zeros. It holds no
        weights.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced once the new one is complete.
        with_seed : bool, optional
            Write the given seed, too, and the next id; then only the owner may read the file.

        Raises
        ------
        NotCalibratedError
            If nothing was calibrated.
        TypeError
            If the rule is none of bincp.
        ValueError
            If the rule does not know its inputs, because it was not calibrated by an object of this
            class or on a run; if the model or the score is a function without an id; if there is no
            seed to write; or if the certificate is not one that bincp can make again.
        OSError
            If the file cannot be written.

        Examples
        --------
        See the class.
        """
        check_flag("with_seed", with_seed)
        noun = self._who.noun
        if isinstance(self.smoothing, GraphFlip):
            raise TypeError(
                f"a {noun} of nodes cannot be saved, for its inputs are nodes of a graph; save "
                f"its rule, {noun}.rule.save(path), and make the {noun} with rule=..."
            )
        rule = snapshot(self._rule)
        if not is_calibrated(rule):
            raise NotCalibratedError("call calibrate() before save()")
        seed = None
        if with_seed:
            if self._seeds.seed is None:
                raise ValueError(f"`with_seed` must be False for a {noun} without a seed")
            seed = self._seeds.seed, self._seeds.free
        saved = Saved.of(rule, self._content(), seed, self._who)
        saved.write(path, self._probe(saved))

    @classmethod
    def _loaded(
        cls,
        path: str | PathLike[str],
        model: Any,
        own: Callable[[Saved], dict[str, Any]],
        *,
        check_fingerprint: bool,
        model_id: str | None,
        seed: int | None,
        first_id: int | None,
        **options: Any,
    ) -> Self:
        """Read what `save` wrote; `own` finds in it the arguments that only this class has."""
        check_flag("check_fingerprint", check_fingerprint)
        saved = Saved.read(path, cls._who)
        smoothing, ball = saved.pair()
        other = None if check_fingerprint else {"fingerprint": None, "id": model_id}
        make: Any = cls
        made: Self = make(
            model,
            smoothing,
            ball,
            rule=saved.new_rule(other),
            input_range=saved.input_range(),
            model_id=model_id,
            **own(saved),
            **options,
        )
        if check_fingerprint:
            saved.check_model(made._content()["model"], model)
        made._seeds = Seeds(*saved.seed_for(seed, first_id))
        if isinstance(made.model, torch.nn.Module):
            made.model.eval()
        saved.check_probe(made._probe(saved))
        if not check_fingerprint:
            made._rule = saved.new_rule(made._content()["model"])
        return made

    def _probe(self, saved: Saved) -> npt.NDArray[np.float64]:
        job, answers = probe(self.model, self.smoothing, saved.shape, saved.dtype, self._options)
        check_same(saved.provenance, _seen(job), f"the {self._who.noun}")
        return answers

    def _jobs(
        self,
        x: Any,
        y: ArrayLike | None,
        key: Key,
        phase: Phase,
        n_samples: int,
        indices: ArrayLike | None,
        first_draw: int,
        whole: bool = True,
        known: dict[str, Any] | None = None,
    ) -> Iterator[tuple[Job, Any]]:
        """Yield the job of each piece of the inputs, and its labels; what is `known` must hold."""
        call, shape = self._call(self._who.noun), (known or {}).get("input_shape")
        given = None if indices is None else Ids(indices, phase, x)
        model, options = self.model, replace(self._options, seed=call.seed)
        size, kind = self._options.batch_size, self._labels
        source = pieces(x, y, key, size, whole=whole, kind=kind)

        def jobs() -> Iterator[tuple[Job, Any]]:
            start = 0
            for inputs, labels in source:
                n = len(inputs) if inputs.ndim else 0
                ids: IntArray | None = None  # which stands for the numbers of nodes
                if given is not None and n:
                    ids = given.take(n)
                elif n and not isinstance(inputs, Nodes):
                    ids = np.arange(start, start + n)  # until the call takes its own
                if shape is not None:
                    check_shape(tuple(inputs.shape), tuple(shape), "in calibration")
                job = Job.of(
                    model,
                    inputs,
                    self.smoothing,
                    n_samples,
                    options,
                    phase=phase,
                    indices=ids,
                    first_draw=first_draw,
                    start=start,
                )
                _check_dimension(job, self.ball)
                _check_graph(job, known)
                if self._range is not None:
                    self._range.check(job)
                check_same(known, _seen(job), f"the {self._who.noun}")
                if given is None:
                    job = replace(job, ids=call.take(phase, n))
                if job.shares_noise and job.phase == "test":
                    if given is not None:
                        call.take(phase, n)  # given ids give it no other noise
                    _check_shared_noise(call, shown=start > 0 and not whole)
                yield job, labels
                start += n
            if given is not None:
                given.end()

        return jobs()

    def _labelled_jobs(
        self, x: Any, y: ArrayLike | None, key: Key, indices: ArrayLike | None, first_draw: int
    ) -> Iterator[tuple[Job, Any, dict[str, Any]]]:
        """Yield the jobs of a calibration, their labels, and what they tell of the scores."""
        if y is None and isinstance(x, torch.Tensor | np.ndarray):
            raise TypeError("`y` must be given with an array of inputs, got None")
        empty = True
        for job, own in self._jobs(x, y, key, "calibration", self.n_samples, indices, first_draw):
            if own is None:
                raise ValueError("`x` must yield pairs of inputs and labels, got inputs alone")
            yield job, own, _seen(job)
            empty = False
        if empty:
            raise ValueError("`x` must hold at least one calibration input, got an empty loader")


def _check_shared_noise(call: Call, *, shown: bool) -> None:
    """Refuse to draw the noisy graph of a call again where answers have shown it."""
    if call.follows_another:
        raise ValueError(
            "one noisy graph for all test nodes has the noise of its seed alone, and a call before "
            "this one has shown it: call reseed(), or make the classifier without `seed`"
        )
    if shown:
        raise ValueError(
            "one noisy graph for all test nodes has the noise of its call alone, and a batch "
            "before this one has shown it: give all nodes in one batch, or noise of their own"
        )


def _check_graph(job: Job, known: dict[str, Any] | None) -> None:
    """Refuse nodes of another graph than that of the calibration."""
    wanted = (known or {}).get("graph")
    if isinstance(job.x, GraphInputs) and wanted not in (None, job.x.nodes.graph.digest):
        raise ValueError(
            f"calibrated on the graph of the digest {wanted}, got nodes of that of "
            f"{job.x.nodes.graph.digest}: calibrate again on the new graph; or, where it is the "
            "old one after an attack, make it with Graph(..., clean=the old one)"
        )


def _seen(job: Job) -> dict[str, Any]:
    """Return what the first inputs tell of the scores."""
    graph = {"graph": job.x.nodes.graph.digest} if isinstance(job.x, GraphInputs) else {}
    return {
        **graph,
        "input_shape": list(job.x.shape[1:]),
        "input_dtype": _engine.dtype_name(job.x.dtype)
        if torch.is_tensor(job.x)
        else str(job.x.dtype),
        "precision": precision_content(job.device),
    }


def _check_dimension(job: Job, ball: Ball) -> None:
    dim, shape = getattr(ball, "dim", None), tuple(job.x.shape)
    if dim is not None and math.prod(shape[1:]) != dim:
        raise ValueError(f"`x` must have {dim} elements an input, as {ball}, got shape {shape}")


def _sizes(rule: Rule, n_samples: int | None, n_test_samples: int | None) -> tuple[int, int]:
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
