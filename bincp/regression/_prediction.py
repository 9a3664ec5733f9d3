"""Sets of real labels by the decision rule of a `BinCP`."""

from typing import Any

from bincp._utils.arrays import ArrayLike
from bincp._utils.validation import check_flag
from bincp.calibration import BinCP
from bincp.calibration._decision_rule import DecisionRule
from bincp.calibration._prediction import sampled
from bincp.regression._scores import ends_of, parts_of, score_of
from bincp.regression._sets import IntervalSets


def predict_sets(
    rule: BinCP, predictions: ArrayLike, *, score: str = "residual", hulls: bool = False
) -> IntervalSets:
    """Return the sets of real labels of inputs with sampled predictions.

    A label is in the set iff at least k of its m' scores, as `conformity_scores` computes them,
    reach tau: exactly so for every label that is a double.

    Parameters
    ----------
    rule : BinCP
        Calibrated on the `conformity_scores` of true labels, with the same `score`.
    predictions : array of float16, bfloat16, float32 or float64, shape (n, m') or (n, 2, m')
        What the model predicts for each of m' noisy copies of each input, as in
        `conformity_scores`.
    score : {"residual", "normalized", "cqr", "lower", "upper"}, optional
        The score of the calibration. Another one is refused where the rule knows its own, see
        `BinCP.provenance_`.
    hulls : bool, optional
        Return the least interval around each set. It covers what the set covers, and more.

    Returns
    -------
    IntervalSets
        At most m' - k + 1 pieces each.

    Raises
    ------
    NotCalibratedError
        If the rule is not calibrated on sampled scores.
    TypeError
        If `rule` is no `BinCP`, or `hulls` no bool.
    ValueError
        If the rule was calibrated on scores of another dtype than float64, stops early, or spends
        its level on a number of classes; if `score` is not that of the calibration; if the
        predictions have another m' than the rule, or as in `conformity_scores`.

    Notes
    -----
    The guarantee is that of the rule, for each input: with probability at least 1 - alpha the set
    holds the true label, also where the input was perturbed inside the ball.

    The ends of an interval, f + tau and f - tau for a residual, are computed without error and
    rounded inward, to the first and the last double that reach tau. Ends that are merely computed
    in floating point miss labels whose score reaches tau by a rounding, also those that it was
    calibrated on. A set is empty where too few intervals overlap, as with quantiles that cross by
    more than tau makes up for.

    Threads may predict with one rule at the same time.

    Examples
    --------
    >>> import bincp, numpy as np
    >>> from bincp.regression import conformity_scores, predict_sets
    >>> rng = np.random.default_rng(0)
    >>> certificate = bincp.certify(bincp.smoothing.Gaussian(0.5), bincp.balls.L2(0.1))
    >>> y = rng.normal(size=200)
    >>> calibration = y[:, None] + rng.normal(0, 0.2, (200, 64))  # (n, m)
    >>> rule = bincp.BinCP(certificate).calibrate(conformity_scores(calibration, y))
    >>> sets = predict_sets(rule, rng.normal(1.0, 0.2, (2, 64)))
    >>> sets.contains([1.0, 5.0])
    array([ True, False])
    """
    check_flag("hulls", hulls)
    chosen = score_of(score)
    found = fitted(rule)
    known = (found.provenance or {}).get("score")
    if known not in (None, {"name": chosen.name}):
        raise ValueError(
            f"`score` must be that of the calibration of `rule`, {known}, got {chosen.name!r}"
        )
    parts = parts_of("predictions", predictions, chosen)
    m_test = parts[0].shape[1]
    if m_test != found.n_test_samples:
        raise ValueError(
            f"`predictions` must have the m' = {found.n_test_samples} samples calibrated for on "
            f"the last axis, got {m_test}; calibrate takes another m' as n_test_samples"
        )
    assert found.min_count is not None  # calibrated on samples
    sets = (
        IntervalSets.lines(len(parts[0]))
        if found.accepts_all
        else IntervalSets._swept(*ends_of(parts, found.tau), found.min_count)
    )
    return sets.hulls() if hulls else sets


def fitted(rule: Any) -> DecisionRule:
    """Return the decision rule of a `BinCP`, or say why it decides nothing about real labels."""
    if not isinstance(rule, BinCP):
        raise TypeError(f"`rule` must be a BinCP, got {rule!r}")
    check_settings(rule)
    found = sampled(rule._rule)
    if found.dtype != "float64":
        raise ValueError(
            "`rule` must be calibrated on the float64 scores of "
            f"bincp.regression.conformity_scores, got scores of dtype {found.dtype}"
        )
    return found


def check_settings(rule: BinCP) -> None:
    """Refuse a rule whose guarantee needs finitely many labels, or decisions label by label."""
    if rule.union == "per-bound" and rule.correction == "clopper-pearson":
        raise ValueError(
            "`rule` must not spend its level on K classes, as there are infinitely many real "
            "labels, got union='per-bound'; union='two-bounds' needs none"
        )
    if rule.passes is not None:
        raise ValueError(
            f"`rule` must count all m' draws for sets of real labels, got passes={rule.passes!s}"
        )
