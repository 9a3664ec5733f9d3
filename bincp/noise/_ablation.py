"""Ablation: parts of the input are blanked out, or deleted."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp.noise._copies import Copies, RandomCopy, copies_of, enumerates
from bincp.noise._keys import FloatArray, IntArray, Keys, core_key, more_words
from bincp.noise._samplers import FLOATS, FlatSampler, Sampler, chunks, samples
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
    np.take(x, sources, axis=0, out=out, mode="clip")  # other modes need a buffer
    images = out.reshape(len(out), -1, *kept.shape[2:])
    np.copyto(images, fill, where=~kept)


@samples(Ablation)
class _Ablation(FlatSampler):
    def __init__(self, smoothing: Ablation) -> None:
        self.keep, self.dim, self.fill_value = smoothing.keep, smoothing.dim, smoothing.fill

    def check(self, x: FloatArray) -> None:
        """Refuse inputs whose channels are not the leading axes.

        With the channels last, or flattened with several channels, what is kept together would be
        elements of different pixels: a pixel would be seen more often than the certificate says.
        """
        _check_value("fill", self.fill_value, x)
        sizes = [math.prod(x.shape[axis:]) for axis in range(1, x.ndim + 1)]
        if self.dim not in sizes:
            raise ValueError(
                f"`x` must have {self.dim} elements an input, flat or of any shape, or channels "
                f"first and {self.dim} pixels in the axes after them, as (n, channels, height, "
                f"width), for Ablation with dim = {self.dim}, got shape {x.shape}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        kept = np.empty((len(out), self.dim), np.uint8)
        _noise.keep(self.keep, *core_key(keys), kept)
        _keep(kept[:, None].view(bool), sources, x, out, self.fill_value)


class _Blocks:
    """Copies that keep a rectangle, which goes on at the opposite edge."""

    def __init__(self, shape: tuple[int, ...], size: tuple[int, ...], fill: float) -> None:
        self.shape, self.size, self.fill_value = shape, size, fill
        self.levels = math.prod(shape)
        self.dtypes = FLOATS

    def check(self, x: FloatArray) -> None:
        _check_value("fill", self.fill_value, x)
        axes = len(self.shape)
        if x.ndim <= axes or x.shape[-axes:] != self.shape:
            sizes = ", ".join(str(size) for size in self.shape)
            raise ValueError(
                f"`x` must have shape (n, ..., {sizes}), with channels before the pixels, "
                f"got {x.shape}"
            )

    def make(self, numbers: IntArray, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        corners = np.unravel_index(numbers, self.shape)
        kept: npt.NDArray[np.bool_] = np.ones((len(numbers), *[1] * len(self.shape)), dtype=bool)
        for axis, (length, size) in enumerate(zip(self.shape, self.size, strict=True)):
            inside = (np.arange(length) - corners[axis][:, None]) % length < size
            others = [1 + i for i in range(len(self.shape)) if i != axis]
            kept = kept & np.expand_dims(inside, others)
        _keep(kept[:, None], sources, x, out, self.fill_value)


@samples(Deletion)
class _Deletion(FlatSampler):
    def __init__(self, smoothing: Deletion) -> None:
        self.padding = smoothing.padding
        # Rounded up: a certificate for fewer deletions than were drawn still holds.
        threshold = math.ceil(Fraction(smoothing.p_delete) * 2**128)
        self.high, self.low = divmod(threshold, 2**64)

    def check(self, x: FloatArray) -> None:
        _check_value("padding", self.padding, x)
        if x.ndim != 2:
            raise ValueError(
                "`x` must have shape (n, length), one token an element, for Deletion, "
                f"got {x.shape}"
            )
        padding = x == self.padding
        late = padding[:, :-1] & ~padding[:, 1:]
        if late.any():
            row, place = (int(i) for i in np.argwhere(late)[0])
            raise ValueError(
                f"`x` must have the padding {self.padding:g} only at the end of a sequence, "
                f"got {x[row, place + 1]} after it at index {(row, place + 1)}"
            )

    def fill_rows(self, keys: Keys, sources: IntArray, x: FloatArray, out: FloatArray) -> None:
        out[:] = self.padding
        if self.high == 2**64:  # no word is that large
            return
        for rows in chunks(len(out), x.shape[1]):
            tokens = x[sources[rows]]
            kept = self._spared(keys[rows], x.shape[1]) & (tokens != self.padding)
            for row, left, which in zip(out[rows], tokens, kept, strict=True):
                row[: which.sum()] = left[which]

    def _spared(self, keys: Keys, n: int) -> npt.NDArray[np.bool_]:
        """Return which tokens are not deleted: those whose 128 bits reach the threshold."""
        words = keys.words(n)
        spared, ties = words > np.uint64(self.high), words == np.uint64(self.high)
        if ties.any():
            spared |= ties & (more_words(keys, n) >= np.uint64(self.low))
        return spared


@enumerates(BlockAblation)
def _blocks(smoothing: BlockAblation) -> Copies:
    shape, size = (smoothing.height, smoothing.width), (smoothing.size, smoothing.size)
    return _Blocks(shape, size, smoothing.fill)


@enumerates(BandAblation)
def _bands(smoothing: BandAblation) -> Copies:
    return _Blocks((smoothing.width,), (smoothing.size,), smoothing.fill)


@samples(BlockAblation, BandAblation)
def _random_block(smoothing: BlockAblation | BandAblation) -> Sampler:
    return RandomCopy(copies_of(smoothing))
