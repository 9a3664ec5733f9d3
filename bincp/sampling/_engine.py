"""Evaluate a model on noisy inputs, batch by batch, and keep scores, counts or decisions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from bincp._models._outputs import logits_in
from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.progress import progress_bar
from bincp.calibration import SequentialRule, SequentialTracker
from bincp.calibration._sequential import Decisions, Tests, decisions_of
from bincp.calibration._shared_draws import as_shared
from bincp.noise._draw import fill_rows
from bincp.noise._keys import IntArray, score_numbers
from bincp.sampling._graphs import GraphInputs, NoisyGraphs
from bincp.sampling._inputs import shape_cure
from bincp.sampling._jobs import Inputs, Job, Model, float_dtype, integers, is_wide
from bincp.sampling._looks import Looks, until_next_look
from bincp.sampling._modes import evaluation_mode

Thresholds: TypeAlias = float | npt.NDArray[np.float64]
"""One threshold for all labels, or K."""

Noisy: TypeAlias = torch.Tensor | NoisyGraphs
"""Noisy inputs of a batch, as the model gets them."""


def all_scores(job: Job) -> npt.NDArray[np.floating[Any]]:
    result = None
    with evaluating(job.model):
        for batch in _all_batches(job):
            scores = batch.scores.cpu().numpy()
            if result is None:
                shape = (len(job.x), scores.shape[1], job.n_samples)
                result = np.empty(shape, dtype=scores.dtype)
            result[batch.sources, :, batch.draws] = scores
    assert result is not None  # inputs and draws are not empty
    return _marked(job, result)


def _marked(job: Job, scores: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Return scores of shared noise that a rule may get as such, so that it can refuse them."""
    return as_shared(scores) if job.shares_noise and job.phase != "test" else scores


def label_scores(
    job: Job, labels: ArrayLike, known: int | None = None
) -> tuple[npt.NDArray[np.floating[Any]], int]:
    """Return the scores (n, m) of the given labels, and K, which may be known."""
    y = integers("labels", labels)
    if y.shape != (len(job.x),):
        raise ValueError(f"`labels` must have shape {(len(job.x),)}, got {y.shape}")
    result, n_classes = None, 0
    with evaluating(job.model):
        for batch in _all_batches(job, known):
            if result is None:
                n_classes = batch.scores.shape[1]
                as_counts("labels", y, high=n_classes - 1, first=job.start)
                dtype = batch.scores[:0].cpu().numpy().dtype
                result = np.empty((len(y), job.n_samples), dtype=dtype)
            own = torch.from_numpy(y[batch.sources]).to(batch.scores.device)[:, None]
            result[batch.sources, batch.draws] = batch.scores.gather(1, own)[:, 0].cpu().numpy()
    assert result is not None  # inputs and draws are not empty
    return _marked(job, result), n_classes


def count(
    job: Job, tau: Thresholds, n_classes: int | None = None
) -> tuple[npt.NDArray[np.int32], str]:
    """Return the counts (n, K) of scores that reach ``tau``, and the dtype of the scores."""
    counts, dtype = None, ""
    with evaluating(job.model):
        for batch in _all_batches(job, n_classes):
            scores = batch.scores
            if counts is None:
                counts = np.zeros((len(job.x), scores.shape[1]), dtype=np.int32)
                dtype = dtype_name(scores.dtype)
            counts[batch.inputs] += batch.hits(tau)
    assert counts is not None  # inputs and draws are not empty
    return counts, dtype


def votes(job: Job) -> npt.NDArray[np.int64]:
    """Return how many draws have their largest score at each label (n, K), ties to the first."""
    n = len(job.x)
    what = _Draws(np.arange(n), np.zeros(n, np.int64), np.full(n, job.n_samples))
    result = None
    with (
        evaluating(job.model),
        progress_bar(job.progress, n * job.n_samples, job.phase, "draw") as bar,
    ):
        for batch in batches(job, what):
            if result is None:
                result = np.zeros((n, batch.scores.shape[1]), dtype=np.int64)
            np.add.at(result, (batch.sources, batch.scores.argmax(dim=1).cpu().numpy()), 1)
            bar.update(len(batch.sources))
    assert result is not None  # inputs and draws are not empty
    return result


def decide(
    job: Job, tau: Thresholds, rule: Tests, n_classes: int | None, looks: Looks | None = None
) -> tuple[Decisions, str]:
    """Draw each input until its last label is decided; return the decisions and the scores' dtype.

    ``tau`` and the rule are the same for all labels, or those of each of the K. Before the first
    batch nobody knows the labels, so every input gets one draw at least.
    """
    labels, dtype = None, None
    n = len(job.x)
    draws, numbers = np.zeros(n, np.int64), np.full(n, max(_min_draws(rule), 1))
    if looks is not None:
        numbers = until_next_look(looks, draws, numbers)
    what = _Draws(np.arange(n), draws, numbers)
    with evaluating(job.model), progress_bar(job.progress, n, job.phase, "input") as bar:
        while len(what.inputs):
            for batch in batches(job, what, n_classes, dtype):
                if labels is None:
                    n_classes, dtype = batch.scores.shape[1], batch.scores.dtype
                    labels = SequentialTracker(rule, (n, n_classes))
                labels.update_rows(reached_tau(batch.scores, tau).cpu().numpy(), batch.sources)
            assert labels is not None  # inputs and draws are not empty
            before = len(what.inputs)
            inputs, numbers = labels.next_round()
            draws = labels.draws[inputs].astype(np.int64)
            if looks is not None:
                numbers = until_next_look(looks, draws, numbers)
            what = _Draws(inputs, draws, numbers)
            bar.update(before - len(inputs))
    assert labels is not None
    return decisions_of(labels), dtype_name(dtype)


@dataclass(frozen=True)
class Batch:
    """The scores of some rows; row r is a draw of input ``sources[r]``."""

    sources: IntArray
    draws: IntArray
    scores: torch.Tensor

    @property
    def inputs(self) -> slice:
        """From the first input to the last one, where those between are in the batch, too."""
        return slice(int(self.sources[0]), int(self.sources[-1]) + 1)

    def hits(self, tau: Thresholds) -> npt.NDArray[np.int32]:
        """Return how many draws of each of `inputs` reach a threshold, for each label."""
        reached = reached_tau(self.scores, tau)
        n_labels = reached.shape[1]
        first, end = self.inputs.start, self.inputs.stop
        if _are_evenly_drawn(self.sources, first, end):
            sums = reached.reshape(end - first, -1, n_labels).sum(1, dtype=torch.int32)
        else:
            rows = torch.from_numpy(self.sources - first).to(reached.device)
            sums = reached.new_zeros((end - first, n_labels), dtype=torch.int32)
            sums.index_add_(0, rows, reached.to(torch.int32))
        return sums.cpu().numpy()


def _are_evenly_drawn(sources: IntArray, first: int, end: int) -> bool:
    """Say if the rows are as many draws of each of some inputs, one input after the other."""
    if len(sources) % (end - first):
        return False
    rows = sources.reshape(end - first, -1)
    return bool((rows == np.arange(first, end)[:, None]).all())


class Rows(Protocol):
    """Draws of inputs to evaluate the model on, in batches."""

    def batches(self, batch_size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (inputs, draws) of each batch; the inputs of a batch do not decrease."""


def reached_tau(scores: torch.Tensor, tau: Thresholds) -> torch.Tensor:
    # A single number may stay on the CPU, which saves a copy that would wait for the device.
    place = "cpu" if np.ndim(tau) == 0 else scores.device
    return scores >= torch.tensor(tau, dtype=scores.dtype, device=place)


def _min_draws(rule: Tests) -> int:
    """Return how many draws an input needs for certain until its last label is decided."""
    return max(one.min_draws for one in ((rule,) if isinstance(rule, SequentialRule) else rule))


def dtype_name(dtype: torch.dtype | None) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class _Draws:
    """Draws to make: ``numbers[i]`` of input ``inputs[i]``, from its draw ``first[i]`` on."""

    inputs: IntArray
    first: IntArray
    numbers: IntArray

    def batches(self, batch_size: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (inputs, draws) of each batch: the draws of the first input, of the second, ..."""
        ends = np.cumsum(self.numbers)
        shifts = self.first - (ends - self.numbers)
        for start in range(0, int(ends[-1]), batch_size):
            rows = np.arange(start, min(start + batch_size, ends[-1]))
            which = np.searchsorted(ends, rows, side="right")
            yield self.inputs[which], rows + shifts[which]


def _all_batches(job: Job, n_classes: int | None = None) -> Iterator[Batch]:
    """Evaluate the model on all draws of all inputs."""
    n = len(job.x)
    draws = _Draws(np.arange(n), np.zeros(n, np.int64), np.full(n, job.n_samples))
    n_batches = -(-n * job.n_samples // job.batch_size)
    with progress_bar(job.progress, n_batches, job.phase, "batch") as bar:
        for batch in batches(job, draws, n_classes):
            yield batch
            bar.update()


def batches(
    job: Job, what: Rows, n_classes: int | None = None, dtype: torch.dtype | None = None
) -> Iterator[Batch]:
    """Evaluate the model on some draws, one batch of rows after the other."""
    if isinstance(job.x, GraphInputs):
        first = np.zeros(1, np.int64)
        job.x.check_field(job.model, job.keys(first, first), job.device)
    for sources, draws, scores in _launched(job, what):
        if dtype not in (None, scores.dtype):
            raise ValueError(
                f"`model` must give scores of dtype {dtype_name(dtype)} as before, "
                f"got {dtype_name(scores.dtype)}"
            )
        if n_classes not in (None, scores.shape[1]):
            raise ValueError(
                f"`model` must return {n_classes} logits as before, got {scores.shape[1]}"
            )
        n_classes, dtype = scores.shape[1], scores.dtype
        if bool(torch.isnan(scores.sum())):  # or there are infinities of both signs
            _check_no_nan(job, sources, draws, scores)
        yield Batch(sources, draws, scores)


def _check_no_nan(job: Job, sources: IntArray, draws: IntArray, scores: torch.Tensor) -> None:
    missing = torch.isnan(scores).nonzero()
    if len(missing):
        job.check_finite(sources[missing[:, 0].cpu().numpy()])
        row, label = (int(i) for i in missing[0])
        raise ValueError(
            f"`model` must not give NaN scores, got one for {job.named(sources[row])}, "
            f"draw {job.first_draw + draws[row]}, label {label}"
        )


def _launched(job: Job, what: Rows) -> Iterator[tuple[IntArray, IntArray, torch.Tensor]]:
    """Yield the scores of each batch, not yet waited for if the device works on its own.

    The noise of the next batch is drawn before the scores are handed out: by the CPU while the
    device computes, or by the device, which may draw while it evaluates the model.
    """
    beside = _stream_beside(job)
    rows_of_batches = what.batches(job.batch_size)
    if job.shares_noise:
        rows_of_batches = _by_draw(what, job.batch_size)
    upcoming = (_drawn(job, *rows, beside) for rows in rows_of_batches)
    current = next(upcoming, None)
    while current is not None:
        if current.ready is not None:
            now = torch.cuda.current_stream(job.device)
            now.wait_event(current.ready)
            drawn = cast(torch.Tensor, current.inputs)  # no device draws graphs
            drawn.record_stream(now)  # its memory belongs to the other stream
        inputs = current.inputs.to(job.device, non_blocking=True)
        sources, draws = current.sources, current.draws
        scores = scores_of(job, inputs, sources, draws)
        current = next(upcoming, None)
        yield sources, draws, scores


def _by_draw(what: Rows, n_draws: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield so many draws of all inputs: one noisy graph serves them all."""
    sources, draws = next(what.batches(np.iinfo(np.int64).max))
    numbers = np.unique(draws)
    for start in range(0, len(numbers), n_draws):
        rows = np.isin(draws, numbers[start : start + n_draws])
        yield sources[rows], draws[rows]


class _Drawn(NamedTuple):
    """Noisy inputs, and the event after which they are there if it must be waited for."""

    sources: IntArray
    draws: IntArray
    inputs: Noisy
    ready: Any


def _stream_beside(job: Job) -> Any:
    """Return a stream to draw noise on while the model computes on its own, None if there is none.

    All that was launched before, such as copies of the inputs, comes first.
    """
    if job.device_sampler is None or job.device.type != "cuda":
        return None
    stream: Any = torch.cuda.Stream(job.device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(job.device))
    return stream


def _drawn(job: Job, sources: IntArray, draws: IntArray, beside: Any) -> _Drawn:
    if beside is None:
        return _Drawn(sources, draws, noisy(job, sources, draws, job.x), None)
    with torch.cuda.stream(beside):
        inputs = noisy(job, sources, draws, job.x)
        return _Drawn(sources, draws, inputs, beside.record_event())


def noisy(job: Job, sources: IntArray, draws: IntArray, x: Inputs) -> Noisy:
    """Return draws of inputs `x`, which are those of the job or take their place."""
    keys = job.keys(sources, draws)
    if isinstance(x, GraphInputs):
        return x.draw(keys, sources)
    if job.device_sampler is not None:
        with torch.autocast(job.device.type, enabled=False):  # the noise has the same bits anyway
            return job.device_sampler.rows(keys, sources, x)
    # A fresh tensor each time: the model may keep it, and a copy to the device may still read it.
    rows = torch.empty(
        (len(sources), *x.shape[1:]),
        dtype=torch.float64 if is_wide(x) else torch.float32,
        device="cpu",
        pin_memory=job.device.type == "cuda",
    )
    assert isinstance(x, np.ndarray)  # tensors are kept for devices that draw
    assert job.sampler is not None
    first, last = sources[0], sources[-1] + 1
    own, out = x[first:last], rows.numpy()
    fill_rows(job.sampler, keys, sources - first, own, out, job.n_threads)
    return rows


def scores_of(job: Job, inputs: Noisy, sources: IntArray, draws: IntArray) -> torch.Tensor:
    """Evaluate the model on noisy inputs and return the scores of all labels."""
    try:
        logits = logits_of(job, inputs)
    except Exception:
        job.check_finite(sources)  # which many models refuse in words of their own
        raise

    def numbers() -> torch.Tensor:
        u = score_numbers(job.keys(sources, draws))
        return torch.from_numpy(u).to(logits.device, torch.float64)[:, None]

    return job.score(logits, numbers)


def logits_of(job: Job, inputs: Noisy) -> torch.Tensor:
    """Evaluate the model, and say what the inputs look like where it does not take them."""
    if isinstance(inputs, NoisyGraphs):
        logits = inputs.logits(job.model)
        _check_logits(logits, len(inputs.target), "")
        return logits
    cure = shape_cure(tuple(job.x.shape))
    try:
        output = job.model(inputs if job.narrow is None else inputs.to(job.narrow))
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        wide = float_dtype(job.model) == torch.float64 and "ouble" in str(error)
        if wide and inputs.dtype == torch.float32:
            raise ValueError(
                "`x` must have a dtype that `model` takes, whose parameters are float64, got "
                f"float32; use x.astype(np.float64) or x.double() ({error})"
            ) from error
        if not cure:
            raise
        shape = tuple(job.x.shape)
        raise ValueError(
            f"`x` must have a shape that `model` takes, got {shape}; {cure} ({error})"
        ) from error
    logits = logits_in(output)
    _check_logits(logits, len(inputs), f"; {cure}" if cure else "")
    return logits


def _check_logits(logits: torch.Tensor, n_rows: int, cure: str) -> None:
    if logits.ndim != 2 or logits.shape[0] != n_rows or logits.shape[1] == 0:
        raise ValueError(
            f"`model` must return logits of shape ({n_rows}, K) for a batch of {n_rows}, "
            f"got shape {tuple(logits.shape)}{cure}"
        )
    if not logits.is_floating_point():
        raise ValueError(f"`model` must return floating-point logits, got {logits.dtype}")


@contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Set evaluation mode, without gradients."""
    with evaluation_mode(model), torch.no_grad():
        yield
