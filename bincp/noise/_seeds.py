"""Whose noise is whose: the seed and the ids that each call of a predictor gets."""

import os
import secrets
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from bincp._core._noise import MAX_ID
from bincp._utils.estimators import Estimator
from bincp._utils.validation import check_integer
from bincp.noise._keys import IntArray, Phase, check_seed

_lock = Lock()
_forks = 0

Process: TypeAlias = tuple[int, int]


def _process() -> Process:
    """Return what tells this process from those that it was forked from.

    Code in C may fork without the hooks of Python, as some servers do; numbers of processes alone
    come back.
    """
    return os.getpid(), _forks


def _after_fork() -> None:
    global _lock, _forks
    _lock = Lock()  # another thread may have held it, which does not live here
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass
class _Stream:
    """The next ids of one seed, and the process that hands them out: None for another object."""

    next: dict[Phase, int]
    born: Process | None

    @classmethod
    def begun(cls, first: int, born: Process | None) -> "_Stream":
        return cls({"calibration": first, "test": first}, born)

    @property
    def is_ours(self) -> bool:
        return self.born == _process()

    @property
    def free(self) -> int:
        """The first id that is free in all phases."""
        return max(self.next.values())


class Seeds:
    """Where the noise of an estimator comes from.

    Without a seed each call draws one of its own from the system, and nothing must be remembered.
    With one, calls share it and take the ids one after the other. The ids of a seed that comes back
    go on where they stopped. A copy, a clone and a forked process would hand out the same ids
    again: for them all seeds of the original are another's.
    """

    def __init__(self, seed: int | None, first_id: int = 0) -> None:
        self.seed = None if seed is None else check_seed(seed)
        self._first = check_integer("first_id", first_id, low=0, high=MAX_ID)
        if self.seed is None and self._first:
            raise ValueError(f"`first_id` must be 0 without a seed, got {self._first}")
        self._born: Process | None = _process()
        self._used: dict[int, _Stream] = {}  # seeds that ids were taken of

    def call(self) -> "Call":
        """Return the seed and the ids of one call."""
        return Call(self, secrets.randbits(64) if self.seed is None else self.seed)

    def copied(self, seed: int | None) -> "Seeds":
        """Return what a copy or a clone with a seed gets."""
        other = Seeds(seed)
        other._born = None
        with _lock:
            known = {one: dict(stream.next) for one, stream in self._used.items()}
        for one, first in ((self.seed, self._first), (other.seed, 0)):
            if one is not None:
                ids = known.setdefault(one, _Stream.begun(0, None).next)
                known[one] = {phase: max(n, first) for phase, n in ids.items()}
        other._used = {one: _Stream(ids, None) for one, ids in known.items()}
        return other

    def reseeded(self, seed: int | None, first_id: int | None = None) -> "Seeds":
        """Return what the same object gets with another seed, or with one that it had before."""
        made = Seeds(seed, 0 if first_id is None else first_id)
        made._used = self._used
        with _lock:
            if self.seed is not None:  # what lies below its first id may be in use elsewhere
                begun = self._used.setdefault(self.seed, _Stream.begun(self._first, self._born))
                begun.next = {phase: max(n, self._first) for phase, n in begun.next.items()}
            known = None if made.seed is None else self._used.get(made.seed)
            foreign = known is not None and not known.is_ours
            low = 0 if known is None else known.free
        if foreign and first_id is None:
            raise ValueError(
                f"`first_id` must be beyond all ids in use (at least {low}) for a seed that "
                "another object or process draws with, got None"
            )
        if first_id is not None:
            check_integer("first_id", first_id, low=low, high=MAX_ID)
        return made

    def check_fresh(self, noun: str, name: str = "seed") -> None:
        """Refuse a seed whose ids another object or process hands out, too.

        For the message, the owner is called by a noun, and the seed by the name of its argument.
        """
        if self.seed is not None and self._born != _process():
            what = "a copy or clone" if self._born is None else "a forked process"
            raise RuntimeError(
                f"a {noun} with `{name}` must not draw in {what}, which would repeat the noise "
                f"of the original; call reseed() on it, or make it without `{name}`"
            )

    @property
    def free(self) -> int:
        """The first id of the seed that is free in all phases, whoever hands its ids out."""
        stream = None if self.seed is None else self._used.get(self.seed)
        return self._first if stream is None else max(self._first, stream.free)

    def next_id(self, phase: Phase) -> int:
        """Return the id that the next call would get with a seed."""
        stream = None if self.seed is None else self._used.get(self.seed)
        taken = 0 if stream is None or not stream.is_ours else stream.next[phase]
        return max(self._first, taken)

    def take(self, phase: Phase, n: int) -> int:
        """Return the first of n ids that no other call gets, whatever becomes of this one."""
        assert self.seed is not None
        with _lock:
            first = self.next_id(phase)
            if first + n > MAX_ID:
                raise ValueError("the ids of this seed are used up; call reseed()")
            stream = self._used.get(self.seed)
            if stream is None or not stream.is_ours:
                stream = self._used[self.seed] = _Stream.begun(self._first, _process())
            stream.next[phase] = first + n
        return first


class Call:
    """The seed of one call, and its ids."""

    def __init__(self, source: Seeds, seed: int) -> None:
        self.seed = seed
        self._source = source
        self._process = _process()
        self._own = 0
        self._first: int | None = None
        self.follows_another = False  # whether ids of its seed were taken before

    def take(self, phase: Phase, n: int) -> IntArray:
        """Return the ids of the next n inputs of the call, in the process that began it."""
        if self._process != _process():
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


class Seeded(Estimator):
    """An estimator that draws noise: no two calls share it, of whatever copy, clone or process."""

    _seeds: Seeds
    _seed_name: ClassVar[str] = "seed"  # of the argument

    def _call(self, noun: str) -> Call:
        """Return the seed and the ids of one call, or refuse it; the noun is for the message."""
        seeds = self._seeds  # also if another thread assigns others meanwhile
        seeds.check_fresh(noun, self._seed_name)
        return seeds.call()

    def __getstate__(self) -> dict[str, Any]:
        # For copies and pickles.
        return {**self.__dict__, "_seeds": self._seeds.copied(self._seeds.seed)}

    def __sklearn_clone__(self) -> Self:
        made = super().__sklearn_clone__()
        made._seeds = self._seeds.copied(made._seeds.seed)
        return made

    def _become(self, other: Self) -> None:
        # Ids that were handed out stay so, unless the seed is another one.
        seeds, seed = self._seeds, other._given().get(self._seed_name)
        if self._given().get(self._seed_name) != seed:
            seeds = seeds.reseeded(seed)
        super()._become(other)
        self._seeds = seeds

    def reseed(self, seed: int | None = None, *, first_id: int | None = None) -> Self:
        """Give the noise to come another seed, such as in a copy, a clone or a forked process.

        Calls of other threads that are under way keep their noise.

        Parameters
        ----------
        seed : int, optional
            In [0, 2**64). By default each call draws a secret seed of its own.
        first_id : int, optional
            The first id that is handed out, in each phase. By default 0, or for a seed that this
            object had before, the first that no call got and that is not below its first id then.
            For a seed that is in use elsewhere, one that no call was given.

        Returns
        -------
        object
            The object itself.

        Raises
        ------
        TypeError, ValueError
            If an argument is out of range; if `first_id` is given without a seed, or is below an id
            that was handed out or the first id that the seed had here before; or if it is not given
            in a copy, a clone or a forked process for a seed of the original.
        """
        self._seeds = self._seeds.reseeded(seed, first_id)
        return self
