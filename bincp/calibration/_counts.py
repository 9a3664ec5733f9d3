"""Counts of scores that know how they were counted."""

import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike, as_counts, round_to
from bincp._utils.validation import MAX_COUNT, check_flag, check_integer
from bincp.calibration._provenance import check_same

__all__ = ["Counts"]


class How(NamedTuple):
    """How scores were counted."""

    n_samples: int
    tau: Any
    phase: str = "test"
    stopped_early: bool = False
    provenance: dict[str, Any] | None = None


class Counts(np.ndarray):
    """Counts (n, K) of scores that reach a threshold, which know how they were counted.

    `bincp.sampling.count_scores` and `bincp.sampling.RobustClassifier` return them, and
    `BinCP.predict_set_from_counts` takes them without the number of samples: it refuses those of
    other draws, of another threshold, or that stopped early. They are an array of int32 otherwise,
    and read-only: copies, what is computed from them and views of some labels, or of labels in
    another order, know nothing. A slice of the inputs does.

    Parameters
    ----------
    values : array_like of int, shape (n, K)
        In [0, n_samples].
    n_samples : int
        How many scores of each label were counted, m'.
    tau : float, or array (K,)
        The threshold, or one for each label.
    phase : {"test", "calibration", "tuning"}
        What the noise was for.
    stopped_early : bool
        Whether drawing stopped where a label was decided, so that fewer were counted.
    provenance : dict, optional
        What the scores were made with, as in `BinCP.provenance_`, as far as it is known.

    Attributes
    ----------
    n_samples, tau, phase, stopped_early, provenance
        As above. Read-only.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or value.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> rule = bincp.BinCP(certificate, correction="none").calibrate(np.ones((99, 50)))
    >>> counts = bincp.Counts([[50, 24, 23]], n_samples=50, tau=rule.tau_)
    >>> rule.predict_set_from_counts(counts)
    array([[ True,  True, False]])
    """

    _made: tuple[How, Any] | None = None  # how they were counted, and the layout of their labels

    def __new__(
        cls,
        values: ArrayLike,
        *,
        n_samples: int,
        tau: float | npt.NDArray[np.float64],
        phase: str = "test",
        stopped_early: bool = False,
        provenance: dict[str, Any] | None = None,
    ) -> "Counts":
        """Check the counts and what is known of them."""
        m = check_integer("n_samples", n_samples, low=1, high=MAX_COUNT)
        array = as_counts("values", values, high=m)
        if array.ndim != 2:
            raise ValueError(f"`values` must have shape (n, K), got {array.shape}")
        if phase not in ("test", "calibration", "tuning"):
            raise ValueError(f"`phase` must be 'test', 'calibration' or 'tuning', got {phase!r}")
        early = check_flag("stopped_early", stopped_early)
        how = How(m, tau, phase, early, provenance)
        return known_counts(np.array(array, dtype=np.int32), how)

    def __array_finalize__(self, source: Any) -> None:
        # What can be written to may soon be something else, and a flat view is cut anywhere.
        flat = self.ndim != 2
        self._made = None if self.flags.writeable or flat else getattr(source, "_made", None)

    def __array_wrap__(self, array: Any, *_: Any, **__: Any) -> Any:
        plain = np.asarray(array)
        return plain if plain.ndim else plain[()]

    def __reduce__(self) -> tuple[Any, ...]:
        return known_counts, (np.asarray(self), self._how)

    @property
    def n_samples(self) -> int:
        """How many scores of each label were counted."""
        return self._known().n_samples

    @property
    def tau(self) -> Any:
        """The threshold, or one for each label."""
        return self._known().tau

    @property
    def phase(self) -> str:
        """What the noise was for."""
        return self._known().phase

    @property
    def stopped_early(self) -> bool:
        """Whether drawing stopped where a label was decided."""
        return self._known().stopped_early

    @property
    def provenance(self) -> dict[str, Any] | None:
        """What the scores were made with, as far as it is known; a copy."""
        return copy.deepcopy(self._known().provenance)

    @property
    def _how(self) -> How | None:
        """How they were counted, None where labels are missing or stand in another order."""
        return self._made[0] if self._made and self._made[1] == _label_layout(self) else None

    def _known(self) -> How:
        if self._how is None:
            raise AttributeError("this array is a copy of Counts, which knows nothing of them")
        return self._how


def _label_layout(counts: npt.NDArray[Any]) -> Any:
    """Return what tells an array from its views of other labels."""
    return counts.ndim, counts.shape[1:], counts.strides[1:]


def known_counts(values: npt.NDArray[np.int32], how: How | None) -> Counts:
    """Return counts that were made here, which are neither checked nor copied."""
    made = values.view(Counts)
    made.flags.writeable = False
    made._made = None if how is None else (how, _label_layout(made))
    return made


def joined_counts(parts: list[npt.NDArray[np.int32]]) -> Counts:
    """Join counts of several inputs, which were counted alike."""
    how = getattr(parts[0], "_how", None)
    return known_counts(np.concatenate([np.asarray(part) for part in parts]), how)


def number_counted(rule: Any, counts: Any, n_samples: int | None) -> int:
    """Return how many scores were counted, and refuse counts that a rule must not decide on."""
    how = counts._how if isinstance(counts, Counts) else None
    if how is None:
        if n_samples is None:
            raise TypeError("`n_samples` must be given with counts that are no bincp.Counts")
        return check_integer("n_samples", n_samples, low=1)
    if n_samples not in (None, how.n_samples):
        raise ValueError(f"`n_samples` must be the {how.n_samples} of `counts`, got {n_samples}")
    if how.stopped_early:
        raise ValueError("`counts` must be of all m' draws, got counts that stopped early")
    if how.phase == "calibration":
        raise ValueError("`counts` must not be of the phase 'calibration', got such counts")
    own, theirs = (round_to(rule.dtype, tau) for tau in (rule.tau, how.tau))
    if not bool(np.all(own == theirs)):
        raise ValueError(
            f"`counts` must be of scores that reach tau_ = {rule.tau!r}, got tau = {how.tau!r}"
        )
    check_same(getattr(rule, "provenance", None), how.provenance, "`counts`")
    return how.n_samples
