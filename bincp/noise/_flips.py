"""Coordinates that change their value at random."""

import math

import numpy as np

from bincp._core import _noise
from bincp._utils.arrays import where
from bincp.noise._keys import FloatArray, IntArray, Keys, core_key
from bincp.noise._samplers import FlatSampler, sampler_of, samples
from bincp.smoothing import CategoricalFlip, Joint, Smoothing, SparseFlip


@samples(SparseFlip)
class _Flips(FlatSampler):
    def __init__(self, smoothing: SparseFlip) -> None:
        self.p_plus, self.p_minus = smoothing.p_plus, smoothing.p_minus

    def check(self, x: FloatArray) -> None:
        bad = (x != 0) & (x != 1)
        if bad.any():
            raise ValueError(
                f"`x` must be zeros and ones for SparseFlip, got {x[bad][0]} {where(bad)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        _noise.flip(self.p_plus, self.p_minus, *core_key(keys), sources, x, out)


@samples(CategoricalFlip)
class _Categories(FlatSampler):
    def __init__(self, smoothing: CategoricalFlip) -> None:
        self.k = smoothing.k
        self.p_plus, self.p_minus = smoothing.p_plus, smoothing.p_minus

    def check(self, x: FloatArray) -> None:
        bad = ~((x >= 0) & (x < self.k) & (x == np.floor(x)))
        if bad.any():
            raise ValueError(
                f"`x` must be whole numbers in [0, {self.k - 1}] for CategoricalFlip, "
                f"got {x[bad][0]} {where(bad)}"
            )
        self._check_not_one_hot(x)

    def _check_not_one_hot(self, x: FloatArray) -> None:
        """Refuse one-hot vectors: zeros and ones are codes, too, but a change moves two of them.

        The certificate counts a changed category once. Inputs (n, length) are codes whatever they
        hold.
        """
        for axis in range(1, x.ndim) if x.ndim > 2 else ():
            if x.shape[axis] == self.k and (x.sum(axis=axis) == 1).all():
                raise ValueError(
                    "`x` must hold codes, one element a position, for CategoricalFlip, got "
                    f"one-hot vectors along axis {axis}: use x.argmax({axis}); codes that only "
                    "look like them must have shape (n, length)"
                )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        key = core_key(keys)
        _noise.change_categories(self.k, self.p_plus, self.p_minus, *key, sources, x, out)


@samples(Joint)
class _Parts(FlatSampler):
    """Flips whose scheme differs between parts of the input.

    Noise belongs to positions: each scheme is drawn for the row up to the end of its part, so that
    no two parts share a random number. Flips of all kinds agree on the words of a position; other
    schemes do not, and are refused.
    """

    def __init__(self, smoothing: Joint) -> None:
        self.smoothing = smoothing
        self.samplers = {flips: sampler_of(flips) for flips in _joined(smoothing)}

    def check(self, x: FloatArray) -> None:
        slab = math.prod(x.shape[2:])
        for scheme, start, stop in _spans(self.smoothing, 0, x.shape[1] * slab):
            if start % slab:
                raise ValueError(
                    "`x` must be flat, or have its parts one after the other along axis 1, for "
                    f"Joint, got shape {x.shape} with a part that begins at element {start}"
                )
            if start < stop:  # in the shape of the input, which tells one-hot vectors from codes
                self.samplers[scheme].check(x[:, start // slab : stop // slab])

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        # From the last part to the first: a part overwrites what others drew before it.
        for scheme, _, stop in reversed(_spans(self.smoothing, 0, x.shape[1])):
            leading = np.ascontiguousarray(x[:, :stop])
            drawn = out if stop == x.shape[1] else np.empty((len(out), stop), out.dtype)
            self.samplers[scheme].fill(keys, sources, leading, drawn)
            out[:, :stop] = drawn


def _joined(smoothing: Smoothing) -> list[Smoothing]:
    """Return the schemes that are joined, and refuse those that are no flips."""
    if isinstance(smoothing, Joint):
        return _joined(smoothing.adjacency) + _joined(smoothing.attributes)
    if not isinstance(smoothing, SparseFlip | CategoricalFlip):
        raise TypeError(
            "`smoothing` must join SparseFlip, CategoricalFlip or Joint to be drawn, got "
            f"{smoothing!r}: draw each part by itself, with a seed of its own"
        )
    return [smoothing]


def _spans(smoothing: Smoothing, start: int, stop: int) -> list[tuple[Smoothing, int, int]]:
    """Return the schemes that are joined, each with the positions that it acts on, in order."""
    if not isinstance(smoothing, Joint):
        return [(smoothing, start, stop)]
    if smoothing.n_adjacency is None:
        raise ValueError(
            "`smoothing` must say how many leading elements of an input are the adjacency: "
            "Joint(..., n_adjacency=...)"
        )
    middle = start + smoothing.n_adjacency
    if middle > stop:
        raise ValueError(
            f"`x` must have at least n_adjacency = {smoothing.n_adjacency} elements an input, "
            f"got {stop - start}"
        )
    return _spans(smoothing.adjacency, start, middle) + _spans(smoothing.attributes, middle, stop)
