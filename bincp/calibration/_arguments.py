"""Checks of the arguments of calibration and prediction."""

from fractions import Fraction
from typing import Any

from bincp._utils.arrays import Scores
from bincp._utils.levels import as_fraction
from bincp._utils.validation import MAX_COUNT, check_integer


def check_calibration_shape(scores: Scores, wanted: str) -> None:
    """Refuse another number of axes than the names in ``wanted``, e.g. "(n, m)", or an empty one.

    The last axis holds the samples, of which there are at most `MAX_COUNT`.
    """
    shape = scores.bits.shape
    if len(shape) != wanted.count(",") + 1 or 0 in shape:
        names = wanted.strip("()")
        cure = ""
        if wanted == "(n, m)" and len(shape) == 3:
            cure = "; of scores (n, K, m) of all labels, scores[np.arange(n), labels] are these"
        raise ValueError(
            f"`{scores.name}` must have shape {wanted} with {names} >= 1, got {shape}{cure}"
        )
    check_integer(f"{scores.name}.shape[{len(shape) - 1}]", shape[-1], low=1, high=MAX_COUNT)


def check_run_classes(n_classes: int | None, found: int | None) -> int | None:
    """Return the K of a run on disk, and refuse another one."""
    if n_classes not in (None, found):
        raise ValueError(f"`n_classes` must be the K = {found} of the run, got {n_classes}")
    return found


def check_test_samples(n_test_samples: int | None, m: int) -> int:
    """Return m', which is m if it is not given."""
    if n_test_samples is None:
        return m
    return check_integer("n_test_samples", n_test_samples, low=1, high=MAX_COUNT)


def check_test_scores(
    scores: Scores, dtype: str | None, n_classes: int | None, m_test: int | None
) -> None:
    """Refuse scores of another dtype, K or m' than those calibrated for; K may be any if None."""
    if scores.dtype != dtype:
        raise ValueError(
            f"`{scores.name}` must have the dtype calibrated with, {dtype}, got {scores.dtype}"
        )
    shape = scores.bits.shape
    check_label_shape(scores.name, shape, n_classes, "(n, K, m')")
    if shape[2] != m_test:
        raise ValueError(
            f"`{scores.name}` must have the m' = {m_test} samples calibrated for on the last axis, "
            f"got {shape[2]}; calibrate takes another m' as n_test_samples"
        )


def check_label_shape(
    name: str, shape: tuple[int, ...], n_classes: int | None, wanted: str = "(n, K)"
) -> None:
    """Refuse another number of axes, or of classes where K is known."""
    if len(shape) != wanted.count(",") + 1:
        raise ValueError(f"`{name}` must have shape {wanted}, got {shape}")
    if n_classes is not None and shape[1] != n_classes:
        raise ValueError(
            f"`{name}` must have shape {wanted} with the K = {n_classes} calibrated for, "
            f"got {shape}"
        )


def check_passes(passes: Any, correction: str, tau: float | None) -> Fraction | str | None:
    """Return a budget of passes as a fraction, or what it may be instead of one."""
    if passes is None or (isinstance(passes, str) and passes == "auto"):
        return passes
    wanted = f'`passes` must be None, "auto" or a number of at least 1, got {passes!r}'
    try:
        budget = as_fraction("passes", passes)
    except ValueError:
        raise ValueError(wanted) from None
    if budget < 1:
        raise ValueError(wanted)
    if correction != "mixture" or tau is not None:
        got = f"correction={correction!r}" if tau is None else f"tau={tau!r}"
        raise ValueError(
            f'`passes` must be None or "auto" where early stopping has no proof, got {passes!r} '
            f'with {got}; correction="mixture" without `tau` has one'
        )
    return budget
