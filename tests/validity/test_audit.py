"""The audit of a plain predictor: exact values, worst populations, and what would be wrong."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

import bincp
from bincp import balls, smoothing
from bincp.auditing._envelope import envelope
from bincp.calibration._mixture import share_of_failures
from bincp.certificates import Certificate
from support import golden

SPARSE = smoothing.SparseFlip(0.01, 0.6)
FAMILIES = {
    "gaussian": (smoothing.Gaussian(1.0), lambda text: balls.L2(float(text))),
    "uniform": (smoothing.Uniform(0.5), lambda text: balls.L1(float(text))),
    "sparse, exactly (a, d)": (SPARSE, lambda text: balls.Flips(*map(int, text.split(",")))),
    "sparse, any a + d = r": (
        SPARSE,
        lambda text: [balls.Flips(a, int(text) - a) for a in range(int(text) + 1)],
    ),
}
CASES = golden("audit")


def step(at):
    """Return the certificate that keeps 1/2 of a probability of at least `at`, and nothing else."""
    return Certificate.from_bounds(lambda p: 0.5 if p >= at else 0.0)


def audited(family, member, monkeypatch, **options):
    """Audit one radius; the golden steps are of no noise, and take the place of a certificate."""
    if family == "half":
        found = step(float(member))
        monkeypatch.setattr("bincp.auditing._audit.certify", lambda *_: found)
        return bincp.audit(None, lambda _: None, [0.0], **options)
    scheme, ball = FAMILIES[family]
    return bincp.audit(scheme, lambda _: ball(member), [0.0], **options)


def slack(family):
    """Return what an envelope may lose: kernels may be off by 1e-12, which tilts its chords."""
    return {"sparse, any a + d = r": 1e-9, "half": 2e-12}.get(family, 1e-13)


def value(text):
    return float(Fraction(text))


@pytest.mark.parametrize("case", CASES["marginal"], ids=str)
def test_marginal_coverage(case, monkeypatch):
    family, member, n, alpha, j, wanted = case
    found = audited(family, member, monkeypatch, n=n, alpha=alpha)
    assert found.rank == j
    assert value(wanted) - slack(family) <= found.coverage[0] <= value(wanted)
    assert found.coverage[0] <= found.iid_coverage[0]


@pytest.mark.parametrize("case", CASES["least"], ids=str)
def test_least_coverage_of_iid_points(case, monkeypatch):
    family, member, n, alpha, _, wanted = case
    found = audited(family, member, monkeypatch, n=n, alpha=alpha).iid_coverage[0]
    assert value(wanted) - 3e-7 <= found <= value(wanted)


@pytest.mark.parametrize("case", CASES["conditional"], ids=str)
def test_coverage_given_the_calibration(case, monkeypatch):
    family, member, n, alpha, _, delta, wanted = case
    found = audited(family, member, monkeypatch, n=n, alpha=alpha, delta=delta)
    assert value(wanted) - slack(family) <= found.conditional_coverage[0] <= value(wanted)


@pytest.mark.parametrize("case", CASES["quantiles"], ids=str)
def test_the_quantile_is_the_upper_one_rounded_up(case):
    n, j, delta, wanted = case
    found = share_of_failures(j, n, Fraction(delta))
    assert Fraction(wanted) <= found <= Fraction(wanted) + Fraction(1, 10**13)
    lower = stats.beta.ppf(float(delta), j, n + 1 - j)
    assert found > lower  # of which the coverage would be too high


@pytest.mark.parametrize("case", CASES["not_enough"], ids=str)
def test_the_certificate_itself_would_promise_too_much(case, monkeypatch):
    family, member, n, alpha, j, without_envelope = case
    found = audited(family, member, monkeypatch, n=n, alpha=alpha)
    if family == "half":
        plain = step(float(member)).lower(1 - j / (n + 1))
    else:
        scheme, ball = FAMILIES[family]
        plain = min(bincp.certify(scheme, one).lower(1 - j / (n + 1)) for one in ball(member))
    assert plain == pytest.approx(value(without_envelope), abs=1e-12)
    assert found.coverage[0] < plain - 1e-6 or plain == 0


def test_the_trap_of_a_certificate_that_is_not_convex():
    # c(p) = min(p - .1, .8 p): P = .1 and P = 1 with mean 1/2 keep .356, and c(1/2) is .4.
    trap = Certificate.from_bounds(lambda p: max(min(p - 0.1, 0.8 * p), 0.0))
    share = Fraction(4, 9)  # of P = 1
    assert share + (1 - share) * Fraction(1, 10) == Fraction(1, 2)
    kept = share * Fraction(8, 10)
    found = envelope([trap])(np.array([0.5]))[0]
    assert trap.lower(0.5) == pytest.approx(0.4)
    assert float(kept) - 2e-4 <= found <= float(kept)


def least_mean(lower, mean, places):
    """Return the least mean of `lower` over all laws on two places of at least the mean `mean`."""
    values = np.array([lower(p) for p in places])
    least = values[places >= mean].min()
    for i in np.flatnonzero(places < mean):
        right = places > mean
        share = (mean - places[i]) / (places[right] - places[i])
        least = min(least, ((1 - share) * values[i] + share * values[right]).min())
    return least


@pytest.mark.parametrize("seed", range(8))
def test_no_law_of_probabilities_keeps_less_than_the_envelope(seed):
    rng = np.random.default_rng(seed)
    steps, heights = np.sort(rng.random(4)), np.sort(rng.random(4)) * 0.9
    slope, shift = rng.uniform(0.2, 1), rng.uniform(0, 0.3)

    def lower(p):
        jump = heights[np.searchsorted(steps, p, side="right") - 1] if p >= steps[0] else 0.0
        return float(min(p, max(jump * p, slope * p - shift, 0.0)))

    read = envelope([Certificate.from_bounds(lower)])
    places = np.unique(np.concatenate([np.linspace(0, 1, 201), steps, np.nextafter(steps, 0)]))
    for mean in rng.random(6):
        found, attained = read(np.array([mean]))[0], least_mean(lower, mean, places)
        assert found <= attained + 1e-15
        assert found >= attained - 0.01  # of the places that the laws may use here


def test_the_least_of_convex_certificates_is_that_of_their_values():
    pairs = [bincp.certify(SPARSE, balls.Flips(a, 2 - a)) for a in range(3)]
    pairs.append(bincp.certify(smoothing.Gaussian(1.0), balls.L2(1.0)))
    read = envelope(pairs)
    places = np.unique(np.concatenate([np.linspace(0, 1, 401), 1 - np.geomspace(1e-7, 0.1, 400)]))
    for mean in (0.3, 0.6, 0.9, 0.975, 0.999):
        attained = least_mean(lambda p: min(c.lower(float(p)) for c in pairs), mean, places)
        found = read(np.array([mean]))[0]
        assert attained - 1e-3 <= found <= attained + 1e-15


def test_a_plain_conformal_predictor_attains_it():
    # One draw each, y = x, score y - z: the attack moves x by r, and a score reaches tau with
    # probability c(p). With the rank j of n points the coverage is E[c(1 - V)].
    n, alpha, r = 9, "0.1", 0.25
    found = bincp.audit(smoothing.Gaussian(1.0), balls.L2, [r], n=n, alpha=alpha)
    v, weights = np.polynomial.legendre.leggauss(200)
    z, weights = 9 * v, 9 * weights
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    tau = stats.beta.pdf(special.ndtr(-z), 1, n) * density  # 1 - V = Phi(z)
    exact = float(np.sum(weights * tau * special.ndtr(z - r)))
    assert exact == pytest.approx(0.85603, abs=5e-6)
    assert found.iid_coverage[0] == pytest.approx(exact, abs=1e-6)
    assert found.coverage[0] == pytest.approx(0.84886, abs=5e-6)


def test_outcomes_on_held_out_points():
    outcomes = np.arange(500) < 460
    radii = [0.0, 0.1, 0.3]
    found = bincp.audit(smoothing.Gaussian(0.5), balls.L2, radii, outcomes=outcomes, delta="0.05")
    bound = bincp.clopper_pearson_lower(460, 500, "0.05")
    wanted = [bincp.certify(smoothing.Gaussian(0.5), balls.L2(r)).lower(bound) for r in radii]
    assert found.coverage.tolist() == wanted
    assert (found.clean_coverage, found.n, found.rank) == (bound, 500, None)
    assert found.iid_coverage is found.conditional_coverage is None


def test_the_largest_radius_of_a_coverage():
    found = bincp.audit(smoothing.Gaussian(1.0), balls.L2, [0.5, 0.0, 0.25, 1.0], n=99, alpha="0.1")
    assert found.radius_at("0.8") == 0.25
    assert found.radius_at("0.1") == 1.0
    assert found.radius_at("0.95") == -np.inf


def test_too_few_points_accept_every_label():
    with pytest.warns(bincp.TrivialSetWarning, match="n = 8 calibration points are too few"):
        found = bincp.audit(smoothing.Gaussian(1.0), balls.L2, [1.0], n=8, alpha="0.1", delta=0.1)
    assert found.coverage == found.iid_coverage == found.conditional_coverage == 1
    with pytest.warns(bincp.TrivialSetWarning, match="for alpha = 1e-300$"):
        bincp.audit(smoothing.Gaussian(1.0), balls.L2, [1.0], n=8, alpha="1e-300")


def test_the_picture_has_a_curve_for_each_guarantee(tmp_path):
    pytest.importorskip("matplotlib")
    options = {"n": 99, "alpha": 0.1, "delta": 0.05}
    found = bincp.audit(smoothing.Gaussian(1.0), balls.L2, [0.5, 0.0], **options)
    axes = found.plot(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 1000
    assert len(axes.lines) == 3
    assert axes.lines[0].get_xdata().tolist() == [0, 0.5]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"alpha": None}, TypeError, "`n` and `alpha`, or `outcomes`, must be given"),
        ({"outcomes": [True]}, TypeError, "without `n` and `alpha`, got n, alpha"),
        ({"n": None, "alpha": None, "outcomes": [True]}, TypeError, "got no delta"),
        ({"n": 0}, ValueError, "`n` must be in"),
        ({"alpha": 1}, ValueError, r"`alpha` must be in \(0, 1\)"),
        ({"delta": 0}, ValueError, r"`delta` must be in \(0, 1\)"),
        ({"radii": [-0.1]}, ValueError, r"`radii` must be finite and at least 0, got -0\.1"),
        ({"radii": [np.inf]}, ValueError, "`radii` must be finite"),
        ({"radii": 0.1}, ValueError, r"`radii` must have shape \(q,\)"),
        ({"radii": ["a"]}, TypeError, "`radii` must be real numbers"),
        ({"ball": balls.L2(1)}, TypeError, "`ball` must be callable"),
        ({"ball": lambda _: []}, ValueError, "must return at least one ball"),
        ({"ball": balls.L0}, bincp.CertificateError, "Gaussian"),
    ],
)
def test_bad_arguments(changes, error, message):
    options = {"ball": balls.L2, "radii": [0], "n": 9, "alpha": 0.1, **changes}
    if options["ball"] is balls.L0:
        options["ball"] = lambda _: balls.L0(1)
    with pytest.raises(error, match=message):
        bincp.audit(smoothing.Gaussian(1.0), options.pop("ball"), options.pop("radii"), **options)


@pytest.mark.parametrize(
    ("outcomes", "error", "message"),
    [
        ([1, 0], TypeError, "`outcomes` must be boolean, got dtype int64"),
        ([[True]], ValueError, r"`outcomes` must have shape \(N,\)"),
    ],
)
def test_bad_outcomes(outcomes, error, message):
    with pytest.raises(error, match=message):
        bincp.audit(smoothing.Gaussian(1.0), balls.L2, [0], outcomes=outcomes, delta=0.1)
