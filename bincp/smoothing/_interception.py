"""Messages of a graph neural network that are intercepted at random."""

from dataclasses import dataclass

from bincp._utils.validation import check_probability
from bincp.smoothing._base import Smoothing, set_parameters


@dataclass(frozen=True)
class MessageInterception(Smoothing):
    """Edges of a graph that are deleted at random, and nodes whose attributes are ablated.

    Each edge is deleted with probability `p_delete`, and the attributes of each node are ablated
    with probability `p_ablate`, all independently. Certified against `balls.AttackedNodes`: an
    attacked node matters only if its attributes are kept, and all edges of some path from it to the
    node that is classified.

    bincp draws no noise for it, as graphs have many forms; `bincp.noise.register` takes a sampler.

    Parameters
    ----------
    p_delete : float
        Probability that an edge is deleted, in [0, 1].
    p_ablate : float
        Probability that the attributes of a node are ablated, in [0, 1].

    Raises
    ------
    TypeError
        If a probability is not a real number.
    ValueError
        If a probability is outside [0, 1].

    References
    ----------
    Scholten, Schuchardt, Geisler, Bojchevski and Günnemann, "Randomized message-interception
    smoothing: gray-box certificates for graph neural networks", NeurIPS 2022.

    Examples
    --------
    >>> MessageInterception(p_delete=0.3, p_ablate=0.6)
    MessageInterception(p_delete=0.3, p_ablate=0.6)
    """

    p_delete: float
    p_ablate: float

    def __post_init__(self) -> None:
        set_parameters(
            self,
            p_delete=check_probability("p_delete", self.p_delete),
            p_ablate=check_probability("p_ablate", self.p_ablate),
        )

    def assumes(self) -> str:
        """Return the assumption, see `Smoothing.assumes`."""
        return "edges and nodes are drawn with exactly these probabilities"
