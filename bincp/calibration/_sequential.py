"""Sequential tests: decide a label before all its draws are made, and keep the guarantee.

The fixed rule accepts a label iff at least k of its m' draws reach the threshold. A sequential rule
looks after every draw: a label is accepted as soon as its count is at least ``accept[l]`` after l
draws, and rejected as soon as it is at most ``reject[l]``. The coverage depends on the test only
through G(p), the probability of accepting a label whose draws succeed with probability p, and G
must not fall as p rises. It does not, for any such boundaries: let draw l succeed iff a uniform U_l
is at most p; then the count of a larger p is never below that of a smaller one, so where the
smaller is accepted, the larger has been accepted too, and has not been rejected before. G is
computed exactly, and takes the place of the binomial tail.
"""

import copy
import math
from collections.abc import Sequence
from functools import cached_property
from threading import RLock
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from bincp._core import _sequential
from bincp._utils.arrays import (
    ArrayLike,
    Scores,
    as_array,
    as_counts,
    as_probabilities,
    frozen,
    round_to,
    where,
)
from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.counting import check_no_nan

__all__ = ["SequentialRule", "SequentialTracker"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

_MAX_SAMPLES = MAX_COUNT - 1  # boundaries have one entry more
_SCORES_AT_ONCE = 2**18  # as many as stay in the cache
_SHARE_OF_A_ROUND = 8  # a round may add an eighth of the draws so far


class SequentialRule:
    """When to accept and when to reject a label, after each of at most m' draws.

    After l draws a label that is still undecided is accepted if its count of exceedances is at
    least ``accept[l]``, and rejected if it is at most ``reject[l]``. The first decision is final.

    Parameters
    ----------
    min_count : int
        k in [0, m'], the least count that is accepted after all draws.
    n_test_samples : int
        m', draws at most, at least 1.
    accept : array_like of int, shape (m' + 1,)
        In [0, k], not decreasing, ending with k; ``accept[l] > l`` cannot be reached.
    reject : array_like of int, shape (m' + 1,)
        In [-m' - 1, k - 1], not decreasing, below `accept`, ending with k - 1; a negative entry
        cannot be reached.

    Raises
    ------
    TypeError
        If a number or an array is not of integers.
    ValueError
        If a boundary has a wrong length or wrong end, decreases, or is not below the other.

    Notes
    -----
    The guarantee holds for the acceptance probability of these boundaries: use the rule that
    `BinCP.sequential_rule` returns, whose boundaries are calibrated for it, or `curtailed`, which
    decides like the fixed rule that it is made of.

    A rule that looks only after some of the draws is another rule, with another G. The draws of a
    round must be replayed one by one, as the tracker of `start` does.

    A rule cannot be changed after it has been made, and its arrays are read-only, so any number of
    threads may share it. A copy is the rule itself.

    Examples
    --------
    >>> import bincp
    >>> rule = bincp.SequentialRule.curtailed(3, 4)  # 3 of 4 draws
    >>> rule.accept.tolist(), rule.reject.tolist()
    ([3, 3, 3, 3, 3], [-2, -1, 0, 1, 2])
    >>> decided, accepted = rule.update([0, 1, 2], draws=2)
    >>> decided.tolist(), accepted.tolist()
    ([True, False, False], [False, False, False])
    >>> rule.acceptance(0.5)  # (4 + 1) / 2**4
    0.3125
    >>> rule.expected_draws(0.5)
    3.125
    """

    min_count: int
    n_test_samples: int
    accept: Int32Array
    reject: Int32Array

    def __init__(
        self, min_count: int, n_test_samples: int, accept: ArrayLike, reject: ArrayLike
    ) -> None:
        m = check_integer("n_test_samples", n_test_samples, low=1, high=_MAX_SAMPLES)
        k = check_integer("min_count", min_count, low=0, high=m)
        vars(self).update(
            min_count=k,
            n_test_samples=m,
            accept=_boundary("accept", accept, m, low=0, end=k),
            reject=_boundary("reject", reject, m, low=-m - 1, end=k - 1),
        )
        crossed = np.flatnonzero(self.reject >= self.accept)
        if len(crossed):
            at = int(crossed[0])
            raise ValueError(
                "`reject` must be below `accept`, "
                f"got reject[{at}] = {self.reject[at]} and accept[{at}] = {self.accept[at]}"
            )

    @classmethod
    def curtailed(cls, min_count: int, n_test_samples: int) -> "SequentialRule":
        """Return the fixed rule, stopped when the count reaches k or cannot reach it any more.

        It decides every label as ``count >= min_count`` after all m' draws would.

        Parameters
        ----------
        min_count, n_test_samples : int
            k and m'.

        Returns
        -------
        SequentialRule

        Raises
        ------
        TypeError, ValueError
            As for `SequentialRule`.
        """
        m = check_integer("n_test_samples", n_test_samples, low=1, high=_MAX_SAMPLES)
        k = check_integer("min_count", min_count, low=0, high=m)
        return cls(k, m, np.full(m + 1, k), np.arange(k - 1 - m, k))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"`{name}` of a SequentialRule must not be set, for its guarantee holds for the "
            f"boundaries it was made with, got {value!r}; make a new rule"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"`{name}` of a SequentialRule must not be deleted; make a new rule")

    def __copy__(self) -> "SequentialRule":
        return self

    def __deepcopy__(self, memo: object) -> "SequentialRule":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.min_count, self.n_test_samples, self.accept, self.reject)

    def __repr__(self) -> str:
        return (
            f"SequentialRule(min_count={self.min_count}, n_test_samples={self.n_test_samples}, "
            "accept=..., reject=...)"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SequentialRule):
            return NotImplemented
        return np.array_equal(self.accept, other.accept) and np.array_equal(
            self.reject, other.reject
        )

    def __hash__(self) -> int:
        return hash((self.accept.tobytes(), self.reject.tobytes()))

    def update(self, counts: ArrayLike, draws: ArrayLike) -> tuple[BoolArray, BoolArray]:
        """Look at counts after a number of draws.

        Call it after every single draw, and let a label keep the first decision that it gets: the
        guarantee is for that. `start` returns an object that does both. (A count that has passed a
        boundary of `curtailed` stays beyond it, so `curtailed` may look at any time.)

        Parameters
        ----------
        counts : array_like of int
            How many of the draws so far reach the threshold, in any shape.
        draws : int or array_like of int, broadcastable to the shape of `counts`
            l, draws so far, in [0, m'].

        Returns
        -------
        decided, accepted : ndarray of bool
            Of the shape of `counts`. An accepted label is also decided.

        Raises
        ------
        TypeError
            If counts or draws are not integers.
        ValueError
            If there are more than m' draws, more hits than draws, or the shapes do not fit.
        """
        made = as_counts("draws", draws, high=self.n_test_samples)
        hits = as_counts("counts", counts, high=self.n_test_samples)
        try:
            made = np.broadcast_to(made, hits.shape)
        except ValueError:
            raise ValueError(
                f"`draws` must be broadcastable to the shape of `counts`, {hits.shape}, "
                f"got shape {made.shape}"
            ) from None
        more = hits > made
        if more.any():
            raise ValueError(
                f"`counts` must not exceed the draws, got {hits[more][0]} hits "
                f"in {made[more][0]} draws {where(more)}"
            )
        accepted = np.asarray(hits >= self.accept[made])
        return accepted | (hits <= self.reject[made]), accepted

    def start(self, shape: int | tuple[int, ...]) -> "SequentialTracker":
        """Return a tracker of labels that have had no draw yet.

        Parameters
        ----------
        shape : int or tuple of int
            Of the labels, for example (n, K) for K labels of n inputs.

        Returns
        -------
        SequentialTracker

        Raises
        ------
        TypeError, ValueError
            If the shape is not one or more positive integers.
        """
        return SequentialTracker(self, shape)

    def acceptance(self, p: ArrayLike) -> Any:
        """Return G(p), the probability that a label is accepted whose draws succeed with p.

        Parameters
        ----------
        p : float or array_like of float
            Success probabilities in [0, 1].

        Returns
        -------
        float or ndarray
            Non-decreasing in p.

        Raises
        ------
        TypeError, ValueError
            If `p` is not real, or not in [0, 1].
        """
        return self._at(p, 1)

    def expected_draws(self, p: ArrayLike) -> Any:
        """Return the expected number of draws until a label is decided whose draws succeed with p.

        Parameters
        ----------
        p : float or array_like of float
            Success probabilities in [0, 1].

        Returns
        -------
        float or ndarray
            In [0, m']. An input is drawn until its last label is decided, hence more often.

        Raises
        ------
        TypeError, ValueError
            If `p` is not real, or not in [0, 1].
        """
        return self._at(p, 2)

    @property
    def min_draws(self) -> int:
        """Least number of draws after which a label can be decided."""
        accepting, rejecting = self._earliest
        return int(min(accepting[0], rejecting[0]))

    @cached_property
    def max_draws(self) -> int:
        """Number of draws after which every label is decided; those up to m' are to spare."""
        draws = np.arange(self.n_test_samples + 1)
        open_counts = np.maximum(self.reject + 1, 0) <= np.minimum(self.accept - 1, draws)
        return int(np.argmin(open_counts))

    def _at(self, p: ArrayLike, which: int) -> Any:
        values = as_probabilities("p", p)
        flat = values.ravel()
        result = exit_probabilities(self, flat, 1 - flat)[which].reshape(values.shape)
        return result if values.ndim else float(result)

    @cached_property
    def _earliest(self) -> tuple[IntArray, IntArray]:
        """Least draws for an acceptance by the number of misses, for a rejection by that of hits.

        An undecided label leaves after l draws with f misses in all iff f <= l - accept[l], with s
        hits iff s <= reject[l].
        """
        numbers = np.arange(self.n_test_samples + 1)
        misses = np.maximum.accumulate(numbers - self.accept)
        tables = np.searchsorted(misses, numbers), np.searchsorted(self.reject, numbers)
        return frozen(tables[0]), frozen(tables[1])


class SequentialTracker:
    """Labels in the middle of a sequential test; made by `SequentialRule.start`.

    It is fed with rounds of draws, replays them in order, and freezes each label at its own exit:
    the result does not depend on how the draws are cut into rounds.

    A tracker is thread-safe: each call holds a lock, so that the calls of several threads take
    effect one after the other. The draws of an input count in the order of the calls.

    Parameters
    ----------
    rule : SequentialRule or sequence of K of them
        The boundaries: the same for every label, or those of each, as
        `MondrianBinCP.sequential_rule` returns them. All are for the same m'.
    shape : int or tuple of int
        Of the labels. The first axis is that of the inputs: the labels along the others share their
        draws, so an input is decided with its last label. (n, K) where each label has boundaries of
        its own.

    Raises
    ------
    TypeError
        If `rule` is neither a SequentialRule nor a sequence of them, or `shape` not of integers.
    ValueError
        If the rules are for different m', their number is not K, or a size is below 1.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> rule = bincp.SequentialRule.curtailed(3, 4)
    >>> labels = rule.start(2)
    >>> labels.update(np.array([[True, True], [False, False]]))  # two draws of each
    >>> labels.decided, labels.undecided
    (array([False,  True]), array([0]))
    >>> labels.update(np.array([[False, True]]), inputs=labels.undecided)
    >>> labels.accepted, labels.counts, labels.exits
    (array([ True, False]), array([3, 0], dtype=int32), array([4, 2], dtype=int32))
    """

    def __init__(self, rule: "Tests", shape: int | tuple[int, ...]) -> None:
        self._boundaries = bounds = _Boundaries(rule)
        self._rule = rule if isinstance(rule, SequentialRule) else bounds.rules
        sizes = shape if isinstance(shape, tuple) else (shape,)
        self._shape = tuple(check_integer("shape", size, low=1) for size in sizes)
        if not self.shape:
            raise ValueError(f"`shape` must have at least one axis, got {shape!r}")
        n, n_labels = self.shape[0], math.prod(self.shape[1:])
        if self.rule is bounds.rules and self.shape[1:] != (len(bounds.rules),):
            raise ValueError(
                f"`shape` must be (n, K) for the boundaries of K = {len(bounds.rules)} labels, "
                f"got {shape!r}"
            )
        at_once = (bounds.accept[0] <= 0) | (bounds.reject[0] >= 0)
        self._draws = np.zeros(n, np.int32)
        self._counts = np.zeros((n, n_labels), np.int32)
        self._exits = np.empty((n, n_labels), np.int32)
        self._exits[:] = np.where(at_once, 0, -1)
        self._lock = RLock()

    def __repr__(self) -> str:
        with self._lock:
            open_labels = int((self._exits < 0).sum())
        return (
            f"SequentialTracker(shape={self.shape}, {open_labels} of {self._exits.size} labels "
            "undecided)"
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: copy.copy(value) for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    @property
    def rule(self) -> "SequentialRule | tuple[SequentialRule, ...]":
        """The boundaries."""
        return self._rule

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the labels."""
        return self._shape

    def update(self, hits: ArrayLike, inputs: ArrayLike | None = None) -> None:
        """Take the next draws of inputs.

        Parameters
        ----------
        hits : array_like of bool, shape (n, ..., r)
            Whether the score of each label reached the threshold, in the next r draws, last axis in
            the order of the draws. What comes after the exit of a label changes nothing for it.
        inputs : array_like of int, shape (n,), optional
            Which inputs were drawn, each once; all of them by default.

        Raises
        ------
        TypeError
            If hits are not bools, or inputs not integers.
        ValueError
            If a shape is wrong, an input is out of range or named twice, or has had m' draws.
        """
        which = self._check_inputs(np.arange(self.shape[0]) if inputs is None else inputs)
        if len(np.unique(which)) < len(which):
            raise ValueError(f"`inputs` must name each input once, got {which.tolist()}")
        rounds = _check_hits(hits, (len(which), *self.shape[1:], None))
        self._replay(np.moveaxis(rounds, -1, 1), np.repeat(which, rounds.shape[-1]))

    def update_rows(self, hits: ArrayLike, inputs: ArrayLike) -> None:
        """Take draws as a model returns them: one row for each draw of an input.

        Parameters
        ----------
        hits : array_like of bool, shape (rows, ...)
            Row r tells which labels reached the threshold in the next draw of ``inputs[r]``.
        inputs : array_like of int, shape (rows,)
            An input may come several times, in the order of its draws.

        Raises
        ------
        TypeError, ValueError
            As in `update`.
        """
        which = self._check_inputs(inputs)
        self._replay(_check_hits(hits, (len(which), *self.shape[1:])), which)

    @property
    def counts(self) -> Int32Array:
        """How many draws were hits, up to the exit of each label (or so far)."""
        with self._lock:
            return self._counts.reshape(self.shape).copy()

    @property
    def exits(self) -> Int32Array:
        """Number of draws at which each label was decided, -1 where it is not."""
        with self._lock:
            return self._exits.reshape(self.shape).copy()

    @property
    def decided(self) -> BoolArray:
        """Which labels are decided."""
        with self._lock:
            return (self._exits >= 0).reshape(self.shape)

    @property
    def accepted(self) -> BoolArray:
        """Which labels are decided and accepted."""
        bounds = self._boundaries
        with self._lock:
            least = bounds.accept[self._exits, bounds.columns]
            accepted = (self._exits >= 0) & (self._counts >= least)
        return accepted.reshape(self.shape)

    @property
    def draws(self) -> Int32Array:
        """Draws that each input has had, shape (n,)."""
        with self._lock:
            return self._draws.copy()

    @property
    def undecided(self) -> IntArray:
        """Inputs with a label that is not decided, in increasing order."""
        with self._lock:
            return np.flatnonzero((self._exits < 0).any(axis=1))

    def next_round(self) -> tuple[IntArray, IntArray]:
        """Say which inputs to draw next, and how often.

        Returns
        -------
        inputs : ndarray of int
            As `undecided`.
        numbers : ndarray of int
            Draws that an input needs for certain before its last label can be decided, or, where
            that is more, an eighth of those it has had: then rounds are few, and few draws wasted.
        """
        with self._lock:
            inputs = self.undecided
            draws = self._draws[inputs]
            live, counts = self._exits[inputs] < 0, self._counts[inputs]
        bounds = self._boundaries
        accepting, rejecting = bounds.earliest
        # Decided labels have stale counts: any value inside the tables will do for them.
        misses = np.maximum(draws[:, None] - counts, 0)
        earliest = np.minimum(accepting[misses, bounds.columns], rejecting[counts, bounds.columns])
        last = np.where(live, earliest, 0).max(axis=1, initial=0)
        numbers = np.maximum(last - draws, draws // _SHARE_OF_A_ROUND)
        return inputs, np.minimum(numbers, bounds.n_test_samples - draws)

    def _check_inputs(self, inputs: ArrayLike) -> IntArray:
        which = as_counts("inputs", inputs, high=self.shape[0] - 1)
        if which.ndim != 1:
            raise ValueError(f"`inputs` must have one axis, got shape {which.shape}")
        return which

    def _replay(self, hits: BoolArray, inputs: IntArray) -> None:
        """Take hits whose last axes are labels, those before them draws."""
        rows = np.ascontiguousarray(hits.reshape(len(inputs), self._counts.shape[1]))
        with self._lock:
            self._check_draws_left(inputs)
            bounds = self._boundaries
            _sequential.replay(
                bounds.accept, bounds.reject, rows.view(np.uint8), inputs, self._draws,
                self._counts, self._exits,
            )  # fmt: skip

    def _check_draws_left(self, inputs: IntArray) -> None:
        """Refuse rows that would give an input more than m' draws, before any of them is taken."""
        named, numbers = np.unique(inputs, return_counts=True)
        m_test = self._boundaries.n_test_samples
        late = self._draws[named] + numbers > m_test
        if late.any():
            raise ValueError(
                f"`hits` must not hold more than the m' = {m_test} draws of an "
                f"input, got {numbers[late][0]} for input {named[late][0]}, which has had "
                f"{self._draws[named][late][0]}"
            )


Tests: TypeAlias = SequentialRule | Sequence[SequentialRule]
"""The boundaries of every label, or of each."""


class _Boundaries:
    """Boundaries of labels side by side: a column for each label, or one for all of them."""

    def __init__(self, tests: Tests) -> None:
        rules = tuple(tests) if isinstance(tests, Sequence) else (tests,)
        for rule in rules:
            if not isinstance(rule, SequentialRule):
                raise TypeError(
                    "`rule` must be a SequentialRule or a sequence of them, "
                    f"got {type(rule).__name__}"
                )
        sizes = sorted({rule.n_test_samples for rule in rules})
        if len(sizes) != 1:
            raise ValueError(f"`rule` must be boundaries for one m', got m' = {sizes}")
        self.rules = rules
        self.n_test_samples = sizes[0]
        self.accept = np.stack([rule.accept for rule in rules], axis=1)
        self.reject = np.stack([rule.reject for rule in rules], axis=1)
        self.columns = np.arange(len(rules))

    @cached_property
    def earliest(self) -> tuple[IntArray, IntArray]:
        """The tables of `SequentialRule._earliest`, a column for each label or one for all."""
        accepting, rejecting = zip(*(rule._earliest for rule in self.rules), strict=True)
        return np.stack(accepting, axis=1), np.stack(rejecting, axis=1)


# ---- scores ---------------------------------------------------------------------------------


def decide_in_order(tests: Tests, scores: Scores, tau: npt.ArrayLike) -> BoolArray:
    """Return which labels tests accept, from all scores (n, K, m') in the order of the draws.

    Boundaries and tau are the same for every label, or those of each of the K. All scores are
    checked, also those after the exit of their label: NaN is refused.
    """
    check_no_nan(scores)
    bounds = _Boundaries(tests)
    n, n_labels, m = scores.bits.shape
    accepted = np.empty((n, n_labels), np.uint8)
    threshold = round_to(scores.dtype, np.asarray(tau)[..., None])
    step = max(1, _SCORES_AT_ONCE // max(n_labels * m, 1))
    for start in range(0, n, step):
        part = slice(start, start + step)
        hits = np.ascontiguousarray(scores.rows(part).values() >= threshold)
        _sequential.decide(bounds.accept, bounds.reject, hits.view(np.uint8), accepted[part])
    return accepted.view(np.bool_)


# ---- probabilities ------------------------------------------------------------------------------


def exit_probabilities(
    rule: SequentialRule, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of refusal and acceptance, and the expected draws, q = 1 - p.

    Each probability has a relative error of at most about 2 m' roundings, however small it is.
    """
    scratch = np.empty(_sequential.scratch_size(rule.n_test_samples))
    refused, accepted, draws = (np.empty(len(p)) for _ in range(3))
    _sequential.exits(
        rule.accept,
        rule.reject,
        np.ascontiguousarray(p),
        np.ascontiguousarray(q),
        scratch,
        refused,
        accepted,
        draws,
    )
    return np.minimum(refused, 1), np.minimum(accepted, 1), draws


# ---- checks ----------------------------------------------------------------------------------


def _boundary(name: str, value: ArrayLike, m: int, *, low: int, end: int) -> Int32Array:
    numbers = as_counts(name, value, low=low, high=end)
    if numbers.shape != (m + 1,):
        raise ValueError(
            f"`{name}` must have shape (m' + 1,) = ({m + 1},), got shape {numbers.shape}"
        )
    if numbers[-1] != end:
        what = "min_count" if name == "accept" else "min_count - 1"
        raise ValueError(f"`{name}` must end with {what} = {end}, got {numbers[-1]}")
    falls = np.flatnonzero(numbers[1:] < numbers[:-1])
    if len(falls):
        at = int(falls[0]) + 1
        raise ValueError(
            f"`{name}` must not decrease, got {numbers[at]} after {numbers[at - 1]} at index {at}"
        )
    return frozen(numbers.astype(np.int32))


def _check_hits(hits: ArrayLike, shape: tuple[int | None, ...]) -> BoolArray:
    """Return hits as an array of a shape, where None stands for any number."""
    array = as_array("hits", hits).view()  # a view of ours, whose shape nobody else can change
    if array.dtype != np.bool_:
        raise TypeError(f"`hits` must be bools, got dtype {array.dtype}")
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, got) for got, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        names = ", ".join("r" if size is None else str(size) for size in shape)
        comma = "," if len(shape) == 1 else ""
        raise ValueError(f"`hits` must have shape ({names}{comma}), got {array.shape}")
    return array
