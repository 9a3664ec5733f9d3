"""What the guarantee for nodes of a graph covers, and what it does not, by exact probabilities."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import bincp
from bincp.balls import Flips
from bincp.sampling import Graph, RobustClassifier
from bincp.smoothing import GraphFlip, SparseFlip

SCHEME = GraphFlip(1000, 1000, attributes=SparseFlip(1e-6, 0.5))
BALL = Flips(1, 0)
N, J = 999, 300  # calibration nodes, and the rank; m = m' = 1


def coverage(p_others, p_target):
    """The exact coverage of scores 0 and 1: tau is 0 iff J calibration scores or more are 0.

    Each node has noise of its own, so their scores are independent.
    """
    accepts_all = stats.binom.sf(J - 1, N, float(1 - p_others))
    return accepts_all + (1 - accepts_all) * float(p_target)


def one_bit(flips, bit, when_zero, when_one):
    """P[score = 1] where the score is decided by one noisy bit."""
    one = Fraction(flips.p_plus) if bit == 0 else 1 - Fraction(flips.p_minus)
    return (1 - one) * when_zero + one * when_one


def test_one_flip_before_calibration_breaks_what_was_promised():
    """A node has score 1 by the toss of a coin, unless it sees the flipped bit.

    Then the target has score 0, and all the others 1. The attacker knows the split.
    """
    flips, half = SCHEME.attributes, Fraction(1, 2)
    certificate = bincp.certify(SCHEME, BALL)
    promised = certificate.lower(1 - J / (N + 1))
    clean = one_bit(flips, 0, half, 1), one_bit(flips, 0, half, 0)
    attacked = one_bit(flips, 1, half, 1), one_bit(flips, 1, half, 0)
    assert attacked[1] >= certificate.lower(float(clean[1]))  # the flip is in the ball
    assert promised == pytest.approx(0.35, abs=1e-6)
    calibrated_clean = coverage(clean[0], attacked[1])
    calibrated_attacked = coverage(attacked[0], attacked[1])
    assert calibrated_clean > 0.9999
    assert calibrated_attacked < 0.2502 < promised
    # The cure: the inverted ball before the ball.
    inverted = bincp.certify(SCHEME, BALL.inverse())
    cured = bincp.Certificate.from_bounds(
        lambda p: certificate.lower(inverted.lower(p)), name="attacked before calibration"
    )
    cure = cured.lower(1 - J / (N + 1))
    assert cure == pytest.approx(0.2, abs=1e-5)
    assert cure <= calibrated_attacked
    # The ball twice is no cure: it can promise more than the inverted ball before it.
    p = np.linspace(0.0, 1.0, 1001)
    twice = certificate.lower(certificate.lower(p))
    assert np.max(twice - certificate.lower(inverted.lower(p))) > 0


def test_upper_bounds_on_the_attacked_graph_are_of_the_mirrored_ball():
    """C(p) = 1 - c(1 - p), which is `inverse().upper`, and p >= d(C(p))."""
    certificate = bincp.certify(SCHEME, BALL)
    inverted = bincp.certify(SCHEME, BALL.inverse())
    p = np.linspace(0.01, 1.0, 100)  # at 0 the rounding of 1 - p is felt: c is steep near 1
    most = certificate.inverse().upper(p)
    np.testing.assert_allclose(most, 1 - certificate.lower(1 - p), rtol=0, atol=1e-12)
    assert np.all(inverted.lower(np.clip(most - 1e-12, 0, 1)) <= p + 1e-12)
    assert np.max(np.abs(certificate.upper(p) - most)) > 0.1


@pytest.mark.parametrize("n", [5, 20])
def test_a_node_that_joins_is_not_covered(n):
    """On complete graphs the score minus degree falls for the node that joins, for every n."""

    def model(batch):
        return -batch.degree.double()[:, None].expand(-1, 2)

    def classifier(size):
        scheme = GraphFlip(size, 1, attributes=SparseFlip(0.1, 0.1))
        rule = bincp.BinCP(bincp.certify(scheme, Flips(0, 0)), alpha="1/4", p=1)
        return RobustClassifier(model, scheme, Flips(0, 0), rule=rule, n_samples=4, score="logit")

    def complete(size):
        return Graph(1 - np.eye(size), np.zeros((size, 1)))

    old, new = complete(n), complete(n + 1)
    calibrated = classifier(n).calibrate(old.nodes(range(n), hops=1), np.zeros(n, int))
    tau = calibrated.rule.tau_
    assert tau == -(n - 1) > -n  # the score of every node of the new graph
    with pytest.raises(ValueError, match=f"calibrated on {n} nodes, got {n + 1}: calibrate again"):
        calibrated.predict(new.nodes([n], hops=1))
    with pytest.raises(ValueError, match="`rule` must have the certificate of the classifier"):
        classifier(n + 1).rule = calibrated.rule
    again = classifier(n + 1).calibrate(new.nodes(range(n), hops=1), np.zeros(n, int))
    assert again.predict(new.nodes([n], hops=1)).sets.all()
