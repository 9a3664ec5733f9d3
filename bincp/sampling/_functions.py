"""Scores of smoothed inputs, and counts of those that reach a threshold."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bincp._models import ModelLike, as_model
from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import MAX_COUNT, check_integer, check_threshold
from bincp.calibration import Counts
from bincp.calibration._counts import How, known_counts
from bincp.noise._keys import Phase
from bincp.sampling import _engine
from bincp.sampling._inputs import Ids, Key, check_key, pieces
from bincp.sampling._jobs import Job, Options
from bincp.sampling._run._task import score_content
from bincp.sampling._scoring import Score
from bincp.smoothing import Smoothing


def sample_scores(
    model: ModelLike,
    x: ArrayLike | Iterable[Any],
    smoothing: Smoothing,
    n_samples: int,
    *,
    phase: Phase,
    indices: ArrayLike | None = None,
    first_draw: int = 0,
    score: Score = "tps",
    labels: ArrayLike | bool | None = None,
    key: Key = None,
    batch_size: int = 256,
    seed: int = 0,
    device: torch.device | str | None = None,
    progress: bool | None = None,
    n_threads: int = 1,
) -> npt.NDArray[np.floating[Any]]:
    """Sample the scores of smoothed inputs.

    Parameters
    ----------
    model : torch.nn.Module or callable, or a classifier of scikit-learn or ART
        Maps a batch (b, ...) to logits (b, K); `bincp.adapters.as_model` says which other models
        there are, and which of them need its options. A module is evaluated in evaluation mode, and
        each of its submodules gets its own mode back afterwards; no gradients are recorded. An
        exported program or a frozen script module keeps the mode in which it was made.
    x : tensor or array (n, ...), or source of inputs
        Inputs, float32 or float64, before any normalisation (see `NormalizedModel`). A tensor where
        the model is stays there if its noise is drawn there, see `bincp.sampling`. Memory maps are
        arrays. Or a dataset, a loader or an iterable of batches; their labels, if any, do not
        matter unless `labels` is True. A loader keeps the order of its dataset (shuffle=False); one
        with a DistributedSampler, which repeats inputs, stands for its whole dataset.
    smoothing : Smoothing
        The smoothing scheme, one of `bincp.smoothing`. `bincp.noise.draw` says which inputs each
        takes.
    n_samples : int
        Draws for each input, m.
    phase : "calibration", "test" or "tuning"
        The purpose of the scores: to calibrate, to predict, or to choose settings on separate
        points. The phases use independent noise, see `bincp.sampling`.
    indices : array-like (n,) of int, optional
        Ids of the inputs in [0, 2**56), by default their positions. Equal ids get equal noise, in
        this call and in every other one with the same phase and seed, see the notes.
    first_draw : int, optional
        Number of the first draw of each input. Draws of different numbers are independent, so two
        calls with disjoint ranges and the same ids add up to one call with all the draws.
    score : str, (str, dict) or callable, optional
        The name of a score of `bincp.scores`: "tps" (also "lac" or "thr"), "aps", "raps", "margin"
        or "logit". A pair gives its parameters: ``("raps", {"penalty": 0.1, "k_reg": 2})``. For
        aps and raps a new keyed number is drawn for each evaluation of the model. Or a callable
        that maps logits (b, K) to scores (b, K); if it has a keyword-only argument ``uniform``
        without a default, it gets these numbers, in (0, 1], as a float64 tensor (b, 1).
    labels : array-like (n,) of int, or True, optional
        If given, only the scores of these labels are kept, which is all that calibration needs.
        True stands for the labels that `x` yields.
    key : str or (str, str), optional
        Where `x` yields dicts: the name of the inputs in them, or the names of inputs and labels.
    batch_size : int, optional
        Rows of a forward pass. A batch may hold several draws of several inputs. As many inputs of
        a dataset are read at a time.
    seed : int, optional
        In [0, 2**64).
    device : torch.device or str, optional
        Where the model is evaluated; a module is moved there, and stays there. By default, where
        the module is, or else where `x` is. Refused if it does not exist or, as "meta", holds no
        data.
    progress : bool, optional
        Show a progress bar on stderr (needs tqdm). By default there is one after two seconds if
        stderr is a terminal; True shows it at once and anywhere, False never.
    n_threads : int, optional
        Threads, >= 1, that draw the noise of a batch where the CPU draws it. They start for large
        batches only, of some 2**18 elements a thread, and change no result. The model has threads
        of its own (`torch.set_num_threads`).

    Returns
    -------
    array (n, K, m), or (n, m) if labels are given
        float64 if the model returns float64, else float32: logits of 16 bits are widened before the
        score is taken.

    Raises
    ------
    TypeError
        If an argument has a wrong type, such as a list of images (the message has the cure), or
        the model returns neither a tensor nor an object with one in ``.logits``.
    ValueError
        If an argument has a wrong value, shape or dtype (labels out of range, equal ids in the
        calibration phase, inputs of 16 bits, ``first_draw + n_samples`` of 2**31 or more, an image
        without a batch axis), or the model returns a wrong shape or a NaN, or normalises over the
        rows of a batch.

    Notes
    -----
    *Ids.* Two calls without `indices`, with one phase and one seed, draw the same noise for inputs
    of equal position. Scores of one calibration set that come from several such calls void the
    guarantee: pass ids that differ over all the calls. Test inputs may share noise, unless an
    adversary may have seen it. `RobustClassifier` hands out new ids in each call.

    *Precision.* Noise is drawn and scores are taken in 32 or 64 bits. A module of 16 bits gets its
    noisy inputs rounded to them, which is a part of the model; ``torch.autocast`` around the call
    holds for the model, too. Calibrate and predict in one precision.

    *Threads.* Several threads may call this at once, also with one module or with modules that
    share parts: the parts are in evaluation mode until the last of the calls is done. Meanwhile no
    thread may change the weights, the mode or the device of the module, or write to `x`.

    Examples
    --------
    >>> import torch
    >>> from bincp.sampling import sample_scores
    >>> from bincp.smoothing import Gaussian
    >>> model = torch.nn.Linear(4, 3)
    >>> x = torch.zeros(5, 4)
    >>> sample_scores(model, x, Gaussian(sigma=0.5), 16, phase="test").shape
    (5, 3, 16)
    >>> y = [0, 1, 2, 0, 1]
    >>> sample_scores(model, x, Gaussian(sigma=0.5), 16, phase="calibration", labels=y).shape
    (5, 16)
    """
    jobs = jobs_of(
        model,
        x,
        smoothing,
        n_samples,
        labels=None if labels is True else labels,
        key=key,
        phase=phase,
        indices=indices,
        first_draw=first_draw,
        score=score,
        batch_size=batch_size,
        seed=seed,
        device=device,
        progress=progress,
        n_threads=n_threads,
    )
    if labels is None:
        return joined(_engine.all_scores(job) for job, _ in jobs)
    scores, _ = label_scores(jobs)
    return scores


def count_scores(
    model: ModelLike,
    x: ArrayLike | Iterable[Any],
    smoothing: Smoothing,
    n_samples: int,
    tau: float,
    *,
    phase: Phase,
    indices: ArrayLike | None = None,
    first_draw: int = 0,
    score: Score = "tps",
    key: Key = None,
    batch_size: int = 256,
    seed: int = 0,
    device: torch.device | str | None = None,
    progress: bool | None = None,
    n_threads: int = 1,
) -> Counts:
    """Count, for each input and label, the sampled scores that reach a threshold.

    The counts are those of ``count_exceedances(sample_scores(...), tau)``, but the scores of a
    batch are counted and forgotten: only n K integers are kept. The notes of `sample_scores` on ids
    and threads hold here, too.

    Parameters
    ----------
    model, x, smoothing, n_samples
        As in `sample_scores`.
    tau : float
        Threshold, compared as ``score >= tau`` in the dtype of the scores.
    phase, indices, first_draw, score, key, batch_size, seed, device, progress, n_threads
        As in `sample_scores`.

    Returns
    -------
    Counts (n, K)
        An int32 array that knows `n_samples`, `tau` and `phase`.

    Raises
    ------
    TypeError, ValueError
        As in `sample_scores`, and if `tau` is not a number.

    Examples
    --------
    >>> import torch
    >>> from bincp.sampling import count_scores
    >>> from bincp.smoothing import Gaussian
    >>> model = torch.nn.Linear(4, 3)
    >>> counts = count_scores(model, torch.zeros(5, 4), Gaussian(sigma=0.5), 16, 0.0, phase="test")
    >>> counts.tolist() == [[16, 16, 16]] * 5
    True
    """
    threshold = check_threshold("tau", tau)
    jobs = jobs_of(
        model,
        x,
        smoothing,
        n_samples,
        key=key,
        phase=phase,
        indices=indices,
        first_draw=first_draw,
        score=score,
        batch_size=batch_size,
        seed=seed,
        device=device,
        progress=progress,
        n_threads=n_threads,
    )
    counts = joined(_engine.count(job, threshold)[0] for job, _ in jobs)
    known = None if callable(score) else {"score": score_content(score, None)}
    return known_counts(counts, How(int(n_samples), threshold, phase, provenance=known))


def vote_counts(
    model: ModelLike,
    x: ArrayLike | Iterable[Any],
    smoothing: Smoothing,
    n_samples: int,
    *,
    phase: Phase = "test",
    first_draw: int = 0,
    indices: ArrayLike | None = None,
    key: Key = None,
    batch_size: int = 256,
    seed: int = 0,
    device: torch.device | str | None = None,
    progress: bool | None = None,
    n_threads: int = 1,
) -> npt.NDArray[np.int64]:
    """Count, for each input and label, the draws that the model classifies as the label.

    `bincp.classification` takes these counts. A draw votes for the label of its largest logit, the
    first of several. The notes of `sample_scores` on ids and threads hold here, too.

    Parameters
    ----------
    model, x, smoothing
        As in `sample_scores`.
    n_samples : int
        Draws for each input.
    phase : "calibration", "test" or "tuning", optional
        As in `sample_scores`.
    first_draw : int, optional
        Number of the first draw. Draws of different numbers are independent, so votes to select a
        label and votes to certify it come from disjoint ranges.
    indices, key, batch_size, seed, device, progress, n_threads
        As in `sample_scores`.

    Returns
    -------
    int64 array (n, K)
        Each row adds up to `n_samples`.

    Raises
    ------
    TypeError, ValueError
        As in `sample_scores`.

    Examples
    --------
    >>> import torch
    >>> from bincp.sampling import vote_counts
    >>> from bincp.smoothing import Gaussian
    >>> model = torch.nn.Linear(4, 3)
    >>> x = torch.zeros(5, 4)
    >>> selection_counts = vote_counts(model, x, Gaussian(sigma=0.5), 100)
    >>> counts = vote_counts(model, x, Gaussian(sigma=0.5), 1000, first_draw=100)
    >>> counts.sum(axis=1)
    array([1000, 1000, 1000, 1000, 1000])
    """
    jobs = jobs_of(
        model,
        x,
        smoothing,
        n_samples,
        key=key,
        phase=phase,
        indices=indices,
        first_draw=first_draw,
        score="logit",
        batch_size=batch_size,
        seed=seed,
        device=device,
        progress=progress,
        n_threads=n_threads,
    )
    return joined(_engine.votes(job) for job, _ in jobs)


# ---- pieces of inputs ----------------------------------------------------------------------------


def jobs_of(
    model: ModelLike,
    x: Any,
    smoothing: object,
    n_samples: int,
    *,
    phase: Phase,
    first_draw: int,
    indices: ArrayLike | None = None,
    labels: Any = None,
    key: Key = None,
    **options: Any,
) -> Iterator[tuple[Job, Any]]:
    """Yield the job of each piece of the inputs, and its labels if there are any."""
    function = as_model(model)
    m = check_integer("n_samples", n_samples, low=1, high=MAX_COUNT)
    checked = Options.checked(**options)
    check_key(key)
    ids, start = Ids(indices, phase, x), 0
    for inputs, own in pieces(x, labels, key, checked.batch_size):
        n = len(inputs) if inputs.ndim else 0
        job = Job.of(
            function,
            inputs,
            smoothing,
            m,
            checked,
            phase=phase,
            indices=ids.take(n) if n else None,
            first_draw=first_draw,
            start=start,
        )
        yield job, own
        start += n
    ids.end()


def label_scores(
    jobs: Iterable[tuple[Job, Any]],
) -> tuple[npt.NDArray[np.floating[Any]], int]:
    """Return the scores (n, m) of the labels of all pieces, and K."""
    n_classes: int | None = None

    def scores(job: Job, labels: Any) -> npt.NDArray[np.floating[Any]]:
        nonlocal n_classes
        if labels is None:
            raise ValueError("`x` must yield pairs of inputs and labels, got inputs alone")
        values, found = _engine.label_scores(job, labels, n_classes)
        n_classes = found
        return values

    result = joined(scores(*job) for job in jobs)
    assert n_classes is not None
    return result, n_classes


def joined(parts: Iterable[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Join the results of all pieces over their inputs; they must be of one kind."""
    results: list[npt.NDArray[Any]] = []
    for part in parts:
        first = results[0] if results else part
        if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
            raise ValueError(
                f"`model` must give scores of one dtype and number of labels, got {part.dtype} of "
                f"shape {part.shape} after {first.dtype} of shape {first.shape}"
            )
        results.append(part)
    if not results:
        raise ValueError("`x` must hold at least one input, got an empty loader")
    return results[0] if len(results) == 1 else np.concatenate(results)
