"""Balls of attacks on the nodes of a graph."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bincp._utils.validation import MAX_COUNT, check_integer
from bincp.balls._base import Ball

Paths = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class AttackedNodes(Ball):
    """Nodes whose attributes change to any values, with the paths from them to the classified node.

    Parameters
    ----------
    paths : sequence of sequence of int
        One sequence for each attacked node: the lengths, in edges, of all paths without repeated
        nodes that a message can take from it to the classified node, at most as long as the network
        has layers. A node that is classified itself has a path of length 0. An attacker who may
        choose the nodes chooses those whose messages arrive most often: give these.

    Raises
    ------
    TypeError
        If `paths` is not made of sequences of integers.
    ValueError
        If a length is negative, or 2^31 or more.

    Examples
    --------
    >>> AttackedNodes([[1, 2], [2]])
    AttackedNodes(paths=((1, 2), (2,)))
    """

    paths: Paths

    def __init__(self, paths: Sequence[Sequence[int]]) -> None:
        if isinstance(paths, str) or not isinstance(paths, Iterable):
            raise TypeError(f"`paths` must be a sequence of sequences of int, got {paths!r}")
        made = tuple(_lengths(f"paths[{i}]", node) for i, node in enumerate(paths))
        object.__setattr__(self, "paths", made)


def _lengths(name: str, node: object) -> tuple[int, ...]:
    if isinstance(node, str) or not isinstance(node, Iterable):
        raise TypeError(f"`{name}` must be a sequence of int, got {node!r}")
    return tuple(
        check_integer(f"{name}[{i}]", length, low=0, high=MAX_COUNT)
        for i, length in enumerate(node)
    )
