"""The throughput benchmark: it covers the registry, and its baselines are the same bounds."""

import numpy as np
import pytest

import bincp
from bincp.cli._bench_cases import CASES
from bincp.cli._bench_measure import measure


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case.smoothing).__name__)
def test_baselines_give_the_same_bounds(case):
    p = np.linspace(0.001, 0.999, 400)
    ours = bincp.certify(case.smoothing, case.ball).lower(p)
    theirs = case.make_baseline(case.smoothing, case.ball)(p)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_each_built_in_scheme_is_measured():
    built_in = {scheme for scheme, _, origin in bincp.registered() if origin.startswith("bincp.")}
    assert {type(case.smoothing) for case in CASES} == built_in


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_probabilities": 0}, ValueError),
        ({"n_probabilities": 1.5}, TypeError),
        ({"seconds": 0.0}, ValueError),
        ({"seconds": "1"}, TypeError),
    ],
)
def test_refuses_bad_input(options, error):
    with pytest.raises(error, match=next(iter(options))):
        next(measure(**options))
