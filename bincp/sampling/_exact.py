"""Exact probabilities of derandomised smoothing: every noised copy is evaluated."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike
from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.validation import check_threshold
from bincp.noise._copies import EveryCopy, copies_of
from bincp.sampling import _engine
from bincp.sampling._functions import jobs_of, joined
from bincp.sampling._inputs import Key
from bincp.sampling._jobs import Job
from bincp.sampling._scoring import Score
from bincp.smoothing import Smoothing


def exact_probabilities(
    model: ModelLike,
    x: ArrayLike | Iterable[Any],
    smoothing: Smoothing,
    *,
    tau: float,
    score: Score = "tps",
    labels: ArrayLike | bool | None = None,
    key: Key = None,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    progress: bool | None = None,
    n_threads: int = 1,
) -> npt.NDArray[np.float64]:
    """Return the exact probability that the score of each label reaches a threshold.

    All `smoothing.levels` noised copies of each input are evaluated, so there is no sampling error
    to correct, no seed to keep secret, and the prediction sets depend on nothing random: calibrate
    with `BinCP.calibrate_exact`, predict with `BinCP.predict_set_exact`. The note on threads of
    `sample_scores` holds here, too.

    Parameters
    ----------
    model : torch.nn.Module or callable, or a classifier of scikit-learn or ART
        As in `sample_scores`. Must be deterministic, and give an input the same score whatever
        else is in the batch; with floating-point numbers a score that equals `tau` to the last
        bits may not, so choose a `tau` that no score comes that close to.
    x : tensor or array (n, ...), or source of inputs
        As in `sample_scores`. For `SplittingNoise` they must lie on its grid; with ``grid=255``
        they may be grey levels in uint8.
    smoothing : SplittingNoise, BlockAblation or BandAblation
        A derandomised scheme; SplittingNoise with a grid.
    tau : float
        Threshold, fixed in advance; compared as ``score >= tau`` in the dtype of the scores.
    score : str, (str, dict) or callable, optional
        As in `sample_scores`; scores that draw random numbers, such as "aps", are refused.
    labels : array-like (n,) of int, or True, optional
        If given, only the probabilities of these labels are returned, which is all that
        calibration needs. True stands for the labels that `x` yields.
    key, batch_size, device, progress, n_threads
        As in `sample_scores`.

    Returns
    -------
    float64 array (n, K), or (n,) if labels are given
        The double nearest to count / levels. Comparisons with bounds of the certificate, also where
        they are equal, are those of the counts.

    Raises
    ------
    TypeError
        If an argument has a wrong type, or the scheme is not derandomised.
    ValueError
        If an argument has a wrong value, shape or dtype, an input is off the grid (the message
        says where), the score is random, or the model returns a wrong shape or a NaN.

    Examples
    --------
    >>> import torch, bincp
    >>> from bincp.sampling import exact_probabilities
    >>> scheme = bincp.smoothing.SplittingNoise(0.25)
    >>> x = torch.randint(256, (60, 5), generator=torch.manual_seed(0)) / 255
    >>> y = x[:, :3].argmax(1)
    >>> def model(x):
    ...     return 4 * x[:, :3]
    >>> p = exact_probabilities(model, x[:50], scheme, tau=0.4, labels=y[:50])
    >>> certificate = bincp.certify(scheme, bincp.balls.L1(8 / 255))
    >>> rule = bincp.BinCP(certificate, alpha=0.1).calibrate_exact(p, tau=0.4)
    >>> sets = rule.predict_set_exact(exact_probabilities(model, x[50:], scheme, tau=0.4))
    >>> sets.sum(1).tolist()
    [2, 1, 0, 1, 1, 1, 1, 1, 1, 1]
    """
    threshold = check_threshold("tau", tau)
    copies = copies_of(smoothing)
    jobs = jobs_of(
        model,
        x,
        smoothing,
        copies.levels,
        labels=None if labels is True else labels,
        key=key,
        phase="test",
        first_draw=0,
        score=score,
        batch_size=batch_size,
        seed=0,
        device=device,
        progress=progress,
        n_threads=n_threads,
    )

    def counted(job: Job, own: Any) -> npt.NDArray[np.int32]:
        if job.score.random:
            raise ValueError(f"`score` must not be random for exact probabilities, got {score!r}")
        counts, _ = _engine.count(replace(job, sampler=EveryCopy(copies)), threshold)
        return counts if labels is None else _of_labels(counts, own, job.start)

    return joined(counted(job, own) for job, own in jobs) / copies.levels


def _of_labels(counts: npt.NDArray[np.int32], labels: Any, first: int) -> npt.NDArray[np.int32]:
    if labels is None:
        raise ValueError("`x` must yield pairs of inputs and labels, got inputs alone")
    own = as_counts("labels", labels, high=counts.shape[1] - 1, first=first)
    return np.asarray(np.take_along_axis(counts, own[:, None], axis=1)[:, 0])
