"""The key of a draw: seed, phase, id of the input and number of the draw."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from bincp._core import _noise
from bincp._utils.arrays import ArrayLike, as_counts
from bincp._utils.validation import MAX_COUNT, check_integer

Phase = Literal["calibration", "test", "tuning"]
PHASES: tuple[Phase, ...] = get_args(Phase)
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]
DoubleArray = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

# The streams of csrc/noise/philox.h: those of the two parts of the noise, and of random scores.
_NOISE_STREAMS = {
    "calibration": (_noise.CALIBRATION, _noise.CALIBRATION_RADIUS),
    "test": (_noise.TEST, _noise.TEST_RADIUS),
    "tuning": (_noise.TUNING, _noise.TUNING_RADIUS),
}
_SELECTION_STREAMS = {
    "calibration": _noise.CALIBRATION_SELECTION,
    "test": _noise.TEST_SELECTION,
    "tuning": _noise.TUNING_SELECTION,
}
_SCORE_STREAMS = {
    "calibration": _noise.CALIBRATION_SCORE,
    "test": _noise.TEST_SCORE,
    "tuning": _noise.TUNING_SCORE,
}


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of rows of noise, and the random numbers that belong to each.

    A row has the key (seed, phase, id of the input, number of the draw). Its random numbers are a
    function of the key and of their position in the row, and of nothing else: rows of different
    keys are independent, and neither their order nor the batch that they come in changes a bit.

    Parameters
    ----------
    seed : int
        In [0, 2**64).
    phase : "calibration", "test" or "tuning"
        The phases use independent numbers.
    ids : array (rows,) of int
        Ids of the inputs, in [0, 2**56).
    draws : array (rows,) of int
        Numbers of the draws, in [0, 2**31).

    Raises
    ------
    TypeError
        If an argument has a wrong type.
    ValueError
        If an argument is out of range, or `ids` and `draws` differ in shape.

    See Also
    --------
    register : Samplers of schemes from outside get keys, and make rows of noise from them.

    Notes
    -----
    Each key has two parts of random numbers. Numbers of different parts are independent. Within one
    part, all methods read the same random words. Where a row needs several numbers of one kind,
    take them in one call and divide the columns; where it needs two kinds (normal numbers and
    integers, say), take them from different parts.

    The object is immutable: it copies `ids` and `draws`, and may be used from any thread. ``len``
    is the number of rows, and ``keys[rows]`` are the keys of some of them.

    Examples
    --------
    >>> from bincp.noise import Keys
    >>> keys = Keys(seed=7, phase="test", ids=[0, 0, 1], draws=[0, 1, 0])
    >>> keys.integers(4, high=10).shape
    (3, 4)
    >>> bool((keys[1:].units(4) == keys.units(4)[1:]).all())
    True
    """

    seed: int
    phase: Phase
    ids: IntArray
    draws: IntArray

    def __post_init__(self) -> None:
        check_phase(self.phase)
        values = {
            "seed": check_seed(self.seed),
            "ids": _own("ids", self.ids, _noise.MAX_ID),
            "draws": _own("draws", self.draws, MAX_COUNT),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.ids.ndim != 1 or self.ids.shape != self.draws.shape:
            raise ValueError(
                "`ids` and `draws` must have one shape (rows,), "
                f"got {self.ids.shape} and {self.draws.shape}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> "Keys":
        return Keys(self.seed, self.phase, self.ids[rows], self.draws[rows])

    def words(self, n: int, *, part: int = 0) -> Words:
        """Return n random words of 64 bits for each row.

        Parameters
        ----------
        n : int
            In [1, 2**34). The first words do not depend on it.
        part : int, optional
            0 or 1.

        Returns
        -------
        uint64 array (rows, n)
        """
        out = np.empty((len(self), _length(n)), np.uint64)
        _noise.words(*core_key(self, part), out)
        return out

    def integers(self, n: int, high: int, *, part: int = 0) -> IntArray:
        """Return n random integers for each row, uniform on 0, ..., high - 1.

        Parameters
        ----------
        n, part
            As in `words`.
        high : int
            In [1, 2**31). An integer has its probability to within 2**-64.

        Returns
        -------
        int64 array (rows, n)
        """
        bound = check_integer("high", high, low=1, high=MAX_COUNT)
        return below(self.words(n, part=part), bound)

    def units(self, n: int, *, part: int = 0) -> DoubleArray:
        """Return n numbers for each row, uniform on the odd multiples of 2**-53 in (0, 1).

        They are never 0, 1/2 or 1, and 1 minus a number is exact.

        Parameters
        ----------
        n, part
            As in `words`.

        Returns
        -------
        float64 array (rows, n)
        """
        out = np.empty((len(self), _length(n)))
        _noise.wide_unit_numbers(*core_key(self, part), out)
        return out

    def normals(self, n: int, *, part: int = 0) -> DoubleArray:
        """Return n standard normal numbers for each row.

        They are float32 numbers, widened, and end at 6.76: the distribution of a row is off by
        1.4e-11 n in total variation.

        Parameters
        ----------
        n, part
            As in `words`.

        Returns
        -------
        float64 array (rows, n)
        """
        return standard_numbers(self, _noise.GAUSSIAN, _length(n), part=part)


def below(words: Words, bound: int) -> IntArray:
    """Return floor(bound w / 2^64), in [0, bound), for bound < 2^31: uniform to bound / 2^64."""
    high, low = words >> np.uint64(32), words & np.uint64(2**32 - 1)
    scaled = high * np.uint64(bound) + (low * np.uint64(bound) >> np.uint64(32))
    return (scaled >> np.uint64(32)).astype(np.int64)


def one_below(keys: Keys, bound: int) -> IntArray:
    """Return one integer for each row, exactly uniform on 0, ..., bound - 1, for bound < 2^31.

    It is floor(bound u) for a number u in [0, 1) of infinitely many bits, those of the words of the
    row. Further words add less than 1 to bound w in units of the last one, so the first is enough
    but for once in 2^64 / bound rows.
    """
    words = keys.words(1)[:, 0]
    numbers = below(words, bound)
    rest = words * np.uint64(bound)  # modulo 2^64
    for row in np.flatnonzero(rest > np.uint64(2**64 - bound)).tolist():
        numbers[row] = _one_by_more_words(keys[[row]], bound)
    return numbers


def _one_by_more_words(key: Keys, bound: int) -> int:
    n = 2
    while True:
        word = int.from_bytes(key.words(n)[0].astype(">u8").tobytes(), "big")
        one = 1 << 64 * n
        number, rest = divmod(word * bound, one)
        if rest <= one - bound:
            return number
        n *= 2


def keys_of(seed: int, phase: Phase, ids: IntArray, draws: IntArray) -> Keys:
    """Return keys of arrays that are checked, and that nobody writes to.

    A batch of a small model takes less time than the checks of its keys.
    """
    keys = object.__new__(Keys)
    for name, value in {"seed": seed, "phase": phase, "ids": ids, "draws": draws}.items():
        object.__setattr__(keys, name, value)
    return keys


def more_words(keys: Keys, n: int) -> Words:
    """Return 64 more bits for each of the n words of part 0 of each row."""
    seed, stream, ids, draws = core_key(keys)
    out = np.empty((len(keys), _length(n)), np.uint64)
    _noise.words(seed, stream | _noise.THIRD, ids, draws, out)
    return out


def selected(keys: Keys, n: int, threshold: int) -> npt.NDArray[np.bool_]:
    """Return for each row which of n elements are selected, with probability threshold / 2^128.

    The words are independent of both parts of the noise.
    """
    if threshold == 2**128:
        return np.ones((len(keys), n), dtype=bool)
    high, low = divmod(threshold, 2**64)
    words = _selection_words(keys, n, 0)
    chosen, ties = words < np.uint64(high), words == np.uint64(high)
    if ties.any():
        chosen |= ties & (_selection_words(keys, n, _noise.THIRD) < np.uint64(low))
    return chosen


def _selection_words(keys: Keys, n: int, more: int) -> Words:
    out = np.empty((len(keys), _length(n)), np.uint64)
    stream = _SELECTION_STREAMS[keys.phase] | more
    _noise.words(keys.seed, stream, keys.ids, keys.draws, out)
    return out


def core_key(keys: Keys, part: int = 0) -> tuple[int, int, IntArray, IntArray]:
    """Return what the compiled functions take of some keys: seed, stream, ids and draws."""
    streams = _NOISE_STREAMS[keys.phase]
    return keys.seed, streams[check_integer("part", part, low=0, high=1)], keys.ids, keys.draws


def standard_numbers(keys: Keys, distribution: int, n: int, *, part: int = 0) -> DoubleArray:
    """Return (rows, n) numbers of scale 1, of a distribution that csrc/noise draws in float32."""
    rows = np.empty((len(keys), n))
    # The sum of two negative zeros is the only one that is negative: zeros keep their sign.
    x, sources = np.full((1, n), -0.0), np.zeros(len(rows), np.int64)
    _noise.add_noise(distribution, 1.0, *core_key(keys, part), sources, x, rows)
    return rows


def _own(name: str, values: ArrayLike, high: int) -> IntArray:
    copy = np.array(as_counts(name, values, high=high), order="C")
    copy.flags.writeable = False
    return copy


def _length(n: object) -> int:
    return check_integer("n", n, low=1, high=_noise.MAX_LENGTH)


def check_phase(phase: object) -> None:
    """Refuse anything but the three phases."""
    if not isinstance(phase, str) or phase not in _NOISE_STREAMS:
        error = ValueError if isinstance(phase, str) else TypeError
        raise error(f"`phase` must be 'calibration', 'test' or 'tuning', got {phase!r}")


def check_seed(seed: object) -> int:
    """Return the seed as an int of 64 bits."""
    return check_integer("seed", seed, low=0, high=2**64 - 1)


def check_first_draw(first_draw: object, n_samples: int) -> int:
    """Return the number of the first of some draws, whose numbers are in [0, 2**31)."""
    return check_integer("first_draw", first_draw, low=0, high=MAX_COUNT - n_samples)


def check_indices(indices: ArrayLike | None, n: int, phase: Phase) -> IntArray:
    """Return the ids of n inputs; calibration inputs must have ids of their own."""
    if indices is None:
        return np.arange(n)
    ids = as_counts("indices", indices, high=_noise.MAX_ID)
    if ids.shape != (n,):
        raise ValueError(f"`indices` must have shape {(n,)}, got {ids.shape}")
    if phase == "calibration":
        values, counts = np.unique(ids, return_counts=True)
        if len(values) < n:
            again = int(values[np.argmax(counts > 1)])
            raise ValueError(
                "`indices` must differ in the calibration phase (equal ids get equal noise, and "
                f"the guarantee needs independent noise), got {again} more than once"
            )
    return ids


def score_numbers(keys: Keys) -> npt.NDArray[np.float32]:
    """Return a number, uniform on (0, 1], for each evaluation of a score that is random itself."""
    seed, _, ids, draws = core_key(keys)
    numbers = np.empty(len(keys), np.float32)
    _noise.unit_numbers(seed, _SCORE_STREAMS[keys.phase], ids, draws, numbers)
    return numbers
