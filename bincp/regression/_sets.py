"""Sets of real labels, one for each input, as unions of closed intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bincp._core import _sweep
from bincp._utils.arrays import ArrayLike, as_counts, where
from bincp._utils.validation import check_integer
from bincp.regression._scores import as_doubles, as_labels

Array = npt.NDArray[np.float64]

# Ends are sorted a block at a time, which stays in the cache of the CPU.
_BLOCK_ENDS = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class IntervalSets:
    """Sets of real numbers, each a union of closed intervals.

    The pieces of set i are ``[left[p], right[p]]`` for ``offsets[i] <= p < offsets[i + 1]``. They
    ascend and do not meet. A set without a piece is empty. A piece may be one point, and its ends
    may be infinite: ``[-inf, inf]`` is the line.

    Parameters
    ----------
    offsets : array_like of int (n + 1,)
        From 0 to the number of pieces, not decreasing.
    left, right : array_like of float
        Ends of the pieces, in their order; not NaN.

    Attributes
    ----------
    offsets : int64 array (n + 1,)
    left, right : float64 array
        Copies that cannot be written to.

    Raises
    ------
    TypeError
        If the offsets are not integers, or the ends not real numbers.
    ValueError
        If shapes do not fit, an end is NaN, a piece holds no real number, or two pieces of a set
        meet or do not ascend.

    Notes
    -----
    An object never changes, so threads may share it.

    Examples
    --------
    >>> from bincp.regression import IntervalSets
    >>> sets = IntervalSets.from_ends([[0.0, 1.0, 5.0]], [[2.0, 3.0, 6.0]], 1)
    >>> sets[0]
    array([[0., 3.],
           [5., 6.]])
    >>> sets.widths(), sets.hulls()[0]
    (array([4.]), array([[0., 6.]]))
    >>> sets.contains([2.5]), sets.contains([4.0])
    (array([ True]), array([False]))
    """

    offsets: npt.NDArray[np.int64]
    left: Array
    right: Array

    def __post_init__(self) -> None:
        left, right = (as_doubles(name, getattr(self, name)).copy() for name in ("left", "right"))
        _refuse_nan("left", left)
        _refuse_nan("right", right)
        if left.shape != right.shape or left.ndim != 1:
            raise ValueError(
                f"`left` and `right` must have one shape (pieces,), got {left.shape} and "
                f"{right.shape}"
            )
        offsets = as_counts("offsets", self.offsets, high=len(left))
        if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or offsets[-1] != len(left):
            raise ValueError(
                f"`offsets` must have shape (n + 1,) and go from 0 to {len(left)}, "
                f"got {offsets.tolist()}"
            )
        if (np.diff(offsets) < 0).any():
            raise ValueError(f"`offsets` must not decrease, got {offsets.tolist()}")
        _check_pieces(offsets, left, right)
        for name, array in (("offsets", offsets), ("left", left), ("right", right)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_ends(cls, left: ArrayLike, right: ArrayLike, min_count: int) -> Self:
        """Return the points that lie in at least so many of the m closed intervals of each set.

        Parameters
        ----------
        left, right : array_like of float (n, m)
            Ends of the intervals, possibly infinite, not NaN. An interval whose ends are crossed is
            empty, as is one whose ends are the same infinity.
        min_count : int
            k, in [0, m + 1]. 0 gives the line, m + 1 the empty set.

        Returns
        -------
        IntervalSets
            At most m - k + 1 pieces a set, and each is as long as can be.

        Raises
        ------
        TypeError
            If an argument has a wrong type.
        ValueError
            If an end is NaN (the message says where), the shapes differ or are not (n, m), or
            `min_count` is out of range.

        Notes
        -----
        O(m log m) for a set: both kinds of ends are sorted, and read once.

        Examples
        --------
        >>> IntervalSets.from_ends([[0.0, 1.0], [0.0, 3.0]], [[2.0, 3.0], [1.0, 2.0]], 2)
        IntervalSets([1, 2]; empty)
        """
        first, last = as_doubles("left", left), as_doubles("right", right)
        if first.ndim != 2 or first.shape != last.shape or 0 in first.shape:
            raise ValueError(
                "`left` and `right` must have one shape (n, m) with n, m >= 1, "
                f"got {first.shape} and {last.shape}"
            )
        k = check_integer("min_count", min_count, low=0, high=first.shape[1] + 1)
        return cls._swept(first, last, k)

    @classmethod
    def _swept(cls, left: Array, right: Array, k: int) -> Self:
        """Sweep over ends (n, m), which are refused if one is NaN."""
        n, m = left.shape
        rows = max(_BLOCK_ENDS // m, 1)
        room = rows * max(m - k + 1, 0)
        starts, stops, offsets = np.empty(room), np.empty(room), np.empty(rows + 1, np.int64)
        found: list[tuple[Array, Array]] = []
        all_offsets = np.zeros(n + 1, np.int64)
        for first in range(0, n, rows):
            a, b = (side[first : first + rows].copy() for side in (left, right))
            if _sweep.mark_empty(a.reshape(-1), b.reshape(-1)):
                _refuse_nan("left", left)
                _refuse_nan("right", right)
                raise ValueError("`left` and `right` must not be NaN, got one that was changed")
            if not 1 <= k <= m:
                continue
            a.sort(axis=1)
            b.sort(axis=1)
            size = len(a) * (m - k + 1)
            own = offsets[: len(a) + 1]
            n_pieces = _sweep.sweep(a, b, k, starts[:size], stops[:size], own)
            found.append((starts[:n_pieces].copy(), stops[:n_pieces].copy()))
            all_offsets[first + 1 : first + len(own)] = all_offsets[first] + own[1:]
        if k == 0:
            return cls.lines(n)
        if not found:  # k is beyond m, or there is no set
            return cls._made(all_offsets, np.empty(0), np.empty(0))
        parts = zip(*found, strict=True)
        return cls._made(all_offsets, *(np.concatenate(part) for part in parts))

    @classmethod
    def _made(cls, offsets: npt.NDArray[np.int64], left: Array, right: Array) -> Self:
        """Return sets of arrays that nobody else holds and that need no check."""
        made = object.__new__(cls)
        for name, array in (("offsets", offsets), ("left", left), ("right", right)):
            array.flags.writeable = False
            object.__setattr__(made, name, array)
        return made

    @classmethod
    def _joined(cls, parts: Sequence["IntervalSets"]) -> Self:
        """Return the sets of all parts in their order."""
        starts = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
        left, right = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("left", "right")
        )
        return cls._made(np.concatenate([[0], *offsets]), left, right)

    @classmethod
    def lines(cls, n: int) -> Self:
        """Return n times the whole line, the set that rules out nothing.

        Parameters
        ----------
        n : int
            At least 0.

        Returns
        -------
        IntervalSets

        Examples
        --------
        >>> IntervalSets.lines(2)
        IntervalSets([-inf, inf]; [-inf, inf])
        """
        size = check_integer("n", n, low=0)
        return cls._made(np.arange(size + 1), np.full(size, -np.inf), np.full(size, np.inf))

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.offsets, self.left, self.right)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Array:
        """Return the pieces of set i as an array (pieces, 2)."""
        n = len(self)
        try:
            place = check_integer("i", i, low=-n, high=n - 1)
        except ValueError as error:
            raise IndexError(str(error)) from None
        row = slice(*self.offsets[place % n : place % n + 2])
        return np.stack([self.left[row], self.right[row]], axis=1)

    def __repr__(self) -> str:
        shown = [
            " u ".join(f"[{a:.6g}, {b:.6g}]" for a, b in self[i]) or "empty"
            for i in range(min(len(self), 5))
        ]
        return f"IntervalSets({'; '.join(shown)}{'; ...' if len(self) > 5 else ''})"

    @property
    def n_pieces(self) -> npt.NDArray[np.int64]:
        """The number of pieces of each set, (n,); 0 for an empty one."""
        return np.diff(self.offsets)

    def contains(self, y: ArrayLike) -> npt.NDArray[np.bool_]:
        """Return which sets hold their label.

        Parameters
        ----------
        y : array_like (n,) or (n, q), or a number
            Finite labels: one for each set, several for each, or one for all.

        Returns
        -------
        bool array (n,) or (n, q)

        Raises
        ------
        TypeError, ValueError
            If the labels are not finite real numbers, or do not fit.
        """
        labels = as_labels("y", y)
        n = len(self)
        if labels.ndim == 0:
            labels = np.broadcast_to(labels, (n,))
        if labels.ndim not in (1, 2) or len(labels) != n:
            raise ValueError(f"`y` must have shape ({n},) or ({n}, q), got {labels.shape}")
        own = labels[np.repeat(np.arange(n), self.n_pieces)]
        shape = (-1,) + (1,) * (labels.ndim - 1)
        held = (self.left.reshape(shape) <= own) & (own <= self.right.reshape(shape))
        # The pieces of a set do not meet, so at most one of them holds the label.
        before = np.zeros((len(held) + 1, *labels.shape[1:]), np.int64)
        np.cumsum(held, axis=0, out=before[1:])
        return np.asarray(before[self.offsets[1:]] > before[self.offsets[:-1]])

    def widths(self) -> Array:
        """Return the total length of each set: 0 for an empty one, possibly infinite; (n,)."""
        rows = np.repeat(np.arange(len(self)), self.n_pieces)
        with np.errstate(over="ignore"):
            widths = np.bincount(rows, self.right - self.left, minlength=len(self))
        return widths.astype(np.float64, copy=False)  # integers where there is no piece

    def hulls(self) -> "IntervalSets":
        """Return the least interval around each set; an empty set stays empty.

        A set in it keeps its coverage: the hull is a superset.
        """
        there = self.n_pieces > 0
        offsets = np.append(0, np.cumsum(there))
        first, last = self.offsets[:-1][there], self.offsets[1:][there] - 1
        return self._made(offsets, self.left[first], self.right[last])

    def intersection(self, other: "IntervalSets") -> "IntervalSets":
        """Return what both of two sets hold, for each input.

        Where each of the two covers its label but for a probability, the intersection covers it but
        for the sum of the two.

        Parameters
        ----------
        other : IntervalSets
            As many sets.

        Returns
        -------
        IntervalSets

        Raises
        ------
        TypeError, ValueError
            If `other` is of another type or length.

        Examples
        --------
        >>> above = IntervalSets.from_ends([[97.0]], [[float("inf")]], 1)
        >>> below = IntervalSets.from_ends([[float("-inf")]], [[230.0]], 1)
        >>> above.intersection(below)
        IntervalSets([97, 230])
        """
        if not isinstance(other, IntervalSets):
            raise TypeError(f"`other` must be IntervalSets, got {type(other).__name__}")
        if len(other) != len(self):
            raise ValueError(f"`other` must have {len(self)} sets, got {len(other)}")
        n, both = len(self), (self, other)
        rows = np.concatenate([np.repeat(np.arange(n), sets.n_pieces) for sets in both])
        left, right = (
            np.concatenate([s.left for s in both]),
            np.concatenate([s.right for s in both]),
        )
        by_left, by_right = np.lexsort((left, rows)), np.lexsort((right, rows))
        # Pieces of one set do not meet. So no point is in more than two, and those where two
        # overlap do not meet, either: each begins at a start that comes before the last stop.
        row, start, stop = rows[by_left][1:], left[by_left][1:], right[by_right][:-1]
        overlap = (row == rows[by_left][:-1]) & (start <= stop)
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(row[overlap], minlength=n), out=offsets[1:])
        return self._made(offsets, start[overlap], stop[overlap])


def _refuse_nan(name: str, ends: Array) -> None:
    bad = np.isnan(ends)
    if bad.any():
        raise ValueError(f"`{name}` must not be NaN, got one {where(bad)}")


def _check_pieces(offsets: npt.NDArray[np.int64], left: Array, right: Array) -> None:
    bad = ~(left <= right) | ((left == right) & np.isinf(left))
    if bad.any():
        p = int(np.argmax(bad))
        raise ValueError(
            f"`left` and `right` must be the ends of pieces that hold a real number, got "
            f"[{left[p]}, {right[p]}] {where(bad)}"
        )
    meets = np.zeros(len(left) + 1, np.bool_)
    meets[1:-1] = left[1:] <= right[:-1]
    meets[offsets] = False  # the first piece of a set follows that of another one
    if meets.any():
        raise ValueError(
            f"`left` and `right` must be ends of pieces that ascend and do not meet, got others "
            f"{where(meets)}"
        )
