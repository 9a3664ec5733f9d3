"""Whose noise is whose: the seed and the ids that each call of a predictor gets."""

import os
import secrets
from threading import Lock

import numpy as np

from bincp._core._noise import MAX_ID
from bincp._utils.validation import check_integer
from bincp.noise._keys import IntArray, Phase, check_seed

_lock = Lock()
_process = 0  # a number of its own for each process that is forked from another


def _after_fork() -> None:
    global _lock, _process
    _lock = Lock()  # another thread may have held it, which does not live here
    _process += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Seeds:
    """Where the noise of a classifier or a regressor comes from.

    Without a seed each call draws one of its own from the system, and nothing must be remembered.
    With one, calls share it and take the ids one after the other. Then a copy and a forked process
    would hand out the same ids again: both count as stale.
    """

    def __init__(self, seed: int | None, first_id: int = 0) -> None:
        self.seed = None if seed is None else check_seed(seed)
        first = check_integer("first_id", first_id, low=0, high=MAX_ID)
        if self.seed is None and first:
            raise ValueError(f"`first_id` must be 0 without a seed, got {first}")
        self._next: dict[Phase, int] = {"calibration": first, "test": first}
        self._born: int | None = _process

    def call(self) -> "Call":
        """Return the seed and the ids of one call."""
        return Call(self, secrets.randbits(64) if self.seed is None else self.seed)

    def copied(self) -> "Seeds":
        """Return what a copy of its owner gets; it is stale if there is a seed."""
        other = Seeds(self.seed)
        with _lock:
            other._next = dict(self._next)
        other._born = None
        return other

    def check_fresh(self, noun: str) -> None:
        """Refuse a seed whose ids another object or process hands out, too."""
        if self.seed is not None and self._born != _process:
            what = "a copy" if self._born is None else "a forked process"
            raise RuntimeError(
                f"a {noun} with `seed` must not predict in {what}, which would draw the noise "
                "of the original again; call reseed() on it, or make it without `seed`"
            )

    def next_id(self, phase: Phase) -> int:
        """Return the id that the next call would get with a seed."""
        return self._next[phase]

    def take(self, phase: Phase, n: int) -> int:
        """Return the first of n ids that no other call gets, whatever becomes of this one."""
        with _lock:
            first = self._next[phase]
            if first + n > MAX_ID:
                raise ValueError("the ids of this seed are used up; call reseed()")
            self._next[phase] = first + n
        return first


class Call:
    """The seed of one call, and its ids."""

    def __init__(self, source: Seeds, seed: int) -> None:
        self.seed = seed
        self._source = source
        self._process = _process
        self._own = 0
        self._first: int | None = None
        self.follows_another = False  # whether ids of its seed were taken before

    def take(self, phase: Phase, n: int) -> IntArray:
        """Return the ids of the next n inputs of the call, in the process that began it."""
        if self._process != _process:
            raise RuntimeError(
                "an iteration that was begun before a fork must go on in the parent process only, "
                "for both would draw the same noise; call predict_iter() in the forked process"
            )
        if self._source.seed is not None:
            first = self._source.take(phase, n)
            if self._first is None:
                self._first, self.follows_another = first, first > 0
        else:
            first, self._own = self._own, self._own + n
        return np.arange(first, first + n)
