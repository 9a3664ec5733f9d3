"""Regression: sets of real labels, as unions of intervals, that keep their coverage under attack.

The rule is that of `bincp.BinCP`: a label is in the set iff at least k of its m' sampled scores
reach tau. Nothing in its guarantee counts the labels, so they may be all real numbers. The score of
a real label falls on both sides of the prediction, so one draw accepts an interval of labels, and
the set is where at least k of m' intervals overlap: `IntervalSets`, a union of closed intervals.

`conformity_scores` rounds the scores down, and `predict_sets` makes the sets of these very scores:
a double is in the set iff at least k of its m' scores reach tau, to the last bit.
`bincp.sampling.RobustRegressor` does it all for a model.

What holds of `bincp.BinCP` holds here, too. The attack moves the input, and not the label.
"""

from bincp.regression._prediction import predict_sets
from bincp.regression._scores import conformity_scores
from bincp.regression._sets import IntervalSets

__all__ = ["IntervalSets", "conformity_scores", "predict_sets"]
