"""Words that are replaced by synonyms at random."""

from dataclasses import dataclass
from fractions import Fraction

from bincp._utils.validation import check_integer, check_real
from bincp.smoothing._base import NOTHING, Smoothing, set_parameters

_MAX_SYNONYMS = 1024
_CHOICE_ERROR = 2.0**-94  # 2^-128 for each synonym, over the 2^34 elements of an input


@dataclass(frozen=True)
class Staircase(Smoothing):
    """Staircase noise: each word becomes a synonym, a distant one less often than a close one.

    Synonyms come in sets of `k`, in a circle with similar words side by side. A token is the number
    ``k s + i`` of the i-th word of set s. It moves by j places in its circle with a probability
    proportional to ``ratio ** (distance // step)`` with distance = min(j, k - j). Certified against
    `balls.Substitutions`.

    Nothing is assumed of the model: moves have their probabilities to 2^-128, and the certificate
    pays for the rest (`sampling_error`).

    Parameters
    ----------
    k : int
        Number of words in a set, in [2, 1024].
    ratio : float
        Ratio of the probabilities of one step and the one before it, in (0, 1]. The mechanism is
        private with epsilon = -log(ratio) for words that are `step` places apart.
    step : int, optional
        Number of places of a step, at least 1.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If an argument is out of range; `ratio` must be at least 0.001.

    References
    ----------
    Geng and Viswanath, "The optimal mechanism in differential privacy", ISIT 2014; Zhang et al.,
    "Text-CRS: a generalized certified robustness framework against textual adversarial attacks",
    S&P 2024, for words.

    Examples
    --------
    >>> [str(mass) for mass in Staircase(k=4, ratio=0.5).law()]
    ['4/9', '2/9', '1/9', '2/9']
    """

    k: int
    ratio: float
    step: int = 1

    def __post_init__(self) -> None:
        k = check_integer("k", self.k, low=2, high=_MAX_SYNONYMS)
        ratio = check_real("ratio", self.ratio, low=0, open_low=True)
        if not 1e-3 <= ratio <= 1:
            raise ValueError(f"`ratio` must be in [0.001, 1], got {ratio!r}")
        set_parameters(self, k=k, ratio=ratio, step=check_integer("step", self.step, low=1))

    def law(self) -> tuple[Fraction, ...]:
        """Return the exact probabilities to move by 0, ..., k - 1 places."""
        weights = [Fraction(self.ratio) ** self.level(j) for j in range(self.k)]
        total = sum(weights, Fraction(0))
        return tuple(weight / total for weight in weights)

    def level(self, move: int) -> int:
        """Return the step of the staircase on which a move is.

        Examples
        --------
        >>> Staircase(k=8, ratio=0.5, step=2).level(7)
        0
        """
        place = move % self.k
        return min(place, self.k - place) // self.step

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of a noisy input from its law."""
        return self.k * _CHOICE_ERROR
