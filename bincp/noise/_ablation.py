"""Ablation: parts of the input are blanked out, or deleted."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp.noise._copies import Copies, RandomCopy, copies_of
from bincp.noise._keys import FloatArray, IntArray, random_words
from bincp.noise._laws import Law, law_of
from bincp.smoothing import Ablation, BandAblation, BlockAblation, Deletion


def _check_value(name: str, value: float, x: FloatArray) -> None:
    if abs(value) > float(np.finfo(x.dtype).max):
        raise ValueError(f"`{name}` must be a number that {x.dtype} can hold, got {value:g}")


def _keep(
    kept: npt.NDArray[np.bool_], sources: IntArray, x: FloatArray, out: FloatArray, fill: float
) -> None:
    """Write the rows ``x[sources]`` to ``out``, with ``fill`` where they are not kept.

    ``kept`` has shape (rows, 1, ...): the same places are kept in each channel.
    """
    np.take(x, sources, axis=0, out=out, mode="clip")  # the mode that needs no buffer
    images = out.reshape(len(out), -1, *kept.shape[2:])
    np.copyto(images, fill, where=~kept)


class _Ablation:
    def __init__(self, smoothing: Ablation) -> None:
        self.keep, self.dim, self.fill_value = smoothing.keep, smoothing.dim, smoothing.fill

    def check(self, x: FloatArray) -> None:
        _check_value("fill", self.fill_value, x)
        elements = x.size // len(x)
        if elements % self.dim:
            raise ValueError(
                f"`x` must have {self.dim} elements an input, or that for each channel, "
                f"got shape {x.shape}"
            )

    def fill(
        self,
        seed: int,
        stream: int,
        ids: IntArray,
        draws: IntArray,
        sources: IntArray,
        x: FloatArray,
        out: FloatArray,
    ) -> None:
        kept = np.empty((len(out), self.dim), np.uint8)
        _noise.keep(self.keep, seed, stream, ids, draws, kept)
        _keep(kept[:, None].view(bool), sources, x, out, self.fill_value)


class _Blocks:
    """Copies that keep a rectangle, which goes on at the opposite edge."""

    def __init__(self, shape: tuple[int, ...], size: tuple[int, ...], fill: float) -> None:
        self.shape, self.size, self.fill_value = shape, size, fill
        self.levels = math.prod(shape)

    def check(self, x: FloatArray) -> None:
        _check_value("fill", self.fill_value, x)
        axes = len(self.shape)
        if x.ndim <= axes or x.shape[-axes:] != self.shape:
            sizes = ", ".join(str(size) for size in self.shape)
            raise ValueError(f"`x` must have shape (n, ..., {sizes}), got {x.shape}")

    def make(self, numbers: IntArray, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        corners = np.unravel_index(numbers, self.shape)
        kept: npt.NDArray[np.bool_] = np.ones((len(numbers), *[1] * len(self.shape)), dtype=bool)
        for axis, (length, size) in enumerate(zip(self.shape, self.size, strict=True)):
            inside = (np.arange(length) - corners[axis][:, None]) % length < size
            others = [1 + i for i in range(len(self.shape)) if i != axis]
            kept = kept & np.expand_dims(inside, others)
        _keep(kept[:, None], sources, x, out, self.fill_value)


class _Deletion:
    def __init__(self, smoothing: Deletion) -> None:
        self.padding = smoothing.padding
        # Rounded up: a certificate for fewer deletions than were drawn still holds.
        self.threshold = -int(-Fraction(smoothing.p_delete) * 2**64 // 1)

    def check(self, x: FloatArray) -> None:
        _check_value("padding", self.padding, x)
        if x.ndim != 2:
            raise ValueError(f"`x` must have shape (n, length) for Deletion, got {x.shape}")
        padding = x == self.padding
        late = padding[:, :-1] & ~padding[:, 1:]
        if late.any():
            row, place = (int(i) for i in np.argwhere(late)[0])
            raise ValueError(
                f"`x` must have the padding {self.padding:g} only at the end of a sequence, "
                f"got {x[row, place + 1]} after it at index {(row, place + 1)}"
            )

    def fill(
        self,
        seed: int,
        stream: int,
        ids: IntArray,
        draws: IntArray,
        sources: IntArray,
        x: FloatArray,
        out: FloatArray,
    ) -> None:
        out[:] = self.padding
        if self.threshold == 2**64:  # no word is that large
            return
        for r, source in enumerate(sources):
            word = random_words(seed, stream, ids[r : r + 1], draws[r : r + 1], x.shape[1])[0]
            left = x[source][(x[source] != self.padding) & (word >= np.uint64(self.threshold))]
            out[r, : len(left)] = left


@law_of.register
def _(smoothing: Ablation) -> Law:
    return _Ablation(smoothing)


@law_of.register
def _(smoothing: Deletion) -> Law:
    return _Deletion(smoothing)


@copies_of.register
def _(smoothing: BlockAblation) -> Copies:
    shape, size = (smoothing.height, smoothing.width), (smoothing.size, smoothing.size)
    return _Blocks(shape, size, smoothing.fill)


@copies_of.register
def _(smoothing: BandAblation) -> Copies:
    return _Blocks((smoothing.width,), (smoothing.size,), smoothing.fill)


@law_of.register(BlockAblation)
@law_of.register(BandAblation)
def _(smoothing: BlockAblation | BandAblation) -> Law:
    return RandomCopy(copies_of(smoothing))
