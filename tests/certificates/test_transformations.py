"""Noise in parameters of transformations, and intercepted messages, against what they must be."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

import bincp
from bincp.balls import L2, AttackedNodes, BrightnessChange, Translations
from bincp.noise import draw
from bincp.smoothing import Brightness, Gaussian, MessageInterception, Translation

IMAGE = np.arange(35.0).reshape(1, 1, 5, 7)  # all values differ, so that a move can be read


def moves(noisy):
    """Return the move of each copy of the image, modulo its size."""
    places = (noisy == 0).reshape(len(noisy), -1).argmax(axis=1)
    return np.stack(np.divmod(places, 7), axis=1)


def test_translations_move_whole_images():
    noisy = draw(Translation(1.5), IMAGE, n_samples=300, phase="test")[0]
    for copy, move in zip(noisy, moves(noisy), strict=True):
        assert np.array_equal(copy, np.roll(IMAGE[0], move, axis=(-2, -1)))


def test_moves_are_rounded_gaussian_numbers():
    n, sigma = 20_000, 0.8
    drawn = moves(draw(Translation(sigma), IMAGE, n_samples=n, phase="test")[0])
    for axis, size in ((0, 5), (1, 7)):
        for place in range(size):
            steps = np.arange(place - 20 * size, 21 * size, size)
            p = np.sum(special.ndtr((steps + 0.5) / sigma) - special.ndtr((steps - 0.5) / sigma))
            # Five standard errors for twelve counts.
            error = 5 * math.sqrt(p * (1 - p) / n) + 1e-9
            assert abs((drawn[:, axis] == place).mean() - p) <= error
    both = np.corrcoef(drawn[:, 0] == 0, drawn[:, 1] == 0)[0, 1]
    assert abs(both) <= 5 / math.sqrt(n)


def test_a_moved_image_gets_the_moved_copies():
    """Moves by whole pixels add up, in both directions: the premise of the certificate."""
    moved = np.roll(IMAGE, (2, -3), axis=(-2, -1))
    noisy = draw(Translation(1.5), IMAGE, n_samples=50, phase="test")
    again = draw(Translation(1.5), moved, n_samples=50, phase="test")
    assert np.array_equal(again, np.roll(noisy, (2, -3), axis=(-2, -1)))


def test_no_move_of_the_ball_beats_the_certificate():
    """The exact bound of two rounded Gaussian laws on the integers, by Neyman-Pearson."""
    sigma = 1.0
    steps = np.arange(-60, 61)
    law = special.ndtr((steps + 0.5) / sigma) - special.ndtr((steps - 0.5) / sigma)
    for r in (1, 2):
        attacked = np.roll(law, r)
        exact = bincp.Certificate.from_regions(law / law.sum(), attacked / attacked.sum())
        certificate = bincp.certify(Translation(sigma), Translations(r))
        p = np.linspace(0.01, 0.99, 99)
        assert np.all(certificate.lower(p) <= exact.lower(p) + 1e-9)
        assert np.all(certificate.upper(p) >= exact.upper(p) - 1e-9)
    assert certificate.lower(0.9) == pytest.approx(
        bincp.certify(Gaussian(1.0), L2(2.0)).lower(0.9), rel=1e-12
    )


def test_brightness_is_one_number_for_all_elements():
    x = np.random.default_rng(0).random((1, 3, 4))
    n = 5000
    noise = draw(Brightness(0.2), x, n_samples=n, phase="test")[0] - x[0]
    assert np.ptp(noise, axis=(1, 2)).max() < 1e-12
    one = noise[:, 0, 0]
    assert abs(one.mean()) <= 5 * 0.2 / math.sqrt(n)
    assert abs((one**2).mean() / 0.04 - 1) <= 5 * math.sqrt(2 / n)
    certificate = bincp.certify(Brightness(0.2), BrightnessChange(0.1))
    assert certificate.lower(0.9) == bincp.certify(Gaussian(0.2), L2(0.1)).lower(0.9)


# ---- messages -----------------------------------------------------------------------------------

EDGES = [(0, 1), (1, 3), (0, 2), (2, 3), (1, 2), (3, 4)]  # node 0 is classified


def simple_paths(node, longest):
    """Return the edges of each path from a node to node 0 without repeated nodes."""
    found, open_ = [], [((node,), ())]
    while open_:
        nodes, edges = open_.pop()
        if nodes[-1] == 0:
            found.append(edges)
            continue
        for i, edge in enumerate(EDGES):
            if nodes[-1] in edge and len(edges) < longest:
                after = edge[0] + edge[1] - nodes[-1]
                if after not in nodes:
                    open_.append(((*nodes, after), (*edges, i)))
    return found


def arrival(attacked, longest, kept, seen):
    """Return the probability that a message arrives, by all subsets of edges and nodes."""
    paths = {node: simple_paths(node, longest) for node in attacked}
    total = Fraction(0)
    for edges in itertools.product([False, True], repeat=len(EDGES)):
        mass = math.prod((kept if up else 1 - kept for up in edges), start=Fraction(1))
        for nodes in itertools.product([False, True], repeat=len(attacked)):
            share = mass * math.prod((seen if up else 1 - seen for up in nodes), start=Fraction(1))
            arrives = any(
                up and any(all(edges[i] for i in path) for path in paths[node])
                for node, up in zip(attacked, nodes, strict=True)
            )
            total += share * arrives
    return total


@pytest.mark.parametrize("attacked", [[3], [4], [1, 2], [3, 4], [0], []])
@pytest.mark.parametrize(
    ("p_delete", "p_ablate"), [(0.25, 0.5), (0.5, 0.0), (0.0, 0.75), (1.0, 0.0)]
)
@pytest.mark.parametrize("longest", [1, 2, 4])
def test_messages_arrive_no_more_often_than_certified(attacked, p_delete, p_ablate, longest):
    kept, seen = 1 - Fraction(p_delete), 1 - Fraction(p_ablate)
    lengths = [[len(path) for path in simple_paths(node, longest)] for node in attacked]
    certificate = bincp.certify(MessageInterception(p_delete, p_ablate), AttackedNodes(lengths))
    lost = 1 - Fraction(certificate.lower(1.0))
    true = arrival(attacked, longest, kept, seen)
    assert lost >= true
    if longest == 1 or len(attacked) * len(lengths[0] if lengths else []) <= 1:
        assert lost <= true + Fraction(1, 2**50)  # no two paths have an edge in common
    assert certificate.lower(0.9) == pytest.approx(max(0.9 - float(lost), 0), abs=1e-15)


def test_more_bits_than_doubles_have_are_kept_where_all_is_deleted():
    ball = AttackedNodes([[1000] * 50])
    certificate = bincp.certify(MessageInterception(0.5, 0.0), ball)
    assert 1 - Fraction(certificate.lower(1.0)) >= 0
    assert certificate.upper(0.0) == pytest.approx(50 * 2.0**-1000, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Translation(0), "`sigma` must be finite and > 0"),
        (lambda: Translation(3000), "sigma"),
        (lambda: Brightness(math.inf), "`sigma` must be finite"),
        (lambda: Translations(-1), "`r` must be finite and >= 0"),
        (lambda: BrightnessChange("a"), "`r` must be"),
        (lambda: MessageInterception(1.5, 0.0), r"`p_delete` must be in \[0, 1\]"),
        (lambda: AttackedNodes(3), "`paths` must be a sequence of sequences of int, got 3"),
        (lambda: AttackedNodes("12"), "`paths` must be a sequence of sequences of int, got '12'"),
        (lambda: AttackedNodes([1]), r"`paths\[0\]` must be a sequence of int"),
        (lambda: AttackedNodes([[-1]]), r"`paths\[0\]\[0\]` must be in"),
        (
            lambda: draw(Translation(1.0), np.zeros((1, 4)), n_samples=1, phase="test"),
            r"`x` must have shape \(n, ..., height, width\)",
        ),
        (
            lambda: draw(
                MessageInterception(0.5, 0.5), np.zeros((1, 4)), n_samples=1, phase="test"
            ),
            "bincp.noise.register adds more",
        ),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
