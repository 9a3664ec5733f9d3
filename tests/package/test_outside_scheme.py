"""A package of other people adds a scheme, a ball, its certificate and its sampler to the wheel.

Noise is uniform on the whole numbers of [-w, w], and added to whole numbers: nothing is rounded, so
the certificate holds for the floating-point noise without a gap.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "downstream" / "whole_noise.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The example as one module, and as a scheme whose entry point names what registers it."""
    whole, plugin = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("plugin")
    text = EXAMPLE.read_text()
    (whole / "whole_noise.py").write_text(text)
    classes, registrations = text.split("@bincp.noise.register", 1)
    (plugin / "whole_noise.py").write_text(classes)
    header = "import numpy as np\nimport bincp\nfrom whole_noise import WholeNoise, WholeSteps\n"
    (plugin / "whole_plugin.py").write_text(f"{header}@bincp.noise.register{registrations}")
    described = plugin / "whole_noise-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: whole-noise\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[bincp.certificates]\nwhole = whole_plugin\n")
    return {"module": whole, "entry point": plugin}


def python(code: str, installed: Path, package: Path) -> str:
    """Run code that sees the unpacked wheel, a package, and the exact comparisons of the tests."""
    places = (installed, package, ROOT / "tests")
    environment = {"PYTHONPATH": os.pathsep.join(map(str, places)), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("way", ["module", "entry point"])
def test_the_sampler_is_found_and_draws_its_distribution(
    installed: Path, packages: dict[str, Path], way: str
) -> None:
    """Draws are those of exact integer arithmetic, and chi-square (p > 1e-6) finds them uniform."""
    code = """
        import numpy as np, bincp, whole_noise
        from scipy import stats
        assert "site" in bincp.__file__, bincp.__file__
        scheme = whole_noise.WholeNoise(4)
        x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
        noisy = bincp.noise.draw(scheme, x, 20_000, phase="test", seed=5)
        steps = np.rint(noisy - x[:, None]).astype(int)
        assert (noisy == x[:, None] + steps).all()
        keys = bincp.noise.Keys(5, "test", [2, 2, 3], [0, 19_999, 7])
        exact = [[int(w) * 9 >> 64 for w in row] for row in keys.words(6).tolist()]
        assert (steps.reshape(4, 20_000, 6)[[2, 2, 3], [0, 19_999, 7]] + 4 == exact).all()
        assert stats.chisquare(np.bincount(steps.ravel() + 4)).pvalue > 1e-6
        pairs = np.histogram2d(steps[:, :, 0, 0].ravel(), steps[:, :, 1, 2].ravel(), bins=9)[0]
        assert stats.chisquare(pairs.ravel()).pvalue > 1e-6
        alone = bincp.noise.draw(scheme, x[1:2], 7, phase="test", seed=5, indices=[1])
        assert (alone[0] == noisy[1, :7]).all()
        try:
            bincp.noise.draw(scheme, x + 0.5, 2, phase="test")
        except ValueError as error:
            print(error)
    """
    message = python(code, installed, packages[way])
    assert message == "`x` must be whole numbers for WholeNoise"


def test_the_certificate_is_exact(installed: Path, packages: dict[str, Path]) -> None:
    """Against Neyman-Pearson on the whole distribution, in fractions, for every shift."""
    code = """
        import itertools
        from fractions import Fraction
        import bincp
        from support import assert_exact_bounds, least
        from whole_noise import WholeNoise, WholeSteps
        width, pixels = 1, list(itertools.product(range(-4, 5), repeat=2))

        def distribution(shift):
            inside = [max(abs(a - s) for a, s in zip(x, shift)) <= width for x in pixels]
            return [Fraction(i, (2 * width + 1) ** 2) for i in inside]

        clean = distribution((0, 0))
        for r in range(4):
            certificate = bincp.certify(WholeNoise(width), WholeSteps(r))
            shifts = [s for s in itertools.product(range(-r, r + 1), repeat=2)
                      if sum(map(abs, s)) <= r]
            for p in (0.0, 0.25, 0.5, 2 / 3, 0.9, 1.0):
                worst = [least(clean, distribution(s), Fraction(p)) for s in shifts]
                assert all(certificate.lower(p) <= value for value in worst)
                error = Fraction("3e-15")
                assert_exact_bounds(certificate, clean, distribution((r, 0)), p, error)
        print("ok")
    """
    assert python(code, installed, packages["module"]) == "ok"


def test_a_classifier_takes_the_scheme(installed: Path, packages: dict[str, Path]) -> None:
    """The sets cover inputs under the worst shift, and are not all labels."""
    pytest.importorskip("torch")
    code = """
        import numpy as np, torch
        from bincp.sampling import RobustClassifier
        from whole_noise import WholeNoise, WholeSteps
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 600)
        x = rng.integers(0, 4, (600, 3)).astype(np.float32)
        x[np.arange(600), y] += 16
        scheme, ball = WholeNoise(8), WholeSteps(3)
        classifier = RobustClassifier(
            lambda rows: rows / 4, scheme, ball, alpha=0.1, n_samples=64, seed=0
        )
        classifier.calibrate(x[:300], y[:300])
        attacked = x[300:].copy()
        attacked[np.arange(300), y[300:]] -= 3
        sets = classifier.predict(attacked).sets
        assert sets[np.arange(300), y[300:]].mean() >= 0.86, sets[np.arange(300), y[300:]].mean()
        assert sets.sum(axis=1).mean() < 2.5, sets.sum(axis=1).mean()
        print("ok")
    """
    assert python(code, installed, packages["module"]) == "ok"


def test_a_page_quotes_the_example() -> None:
    page = ROOT / "docs" / "guide" / "add.md"
    assert f"```python\n{EXAMPLE.read_text()}```" in page.read_text()
