"""Nodes of one graph as inputs: fields of noisy graphs, and batches of them for a model."""

import copy
import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from bincp._models._outputs import logits_in
from bincp._utils.arrays import ArrayLike, as_array, as_counts, on_host
from bincp._utils.validation import check_flag, check_integer
from bincp.noise._graph import (
    FIELD,
    IN_ORDER,
    MAX_GRAPH_ID,
    WHOLE,
    Drawn,
    Extent,
    Rows,
    check_adjacency,
    draw_graphs,
    noisy_graph,
    read_rows,
)
from bincp.noise._keys import IntArray, Keys
from bincp.smoothing import GraphFlip

_MOST_HOPS = 64
_MOST_BYTES = 2**31  # of the edges of one noisy field
_EDGE_BYTES = 16
_BATCH_NODES = 2**18  # expected nodes of a batch
_NUMBER_SECONDS = 3e-8  # for one random number of 128 bits
_EQUAL_LOGITS = 1e-4
_EQUAL_PART = 1e-2  # of the largest logit, where all are small


class Graph:
    """A graph of N nodes with binary attributes, whose nodes are inputs.

    `nodes` makes inputs of some of them, which `sample_scores`, `count_scores`, `vote_counts` and
    `RobustClassifier` take as `x`, with the scheme `smoothing.GraphFlip`.

    Parameters
    ----------
    adjacency : matrix (N, N) of zeros and ones
        Dense, or sparse of SciPy or torch. Entry (w, u) is an edge from u to w. Without self-loops:
        a model adds its own. A copy is read: duplicates are summed, and stored zeros dropped.
    attributes : matrix (N, D) of zeros and ones
        In any of these forms; its rows say how many nodes there are.
    directed : bool, optional
        By default the graph is undirected, and `adjacency` must be symmetric: a pair of nodes is
        one coin, and one unit of the budget.
    clean : Graph, optional
        The graph of the calibration, where this one may have been attacked since. A rule that was
        calibrated on one graph refuses another that does not come from it, for it covers none.

    Attributes
    ----------
    n_nodes, n_attributes : int
        N, below 2^28, and D, below 2^32.
    directed : bool
    digest : str
        SHA-256 of the clean graph: of `clean` where it is given.

    Raises
    ------
    TypeError
        If an argument is no matrix.
    ValueError
        If a value is neither zero nor one, there is a self-loop, an undirected adjacency is not
        symmetric, the numbers of nodes differ, or `clean` has others.

    Notes
    -----
    The object does not change, and any number of threads may share it.

    What the guarantee covers. Nodes are split at random, the rule is calibrated on the clean graph,
    and one target's graph is attacked afterwards, in the ball: the set of the target contains its
    label with probability at least 1 - alpha, although fields overlap. The ball counts flips in the
    whole graph; where the adjacency gets no noise, it may not change, and only bits in the field of
    the target count. A graph that is attacked before calibration by one who knows the split is not
    covered by the certificate of the ball alone: it needs that of the inverted ball before it,
    ``Certificate.from_bounds(lambda p: c.lower(d.lower(p)))`` with d for ``ball.inverse()``. Nodes
    that join later are not covered at all: calibrate again on the new graph.

    Examples
    --------
    >>> import numpy as np
    >>> from bincp.smoothing import GraphFlip, SparseFlip
    >>> from bincp.sampling import Graph, sample_scores
    >>> ring = np.roll(np.eye(6), 1, axis=1)
    >>> graph = Graph(ring + ring.T, np.eye(6))
    >>> scheme = GraphFlip(6, 6, attributes=SparseFlip(0.01, 0.6))
    >>> def model(batch):  # the attributes of a node and of its neighbours
    ...     return batch.x.index_add(0, batch.edge_index[1], batch.x[batch.edge_index[0]])
    >>> inputs = graph.nodes([0, 2, 4], hops=1)
    >>> sample_scores(model, inputs, scheme, 10, phase="calibration", labels=[0, 2, 4]).shape
    (3, 10)
    """

    def __init__(
        self,
        adjacency: Any,
        attributes: Any,
        *,
        directed: bool = False,
        clean: "Graph | None" = None,
    ) -> None:
        self.directed = check_flag("directed", directed)
        self._adjacency = read_rows("adjacency", adjacency, square=True)
        self._attributes = read_rows("attributes", attributes, square=False)
        if len(self._adjacency) != len(self._attributes):
            raise ValueError(
                f"`adjacency` must have a row for each of the {len(self._attributes)} rows of "
                f"`attributes`, got {len(self._adjacency)}"
            )
        GraphFlip(self.n_nodes, self.n_attributes)  # checks the sizes
        check_adjacency(self._adjacency, directed=directed)
        if clean is not None:
            self._check_clean(clean)
        self._clean = clean

    def _check_clean(self, clean: Any) -> None:
        if not isinstance(clean, Graph):
            raise TypeError(f"`clean` must be a Graph, got {type(clean).__name__}")
        for name in ("n_nodes", "n_attributes", "directed"):
            own, wanted = getattr(self, name), getattr(clean, name)
            if own != wanted:
                raise ValueError(f"`clean` must have {name}={own} as this graph, got {wanted}")

    @classmethod
    def from_data(
        cls, data: Any, *, directed: bool = False, clean: "Graph | None" = None
    ) -> "Graph":
        """Return the graph of an object like `torch_geometric.data.Data`, by its attributes.

        Parameters
        ----------
        data : object
            ``edge_index`` (2, E) has the source and the target of each edge, ``x`` (N, D) the
            attributes. Undirected graphs have each edge in both directions.
        directed, clean : optional
            As in the class.

        Returns
        -------
        Graph

        Raises
        ------
        TypeError
            If an attribute is missing, or edges have weights or features.
        ValueError
            As in the class, or if an edge names a node that is not there.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> data = SimpleNamespace(edge_index=[[0, 1], [1, 0]], x=[[1, 0], [0, 1], [0, 0]])
        >>> Graph.from_data(data).n_nodes
        3
        """
        for name in ("edge_index", "x"):
            if getattr(data, name, None) is None:
                raise TypeError(f"`data` must have the attribute {name}, got {type(data).__name__}")
        for name in ("edge_attr", "edge_weight"):
            if getattr(data, name, None) is not None:
                raise TypeError(f"`data` must have edges without {name}: edges are there or not")
        attributes = read_rows("attributes", data.x, square=False)
        edges = as_array("edge_index", on_host("edge_index", data.edge_index))
        if edges.size == 0 and isinstance(data.edge_index, list | tuple):
            edges = edges.astype(np.int64)  # empty lists have no dtype of their own
        if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
            raise TypeError(
                f"`edge_index` must be integers (2, E), got {edges.dtype} of shape {edges.shape}"
            )
        n = len(attributes)
        bad = edges[(edges < 0) | (edges >= n)]
        if bad.size:
            raise ValueError(f"`edge_index` must name nodes, got node {bad[0]} for {n} nodes")
        adjacency = _Entries((n, n), edges[1], edges[0])
        return cls(adjacency, _Entries.of(attributes), directed=directed, clean=clean)

    @property
    def n_nodes(self) -> int:
        """N."""
        return len(self._attributes)

    @property
    def n_attributes(self) -> int:
        """D."""
        return self._attributes.width

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the clean graph."""
        if self._clean is not None:
            return self._clean.digest
        state = hashlib.sha256(f"{self!r} {self.directed}".encode())
        for rows in (self._adjacency, self._attributes):
            for part in (rows.starts, rows.columns):
                state.update(part.astype("<i8").tobytes())
        return state.hexdigest()

    def __repr__(self) -> str:
        return f"Graph(n_nodes={self.n_nodes}, n_attributes={self.n_attributes})"

    def nodes(
        self, nodes: ArrayLike, *, hops: int, degrees: bool = True, shared: bool = False
    ) -> "Nodes":
        """Return some nodes as inputs.

        Parameters
        ----------
        nodes : array-like (n,) of int
            Node numbers. They are the ids of the inputs, unless `indices` are given.
        hops : int
            Number of message-passing layers of the model, in [0, 64].
        degrees : bool, optional
            Whether the model reads the degrees of the nodes of the field, such as a GCN does that
            divides by them. By default they are known for all; False saves the exploration of the
            nodes at the last hop.
        shared : bool, optional
            One noisy graph in each draw for all nodes, in place of noise of their own. In the
            calibration this makes the draws of different points dependent, and the rule must have
            ``correction="shared-draws"`` (or "clopper-pearson"). For test nodes it is free: each
            keeps its guarantee, and their errors are correlated. Such a graph has no id: calls of
            one seed and phase share it for equal numbers of draws, whatever `indices`.

        Returns
        -------
        Nodes

        Raises
        ------
        TypeError
            If nodes or `hops` are not integers.
        ValueError
            If a node is not there, or `hops` is out of range.
        """
        targets = np.array(as_counts("nodes", nodes, high=self.n_nodes - 1))
        if targets.ndim != 1 or not targets.size:
            raise ValueError(f"`nodes` must have shape (n,), n >= 1, got {targets.shape}")
        return Nodes(
            self,
            targets,
            check_integer("hops", hops, low=0, high=_MOST_HOPS),
            check_flag("degrees", degrees),
            check_flag("shared", shared),
        )


class _Entries:
    """The ones of a matrix, in the form that `read_rows` takes."""

    def __init__(self, shape: tuple[int, int], row: Any, column: Any) -> None:
        self.shape, self.row, self.col = shape, row, column
        self.data, self.nnz = np.ones(len(row)), len(row)

    def tocoo(self) -> "_Entries":
        return self

    @classmethod
    def of(cls, rows: Rows) -> "_Entries":
        row = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
        return cls((len(rows), rows.width), row, rows.columns)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of a graph as inputs, made by `Graph.nodes`."""

    graph: Graph
    targets: IntArray
    hops: int
    degrees: bool
    shared: bool

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def ndim(self) -> int:
        """1."""
        return 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32, as models get the attributes."""
        return np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int]:
        """(n,)."""
        return (len(self.targets),)

    @property
    def extent(self) -> Extent:
        """What is drawn for an input."""
        return Extent(IN_ORDER) if self.shared else Extent(FIELD, self.hops, self.degrees)


@dataclass(frozen=True, eq=False)
class NoisyGraphs:
    """What a model gets: noisy graphs of several inputs, as one graph without edges between them.

    Parameters
    ----------
    edge_index : int64 tensor (2, E)
        Sources and targets of the edges; undirected ones are there in both directions.
    degree : int64 tensor (V,)
        Number of edges into each of the V nodes, also of those from outside the field. It is known
        at the last hop only where the inputs ask for `degrees`.
    node : int64 tensor (V,)
        Number of each node in the whole graph.
    target : int64 tensor (b,)
        Where the inputs stand.
    columns, offsets : int64 tensors
        The ones of the attributes, node after node, and where each node begins in `columns`:
        ``torch.nn.functional.embedding_bag(columns, weight, offsets, mode="sum")`` is `x` times a
        weight (D, units), at the cost of the ones.
    n_attributes : int
        D.

    Notes
    -----
    A model returns logits (V, K), and those of `target` are taken.

    Examples
    --------
    A layer of a graph convolutional network, with self-loops:

    >>> import torch
    >>> def pass_on(batch, values):
    ...     scale = (batch.degree + 1).rsqrt()[:, None]
    ...     source, target = batch.edge_index
    ...     scaled = values * scale
    ...     return scale * scaled.index_add(0, target, scaled[source])
    >>> pair = NoisyGraphs(
    ...     edge_index=torch.tensor([[0, 1], [1, 0]]),
    ...     degree=torch.tensor([1, 1]),
    ...     node=torch.tensor([7, 3]),
    ...     target=torch.tensor([0]),
    ...     columns=torch.tensor([0, 1]),
    ...     offsets=torch.tensor([0, 1]),
    ...     n_attributes=2,
    ... )
    >>> pass_on(pair, pair.x).round(decimals=6)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """

    edge_index: torch.Tensor
    degree: torch.Tensor
    node: torch.Tensor
    target: torch.Tensor
    columns: torch.Tensor
    offsets: torch.Tensor
    n_attributes: int

    @cached_property
    def x(self) -> torch.Tensor:
        """The attributes, float32 (V, D), of zeros and ones; made when it is read."""
        rows = torch.zeros(len(self.node), self.n_attributes, device=self.columns.device)
        ends = torch.cat([self.offsets[1:], self.offsets.new_tensor([len(self.columns)])])
        of_node = torch.repeat_interleave(ends - self.offsets)
        rows[of_node, self.columns] = 1
        return rows

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "NoisyGraphs":
        """Return the graphs on a device."""
        parts = ("edge_index", "degree", "node", "target", "columns", "offsets")
        moved = {name: getattr(self, name).to(device, non_blocking=non_blocking) for name in parts}
        return replace(self, **moved)

    def logits(self, model: Any) -> torch.Tensor:
        """Return the logits (b, K) that a model gives the inputs."""
        logits = logits_in(model(self))
        if logits.ndim != 2 or len(logits) != len(self.node):
            raise ValueError(
                f"`model` must return logits of shape ({len(self.node)}, K), a row for each node "
                f"of the batch, got shape {tuple(logits.shape)}"
            )
        return logits[self.target]


class GraphInputs:
    """Nodes with the noise of a scheme, as the inputs of a sampling job."""

    def __init__(self, nodes: Nodes, smoothing: object) -> None:
        if not isinstance(smoothing, GraphFlip):
            raise TypeError(f"`smoothing` must be a GraphFlip for nodes, got {smoothing!r}")
        graph = nodes.graph
        if graph.n_nodes != smoothing.n_nodes:
            raise ValueError(
                f"calibrated on {smoothing.n_nodes} nodes, got {graph.n_nodes}: "
                "calibrate again on the new graph"
            )
        if graph.n_attributes != smoothing.n_attributes:
            raise ValueError(
                f"`smoothing` must be for {graph.n_attributes} attributes, "
                f"got {smoothing.n_attributes}"
            )
        self.nodes, self.smoothing = nodes, smoothing
        self.shape, self.dtype = nodes.shape, np.dtype(np.float32)
        self._native = noisy_graph(
            graph._adjacency, graph._attributes, smoothing, directed=graph.directed
        )
        self._checked = nodes.shared

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, part: slice) -> "GraphInputs":
        """Return some of the inputs."""
        made = copy.copy(self)
        made.nodes = replace(self.nodes, targets=self.nodes.targets[part])
        made.shape = made.nodes.shape
        return made

    @property
    def shared(self) -> bool:
        """Whether all inputs have one noisy graph in each draw."""
        return self.nodes.shared

    # ---- cost ---------------------------------------------------------------------------------

    @property
    def expected_edges(self) -> float:
        """Expected edges of a node."""
        graph, flips = self.nodes.graph, self.smoothing.adjacency
        degree = len(graph._adjacency.columns) / graph.n_nodes
        return graph.n_nodes * flips.p_plus + (1 - flips.p_minus) * degree

    @property
    def expected_nodes(self) -> float:
        """Expected nodes of a field, at most all."""
        n = self.nodes.graph.n_nodes
        if self.shared:
            return n
        hops = self.nodes.hops
        most: float = max(self.expected_edges, 1.0) ** hops
        return min(most, n)

    def batch_size(self, asked: int) -> int:
        """Return how many rows a batch may have, for its expected size."""
        return max(1, min(asked, int(_BATCH_NODES / max(self.expected_nodes, 1.0))))

    def check_cost(self, n_draws: int) -> None:
        """Warn where fields hold the whole graph, and refuse where they do not fit."""
        graph, flips = self.nodes.graph, self.smoothing
        n, nodes = graph.n_nodes, self.expected_nodes
        if self.shared or flips.adjacency.p_plus == 0 or nodes < n / 10:
            return
        if nodes * self.expected_edges * _EDGE_BYTES > _MOST_BYTES:
            raise ValueError(
                f"noise adds {round(n * flips.adjacency.p_plus)} edges a node: fields of "
                f"{self.nodes.hops} hops hold the whole graph; lower p_plus, or one noisy graph "
                "with correction='shared-draws'"
            )
        bits = len(graph._attributes.columns) / n + graph.n_attributes * flips.attributes.p_plus
        seconds = len(self) * n_draws * nodes * (self.expected_edges + bits) * _NUMBER_SECONDS
        warnings.warn(
            f"fields of {self.nodes.hops} hops hold about {round(nodes)} of {n} nodes: drawing "
            f"{len(self) * n_draws} of them takes about {seconds:.2g} seconds of one core, and the "
            "model's time besides; lower p_plus, or one noisy graph with "
            "correction='shared-draws'",
            stacklevel=5,
        )

    # ---- draws --------------------------------------------------------------------------------

    def draw(self, keys: Keys, sources: IntArray) -> NoisyGraphs:
        """Return the noisy graphs of some draws; `sources` are inputs."""
        targets = self.nodes.targets[sources]
        if not self.shared:
            made = self._draw(keys, targets, self.nodes.extent)
            starts = np.r_[0, made.ends[:-1]]
            return self._as_batch(made, starts)
        draws, which = np.unique(keys.draws, return_inverse=True)
        zeros = np.zeros(len(draws), np.int64)
        whole = Keys(keys.seed, keys.phase, zeros, draws)
        made = self._draw(whole, zeros, self.nodes.extent)
        return self._as_batch(made, which * self.nodes.graph.n_nodes + targets)

    def _draw(self, keys: Keys, targets: IntArray, extent: Extent) -> Drawn:
        return draw_graphs(
            self._native, keys.seed, keys.phase, keys.ids, keys.draws, targets, extent
        )

    def _as_batch(self, made: Drawn, target: IntArray) -> NoisyGraphs:
        return NoisyGraphs(
            edge_index=torch.from_numpy(np.stack([made.sources, made.targets])),
            degree=torch.from_numpy(made.degrees),
            node=torch.from_numpy(made.nodes),
            target=torch.from_numpy(np.ascontiguousarray(target)),
            columns=torch.from_numpy(made.attributes),
            offsets=torch.from_numpy(np.r_[0, made.attribute_ends[:-1]]),
            n_attributes=self.nodes.graph.n_attributes,
        )

    def check_field(self, model: Any, keys: Keys, device: torch.device) -> None:
        """Compare the logits of one draw of the first input on its field and on the whole graph."""
        if self._checked:
            return
        first, target = keys[:1], self.nodes.targets[:1]
        zero = np.zeros(1, np.int64)
        field = self.draw(first, zero).to(device).logits(model)
        made = self._draw(first, target, Extent(WHOLE))
        whole = self._as_batch(made, zero).to(device).logits(model)
        # Equal infinities have no difference; NaN is refused later, as NaN.
        same = (field == whole) | (field.isnan() & whole.isnan())
        apart = float((field - whole).abs().masked_fill(same, 0).max())
        largest = float(whole.abs().masked_fill(~whole.isfinite(), 0).max())
        if not apart <= min(_EQUAL_LOGITS, _EQUAL_PART * largest):
            raise ValueError(
                f"`model` must give a node equal logits on its field of {self.nodes.hops} hops and "
                f"on the whole noisy graph, got some that differ by {apart:.3g}: ask for as many "
                "hops as there are layers, read degrees from `degree` of the batch, and normalise "
                "over no more than the field"
            )
        self._checked = True


def check_graph_ids(ids: IntArray) -> None:
    """Refuse ids that the numbers of a graph have no room for."""
    bad = ids[(ids < 0) | (ids > MAX_GRAPH_ID)]
    if len(bad):
        raise ValueError(f"ids of nodes must be below 2**28, got {bad[0]}")
