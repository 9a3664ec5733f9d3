"""Operators of noise in the parameters of a transformation, and of intercepted messages."""

from fractions import Fraction

from bincp._core import _operators
from bincp._core._operators import Operator
from bincp._utils.levels import float_above
from bincp.balls import AttackedNodes, BrightnessChange, Translations
from bincp.certificates._combined import power
from bincp.certificates._registry import register_built_in
from bincp.smoothing import Brightness, MessageInterception, Translation


@register_built_in(Translation, Translations)
def translations(smoothing: Translation, ball: Translations) -> Operator:
    """Shift in the normal quantile by the length of the move over sigma.

    A move d of the input and noise that is a rounded Gaussian vector g give the image moved by
    rint(g) + d = rint(g + d): a function of g + d, so the bound of Gaussian noise holds (Li et al.
    2021, for transformations whose parameters add up).
    """
    return _operators.gaussian(float_above(Fraction(ball.r) / Fraction(smoothing.sigma)))


@register_built_in(Brightness, BrightnessChange, exact=True, adds_up=True)
def brightness(smoothing: Brightness, ball: BrightnessChange) -> Operator:
    """Shift in the normal quantile by r / sigma: one coordinate of Gaussian noise; exact."""
    return _operators.gaussian(float_above(Fraction(ball.r) / Fraction(smoothing.sigma)))


@register_built_in(MessageInterception, AttackedNodes)
def attacked_nodes(smoothing: MessageInterception, ball: AttackedNodes) -> Operator:
    """Lose the probability that a message of an attacked node arrives.

    Where none arrives, the output is the same before and after the attack (Scholten et al. 2022).
    That a path is cut or a node ablated gets no less likely as more is deleted, so such events are
    positively correlated (Harris): no path of a node arrives with at least the product of the
    probabilities that each is cut, and no node with at least the product of those. Paths without
    common edges attain it.
    """
    kept, seen = 1 - Fraction(smoothing.p_delete), 1 - Fraction(smoothing.p_ablate)
    unharmed = Fraction(1)
    for lengths in ball.paths:
        cut = Fraction(1)
        for length in lengths:
            arrives = power(kept, length)[1]
            cut = power(cut * (1 - arrives), 1)[0]  # 200 bits, rounded down
        unharmed = power(unharmed * (1 - seen * (1 - cut)), 1)[0]
    return _operators.uniform(float_above(1 - unharmed))
