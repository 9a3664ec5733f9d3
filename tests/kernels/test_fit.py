"""The coefficients of the elementary functions are those of the fit, to the last bit."""

import importlib.util
from types import ModuleType

import pytest
from mpmath import mp, mpf

from support import ROOT


def load() -> ModuleType:
    place = ROOT / "csrc" / "numerics" / "fit.py"
    spec = importlib.util.spec_from_file_location("fit", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fit = load()


@pytest.mark.parametrize("name", fit.TABLES)
def test_coefficients_stand_in_the_c_files(name: str) -> None:
    _, rows = fit.fitted(name)
    _, file, starts = fit.TABLES[name]
    assert rows == [fit.written(file, start) for start in starts]


# As the comments of the C files state them, and one in the last digit. That of log counts twice:
# z^3 P(z^2) is added to 2 z.
STATED = {"log": 2 * 1.4e-18, "exp": 3.6e-18, "mills": 5.5e-17, "inset": 3.2e-17}


@pytest.mark.parametrize("name", fit.TABLES)
def test_fits_are_as_near_as_stated_between_the_points_of_their_grids(name: str) -> None:
    with mp.workdps(fit.DIGITS):
        problem = fit.TABLES[name][0]()
        found = fit.remez(problem)
        for i in range(1, 800):
            u = problem.low + (problem.high - problem.low) * mpf(i) / 800
            x = problem.x(u)
            fitted = fit.value(found.above, x) / fit.value(found.below, x)
            assert abs((fitted - problem.f(x)) * problem.weight(x)) <= STATED[name]
