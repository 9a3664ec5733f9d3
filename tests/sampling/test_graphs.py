"""Nodes of a graph as inputs of sampling, counting and classification."""

import copy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import torch

import bincp
from bincp.balls import Flips
from bincp.balls import Joint as JointBall
from bincp.sampling import Graph, RobustClassifier, count_scores, run, sample_scores, vote_counts
from bincp.smoothing import Gaussian, GraphFlip, Joint, SparseFlip

N, D, K = 60, 7, 3
SCHEMES = [
    GraphFlip(N, D, attributes=SparseFlip(0.05, 0.6)),
    GraphFlip(N, D, adjacency=SparseFlip(0.01, 0.4)),
    GraphFlip(N, D, adjacency=SparseFlip(0.0, 0.4), attributes=SparseFlip(0.05, 0.6)),
]
NOISY = SCHEMES[0]
crowded = pytest.mark.filterwarnings("ignore:fields of")


def dense_graph(seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((N, N)) < 3 / N, 1)
    return (upper | upper.T).astype(int), rng.integers(0, 2, (N, D))


ADJACENCY, BITS = dense_graph()
GRAPH = Graph(ADJACENCY, BITS)


class GCN(torch.nn.Module):
    """Two layers that divide by the degrees of both ends, in float64."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        first = torch.randn(D, 5, generator=generator, dtype=torch.float64)
        self.first = torch.nn.Parameter(first)
        self.last = torch.nn.Parameter(torch.randn(5, K, generator=generator, dtype=first.dtype))

    def pass_on(self, batch, values):
        scale = (batch.degree + 1).to(values.dtype).rsqrt()[:, None]
        source, target = batch.edge_index
        scaled = values * scale
        return scale * scaled.index_add(0, target, scaled[source])

    def forward(self, batch):
        hidden = self.pass_on(batch, batch.x.to(self.first.dtype) @ self.first).relu()
        return self.pass_on(batch, hidden) @ self.last


MODEL = GCN()


@crowded
@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_scores_do_not_depend_on_batch_or_order(scheme):
    nodes = [3, 17, 0, 59]
    one = sample_scores(MODEL, GRAPH.nodes(nodes, hops=2), scheme, 5, phase="test", batch_size=1)
    all_ = sample_scores(MODEL, GRAPH.nodes(nodes, hops=2), scheme, 5, phase="test")
    back = sample_scores(MODEL, GRAPH.nodes(nodes[::-1], hops=2), scheme, 5, phase="test")
    np.testing.assert_allclose(one, all_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(back[::-1], all_, rtol=0, atol=1e-12)
    assert np.ptp(all_, axis=2).min() > 0  # draws differ


@crowded
def test_counts_votes_and_scores_agree():
    inputs = GRAPH.nodes([3, 17, 0], hops=2)
    scores = sample_scores(MODEL, inputs, NOISY, 20, phase="test")
    counts = count_scores(MODEL, inputs, NOISY, 20, 0.3, phase="test")
    assert counts.tolist() == (scores >= 0.3).sum(axis=2).tolist()
    votes = vote_counts(MODEL, inputs, NOISY, 20)
    winners = scores.argmax(axis=1)
    assert votes.tolist() == [[(row == k).sum() for k in range(K)] for row in winners]


@pytest.mark.parametrize("n_samples", [1, 7])
def test_shared_noise_is_one_graph_for_all_nodes(n_samples):
    seen = []

    def model(batch):
        seen.append(batch)
        return MODEL(batch)

    scheme = SCHEMES[1]
    inputs = GRAPH.nodes(np.arange(N), hops=2, shared=True)
    scores = sample_scores(model, inputs, scheme, n_samples, phase="test", batch_size=3)
    assert sum(len(batch.node) for batch in seen) == N * n_samples
    one = sample_scores(
        MODEL, GRAPH.nodes([17], hops=2, shared=True), scheme, n_samples, phase="test"
    )
    np.testing.assert_allclose(one[0], scores[17], rtol=0, atol=1e-12)
    votes = vote_counts(MODEL, inputs, scheme, n_samples)
    assert votes.sum(axis=1).tolist() == [n_samples] * N


def test_forms_of_a_graph_give_the_same_bits():
    source, target = np.nonzero(ADJACENCY.T)
    data = SimpleNamespace(
        edge_index=torch.tensor(np.stack([source, target])), x=torch.tensor(BITS).float()
    )
    messy = scipy.sparse.coo_matrix(ADJACENCY)
    order = np.random.default_rng(1).permutation(messy.nnz)
    messy = scipy.sparse.coo_matrix(
        (messy.data[order], (messy.row[order], messy.col[order])), (N, N)
    )
    graphs = [
        Graph(scipy.sparse.csc_matrix(ADJACENCY), scipy.sparse.csr_array(BITS)),
        Graph(messy, torch.tensor(BITS)),
        Graph.from_data(data),
    ]
    scheme = SCHEMES[2]
    expected = sample_scores(MODEL, GRAPH.nodes([5, 6], hops=2), scheme, 4, phase="test")
    for graph in graphs:
        found = sample_scores(MODEL, graph.nodes([5, 6], hops=2), scheme, 4, phase="test")
        assert found.tobytes() == expected.tobytes()


def test_isolated_nodes_at_the_end_are_nodes():
    data = SimpleNamespace(edge_index=np.array([[0, 1], [1, 0]]), x=np.zeros((5, 2)))
    graph = Graph.from_data(data)
    assert graph.n_nodes == 5
    scheme = GraphFlip(5, 2, attributes=SparseFlip(0.3, 0.3))
    scores = sample_scores(lambda b: b.x, graph.nodes(range(5), hops=1), scheme, 2, phase="test")
    assert scores.shape == (5, 2, 2)
    data.edge_index = np.array([[0, 5], [5, 0]])
    with pytest.raises(ValueError, match="got node 5 for 5 nodes"):
        Graph.from_data(data)


def test_features_and_edges_belong_to_the_same_nodes():
    edges = np.array([[2, 3, 5, 6], [3, 2, 6, 5]])
    graph = Graph.from_data(SimpleNamespace(edge_index=edges, x=np.eye(7)))
    scheme = GraphFlip(7, 7)

    def model(batch):
        assert batch.x.argmax(1).tolist() == batch.node.tolist() == [5, 6, 3, 2, 2, 3]
        assert batch.edge_index.T.tolist() == [[1, 0], [0, 1], [3, 2], [2, 3], [5, 4], [4, 5]]
        assert batch.target.tolist() == [0, 2, 4]
        assert batch.columns.tolist() == batch.node.tolist()
        return batch.x

    seen = []
    sample_scores(
        lambda b: (seen.append(b), b.x)[1], graph.nodes([5, 3, 2], hops=1), scheme, 1, phase="test"
    )
    model(seen[-1])


def test_embedding_bag_is_the_product_with_the_attributes():
    seen = []

    def model(batch):
        seen.append(batch)
        weight = torch.arange(D * K).reshape(D, K).double()
        product = torch.nn.functional.embedding_bag(
            batch.columns, weight, batch.offsets, mode="sum"
        )
        assert torch.equal(product, batch.x.double() @ weight)
        return product

    sample_scores(model, GRAPH.nodes([1, 2], hops=1), NOISY, 3, phase="test")
    assert len(seen) == 3  # two of the comparison


# ---- refusals -----------------------------------------------------------------------------------


@crowded
def test_fields_that_do_not_hold_what_the_model_reads_are_refused():
    with pytest.raises(ValueError, match="equal logits on its field of 1 hops"):
        sample_scores(MODEL, GRAPH.nodes([3], hops=1), NOISY, 2, phase="test")

    def cut(batch):  # degrees of the field
        degree = torch.bincount(batch.edge_index[1], minlength=len(batch.node))
        return MODEL(_With(batch, degree))

    with pytest.raises(ValueError, match="equal logits"):
        sample_scores(cut, GRAPH.nodes([3], hops=2), NOISY, 2, phase="test")

    def normalised(batch):
        logits = MODEL(batch)
        return logits - logits.mean(0)

    for scale in (1.0, 1e-6):  # in other units it is the same fault
        with pytest.raises(ValueError, match="equal logits"):
            sample_scores(
                lambda batch, scale=scale: scale * normalised(batch),
                GRAPH.nodes([3], hops=2), NOISY, 2, phase="test",
            )  # fmt: skip
    small = sample_scores(
        lambda batch: 1e-6 * MODEL(batch), GRAPH.nodes([3], hops=2), NOISY, 2, phase="test"
    )
    assert small.shape == (1, K, 2)
    nothing = sample_scores(
        lambda batch: 0 * MODEL(batch), GRAPH.nodes([3], hops=2), NOISY, 2, phase="test"
    )
    assert (nothing == nothing[0, 0, 0]).all()
    label = torch.arange(K) == 0
    masked = sample_scores(
        lambda batch: MODEL(batch).masked_fill(label, -torch.inf),
        GRAPH.nodes([3], hops=2), NOISY, 2, phase="test",
    )  # fmt: skip
    assert (masked[0, 0] == 0).all()


class _With:
    def __init__(self, batch, degree):
        self.x, self.edge_index, self.degree = batch.x, batch.edge_index, degree


def test_another_number_of_nodes_is_refused():
    bigger = Graph(np.zeros((N + 1, N + 1)), np.zeros((N + 1, D)))
    with pytest.raises(
        ValueError, match="calibrated on 60 nodes, got 61: calibrate again on the new"
    ):
        sample_scores(MODEL, bigger.nodes([0], hops=2), NOISY, 2, phase="test")


def test_ids_of_nodes_have_28_bits_and_differ():
    inputs = GRAPH.nodes([0, 1], hops=2)
    with pytest.raises(ValueError, match=r"ids of nodes must be below 2\*\*28, got 268435456"):
        sample_scores(MODEL, inputs, NOISY, 2, phase="test", indices=[0, 2**28])
    with pytest.raises(ValueError, match="must differ in the calibration phase"):
        sample_scores(MODEL, GRAPH.nodes([4, 4], hops=2), NOISY, 2, phase="calibration")


def test_kinds_of_objects_are_refused():
    with pytest.raises(TypeError, match="`smoothing` must be a GraphFlip for nodes"):
        sample_scores(MODEL, GRAPH.nodes([0], hops=2), Gaussian(0.5), 2, phase="test")
    with pytest.raises(TypeError, match="`x` must be nodes of a Graph for GraphFlip"):
        sample_scores(MODEL, torch.zeros(2, 3), NOISY, 2, phase="test")
    for labels in None, [0] * N:
        with pytest.raises(TypeError, match=r"`x` must be nodes of a Graph, graph\.nodes"):
            sample_scores(MODEL, GRAPH, NOISY, 2, phase="calibration", labels=labels)
    with pytest.raises(TypeError, match="`key` must be None with nodes of a graph, got 'x'"):
        sample_scores(MODEL, GRAPH.nodes([0], hops=2), NOISY, 2, phase="test", key="x")
    with pytest.raises(TypeError, match="must have edges without edge_attr"):
        Graph.from_data(SimpleNamespace(edge_index=[[0], [1]], x=[[1], [1]], edge_attr=[1.0]))
    with pytest.raises(TypeError, match="must have the attribute x"):
        Graph.from_data(SimpleNamespace(edge_index=[[0], [1]]))
    with pytest.raises(ValueError, match=r"attributes must be zeros and ones, got 0\.5"):
        Graph(np.zeros((2, 2)), np.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="`nodes` must be"):
        GRAPH.nodes([N], hops=2)
    for nodes in (3, [], [[0, 1]]):
        with pytest.raises((TypeError, ValueError), match="`nodes` must "):
            GRAPH.nodes(nodes, hops=2)
    with pytest.raises(ValueError, match="got 3"):
        Graph(np.zeros((3, 3)), np.zeros((2, 2)))
    cube = torch.zeros(2, 2, 2).to_sparse_coo()
    for adjacency in (np.array(["a"]), np.zeros(3), np.zeros((2, 2), complex), cube):
        with pytest.raises(TypeError, match="`adjacency` must be a matrix"):
            Graph(adjacency, np.zeros((2, 2)))
    for edges in ([[0.0], [1.0]], [0, 1], [[0], [1], [0]]):
        with pytest.raises(TypeError, match=r"`edge_index` must be integers \(2, E\), got "):
            Graph.from_data(SimpleNamespace(edge_index=edges, x=[[1], [1]]))
    wider = GraphFlip(N, D + 1, attributes=SparseFlip(0.05, 0.6))
    with pytest.raises(ValueError, match=f"`smoothing` must be for {D} attributes, got {D + 1}"):
        sample_scores(MODEL, GRAPH.nodes([0], hops=2), wider, 2, phase="test")


def test_a_model_of_nodes_returns_a_row_of_logits_for_each():
    for model, error, message in (
        (lambda batch: batch.x.numpy(), TypeError, "`model` must return a tensor of logits, got n"),
        (lambda batch: MODEL(batch)[:-1], ValueError, "a row for each node of the batch, got sha"),
        (lambda batch: MODEL(batch)[:, 0], ValueError, "a row for each node of the batch, got sh"),
        (
            lambda batch: MODEL(batch) * np.nan,
            ValueError,
            "must not give NaN scores, got one",
        ),
    ):
        with pytest.raises(error, match=message):
            sample_scores(model, GRAPH.nodes([0, 1], hops=2), NOISY, 2, phase="test")
    with pytest.raises(ValueError, match=r"`labels` must have shape \(2,\), got \(1,\)"):
        sample_scores(MODEL, GRAPH.nodes([0, 1], hops=2), NOISY, 2, phase="calibration", labels=[0])


def test_labels_that_a_model_rules_out_have_no_score():
    """Equal infinite logits differ by NaN, and are equal."""

    def masked(batch):
        return torch.cat([MODEL(batch)[:, :2], torch.full((len(batch.node), 1), -torch.inf)], dim=1)

    nodes = GRAPH.nodes([0, 1], hops=2)
    scores = sample_scores(masked, nodes, NOISY, 2, phase="test", seed=1)
    two = sample_scores(lambda b: MODEL(b)[:, :2], nodes, NOISY, 2, phase="test", seed=1)
    np.testing.assert_array_equal(scores[:, :2], two)
    assert (scores[:, 2] == 0).all()


FORMS = {
    "float16": lambda matrix: torch.tensor(matrix).half(),
    "bfloat16": lambda matrix: torch.tensor(matrix).bfloat16(),
    "bool": lambda matrix: matrix.astype(bool),
    "big-endian": lambda matrix: matrix.astype(">f4"),
    "gradients": lambda matrix: torch.tensor(matrix).double().requires_grad_(),
    "lists": lambda matrix: matrix.tolist(),
    "coo": lambda matrix: torch.tensor(matrix).to_sparse(),
    "csr": lambda matrix: torch.tensor(matrix).to_sparse_csr(),
    "csc": lambda matrix: torch.tensor(matrix).to_sparse_csc(),
    "bsr": lambda matrix: torch.tensor(matrix).to_sparse_bsr((2, 1)),
    "bsc": lambda matrix: torch.tensor(matrix).to_sparse_bsc((1, 1)),
    "sparse bfloat16": lambda matrix: torch.tensor(matrix).bfloat16().to_sparse(),
    "dok": scipy.sparse.dok_matrix,
    "dia": scipy.sparse.dia_array,
}


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_matrix_is_the_same_graph(form):
    made = FORMS[form]
    assert Graph(made(ADJACENCY), made(BITS)).digest == GRAPH.digest


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda one: scipy.sparse.coo_array(one * (1 + 2j)), TypeError, "values of dtype complex"),
        (lambda one: torch.tensor(one * (1 + 2j)).to_sparse(), TypeError, "values of dtype comp"),
        (lambda one: one * (1 + 2j), TypeError, "values of dtype complex128"),
        (lambda one: one.astype(str), TypeError, "values of dtype <U"),
        (lambda one: np.ma.masked_equal(one, 1), TypeError, "must be a plain array, got a masked"),
        (lambda one: [np.ma.masked_equal(row, 1) for row in one], TypeError, "got a masked array"),
        (lambda one: torch.tensor(one).to("meta"), ValueError, "must hold data, got a tensor on"),
        (lambda one: torch.tensor(one).to_sparse().to("meta"), ValueError, "must hold data"),
        (lambda one: one[0], TypeError, "must be a matrix of zeros and ones"),
    ],
)
def test_what_is_no_matrix_of_zeros_and_ones_is_refused(made, error, message):
    for name, parts in (
        ("adjacency", (made(ADJACENCY), BITS)),
        ("attributes", (ADJACENCY, made(BITS))),
    ):
        with pytest.raises(error, match=f"`{name}` .*{message}"):
            Graph(*parts)


def test_edges_are_checked_as_arrays_are():
    def graph(edges):
        return Graph.from_data(SimpleNamespace(edge_index=edges, x=BITS))

    places = np.stack(np.nonzero(ADJACENCY))
    assert graph(places.tolist()).digest == graph(torch.tensor(places)).digest == GRAPH.digest
    empty = Graph(np.zeros_like(ADJACENCY), BITS)
    assert graph([[], []]).digest == graph(places[:, :0]).digest == empty.digest
    for edges, error, message in (
        (np.ma.masked_array(places, places == 3), TypeError, "must be a plain array, got a masked"),
        (torch.tensor(places).to("meta"), ValueError, "must hold data"),
        (places.astype(float), TypeError, r"must be integers \(2, E\), got float64"),
        ([], TypeError, r"must be integers \(2, E\), got int64 of shape \(0,\)"),
    ):
        with pytest.raises(error, match=f"`edge_index` {message}"):
            graph(edges)


def test_a_field_that_is_the_whole_graph_is_refused_before_drawing():
    n = 170_000
    graph = Graph(scipy.sparse.csr_array((n, n)), scipy.sparse.csr_array((n, 2)))
    scheme = GraphFlip(n, 2, adjacency=SparseFlip(0.01, 0.4))

    def model(batch):
        raise AssertionError("nothing may be drawn")

    message = "noise adds 1700 edges a node: fields of 2 hops hold the whole graph; lower p_plus"
    with pytest.raises(ValueError, match=message):
        sample_scores(model, graph.nodes([0], hops=2), scheme, 2, phase="test")


def test_a_field_of_a_tenth_of_the_graph_is_warned_of():
    scheme = GraphFlip(N, D, adjacency=SparseFlip(0.2, 0.4))
    with pytest.warns(
        UserWarning, match="hold about 60 of 60 nodes: drawing 6 of them takes about"
    ):
        sample_scores(MODEL, GRAPH.nodes([0, 1, 2], hops=2), scheme, 2, phase="test")


# ---- certificates -------------------------------------------------------------------------------


def test_certificates_are_those_of_the_parts():
    p = np.linspace(0.0, 1.0, 101)
    flips, pairs = SparseFlip(0.05, 0.6), SparseFlip(0.01, 0.4)
    for scheme, ball, plain in [
        (SCHEMES[0], Flips(1, 2), bincp.certify(flips, Flips(1, 2))),
        (SCHEMES[1], Flips(1, 2), bincp.certify(pairs, Flips(1, 2))),
        (
            GraphFlip(N, D, adjacency=pairs, attributes=flips),
            JointBall(Flips(0, 1), Flips(1, 2)),
            bincp.certify(Joint(pairs, flips), JointBall(Flips(0, 1), Flips(1, 2))),
        ),
    ]:
        certificate = bincp.certify(scheme, ball)
        charge = certificate.describe()["charge"]
        assert charge == scheme.sampling_error() > 0
        assert np.all(certificate.lower(p) <= plain.lower(p))
        np.testing.assert_allclose(certificate.lower(p), plain.lower(p), rtol=0, atol=1e-13)


def test_the_charge_is_that_of_the_definition():
    one = GraphFlip(10, 3, adjacency=SparseFlip(0.01, 0.4))
    assert one.sampling_error() == 10 * 11 * 2.0**-113
    other = GraphFlip(10, 3, attributes=SparseFlip(0.01, 0.4))
    assert other.sampling_error() == 10 * 4 * 2.0**-113
    both = GraphFlip(10, 3, adjacency=SparseFlip(0.01, 0.4), attributes=SparseFlip(0.01, 2.0**-80))
    assert both.sampling_error() == 10 * 15 * 2.0**-113 + 30 * 2.0**-128
    assert GraphFlip(10, 3).sampling_error() == 0


def test_both_parts_need_a_joint_ball():
    both = GraphFlip(N, D, adjacency=SparseFlip(0.01, 0.4), attributes=SparseFlip(0.05, 0.6))
    with pytest.raises(bincp.errors.CertificateError, match=r"a part that does not change has Fl"):
        bincp.certify(both, Flips(1, 1))


# ---- classifier ---------------------------------------------------------------------------------


def test_a_classifier_calibrates_and_predicts_nodes():
    labels = np.random.default_rng(0).integers(0, K, N)
    classifier = RobustClassifier(MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=32)
    classifier.calibrate(GRAPH.nodes(np.arange(40), hops=2), labels[:40])
    prediction = classifier.predict(GRAPH.nodes(np.arange(40, N), hops=2))
    assert prediction.sets.shape == (20, K)
    counted = RobustClassifier(
        MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=8, passes=None
    ).calibrate(GRAPH.nodes(np.arange(40), hops=2), labels[:40])
    own = counted.predict(GRAPH.nodes([41, 42], hops=2, shared=True), curtail=False)
    assert own.counts.max() <= 8


def test_shared_calibration_noise_needs_its_correction():
    labels = np.random.default_rng(0).integers(0, K, N)
    shared = GRAPH.nodes(np.arange(40), hops=2, shared=True)
    message = (
        "one noisy graph for all calibration nodes makes their draws dependent: "
        "use correction='shared-draws' or noise of their own"
    )
    mixture = RobustClassifier(MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=64)
    with pytest.raises(ValueError, match=message):
        mixture.calibrate(shared, labels[:40])
    with pytest.raises(ValueError, match=message):
        mixture.calibrate([(shared, labels[:40])])
    scores = sample_scores(MODEL, shared, NOISY, 64, phase="calibration", labels=labels[:40])
    for form in (scores, scores[:30].copy(), list(scores), tuple(scores)):
        with pytest.raises(ValueError, match=message):
            bincp.BinCP(bincp.certify(NOISY, Flips(0, 1))).calibrate(form)
    with pytest.raises(ValueError, match=message):
        mixture.sweep(shared, labels[:40])
    classifier = RobustClassifier(
        MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=64, correction="shared-draws"
    ).calibrate(shared, labels[:40])
    assert classifier.rule.min_count_ > 0
    assert classifier.predict(GRAPH.nodes([41, 42], hops=2)).sets.shape == (2, K)


def test_sweeps_measure_nodes():
    labels = np.random.default_rng(0).integers(0, K, N)
    classifier = RobustClassifier(MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=16)
    known, ahead = (GRAPH.nodes(nodes, hops=2) for nodes in (np.arange(40), np.arange(40, N)))
    swept = classifier.sweep(known, labels[:40], ahead, labels[40:], correction="mixture", seed=3)
    scores = sample_scores(
        MODEL, ahead, NOISY, 16, phase="tuning", seed=3, indices=np.arange(40, N)
    )
    sets = swept.rules[0].predict_set(scores)
    assert swept.rows[0].average_set_size == sets.sum(axis=1).mean()


class Seen(GCN):
    """Notes the ones of the attributes of each node that it sees."""

    def __init__(self):
        super().__init__()
        self.graphs = []

    def forward(self, batch):
        ends = [*batch.offsets.tolist()[1:], len(batch.columns)]
        nodes = batch.node.tolist()
        ones = {node: [] for node in nodes}
        for node, start, end in zip(nodes, batch.offsets.tolist(), ends, strict=True):
            ones[node] = batch.columns[start:end].tolist()
        self.graphs.append(ones)
        return super().forward(batch)


@pytest.mark.parametrize("shared", [(True, True), (True, False), (False, True)])
def test_the_two_parts_of_a_sweep_share_no_noisy_graph(shared):
    """The noise of a node is that of its bits: equal noise of many bits is no coincidence."""
    n, model = 30, Seen()
    labels = np.random.default_rng(0).integers(0, K, N)
    classifier = RobustClassifier(
        model, NOISY, Flips(0, 1), alpha="0.2", n_samples=4, batch_size=1, seed=5
    )
    parts = np.arange(n), np.arange(n, N)
    known, ahead = (
        GRAPH.nodes(part, hops=2, shared=one) for part, one in zip(parts, shared, strict=True)
    )
    classifier.sweep(
        known, labels[:n], ahead, labels[n:], correction="shared-draws", alpha="0.3", seed=3
    )
    first = 4 if shared[0] else 4 * n + 2  # with the two graphs that compare fields
    for one in model.graphs[:first]:
        for other in model.graphs[first:]:
            both = one.keys() & other.keys()
            if len(both) * D >= 60:
                assert any(one[node] != other[node] for node in both)


def test_a_classifier_hands_out_no_id_that_graphs_have_no_room_for():
    labels = np.random.default_rng(0).integers(0, K, N)
    classifier = RobustClassifier(MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=16, seed=5)
    classifier.calibrate(GRAPH.nodes(np.arange(40), hops=2), labels[:40])
    classifier.reseed(5, first_id=2**28 - 1)
    assert classifier.predict(GRAPH.nodes([41], hops=2)).ids.tolist() == [2**28 - 1]
    with pytest.raises(ValueError, match=r"ids of nodes must be below 2\*\*28, got 268435456"):
        classifier.predict(GRAPH.nodes([41], hops=2))


def test_a_shared_test_graph_is_drawn_once_with_a_seed():
    labels = np.random.default_rng(0).integers(0, K, N)
    for seed in (None, 5):
        classifier = RobustClassifier(
            MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=8, seed=seed
        ).calibrate(GRAPH.nodes(np.arange(40), hops=2), labels[:40])
        shared = GRAPH.nodes([41, 42], hops=2, shared=True)
        pieces = [shared, GRAPH.nodes([43], hops=2, shared=True)]
        assert classifier.predict(iter(pieces)).sets.shape == (3, K)
        for first in (shared, GRAPH.nodes([41], hops=2)):  # which has the noise of id 0, too
            stream = copy.copy(classifier).reseed().predict_iter(iter([first, pieces[1]]))
            next(stream)
            with pytest.raises(ValueError, match="and a batch before this one has shown it"):
                next(stream)
        if seed is None:
            classifier.predict(shared)
        else:
            for ids in (None, [7, 8]):
                with pytest.raises(ValueError, match="one noisy graph for all test nodes"):
                    classifier.predict(shared, indices=ids)
            for fresh, ids in ((6, None), (7, [7, 8])):
                assert classifier.reseed(fresh).predict(shared, indices=ids).sets.shape == (2, K)
                with pytest.raises(ValueError, match="one noisy graph for all test nodes"):
                    classifier.predict(shared, indices=[1, 2])
                with pytest.raises(ValueError, match="one noisy graph for all test nodes"):
                    classifier.reseed(fresh).predict(shared)


def test_a_classifier_of_nodes_cannot_be_saved(tmp_path):
    labels = np.random.default_rng(0).integers(0, K, N)
    classifier = RobustClassifier(MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=8)
    classifier.calibrate(GRAPH.nodes(np.arange(40), hops=2), labels[:40])
    with pytest.raises(TypeError, match="save its rule"):
        classifier.save(tmp_path / "nodes.json")


def flipped():
    """Return the attributes after one flip, and the adjacency after another."""
    bits, adjacency = BITS.copy(), ADJACENCY.copy()
    bits[50, 0] ^= 1
    adjacency[50, 3] ^= 1
    adjacency[3, 50] ^= 1
    return bits, adjacency


def test_a_rule_of_one_graph_refuses_another_one(tmp_path):
    """Also from a file, and where N and D are equal; the old graph after an attack must say so."""
    labels = np.random.default_rng(0).integers(0, K, N)
    ours = RobustClassifier(MODEL, NOISY, Flips(0, 1), alpha="0.2", n_samples=8)
    ours.calibrate(GRAPH.nodes(np.arange(40), hops=2), labels[:40])
    assert ours.rule.provenance_["graph"] == GRAPH.digest
    ours.rule.save(tmp_path / "rule.json")
    rule = bincp.BinCP.load(tmp_path / "rule.json")
    loaded = RobustClassifier(MODEL, NOISY, ours.ball, rule=rule)
    bits, adjacency = flipped()
    same = Graph(scipy.sparse.csr_array(ADJACENCY), BITS)
    attacked = Graph(ADJACENCY, bits, clean=same)
    for one in (ours, loaded):
        for graph in (same, attacked, Graph(ADJACENCY, BITS, clean=attacked)):
            assert one.predict(graph.nodes([50], hops=2)).sets.shape == (1, K)
        directed = Graph(ADJACENCY, BITS, directed=True)
        for graph in (Graph(ADJACENCY, bits), Graph(adjacency, BITS), directed):
            with pytest.raises(ValueError, match=f"digest {GRAPH.digest}, got .* {graph.digest}"):
                one.predict(graph.nodes([50], hops=2))
            with pytest.raises(ValueError, match="calibrate again on the new graph; or, where"):
                one.predict(iter([GRAPH.nodes([50], hops=2), graph.nodes([50], hops=2)]))
    again = ours.calibrate(Graph(ADJACENCY, bits).nodes(np.arange(40), hops=2), labels[:40])
    with pytest.raises(ValueError, match="calibrate again"):
        again.predict(GRAPH.nodes([50], hops=2))


def test_digests_are_those_of_the_matrices_in_any_form():
    bits, adjacency = flipped()
    data = SimpleNamespace(edge_index=np.stack(np.nonzero(ADJACENCY.T)), x=BITS)
    equal = [
        GRAPH,
        Graph(torch.tensor(ADJACENCY).to_sparse(), scipy.sparse.csc_array(BITS)),
        Graph.from_data(data),
        Graph.from_data(SimpleNamespace(**{**vars(data), "x": bits}), clean=GRAPH),
    ]
    assert len({graph.digest for graph in equal}) == 1
    other = [
        Graph(ADJACENCY, bits),
        Graph(adjacency, BITS),
        Graph(ADJACENCY, BITS, directed=True),
        Graph(ADJACENCY, np.c_[BITS, np.zeros(N)]),
        Graph(np.pad(ADJACENCY, (0, 1)), np.pad(BITS, ((0, 1), (0, 0)))),
        Graph(np.zeros((N, N)), BITS),
    ]
    assert len({graph.digest for graph in (GRAPH, *other)}) == 7
    for graph, name in ((other[2], "directed"), (other[3], "n_attributes"), (other[4], "n_nodes")):
        with pytest.raises(ValueError, match=f"`clean` must have {name}=.* as this graph, got"):
            Graph(ADJACENCY, BITS, clean=graph)
    with pytest.raises(TypeError, match="`clean` must be a Graph, got ndarray"):
        Graph(ADJACENCY, BITS, clean=ADJACENCY)


def test_runs_on_disk_take_no_nodes(tmp_path):
    inputs = GRAPH.nodes(np.arange(4), hops=2)
    for x in (inputs, GRAPH, iter([inputs])):
        with pytest.raises(TypeError, match="inputs as arrays for a run on disk, got a graph"):
            run(tmp_path / "run", MODEL, x, NOISY, 4, phase="test")
    assert not (tmp_path / "run").exists()


def test_graphs_are_equal_in_another_process():
    code = """
import numpy as np
from tests.sampling.test_graphs import GRAPH, MODEL, SCHEMES, sample_scores
scores = sample_scores(MODEL, GRAPH.nodes([5], hops=2), SCHEMES[2], 3, phase="test")
print(scores.tobytes().hex())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = sample_scores(MODEL, GRAPH.nodes([5], hops=2), SCHEMES[2], 3, phase="test")
    assert found.stdout.strip() == here.tobytes().hex()


def test_threads_draw_the_same_graphs():
    inputs = GRAPH.nodes(np.arange(20), hops=2)
    expected = sample_scores(MODEL, inputs, SCHEMES[2], 4, phase="test")
    with ThreadPoolExecutor(4) as pool:
        found = [
            pool.submit(sample_scores, MODEL, inputs, SCHEMES[2], 4, phase="test") for _ in range(8)
        ]
    assert all(one.result().tobytes() == expected.tobytes() for one in found)


def test_arguments_that_change_later_change_nothing():
    adjacency, bits, nodes = ADJACENCY.copy(), BITS.copy(), np.array([3, 4])
    inputs = Graph(adjacency, bits).nodes(nodes, hops=2)
    expected = sample_scores(MODEL, inputs, SCHEMES[2], 4, phase="test")
    adjacency[:], bits[:], nodes[:] = 7, 7, 2**40
    assert sample_scores(MODEL, inputs, SCHEMES[2], 4, phase="test").tobytes() == expected.tobytes()
