"""Operators of discrete noise: likelihood-ratio regions and the knapsack over them."""

from bincp import _operators
from bincp.balls import Flips
from bincp.certificates import Certificate
from bincp.registry import register_built_in
from bincp.smoothing import SparseFlip

_MAX_CELLS = 10**10  # about ten seconds of convolution, which cannot be interrupted


@register_built_in(SparseFlip, Flips)
def sparse_flips(smoothing: SparseFlip, ball: Flips) -> Certificate:
    """Fill additions + deletions + 1 likelihood-ratio regions (Bojchevski et al. 2020); exact."""
    cells = (ball.additions + 1) * (ball.deletions + 1)
    if cells > _MAX_CELLS:
        raise ValueError(
            f"`ball` must have (additions + 1) (deletions + 1) <= {_MAX_CELLS}, got {ball!r}"
        )
    operator = _operators.sparse(
        ball.additions, ball.deletions, smoothing.p_plus, smoothing.p_minus
    )
    return Certificate._from_operator(operator)
