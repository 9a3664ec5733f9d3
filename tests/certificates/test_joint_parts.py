"""Joint noise on parts of any kinds, against the exact bound of a discrete and a Gaussian part."""

import json
import math
import pickle

import numpy as np
import pytest
from scipy import special

import bincp
from bincp import balls, smoothing
from bincp.balls import L1, L2, Flips
from bincp.certificates import check_law, compose, described, product
from bincp.noise import draw
from bincp.smoothing import Gaussian, SparseFlip, Uniform

P = np.linspace(0, 1, 101)
FLIPS = SparseFlip(0.1, 0.6)


def mixed(additions: int, deletions: int, mu: float) -> tuple[smoothing.Joint, balls.Joint]:
    scheme = smoothing.Joint(FLIPS, Gaussian(0.5))
    return scheme, balls.Joint(Flips(additions, deletions), L2(0.5 * mu))


def exact(additions: int, deletions: int, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Return p and the least probability after the attack, along the Neyman-Pearson events.

    The likelihood ratio of an outcome of the flips with masses a and b, and of a Gaussian value z,
    is a / b exp(mu^2 / 2 - mu z), so an event is a half-line of z for each outcome.
    """
    clean, attacked = np.ones(1), np.ones(1)
    for one, other in [(0.9, 0.6)] * additions + [(0.6, 0.9)] * deletions:
        clean = np.outer(clean, [one, 1 - one]).ravel()
        attacked = np.outer(attacked, [other, 1 - other]).ravel()
    logs = np.linspace(-12, 12, 2001)[:, None]
    ends = (np.log(clean / attacked) - logs + mu * mu / 2) / mu
    p, least = special.ndtr(ends) @ clean, special.ndtr(ends - mu) @ attacked
    told = p < 1 - 1e-6  # closer to 1 the bound is so steep that the rounding of p shows
    return p[told], least[told]


@pytest.mark.parametrize(("additions", "deletions", "mu"), [(1, 0, 0.5), (1, 1, 1.0), (0, 2, 0.2)])
def test_a_discrete_and_a_gaussian_part(additions: int, deletions: int, mu: float) -> None:
    scheme, ball = mixed(additions, deletions, mu)
    made = bincp.certify(scheme, ball)
    p, least = exact(additions, deletions, mu)
    lower = made.lower(p)
    assert np.all(lower <= least + 1e-12)
    assert np.all(lower >= least - 2e-3)
    first, second = bincp.certify(FLIPS, ball.adjacency), bincp.certify(Gaussian(0.5), L2(mu / 2))
    for parts in ((first, second), (second, first)):
        assert np.all(made.lower(P) >= compose(*parts).lower(P))
        assert np.all(made.upper(P) <= compose(*parts).upper(P))
    alone = np.minimum(first.lower(p), second.lower(p))
    assert np.any(alone > least + 0.01)  # both parts move: the worse of the two is no bound


def test_it_is_the_product_of_the_two_certificates() -> None:
    made = bincp.certify(*mixed(1, 2, 0.3))
    parts = product(bincp.certify(FLIPS, Flips(1, 2)), bincp.certify(Gaussian(0.5), L2(0.15)))
    assert np.array_equal(made.lower(P), parts.lower(P))
    assert np.array_equal(made.upper(P), parts.upper(P))
    check_law(made)
    description = json.loads(json.dumps(made.describe()))
    assert description["tight"] is False
    for copy in (pickle.loads(pickle.dumps(made)), described(description)):
        assert copy is not None
        assert copy.describe() == description
        assert np.array_equal(copy.lower(P), made.lower(P))
    mirrored = bincp.certify(*mixed(2, 1, 0.3))
    assert np.array_equal(made.inverse().lower(P), mirrored.lower(P))


def test_nested_parts_pay_once_for_how_their_noise_is_drawn() -> None:
    """The error of each part is in that of the whole, which is charged alone."""
    first, second = Gaussian(0.5, grid=255), smoothing.Joint(Uniform(1.0, grid=255), FLIPS)
    scheme = smoothing.Joint(first, second)
    ball = balls.Joint(L2(0.1), balls.Joint(L1(0.1), Flips(1, 0)))
    made = bincp.certify(scheme, ball)
    description = made.describe()
    errors = [first.sampling_error(), second.adjacency.sampling_error()]
    assert description["charge"] == pytest.approx(math.fsum(errors), rel=1e-12)
    assert all("charge" not in part for part in description["made_by"]["parts"])
    law = product(
        bincp.certify(Gaussian(0.5), L2(0.1)),
        product(bincp.certify(Uniform(1.0), L1(0.1)), bincp.certify(FLIPS, Flips(1, 0))),
    )
    assert np.all(made.lower(P) <= law.lower(P))
    np.testing.assert_allclose(made.lower(P), law.lower(P), atol=1e-4)


@pytest.mark.parametrize(
    ("ball", "message"),
    [
        (balls.Joint(L2(0.1), L2(0.1)), r"no certificate for \(SparseFlip, L2\)"),
        (balls.Joint(Flips(1, 0), Flips(1, 0)), r"no certificate for \(Gaussian, Flips\)"),
        (Flips(1, 0), r"no certificate for \(Joint, Flips\)"),
    ],
)
def test_parts_without_a_certificate_are_named(ball: balls.Ball, message: str) -> None:
    with pytest.raises(bincp.CertificateError, match=message):
        bincp.certify(smoothing.Joint(FLIPS, Gaussian(0.5)), ball)


def test_noise_of_mixed_parts_is_not_drawn() -> None:
    scheme = smoothing.Joint(FLIPS, Gaussian(0.5), n_adjacency=2)
    with pytest.raises(TypeError, match="must join SparseFlip, CategoricalFlip or Joint to be"):
        draw(scheme, np.zeros((1, 4), np.float32), 2, phase="test", seed=1)
