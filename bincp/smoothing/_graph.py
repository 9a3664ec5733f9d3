"""Flips of the pairs and of the attribute bits of a graph, drawn along receptive fields."""

from dataclasses import dataclass, field
from fractions import Fraction

from bincp._utils.levels import float_above
from bincp._utils.validation import check_integer
from bincp.smoothing._base import NOTHING, Smoothing, set_parameters
from bincp.smoothing._flips import SparseFlip

MAX_NODES = 2**28 - 1
MAX_ATTRIBUTES = 2**32 - 1
_FIXED = SparseFlip(0.0, 0.0)
_GAP_ERROR = Fraction(1, 2**113)  # M / 2^129 for M <= 2^16 bounds
_COIN_ERROR = Fraction(1, 2**128)
_EXACT_COIN = 2.0**-75  # from here on probabilities are multiples of 2^-128


@dataclass(frozen=True)
class GraphFlip(Smoothing):
    """Independent flips of the pairs of nodes and of the attribute bits of one graph.

    An input is a node of the graph, see `bincp.sampling.Graph`. Its noise is drawn for the nodes
    that it reaches only, and zeros that stay zero cost nothing.

    Certificates are for `balls.Flips` where one part is noisy, and for `balls.Joint` of two of
    them where both are. An undirected pair is one coin and one unit of the budget; a directed edge
    is one, too. A part without noise must not change: the adversary keeps to the other one.

    Nothing is assumed of the model. Flips have nearly their probabilities, and the certificate pays
    for the rest (`sampling_error`).

    Parameters
    ----------
    n_nodes : int
        Number of nodes N, in [1, 2^28). A rule that was calibrated on N nodes is for no other N.
    n_attributes : int
        Number of attributes D, in [0, 2^32).
    adjacency : SparseFlip, optional
        Flips of pairs; by default the adjacency has no noise.
    attributes : SparseFlip, optional
        Flips of attribute bits; by default they have no noise.

    Raises
    ------
    TypeError
        If a number is not an integer, or a part not a `SparseFlip`.
    ValueError
        If a number is out of range.

    References
    ----------
    Bojchevski, Gasteiger and Günnemann, "Efficient robustness certificates for discrete data:
    sparsity-aware randomized smoothing for graphs, images and more", ICML 2020.

    Examples
    --------
    >>> import bincp
    >>> scheme = GraphFlip(2810, 2879, attributes=SparseFlip(0.01, 0.6))
    >>> certificate = bincp.certify(scheme, bincp.balls.Flips(additions=1, deletions=3))
    >>> round(certificate.lower(0.9), 4)
    0.3455
    """

    n_nodes: int
    n_attributes: int
    adjacency: SparseFlip = field(default=_FIXED, kw_only=True)
    attributes: SparseFlip = field(default=_FIXED, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("adjacency", "attributes"):
            part = getattr(self, name)
            if not isinstance(part, SparseFlip):
                raise TypeError(f"`{name}` must be a SparseFlip, got {part!r}")
        set_parameters(
            self,
            n_nodes=check_integer("n_nodes", self.n_nodes, low=1, high=MAX_NODES),
            n_attributes=check_integer(
                "n_attributes", self.n_attributes, low=0, high=MAX_ATTRIBUTES
            ),
        )

    @property
    def noisy(self) -> tuple[str, ...]:
        """The names of the parts with noise."""
        return tuple(name for name in ("adjacency", "attributes") if getattr(self, name) != _FIXED)

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return NOTHING

    def sampling_error(self) -> float:
        """Return a bound on the total variation distance of a noisy graph from its law.

        Returns
        -------
        float
            N (N + 1) 2^-113 for a noisy adjacency and N (D + 1) 2^-113 for noisy attributes: a row
            of length L uses at most L + 1 jumps, and each is within 2^-113 of its law. Besides
            2^-128 for each coin where ``p_minus`` is positive and below 2^-75.

        Examples
        --------
        >>> scheme = GraphFlip(170_000, 100, adjacency=SparseFlip(1e-4, 0.4))
        >>> f"{scheme.sampling_error():.1e}"
        '2.8e-24'
        """
        error = Fraction(0)
        for part, length in (
            (self.adjacency, self.n_nodes),
            (self.attributes, self.n_attributes),
        ):
            if part == _FIXED:
                continue
            error += self.n_nodes * (length + 1) * _GAP_ERROR
            if 0 < part.p_minus < _EXACT_COIN:
                error += self.n_nodes * length * _COIN_ERROR
        return min(float_above(error), 1.0)
