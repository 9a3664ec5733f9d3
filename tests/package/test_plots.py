"""Pictures of certificates hold what they should."""

import sys

import numpy as np
import pytest

import bincp

figure = pytest.importorskip("matplotlib.figure")


def assert_beside(axes):
    """The legend does not lie over the lines."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    axes.figure.set_layout_engine("constrained")
    FigureCanvasAgg(axes.figure).draw()
    inside, legend = axes.get_window_extent(), axes.get_legend().get_window_extent()
    assert legend.y0 >= inside.y1 - 1 or legend.x0 >= inside.x1 - 1
    assert legend.x1 <= axes.figure.bbox.x1 + 1
    assert legend.y1 <= axes.figure.bbox.y1 + 1


def test_bounds_are_those_of_the_certificate(tmp_path):
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    axes = figure.Figure().add_subplot()
    assert bincp.plots.plot_bounds(certificate, axes) is axes
    upper, _, lower = (line.get_xydata().T for line in axes.get_lines())
    np.testing.assert_array_equal(upper[1], certificate.upper(upper[0]))
    np.testing.assert_array_equal(lower[1], certificate.lower(lower[0]))
    assert_beside(axes)

    bincp.plots.plot_bounds(certificate, tmp_path / "bounds.png")
    assert (tmp_path / "bounds.png").read_bytes().startswith(b"\x89PNG")


def test_refuses_bad_input(tmp_path):
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    with pytest.raises(TypeError, match="`certificate` must be a Certificate"):
        bincp.plots.plot_bounds(lambda p: p, tmp_path / "bounds.png")
    with pytest.raises(TypeError, match="`target` must be a path or matplotlib Axes"):
        bincp.plots.plot_bounds(certificate, 3)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, tmp_path):
    certificate = bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25))
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(ImportError, match="need matplotlib: pip install matplotlib"):
        bincp.plots.plot_bounds(certificate, tmp_path / "bounds.png")


def test_radii_are_those_that_the_probabilities_certify():
    scheme = bincp.smoothing.Gaussian(0.25)
    axes = bincp.plots.plot_radius(scheme, bincp.balls.L2, figure.Figure().add_subplot())
    p, radius = axes.get_lines()[0].get_xydata().T
    assert (radius[p < 0.5] == 0).all()
    for probability, r in zip(p[p > 0.5], radius[p > 0.5], strict=True):
        assert bincp.certify(scheme, bincp.balls.L2(r)).lower(probability) >= 0.5
        assert bincp.certify(scheme, bincp.balls.L2(1.001 * r)).lower(probability) < 0.5


# ---- sweeps ------------------------------------------------------------------------------------

NOISE = bincp.smoothing.Gaussian(0.5)
RADII = (0.0, 0.1, 0.2)
RNG = np.random.default_rng(0)
TRUE = RNG.normal(1, 0.3, (150, 16))
SCORES = RNG.normal([[1], [0.6]], 0.3, (40, 2, 16))


def swept(radii=RADII, labels=True, **asked):
    certificates = [bincp.certify(NOISE, bincp.balls.L2(r)) for r in radii]
    return bincp.sweep(certificates, TRUE, SCORES, np.zeros(40, int) if labels else None, **asked)


def drawn(sweep, **options):
    return bincp.plots.plot_sweep(sweep, figure.Figure().add_subplot(), **options)


def test_a_sweep_has_a_line_for_each_combination_of_what_varies():
    sweep = swept(alpha=["0.1", "0.25"], p=[None, "0.7"])
    axes = drawn(sweep)
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert list(lines) == [
        "alpha = 0.1, p chosen",
        "alpha = 0.1, p = 0.7",
        "alpha = 0.25, p chosen",
        "alpha = 0.25, p = 0.7",
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(lines)
    for place, points in enumerate(lines.values()):
        own = sweep.rows[place::4]
        assert points.tolist() == [[row.radius, row.average_set_size] for row in own]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("radius", "average set size")
    assert_beside(axes)
    assert len({(line.get_color(), line.get_marker()) for line in axes.get_lines()}) == 4


def test_a_legend_of_many_lines_stands_to_the_right():
    axes = drawn(swept(alpha=["0.1", "0.2", "0.25"], p=[None, "0.7", "0.8"]))
    assert_beside(axes)
    looks = [(line.get_color(), line.get_marker()) for line in axes.get_lines()]
    assert len(set(looks)) == len(looks) == 9


def test_coverage_has_its_intervals_and_the_nominal_level():
    sweep = swept(alpha=["0.25"])
    axes = drawn(sweep, measure="coverage")
    (bars,) = axes.containers
    _, _, (segments,) = bars.lines
    ends = [(row.coverage_low, row.coverage_high) for row in sweep.rows]
    np.testing.assert_allclose([s[:, 1] for s in segments.get_segments()], ends, atol=1e-12)
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [0.75]
    assert axes.get_legend() is None


def test_the_horizontal_axis_is_the_first_that_varies():
    assert drawn(swept((0.1,), alpha=["0.1", "0.2"])).get_xlabel() == "alpha"
    assert drawn(swept((0.1,), p=["0.6", "0.7"])).get_xlabel() == "p"
    assert drawn(swept((0.1,), correction=["mixture", "none"])).get_xlabel() == "correction"
    assert drawn(swept((0.1,))).get_xlabel() == "ball"
    chosen = drawn(swept(correction=["mixture", "none"]), across="correction")
    assert [line.get_label() for line in chosen.get_lines()] == [f"L2(r={r})" for r in RADII]
    without = bincp.sweep(bincp.certify(NOISE, bincp.balls.L2(0.1)), TRUE, alpha=["0.1", "0.2"])
    assert drawn(without).get_ylabel() == "min count"


def test_a_sweep_is_drawn_to_a_file_and_refuses_what_it_has_not(tmp_path):
    sweep = swept(labels=False)
    bincp.plots.plot_sweep(sweep, tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(TypeError, match=r"`sweep` must be a bincp\.Sweep, got list"):
        drawn([])
    with pytest.raises(ValueError, match="`across` must be one of"):
        drawn(sweep, across="tau")
    with pytest.raises(ValueError, match="`measure` must be one of"):
        drawn(sweep, measure="size")
    with pytest.raises(ValueError, match="`measure` must be a number that each row has"):
        drawn(sweep, measure="coverage")
    with pytest.raises(ValueError, match="`across` must be a number that each row has"):
        drawn(sweep, across="p")
