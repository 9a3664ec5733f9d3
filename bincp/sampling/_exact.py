"""Exact probabilities of derandomised smoothing: every noised copy is evaluated."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike
from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.validation import check_threshold
from bincp.noise._copies import EveryCopy, copies_of
from bincp.sampling import _engine
from bincp.sampling._jobs import Job, integers
from bincp.sampling._scoring import Score
from bincp.smoothing import Smoothing


def exact_probabilities(
    model: ModelLike,
    x: ArrayLike,
    smoothing: Smoothing,
    *,
    tau: float,
    score: Score = "tps",
    labels: ArrayLike | None = None,
    batch_size: int = 256,
    device: torch.device | str | None = None,
    progress: bool = False,
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
    x : tensor or array (n, ...)
        Inputs, float32 or float64, before any normalisation. For `SplittingNoise` they must lie on
        its grid; with ``grid=255`` they may be grey levels in uint8.
    smoothing : SplittingNoise, BlockAblation or BandAblation
        A derandomised scheme; SplittingNoise with a grid.
    tau : float
        Threshold, fixed in advance; compared as ``score >= tau`` in the dtype of the scores.
    score : str, (str, dict) or callable, optional
        As in `sample_scores`; scores that draw random numbers, such as "aps", are refused.
    labels : array-like (n,) of int, optional
        If given, only the probabilities of these labels are returned, which is all that
        calibration needs.
    batch_size, device, progress
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
    job = Job.checked(
        model,
        x,
        smoothing,
        copies.levels,
        phase="test",
        score=score,
        batch_size=batch_size,
        seed=0,
        device=device,
        progress=progress,
    )
    if job.score.random:
        raise ValueError(f"`score` must not be random for exact probabilities, got {score!r}")
    job = replace(job, sampler=EveryCopy(copies))
    own = None if labels is None else _labels(labels, len(job.x))
    counts = _engine.count(job, threshold)[0]
    if own is not None:
        as_counts("labels", own, high=counts.shape[1] - 1)
        counts = np.take_along_axis(counts, own[:, None], axis=1)[:, 0]
    return counts / copies.levels


def _labels(labels: ArrayLike, n: int) -> npt.NDArray[np.int64]:
    own = integers("labels", labels)
    if own.shape != (n,):
        raise ValueError(f"`labels` must have shape {(n,)}, got {own.shape}")
    return own
