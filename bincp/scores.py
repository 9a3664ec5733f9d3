"""Conformity scores: how well a label agrees with the output of a model; larger is better.

Every function maps values of shape (..., K) to scores of the same shape and dtype, for NumPy arrays
(and values that NumPy reads as one) and for torch tensors on any device. Scores are computed in
float64 where sums are involved, and rounded once.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from bincp._utils.arrays import SCORE_DTYPES, as_array, is_tensor, where
from bincp._utils.threads import run_all, shares
from bincp._utils.validation import check_integer, check_real

__all__ = ["aps", "logit", "margin", "ptt", "raps", "tps"]

Values: TypeAlias = Any
"""A NumPy array or a torch tensor."""

# Numbers that a thread scores at least. Fewer would cost less than to start it.
_THREAD_VALUES = 1 << 16


def tps(probabilities: Values) -> Values:
    """Threshold score (TPS, also LAC or THR): the probability of the label.

    ``score_y = pi_y`` [1]_, where pi is the softmax of the logits.

    Parameters
    ----------
    probabilities : array or tensor (..., K)
        Floating-point numbers in [0, 1].

    Returns
    -------
    array or tensor (..., K)

    Raises
    ------
    ValueError
        If a probability is NaN or outside [0, 1], or the dtype is not floating-point.

    References
    ----------
    .. [1] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded
       error levels", JASA 114, 2019.

    Examples
    --------
    >>> from bincp.scores import tps
    >>> tps([0.5, 0.25, 0.25])
    array([0.5 , 0.25, 0.25])
    """
    return _as_probabilities(probabilities)


def aps(probabilities: Values, u: Values, *, n_threads: int = 1) -> Values:
    """Adaptive score (APS): minus the probability mass of the labels that come before.

    ``score_y = -(sum of pi_k over pi_k > pi_y  +  u pi_y)`` [1]_. Labels are ordered by value
    alone: equal probabilities never come before each other, and all get the same score.

    Parameters
    ----------
    probabilities : array or tensor (..., K)
        Floating-point numbers in [0, 1].
    u : float, or array or tensor of shape (...) or (..., K)
        Numbers in [0, 1]. One number serves all labels of one evaluation of the model. 0 gives the
        largest scores, and so the largest sets at a given threshold; uniform numbers give exact
        coverage. In smoothed sampling it is part of the noise: a new one for each evaluation.
    n_threads : int, optional
        Threads that share the rows of an array, >= 1; torch uses its own for tensors. They pay for
        large arrays only, of some 2**16 numbers a thread. The scores do not depend on it.

    Returns
    -------
    array or tensor (..., K)
        Scores in [-1, 0], up to rounding of the sum.

    Raises
    ------
    ValueError
        If a number is NaN or outside [0, 1], or `u` does not fit the probabilities.

    References
    ----------
    .. [1] Y. Romano, M. Sesia and E. Candès, "Classification with valid and adaptive coverage",
       NeurIPS 2020.

    Examples
    --------
    >>> from bincp.scores import aps
    >>> aps([0.5, 0.25, 0.25], u=0.5)
    array([-0.25 , -0.625, -0.625])
    """
    p = _as_probabilities(probabilities)
    return _by_rows(_aps, p, _as_numbers(u, p), n_threads)


def raps(
    probabilities: Values,
    u: Values,
    *,
    penalty: float = 0.01,
    k_reg: int = 5,
    n_threads: int = 1,
) -> Values:
    """Regularised adaptive score (RAPS): APS with a penalty on low ranks.

    ``score_y = aps_y - penalty * max(rank_y - k_reg, 0)`` with ``rank_y`` the number of labels k
    with pi_k >= pi_y [1]_.

    Parameters
    ----------
    probabilities : array or tensor (..., K)
        Floating-point numbers in [0, 1].
    u : float, or array or tensor of shape (...) or (..., K)
        As in `aps`.
    penalty : float, optional
        Penalty for each rank, at least 0. Its default and that of `k_reg` are those of [1]_ on
        ImageNet.
    k_reg : int, optional
        Number of ranks without penalty, at least 0.
    n_threads : int, optional
        Threads that share the rows of an array, >= 1; torch uses its own for tensors. They pay for
        large arrays only, of some 2**16 numbers a thread. The scores do not depend on it.

    Returns
    -------
    array or tensor (..., K)

    Raises
    ------
    TypeError
        If `penalty` or `k_reg` is not a number of its kind.
    ValueError
        If a number is NaN or out of range, or `u` does not fit the probabilities.

    References
    ----------
    .. [1] A. Angelopoulos, S. Bates, J. Malik and M. Jordan, "Uncertainty sets for image
       classifiers using conformal prediction", ICLR 2021.

    Examples
    --------
    >>> from bincp.scores import raps
    >>> raps([0.5, 0.25, 0.25], u=0.5, penalty=0.125, k_reg=1)
    array([-0.25 , -0.875, -0.875])
    """
    parameters = _check_raps(penalty, k_reg)
    p = _as_probabilities(probabilities)
    return _by_rows(partial(_raps, **parameters), p, _as_numbers(u, p), n_threads)


def margin(probabilities: Values, *, n_threads: int = 1) -> Values:
    """Margin score: the probability of the label minus the largest other probability.

    ``score_y = pi_y - max over k != y of pi_k``.

    Parameters
    ----------
    probabilities : array or tensor (..., K)
        Floating-point numbers in [0, 1], K at least 2.
    n_threads : int, optional
        Threads that share the rows of an array, >= 1; torch uses its own for tensors. They pay for
        large arrays only, of some 2**16 numbers a thread. The scores do not depend on it.

    Returns
    -------
    array or tensor (..., K)
        Scores in [-1, 1].

    Raises
    ------
    ValueError
        If a probability is NaN or outside [0, 1], or K is 1.

    Examples
    --------
    >>> from bincp.scores import margin
    >>> margin([0.5, 0.25, 0.25])
    array([ 0.25, -0.25, -0.25])
    """
    return _by_rows(_margin, _as_probabilities(probabilities), None, n_threads)


def logit(logits: Values) -> Values:
    """Logit score: the output of the model for the label, as it is.

    Parameters
    ----------
    logits : array or tensor (..., K)
        Floating-point numbers, infinities included.

    Returns
    -------
    array or tensor (..., K)

    Raises
    ------
    ValueError
        If a logit is NaN, or the dtype is not floating-point.

    Examples
    --------
    >>> from bincp.scores import logit
    >>> logit([2.0, -1.0])
    array([ 2., -1.])
    """
    return _as_values("logits", logits)


def ptt(
    scores: Values,
    tuning_scores: Values,
    u: Values,
    *,
    b: float = 0.1,
    temperature: float = 1 / 400,
    n_threads: int = 1,
) -> Values:
    """Ranking transformation of scores (post-training transformation, PTT).

    ``sigmoid((rank / n - b) / temperature)``, where rank is the number of the n tuning scores below
    the score [1]_; among t tuning scores that are equal to it, it is drawn evenly from 0 to t.

    Parameters
    ----------
    scores : array or tensor (..., K)
        Scores of any kind, infinities included.
    tuning_scores : array or tensor, any shape
        Scores of true labels, of the same kind and dtype, at least one. They must come from points
        that are used neither to calibrate nor to test, and their noise must be independent of that
        of calibration and test, or coverage is lost: sample them by `bincp.sampling` in the phase
        "tuning".
    u : float, or array or tensor of shape (...) or (..., K)
        Numbers in [0, 1] that break ties; draw them uniformly. 1 gives the largest scores.
    b : float, optional
        Share of the tuning scores below the middle of the sigmoid. Use the level alpha of the
        threshold to be calibrated (1 - alpha in [1]_, where a small score means good agreement).
    temperature : float, optional
        Width of the sigmoid, > 0; the default is that of [1]_.
    n_threads : int, optional
        Threads that share the rows of an array, >= 1; torch uses its own for tensors. They pay for
        large arrays only, of some 2**16 numbers a thread. The scores do not depend on it.

    Returns
    -------
    array or tensor (..., K)
        Scores in [0, 1], not decreasing in `scores` for equal `u`.

    Raises
    ------
    TypeError
        If `b` or `temperature` is not a real number, or an array and a tensor are mixed.
    ValueError
        If a score is NaN, there is no tuning score, its dtype is another than that of the scores,
        or a number is out of range or does not fit.

    References
    ----------
    .. [1] G. Yan, Y. Romano and T.-W. Weng, "Provably robust conformal prediction with improved
       efficiency", ICLR 2024.

    Examples
    --------
    >>> from bincp.scores import ptt
    >>> tuning_scores = [0.1, 0.3, 0.5, 0.6]
    >>> ptt([0.2, 0.5, 0.7], tuning_scores, u=0, b=0.5, temperature=0.25).round(3)
    array([0.269, 0.5  , 0.881])
    """
    b = check_real("b", b)
    temperature = check_real("temperature", temperature, low=0, open_low=True)
    values = _as_values("scores", scores)
    tuning = _as_values("tuning_scores", tuning_scores).reshape(-1)
    if is_tensor(values) != is_tensor(tuning):
        raise TypeError("`tuning_scores` must be a tensor where `scores` is one, and only there")
    if tuning.dtype != values.dtype:
        raise ValueError(
            f"`tuning_scores` must have the dtype of `scores`, {values.dtype}, got {tuning.dtype}"
        )
    ordered = _namespace(values).sort(tuning)
    ordered = ordered.values if is_tensor(tuning) else ordered
    formula = partial(_ptt, ordered=ordered, b=b, temperature=temperature)
    return _by_rows(formula, values, _as_numbers(u, values), n_threads)


@dataclass(frozen=True)
class NamedScore:
    """A score that `bincp.sampling` finds by its name.

    ``formula`` takes the logits or the probabilities of a batch, then, for a random score, one
    number for each row, then the parameters that ``check`` returns. It does not check the values:
    sampling checks the scores that come out.
    """

    formula: Callable[..., Values]
    of_logits: bool = False
    random: bool = False
    check: Callable[..., dict[str, Any]] = dict

    def with_parameters(self, parameters: Mapping[str, Any]) -> "NamedScore":
        """Return the score with these parameters, checked, in place of the default ones."""
        known = [] if self.check is dict else list(inspect.signature(self.check).parameters)
        unknown = [name for name in parameters if name not in known]
        if unknown:
            takes = f"take the parameters {', '.join(known)}" if known else "take no parameters"
            raise TypeError(f"`score` must {takes}, got {unknown[0]!r}")
        return replace(self, formula=partial(self.formula, **self.check(**parameters)))


def _check_raps(penalty: float = 0.01, k_reg: int = 5) -> dict[str, Any]:
    return {
        "penalty": check_real("penalty", penalty, low=0),
        "k_reg": check_integer("k_reg", k_reg, low=0),
    }


def _aps(p: Values, u: Values) -> Values:
    ranking = _Ranking.of(p)
    return ranking.by_label(0.0 - ranking.mass(u))


def _raps(p: Values, u: Values, penalty: float = 0.01, k_reg: int = 5) -> Values:
    ranking = _Ranking.of(p)
    excess = (ranking.rank() - k_reg).clip(0)
    return ranking.by_label(0.0 - (ranking.mass(u) + penalty * _cast(excess, np.float64)))


def _ptt(values: Values, u: Values, ordered: Values, b: float, temperature: float) -> Values:
    xp = _namespace(values)
    below = xp.searchsorted(ordered, values)
    ties = xp.searchsorted(ordered, values, side="right") - below
    ties_below = xp.floor(u * (ties + 1))
    rank = below + xp.minimum(ties_below, _cast(ties, np.float64))  # u = 1 is allowed
    share = (rank / len(ordered) - b) / temperature
    return _cast(_sigmoid(share), values.dtype)


def _margin(p: Values) -> Values:
    if p.shape[-1] < 2:
        raise ValueError(f"`probabilities` must have at least 2 labels, got shape {tuple(p.shape)}")
    xp = _namespace(p)
    top = xp.amax(p, axis=-1, keepdims=True)
    is_top = p == top
    runner_up = xp.amax(xp.where(is_top, -np.inf, p), axis=-1, keepdims=True)
    alone = is_top.sum(axis=-1, keepdims=True) == 1
    return p - xp.where(is_top & alone, runner_up, top)


def _by_rows(formula: Callable[..., Values], p: Values, u: Values, n_threads: int) -> Values:
    """Apply a formula to rows and their random numbers, if any, by several threads.

    They are for arrays; torch has threads of its own.
    """
    n_threads = check_integer("n_threads", n_threads, low=1)
    arguments = [p] if u is None else [p, u]
    parts = [] if is_tensor(p) else shares(p.size, n_threads, _THREAD_VALUES)
    if len(parts) < 2:
        return formula(*arguments)
    rows = p.reshape(-1, p.shape[-1])
    if u is not None and u.ndim:
        arguments[1] = u.reshape(len(rows), -1)
    out = np.empty_like(rows)

    def fill(part: slice) -> None:
        out[part] = formula(*(x[part] if x.ndim else x for x in [rows, *arguments[1:]]))

    run_all([partial(fill, part) for part in shares(len(rows), len(parts), 1)])
    return out.reshape(p.shape)


def _unchanged(values: Values) -> Values:
    return values


_TPS = NamedScore(_unchanged)

NAMED_SCORES = {
    "aps": NamedScore(_aps, random=True),
    "lac": _TPS,
    "logit": NamedScore(_unchanged, of_logits=True),
    "margin": NamedScore(_margin),
    "raps": NamedScore(_raps, random=True, check=_check_raps),
    "thr": _TPS,
    "tps": _TPS,
}


@dataclass(frozen=True)
class _Ranking:
    """Rows of probabilities in decreasing order, found by one sort.

    ``order`` holds the label at each place of a row, and ``ranked`` its probability. ``tied`` says
    of each place but the first whether its probability equals that of the place before.
    """

    order: Values
    ranked: Values
    tied: Values

    @classmethod
    def of(cls, p: Values) -> "_Ranking":
        order = _decreasing_order(p)
        ranked = _take(p, order)
        return cls(order, ranked, ranked[..., 1:] == ranked[..., :-1])

    def mass(self, u: Values) -> Values:
        """Return, at each place, the sum of the greater probabilities and u of the own one."""
        wide = _cast(self.ranked, np.float64)
        above, xp = _namespace(wide).zeros_like(wide), _namespace(wide)
        # The sums do not decrease, so the largest sum before a group so far is that of the own one.
        above[..., 1:] = xp.where(self.tied, 0.0, xp.cumsum(wide, -1)[..., :-1])
        ranked_u = _take(u, self.order) if u.shape == wide.shape else u
        return _running_maximum(above) + ranked_u * wide

    def rank(self) -> Values:
        """Return, at each place, how many labels of the row are at least as probable."""
        xp, n_labels = _namespace(self.order), self.order.shape[-1]
        after = np.arange(n_labels - 1, 0, -1)
        if is_tensor(self.order):
            after = xp.from_numpy(after).to(self.order.device)
        to_go = xp.zeros_like(self.order)
        to_go[..., :-1] = xp.where(self.tied, 0, after)
        # The end of the own group is the nearest end of a group at or after each place.
        return n_labels - xp.flip(_running_maximum(xp.flip(to_go, (-1,))), (-1,))

    def by_label(self, values: Values) -> Values:
        """Move values from the places of a row to the labels, in the dtype of the probabilities."""
        values = _cast(values, self.ranked.dtype)
        if is_tensor(values):
            return sys.modules["torch"].empty_like(values).scatter_(-1, self.order, values)
        result = np.empty_like(values)
        np.put_along_axis(result, self.order, values, axis=-1)
        return result


def _decreasing_order(p: Values) -> Values:
    """Return the labels of each row by decreasing probability, equal ones in any order."""
    if not is_tensor(p):
        return _sorted_labels(p)
    if p.device.type != "cpu":
        return p.argsort(dim=-1, descending=True)
    # NumPy sorts rows of 1,000 labels ten times as fast as torch does on one thread.
    widened = p.detach().float() if p.element_size() == 2 else p.detach()
    return sys.modules["torch"].from_numpy(_sorted_labels(widened.numpy()))


def _sorted_labels(p: Values) -> Values:
    if p.dtype == np.float64:
        return np.argsort(-p, axis=-1)
    # The bits of floats that are not negative are in the order of their values. With the label
    # behind them they are integers, whose sort is three times as fast as the search for the order.
    bits = p.astype(np.float32, copy=False).view(np.int32)
    labelled = np.left_shift(~bits, 32, dtype=np.int64)
    labelled |= np.arange(p.shape[-1])
    labelled.sort(axis=-1)
    labelled &= 2**32 - 1
    return labelled


def _as_probabilities(value: Values) -> Values:
    return clip_rounding("probabilities", _as_values("probabilities", value))


def clip_rounding(name: str, p: Values) -> Values:
    """Return probabilities in [0, 1]; values outside by rounding alone count as 0 or 1."""
    outside = (p < 0) | (p > 1)
    if not bool(outside.any()):
        return p
    _refuse(name, p, beyond_rounding(p), "in [0, 1] (apply a softmax to logits)")
    return p.clip(0, 1)


def beyond_rounding(p: Values) -> Values:
    """Return where numbers are further outside [0, 1] than the rounding of probabilities explains.

    An average of probabilities may exceed 1 by a few units in the last place. In float64 units of
    float32 count, too: the average may have been computed in float32 and widened.
    """
    tolerance = 1e-2 if p.dtype.itemsize == 2 else 1e-6
    return (p < -tolerance) | (p > 1 + tolerance)


def _as_values(name: str, value: Values) -> Values:
    values = _dense(name, value) if is_tensor(value) else as_array(name, value)
    dtype = str(values.dtype).removeprefix("torch.")
    if dtype not in SCORE_DTYPES:
        raise ValueError(
            f"`{name}` must have one of the dtypes {', '.join(SCORE_DTYPES)}, got {dtype}"
        )
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"`{name}` must have shape (..., K), got {tuple(values.shape)}")
    _refuse(name, values, values != values, "a number")
    return values


def _dense(name: str, tensor: Values) -> Values:
    kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
    if tensor.device.type == "meta" or kind != "strided":
        raise ValueError(
            f"`{name}` must be a dense tensor that holds data, "
            f"got a {kind} one on the device {str(tensor.device)!r}"
        )
    return tensor


def _as_numbers(u: Values, p: Values) -> Values:
    """Return ``u`` as float64 that broadcasts against ``p``, where ``p`` is."""
    numbers = _dense("u", u) if is_tensor(u) and is_tensor(p) else as_array("u", u)
    name = str(numbers.dtype).removeprefix("torch.")
    if name != "bfloat16" and np.dtype(name).kind not in "fiu":
        raise TypeError(f"`u` must be real numbers, got dtype {numbers.dtype}")
    if is_tensor(p):
        numbers = _namespace(p).as_tensor(numbers, device=p.device)
    numbers = _cast(numbers, np.float64)
    _refuse("u", numbers, ~((numbers >= 0) & (numbers <= 1)), "in [0, 1]")
    if numbers.ndim and numbers.shape == p.shape[:-1]:
        numbers = numbers[..., None]
    if numbers.ndim and numbers.shape not in (p.shape, (*p.shape[:-1], 1)):
        raise ValueError(
            f"`u` must be a scalar or have shape {tuple(p.shape[:-1])} or {tuple(p.shape)}, "
            f"got {tuple(numbers.shape)}"
        )
    return numbers


def _refuse(name: str, values: Values, bad: Values, wanted: str) -> None:
    if bool(bad.any()):
        at = where(np.asarray(bad.cpu() if is_tensor(bad) else bad))
        raise ValueError(f"`{name}` must be {wanted}, got {float(values[bad][0])} {at}")


# These functions have different names in NumPy and in torch.


def _namespace(values: Values) -> Any:
    return sys.modules["torch"] if is_tensor(values) else np


def _sigmoid(values: Values) -> Values:
    return sys.modules["torch"].sigmoid(values) if is_tensor(values) else expit(values)


def _cast(values: Values, dtype: Any) -> Values:
    if is_tensor(values):
        return values.to(sys.modules["torch"].float64 if dtype is np.float64 else dtype)
    return values.astype(dtype, copy=False)


def _take(values: Values, order: Values) -> Values:
    if is_tensor(values):
        return values.gather(-1, order)
    return np.take_along_axis(values, order, axis=-1)


def _running_maximum(values: Values) -> Values:
    if is_tensor(values):
        return values.cummax(-1).values
    return np.maximum.accumulate(values, axis=-1)
