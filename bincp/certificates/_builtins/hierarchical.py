"""Operators of noise in two levels, and of models of parts of the training data."""

from bincp._core import _operators
from bincp._core._operators import Operator
from bincp.balls import Elements, TrainingPoints
from bincp.certificates._algebra import hierarchical
from bincp.certificates._certificate import Certificate
from bincp.certificates._registry import certify_law, register_built_in
from bincp.smoothing import Hierarchical, Partition
from bincp.smoothing._base import READS_NO_LAST_BITS


@register_built_in(Hierarchical, Elements)
def hierarchical_elements(smoothing: Hierarchical, ball: Elements) -> Certificate:
    """Use the inner bound where all changed elements are selected, see `hierarchical`.

    Continuous noise shows which elements it is on: it never leaves a value as it was.
    """
    inner = certify_law(smoothing.inner, ball.within)
    is_continuous = smoothing.inner.assumes() == READS_NO_LAST_BITS
    return hierarchical(inner, smoothing.q, ball.r, shown=is_continuous)


@register_built_in(Partition, TrainingPoints, exact=True)
def partition_points(smoothing: Partition, ball: TrainingPoints) -> tuple[Operator, str]:
    """Lose one model for each changed point; exact (Levine and Feizi 2021)."""
    steps = min(ball.r, smoothing.models)
    note = f"a count of {smoothing.models} models moves by at most {steps}; exact"
    return _operators.steps(smoothing.models, steps), note
