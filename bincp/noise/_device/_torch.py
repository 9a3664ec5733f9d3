"""Noise in torch operations, on any device that has int64 and float64.

Equal to csrc/noise to the bit, with the names that are used there. Words are int64, of which the
low 32 bits count: products of two words wrap around, and lose no bit that is read. Float operations
are those of the C code, one by one, so that nothing is fused; never compile these functions. Two
operations of torch are not correctly rounded everywhere, and are avoided: square roots in float32,
and quotients by a number of Python, which CUDA takes for products by the reciprocal.
"""

from typing import NamedTuple

import torch

from bincp._core import _noise

LANES = 16
GROUP = 4 * LANES

_WORD = 2**32 - 1
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_SQRT_HALF = 0x3F3504F3
_LOGARITHM = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_SINE = -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1
_COSINE = 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2
_ANGLE = 1.4629180792671596e-9  # (pi/2) 2^-30


class RowKeys(NamedTuple):
    """The keys of rows of noise, and the inputs that the rows are draws of."""

    seed: int
    stream: int
    rows: torch.Tensor  # int64 (3, rows): which input, its id, the number of its draw

    def some(self, which: slice | torch.Tensor) -> "RowKeys":
        """Return the keys of some of the rows."""
        return self._replace(rows=self.rows[:, which])


def words_of(keys: RowKeys, counters: torch.Tensor, added: int = 0) -> list[torch.Tensor]:
    """Return the four words of counters (rows, n) or (1, n), each of shape (rows, n).

    ``added`` goes to the stream.
    """
    ids, draws = keys.rows[1, :, None], keys.rows[2, :, None]
    c0, c1 = counters & _WORD, draws & _WORD
    c2, c3 = ids & _WORD, (ids >> 32) | (keys.stream | added) << 24
    k0, k1 = keys.seed & _WORD, keys.seed >> 32
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = _high(product1) ^ c1 ^ k0, _high(product0) ^ c3 ^ k1
        c1, c3 = product1 & _WORD, product0 & _WORD
        k0, k1 = (k0 + _WEYL[0]) & _WORD, (k1 + _WEYL[1]) & _WORD
    return [c0, c1, c2, c3]


def _high(product: torch.Tensor) -> torch.Tensor:
    return (product >> 32) & _WORD


def in_order(numbers: list[torch.Tensor]) -> torch.Tensor:
    """Return what belongs to the four words of counters in the order of the elements."""
    rows = numbers[0].shape[0]
    return torch.stack([part.view(rows, -1, LANES) for part in numbers], dim=2).view(rows, -1)


# ---- noise in floats (csrc/noise/laws.c) ---------------------------------------------------------


def float_noise(law: int, words: list[torch.Tensor]) -> torch.Tensor:
    """Return the float32 noise of scale 1 of the elements that these words belong to."""
    if law == _noise.GAUSSIAN:
        return in_order([*box_muller(words[0], words[1]), *box_muller(words[2], words[3])])
    return (laplace if law == _noise.LAPLACE else symmetric)(in_order(words))


def box_muller(
    radius_word: torch.Tensor, angle_word: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    radius = radius_of(radius_word)
    turned = angle_word + 0x20000000
    quadrant = (turned >> 30) & 3
    t = ((turned & 0x3FFFFFFF) - 0x20000000).float() * _ANGLE
    z = t * t
    sine = ((z * _SINE[0] + _SINE[1]) * z + _SINE[2]) * z * t + t
    cosine = ((z * _COSINE[0] + _COSINE[1]) * z + _COSINE[2]) * z * z - z * 0.5 + 1.0
    odd = (quadrant & 1).bool()
    along, across = torch.where(odd, sine, cosine), torch.where(odd, cosine, sine)
    along = torch.where(((quadrant + 1) & 2).bool(), -along, along)
    across = torch.where((quadrant & 2).bool(), -across, across)
    return radius * along, radius * across


def radius_of(word: torch.Tensor) -> torch.Tensor:
    squared = _log_unit(_centred(word) * 2.0**-32) * -2.0
    return squared.double().sqrt().float()  # twice rounded, as well as once


def laplace(word: torch.Tensor) -> torch.Tensor:
    magnitude = -_log_unit(_centred(word & 0x7FFFFFFF) * 2.0**-31)
    return torch.where((word >> 31).bool(), -magnitude, magnitude)


def symmetric(word: torch.Tensor) -> torch.Tensor:
    high = ((word ^ 0x80000000) >> 16) - 32768
    return _joined(high, word) * 2.0**-31


def _centred(word: torch.Tensor) -> torch.Tensor:
    return _joined(word >> 16, word)


def _joined(high: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
    return high.float() * 65536.0 + ((word & 0xFFFF).float() + 0.5)


def _log_unit(u: torch.Tensor) -> torch.Tensor:
    shifted = u.view(torch.int32) + (0x3F800000 - _SQRT_HALF)
    e = ((shifted >> 23) - 127).float()
    x = ((shifted & 0x007FFFFF) + _SQRT_HALF).view(torch.float32) - 1.0
    z = x * x
    y = x * _LOGARITHM[0] + _LOGARITHM[1]
    for coefficient in _LOGARITHM[2:]:
        y = y * x + coefficient
    y = y * x * z
    y = y + e * -2.12194440e-4
    y = y - z * 0.5
    return (x + y) + e * 0.693359375


# ---- integer noise (csrc/noise/grid.c) -----------------------------------------------------------

_TIE_STREAMS = 0x40, 0x80, 0xC0


def grid_noise(
    entry: torch.Tensor, low: torch.Tensor, keys: RowKeys, counters: torch.Tensor
) -> torch.Tensor:
    """Return the columns of a table that are drawn for the elements of counters (1, n).

    ``entry`` (2^bits,) and ``low`` (2^bits, 3) are those of the table, as int64.
    """
    mask = len(entry) - 1
    words = in_order(words_of(keys, counters))
    columns = words & mask
    entries = entry[columns]
    drawn = torch.minimum(words, entries) & mask
    rows, places = ((words ^ entries) <= mask).nonzero(as_tuple=True)
    if len(rows):  # one in 2^(32 - bits)
        column, other = columns[rows, places], entries[rows, places] & mask
        less = _is_less(low[column], keys.some(rows), counters[0], places)
        drawn[rows, places] = torch.where(less, column, other)
    return drawn


def _is_less(
    low: torch.Tensor, keys: RowKeys, counters: torch.Tensor, places: torch.Tensor
) -> torch.Tensor:
    """Say for each tie if its other 96 bits are below those of the threshold of its column."""
    own = counters[places // GROUP * LANES + places % LANES]
    part = places % GROUP // LANES
    less = torch.zeros_like(places, dtype=torch.bool)
    equal = torch.ones_like(less)
    for level, added in enumerate(_TIE_STREAMS):
        four = torch.cat(words_of(keys, own[:, None], added), dim=1)
        word = four.gather(1, part[:, None])[:, 0]
        less |= equal & (word < low[:, level])
        equal &= word == low[:, level]
    return less
