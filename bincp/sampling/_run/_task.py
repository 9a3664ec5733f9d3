"""The checked arguments of a run, and what they say about its numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bincp._core._noise import MAX_ID
from bincp._models import ModelLike, as_model
from bincp._utils.arrays import as_counts, round_to
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.calibration._provenance import check_same
from bincp.certificates._registry import parameters_of
from bincp.noise._keys import Phase, check_first_draw, check_phase
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, Model, Options
from bincp.sampling._rules import check_fitted
from bincp.sampling._run._canonical import hexed
from bincp.sampling._run._data import Data, Rows, probe
from bincp.sampling._run._grid import Cells, Grid, Rectangle
from bincp.sampling._run._kept import SIMPLE, Counts, Decisions, Kept, LabelScores, Votes
from bincp.sampling._run._model import model_content, precision_content
from bincp.sampling._scoring import Score
from bincp.scores import NAMED_SCORES
from bincp.smoothing import Smoothing

NOISE_VERSION = 1


@dataclass(frozen=True)
class Task:
    """What to sample; the seed, K and the dtype of the scores are known later."""

    model: Model
    data: Data
    smoothing: Smoothing
    n_samples: int
    phase: Phase
    options: Options
    kept: Kept
    first_id: int
    first_draw: int
    identity: dict[str, Any]
    """By the names of the arguments of `run`; without `seed`, `n_classes` and `dtype`."""

    @classmethod
    def checked(
        cls,
        model: ModelLike,
        data: Data,
        smoothing: Smoothing,
        n_samples: int,
        *,
        phase: Phase,
        keep: str | None,
        rules: Any,
        score: Score,
        first_id: int,
        first_draw: int,
        batch_size: int,
        model_id: str | None,
        score_id: str | None,
        device: Any,
        progress: bool | None,
        n_threads: int,
    ) -> "Task":
        """Check all arguments, and make the identity."""
        check_phase(phase)
        first = data.rows(0, 1)
        kept = _checked_kept(keep, rules, phase, first.labels is not None)
        shown: Score = "logit" if isinstance(kept, Votes) else score
        m = check_integer("n_samples", n_samples, low=1, high=MAX_COUNT)
        options = Options.checked(
            score=shown,
            batch_size=batch_size,
            seed=0,
            device=device,
            progress=progress,
            n_threads=n_threads,
        )
        task = cls(
            model=as_model(model),
            data=data,
            smoothing=smoothing,
            n_samples=m,
            phase=phase,
            options=options,
            kept=kept,
            first_id=check_integer("first_id", first_id, low=0, high=MAX_ID + 1 - len(data)),
            first_draw=check_first_draw(first_draw, m),
            identity={},
        )
        job = task.job(0, first, Rectangle(0, 1, 0, 1))
        grid = kept.grid(m, options.batch_size)
        identity = {
            "noise_version": NOISE_VERSION,
            "smoothing": hexed(parameters_of(smoothing)),
            "phase": phase,
            "first_id": task.first_id,
            "n_inputs": len(data),
            "first_draw": task.first_draw,
            "n_samples": m,
            "score": score_content(shown, score_id),
            "keep": kept.content(),
            "input_shape": list(first.inputs.shape[1:]),
            "input_dtype": first.inputs.dtype.name,
            "labels": first.labels is not None,
            "inputs_digest": probe(data),
            "model": model_content(task.model, model_id),
            "precision": precision_content(job.device),
            "batch": {"inputs": grid.inputs, "draws": grid.draws},
        }
        _check_served(rules, identity)
        return replace(task, identity=identity)

    @property
    def grid(self) -> Grid:
        """The batches of the run."""
        return Grid(**self.identity["batch"])

    def job(self, seed: int, rows: Rows, where: Rectangle) -> Job:
        """Return the job of sampling some ids and draws."""
        return Job.of(
            self.model,
            rows.inputs,
            self.smoothing,
            where.shape[1],
            replace(self.options, seed=seed),
            phase=self.phase,
            indices=self.first_id + np.arange(where.first_input, where.last_input),
            first_draw=self.first_draw + where.first_draw,
            start=where.first_input,
        )

    def one_pass(self, seed: int) -> dict[str, Any]:
        """Return K and the dtype of the scores, from one forward pass of the first input.

        A rule that cannot decide by them is refused.
        """
        where = Rectangle(0, 1, 0, 1)
        job = self.job(seed, self.data.rows(0, 1), where)
        with _engine.evaluating(job.model):
            batch = next(_engine.batches(job, Cells(Grid(1, 1), where.shape)))
        n_classes, dtype = batch.scores.shape[1], _engine.dtype_name(batch.scores.dtype)
        self.kept.check(self.n_samples, dtype, n_classes)
        return {"n_classes": n_classes, "dtype": dtype}


def _checked_kept(keep: object, rules: Any, phase: Phase, labelled: bool) -> Kept:
    """Return what to keep; by default what the phase needs."""
    of_rules = (Counts.name, Decisions.name)
    if keep is not None and keep not in (*SIMPLE, *of_rules):
        known = ", ".join(repr(name) for name in (*SIMPLE, *of_rules))
        raise ValueError(f"`keep` must be one of {known}, got {keep!r}")
    if rules is not None or keep in of_rules:
        if keep not in (None, *of_rules) or rules is None:
            raise ValueError(
                "`rules` must be given with keep='counts' or 'decisions' and nothing else, got "
                f"{'no rules' if rules is None else f'rules with keep={keep!r}'}"
            )
        given = _checked_rules(rules)
        return _decisions(given, phase) if keep == Decisions.name else Counts(_taus(given))
    usual = LabelScores.name if phase == "calibration" and labelled else "scores"
    kept = SIMPLE[usual if keep is None else str(keep)]
    if isinstance(kept, LabelScores) and not labelled:
        raise ValueError(f"`labels` must be given with keep={kept.name!r}, got None")
    return kept


def _checked_rules(rules: Any) -> list[Any]:
    given = list(rules) if isinstance(rules, list | tuple) else [rules]
    if not given:
        raise ValueError("`rules` must hold at least one rule, got none")
    for rule in given:
        if getattr(rule, "min_count_", None) is None:
            raise ValueError(f"`rules` must be calibrated on sampled scores, got {rule!r}")
    return given


def _check_served(rules: Any, identity: dict[str, Any]) -> None:
    """Refuse rules for other noise, or for other scores than those of the run."""
    for rule in [] if rules is None else _checked_rules(rules):
        noise = rule.certificate_description.get("smoothing")
        if hexed(noise) != identity["smoothing"]:
            raise ValueError(
                f"`rules` must be for the noise of the run, {identity['smoothing']}, got one for "
                f"{noise}"
            )
        check_same(getattr(rule, "provenance_", None), identity, "the run")


def _decisions(rules: list[Any], phase: Phase) -> Decisions:
    if len(rules) > 1:
        raise ValueError(
            f"`rules` must be one rule with keep='decisions', as drawing stops with its sets, got "
            f"{len(rules)}"
        )
    if phase == "calibration":
        raise ValueError("`phase` must not be 'calibration' with keep='decisions'")
    check_fitted(rules[0])
    return Decisions.of(rules[0])


def _taus(rules: list[Any]) -> tuple[float, ...]:
    """Return the distinct thresholds of calibrated rules, in the dtype of their scores."""
    taus: set[float] = set()
    for rule in rules:
        if getattr(rule, "boundaries_", None) is not None:
            raise ValueError(
                "`rules` must decide by the count of all draws, got one that stops early; keep all "
                "scores for it, keep='scores' without rules, or its decisions, keep='decisions': "
                f"{rule!r}"
            )
        taus |= set(np.ravel(round_to(rule.dtype_, rule.tau_)).tolist())
    dtypes = sorted({str(rule.dtype_) for rule in rules})
    if len(dtypes) > 1:
        raise ValueError(f"`rules` must be for scores of one dtype, got {' and '.join(dtypes)}")
    return tuple(sorted(taus))


def score_content(score: Score, score_id: object) -> dict[str, Any]:
    """Return what a score is called: by its name and all its parameters, or by its owner's id."""
    if callable(score):
        if not (isinstance(score_id, str) and score_id):
            raise ValueError(
                "`score_id` must name a score that is a function, and its version, as its code "
                f"cannot be compared, got {score_id!r}"
            )
        return {"id": score_id}
    if score_id is not None:
        raise ValueError(f"`score_id` must be None for the score {score!r}, got {score_id!r}")
    name, parameters = (score, {}) if isinstance(score, str) else score
    # "tps" is the last of its names.
    canonical = max(other for other in NAMED_SCORES if NAMED_SCORES[other] == NAMED_SCORES[name])
    return {"name": canonical, **hexed(dict(NAMED_SCORES[name].check(**parameters)))}


def checked_labels(rows: Rows, n_classes: int, first: int) -> Rows:
    """Return rows from a position on whose labels are those of classes."""
    if rows.labels is not None:
        as_counts("labels", rows.labels, high=n_classes - 1, first=first)
    return rows
