"""Sweeps of a classifier: its model is sampled once, and many rules are calibrated on that."""

import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bincp._utils.arrays import ArrayLike
from bincp._utils.levels import Level, check_level
from bincp.balls import Ball
from bincp.calibration import BinCP, Sweep
from bincp.calibration._sweep import (
    Decided,
    Tests,
    checked_labels,
    combinations,
    measured,
    several,
)
from bincp.certificates import certify
from bincp.noise._keys import IntArray, check_first_draw, check_seed
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, Options
from bincp.sampling._predictor import Predictor

_BLOCK_VALUES = 1 << 24
"""Scores of test inputs in memory at a time."""


class Sweeping(Predictor):
    """A classifier with sweeps."""

    def sweep(
        self,
        x: ArrayLike,
        y: ArrayLike,
        x_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        *,
        balls: Ball | Iterable[Ball] | None = None,
        alpha: Level | Iterable[Level] | None = None,
        correction: str | Iterable[str] = "mixture",
        p: Level | Iterable[Level | None] | None = None,
        confidence: Level = 0.95,
        seed: int | None = None,
        **options: Any,
    ) -> Sweep:
        """Sample the model once, and compare rules for many balls, levels, corrections and p.

        The rule of the classifier stays as it is.

        Parameters
        ----------
        x : tensor or array (n, ...)
            Clean calibration inputs.
        y : array-like (n,) of int
            Their labels.
        x_test : tensor or array (n', ...), optional
            Test inputs, to measure the sets on.
        y_test : array-like (n',) of int, optional
            Their labels, for the coverage.
        balls : Ball or iterable of Ball, optional
            The balls to compare; that of the classifier if they are not given.
        alpha : level or iterable of levels, optional
            One or more levels; that of the classifier if it is not given.
        correction, p, confidence, **options
            As in `bincp.sweep`.
        seed : int, optional
            Seed of all noise, in [0, 2**64); by default a secret one from the system.

        Returns
        -------
        Sweep
            As `bincp.sweep` returns.

        Warns
        -----
        TrivialSetWarning
            As in `bincp.sweep`.

        Raises
        ------
        TypeError, ValueError
            As in `bincp.sweep` and `sample_scores`.

        Notes
        -----
        The notes of `bincp.sweep` say what the rows may be used for. All noise is of the phase
        "tuning", so that `calibrate` and `predict` never meet it, and each input has its own; two
        sweeps with one given seed share it. Calibration and test nodes share no noisy graph, also
        where each part has one for all its nodes. Test inputs are sampled and decided block by
        block, so that their scores need not fit into memory together. Each takes all m' draws.

        Examples
        --------
        >>> import torch
        >>> from bincp.balls import L2
        >>> from bincp.sampling import RobustClassifier
        >>> from bincp.smoothing import Gaussian
        >>> _ = torch.manual_seed(0)
        >>> x, y = torch.randn(300, 4), torch.randint(3, (300,))
        >>> classifier = RobustClassifier(
        ...     torch.nn.Linear(4, 3), Gaussian(0.5), L2(0.1), alpha=0.1, n_samples=32
        ... )
        >>> classifier.sweep(
        ...     x[:200], y[:200], x[200:], y[200:], balls=[L2(0.05), L2(0.1)], alpha=[0.1, 0.2]
        ... )
        Sweep(4 rules, confidence=19/20)
        """
        if x_test is None and y_test is not None:
            raise TypeError("`y_test` must be given with `x_test`, got it alone")
        chosen = several("balls", self._ball if balls is None else balls, Ball)
        levels = getattr(self._rule, "alpha", None) if alpha is None else alpha
        certificates = [certify(self._smoothing, ball) for ball in chosen]
        rules = combinations(certificates, levels, correction, p, options)
        level = check_level("confidence", confidence)
        drawn = replace(
            self._options, seed=secrets.randbits(64) if seed is None else check_seed(seed)
        )
        job = self._sweep_job(x, self.n_samples, 0, drawn, chosen)
        scores, n_classes = _engine.label_scores(job, y)
        tests, n_tests = None, 0
        if x_test is not None:
            ahead = self._sweep_job(x_test, self.n_test_samples, len(job.x), drawn, chosen)
            if job.shares_noise or ahead.shares_noise:  # which has no id
                first = check_first_draw(job.n_samples, ahead.n_samples)
                ahead = replace(ahead, first_draw=first)
            labels = checked_labels("y_test", y_test, (len(ahead.x), n_classes))
            tests, n_tests = _decisions(ahead, rules, labels, n_classes), len(ahead.x)
        return measured(
            rules,
            scores,
            Tests(tests, n_tests),
            level,
            n_classes,
            self.n_test_samples,
            drawn.n_threads,
            drawn.progress,
        )

    def _sweep_job(
        self, x: Any, n_samples: int, first_id: int, options: Options, balls: Sequence[Ball]
    ) -> Job:
        job = Job.of(self.model, x, self._smoothing, n_samples, options, phase="tuning")
        if self._range is not None:
            self._range.check(job)
        size = math.prod(tuple(job.x.shape)[1:])
        for ball in balls:
            if getattr(ball, "dim", None) not in (None, size):
                raise ValueError(
                    f"`x` must have {ball.dim} elements an input, as {ball}, got "  # type: ignore[attr-defined]
                    f"shape {tuple(job.x.shape)}"
                )
        return replace(job, ids=np.arange(first_id, first_id + len(job.x)))


def _decisions(
    job: Job, rules: Sequence[BinCP], labels: IntArray | None, n_classes: int
) -> Iterator[Decided]:
    """Sample some inputs at a time, and yield their sets by each rule."""
    step = max(1, _BLOCK_VALUES // (n_classes * job.n_samples))
    quiet = replace(job, progress=False)  # the bar is that of all blocks
    for start in range(0, len(job.x), step):
        stop = min(start + step, len(job.x))
        scores = _engine.all_scores(quiet.some(start, stop))
        own = None if labels is None else labels[start:stop]
        yield [rule.predict_set(scores) for rule in rules], own
