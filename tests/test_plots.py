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
