"""Pictures of certificates hold what they should."""

import numpy as np
import pytest

import bincp

figure = pytest.importorskip("matplotlib.figure")


def test_bounds_are_those_of_the_certificate(tmp_path):
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    axes = figure.Figure().add_subplot()
    assert bincp.plots.plot_bounds(certificate, axes) is axes
    upper, _, lower = (line.get_xydata().T for line in axes.get_lines())
    np.testing.assert_array_equal(upper[1], certificate.upper(upper[0]))
    np.testing.assert_array_equal(lower[1], certificate.lower(lower[0]))

    bincp.plots.plot_bounds(certificate, tmp_path / "bounds.png")
    assert (tmp_path / "bounds.png").read_bytes().startswith(b"\x89PNG")


def test_refuses_bad_input(tmp_path):
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
        bincp.plots.plot_bounds(lambda p: p, tmp_path / "bounds.png")
    with pytest.raises(TypeError, match="`target` must be a path or matplotlib Axes"):
        bincp.plots.plot_bounds(certificate, 3)


def test_radii_are_those_that_the_probabilities_certify():
    scheme = bincp.smoothing.Gaussian(0.25)
    axes = bincp.plots.plot_radius(scheme, bincp.balls.L2, figure.Figure().add_subplot())
    p, radius = axes.get_lines()[0].get_xydata().T
    assert (radius[p < 0.5] == 0).all()
    for probability, r in zip(p[p > 0.5], radius[p > 0.5], strict=True):
        assert bincp.certify(scheme, bincp.balls.L2(r)).lower(probability) >= 0.5
        assert bincp.certify(scheme, bincp.balls.L2(1.001 * r)).lower(probability) < 0.5
