"""The operator registry: look-up, registration with its checks, and entry points."""

import json
import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import bincp
from bincp import Certificate
from bincp.balls import L1, L2, Ball, Flips, Linf
from bincp.errors import CertificateError
from bincp.smoothing import Gaussian, Smoothing, SparseFlip, Uniform


@dataclass(frozen=True)
class Patch(Ball):
    """At most `size` pixels in a square change."""

    size: int


@dataclass(frozen=True)
class Mask(Smoothing):
    """A share `kept` of the pixels stays, the others are masked."""

    kept: float


EXAMPLE = (Mask(0.25), Patch(1))


pytestmark = pytest.mark.usefixtures("clean_registry")


def mask_patch(smoothing: Mask, ball: Patch) -> Callable[[float], float]:
    return lambda p: max(p - smoothing.kept * ball.size, 0.0)


# ---- look-up --------------------------------------------------------------------------------


def test_built_in_pairs_are_listed_with_their_origin() -> None:
    listed = bincp.registered()
    assert {pair[:2] for pair in listed} >= {
        (Gaussian, L2),
        (Gaussian, L1),
        (Gaussian, Linf),
        (Uniform, L1),
        (SparseFlip, Flips),
    }
    assert all(isinstance(origin, str) and origin for _, _, origin in listed)
    assert (Gaussian, L2, "bincp.certificates._builtins.additive.gaussian") in listed
    assert len({pair[:2] for pair in listed}) == len(listed)


@pytest.mark.parametrize(
    ("smoothing", "ball", "message"),
    [
        (
            Uniform(0.5),
            Flips(1, 1),
            r"\(Uniform, Flips\): Uniform can certify L1.*; bincp.register adds more",
        ),
        (Gaussian(0.5), Flips(1, 1), r"Gaussian can certify L2, L1, Linf.*; bincp.register adds"),
        (Mask(0.5), L2(0.1), "nothing is known for Mask; bincp.register adds more"),
        (L2(0.1), Gaussian(0.5), r"\(L2, Gaussian\): the smoothing scheme comes first, then the"),
        (0.25, 0.12, r"\(float, float\): nothing is known for float"),
        ("gaussian", "l2", r"\(str, str\): nothing is known for str"),
        (None, L2(0.1), "nothing is known for NoneType"),
    ],
)
def test_pairs_without_operator(smoothing: Any, ball: Any, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        bincp.certify(smoothing, ball)


@pytest.mark.parametrize(
    ("smoothing", "ball", "message"),
    [
        (Gaussian, L2(0.1), "`smoothing` must be an instance, got the class Gaussian"),
        (Gaussian(0.5), L2, "`ball` must be an instance, got the class L2"),
    ],
)
def test_classes_instead_of_instances(smoothing: Any, ball: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        bincp.certify(smoothing, ball)


def test_a_subclass_is_another_type() -> None:
    """What is certified for a ball need not hold for one that behaves otherwise."""

    @dataclass(frozen=True)
    class WeightedL2(L2):
        weight: float = 1.0

    with pytest.raises(CertificateError, match=r"\(Gaussian, WeightedL2\)"):
        bincp.certify(Gaussian(0.25), WeightedL2(0.1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Gaussian(0.0), ValueError, "`sigma` must be finite and > 0, got 0.0"),
        (lambda: Gaussian(-1), ValueError, "`sigma` must be finite and > 0, got -1"),
        (lambda: Gaussian(math.nan), ValueError, "`sigma`"),
        (lambda: Gaussian("0.25"), TypeError, "`sigma` must be a real number, got '0.25'"),
        (lambda: Gaussian(True), TypeError, "`sigma` must be a real number, got True"),
        (lambda: Uniform(math.inf), ValueError, "`half_width` must be finite and > 0, got inf"),
        (lambda: SparseFlip(-0.1, 0.5), ValueError, r"`p_plus` must be in \[0, 1\], got -0.1"),
        (lambda: SparseFlip(0.1, 1.1), ValueError, r"`p_minus` must be in \[0, 1\], got 1.1"),
        (lambda: SparseFlip(0.1, math.nan), ValueError, r"`p_minus` must be in \[0, 1\], got nan"),
        (lambda: SparseFlip(1e-310, 0.5), ValueError, "`p_plus` must be 0 or at least 1e-300"),
        (lambda: L2(-0.1), ValueError, "`r` must be finite and >= 0, got -0.1"),
        (lambda: L1(math.nan), ValueError, "`r` must be finite and >= 0, got nan"),
        (lambda: L1(10**400), ValueError, "`r` must be finite and >= 0"),
        (lambda: L2(None), TypeError, "`r` must be a real number, got None"),
        (lambda: L2(0.1, dim=0), ValueError, r"`dim` must be in \[1, \d+\], got 0"),
        (lambda: L2(0.1, dim=3.0), TypeError, "`dim` must be an integer, got 3.0"),
        (lambda: L2(np.timedelta64(1, "s")), TypeError, "`r` must be a real number, got np.time"),
        (lambda: Linf(0.1), TypeError, "dim"),
        (lambda: Linf(0.1, None), TypeError, "`dim` must be an integer, got None"),
        (lambda: Linf(0.1, 10**400), ValueError, r"`dim` must be in \[1, "),
        (lambda: Linf(-0.1, 3), ValueError, "`r` must be finite and >= 0, got -0.1"),
        (lambda: Flips(-1, 0), ValueError, r"`additions` must be in \[0, 2147483647\], got -1"),
        (lambda: Flips(0, 1.0), TypeError, "`deletions` must be an integer, got 1.0"),
        (lambda: Flips(True, 0), TypeError, "`additions` must be an integer, got True"),
    ],
)
def test_bad_parameters(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("number", [2**31, 2**60, 2**62, 2**63, 2**64 - 1, 2**64, 10**30])
def test_numbers_of_flips_that_would_wrap(number: int) -> None:
    """2^64 - 1 additions and 1 deletion are not 0 flips."""
    with pytest.raises(ValueError, match=r"must be in \[0, 2147483647\]"):
        Flips(number, 1)
    with pytest.raises(ValueError, match=r"must be in \[0, 2147483647\]"):
        Flips(1, number)


def test_balls_know_their_inverse() -> None:
    for ball in (L1(0.1), L2(0.1, dim=3), Linf(0.1, dim=3)):
        assert ball.inverse() == ball
    assert Flips(1, 3).inverse() == Flips(3, 1)


# ---- registration ---------------------------------------------------------------------------


def new_ball_in_ten_lines() -> Certificate:
    @dataclass(frozen=True)
    class Rotation(bincp.balls.Ball):
        degrees: float

    @bincp.register(Gaussian, Rotation, examples=[(Gaussian(0.25), Rotation(5))])
    def gaussian_rotation(smoothing: Gaussian, ball: Rotation) -> Certificate:
        distance = 2 * math.sin(math.radians(ball.degrees) / 2)  # of points on the unit circle
        return bincp.certify(smoothing, bincp.balls.L2(distance))

    return bincp.certify(Gaussian(0.25), Rotation(10))


def test_a_new_ball_in_ten_lines() -> None:
    certificate = new_ball_in_ten_lines()
    expected = bincp.certify(Gaussian(0.25), L2(2 * math.sin(math.radians(5))))
    assert certificate.lower(0.9) == expected.lower(0.9)
    assert certificate.describe()["ball"] == {"type": "Rotation", "degrees": 10}
    origins = [origin for *_, origin in bincp.registered()]
    assert any(origin.endswith("gaussian_rotation") for origin in origins)


def test_a_monotone_map_is_enough() -> None:
    """patches and other balls; `upper` follows from `lower`."""
    assert bincp.register(Mask, Patch, examples=[EXAMPLE])(mask_patch) is mask_patch
    certificate = bincp.certify(Mask(0.1), Patch(2))
    assert certificate.lower(0.9) == pytest.approx(0.7)
    assert certificate.upper(0.7) == pytest.approx(0.9)
    assert (Mask, Patch, f"{__name__}.mask_patch") in bincp.registered()


@pytest.mark.parametrize(
    "factory",
    [
        lambda smoothing, ball: lambda p: p / 2,
        lambda smoothing, ball: (lambda p: p / 2,),
        lambda smoothing, ball: (lambda p: p / 2, lambda p: min(2 * p, 1.0)),
        lambda smoothing, ball: Certificate.from_bounds(lambda p: p / 2),
        lambda smoothing, ball: Certificate.from_regions([0.5, 0.5], [0.25, 0.75]),
        lambda smoothing, ball: (Certificate.from_bounds(lambda p: p / 2), "half"),
        lambda smoothing, ball: (lambda p: p / 2, "half"),
        lambda smoothing, ball: (Certificate.from_bounds(lambda p: p / 2).operator, "half"),
        lambda smoothing, ball: Certificate.from_regions([0.5, 0.5], [0.25, 0.75]).operator,
    ],
)
def test_what_a_factory_may_return(factory: Callable[..., Any]) -> None:
    bincp.register(Mask, Patch, examples=[EXAMPLE])(factory)
    certificate = bincp.certify(*EXAMPLE)
    assert certificate.lower(0.5) == pytest.approx(0.25)
    assert certificate.upper(0.25) == pytest.approx(0.5)
    assert certificate.describe()["ball"] == {"type": "Patch", "size": 1}


@pytest.mark.parametrize(
    "made",
    [None, 0.5, "lower", (), (max, min, max), (0.5, 0.5), (0.5, "note"), [max], {}],
    ids=repr,
)
def test_what_a_factory_may_not_return(made: Any) -> None:
    bincp.register(Mask, Patch)(lambda smoothing, ball: made)
    with pytest.raises(CertificateError, match=r"must return an operator, a Certificate, a pair"):
        bincp.certify(*EXAMPLE)


def test_an_operator_comes_with_its_note_and_is_made_a_certificate_once() -> None:
    gaussian = bincp.certify(Gaussian(0.5), L2(0.25)).operator
    bincp.register(Mask, Patch)(lambda smoothing, ball: (gaussian, "as Gaussian noise"))
    certificate = bincp.certify(*EXAMPLE)
    assert certificate.operator is gaussian
    assert certificate.describe() == {
        "smoothing": {"type": "Mask", "kept": 0.25},
        "ball": {"type": "Patch", "size": 1},
        "operator": gaussian.name,
        "note": "as Gaussian noise",
    }


def test_the_details_of_a_returned_certificate_are_kept_and_its_pair_is_not() -> None:
    converted = bincp.certify(Gaussian(0.5), Linf(0.1, 4))
    bincp.register(Mask, Patch)(lambda smoothing, ball: converted)
    description = bincp.certify(*EXAMPLE).describe()
    assert description["ball"] == {"type": "Patch", "size": 1}
    assert description["note"] == converted.describe()["note"]


def test_threads_that_register_one_pair_have_one_winner() -> None:
    ready = threading.Barrier(8)

    def attempt(_: int) -> bool:
        ready.wait()
        try:
            bincp.register(Mask, Patch, examples=[EXAMPLE])(mask_patch)
        except ValueError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1


def test_threads_certify_and_list_while_others_register() -> None:
    def register_many(thread: int) -> None:
        for i in range(50):
            kind = type(f"Scheme{thread}_{i}", (), {})
            bincp.register(kind, Patch)(lambda smoothing, ball: lambda p: p / 2)
            assert bincp.certify(kind(), Patch(1)).lower(0.5) == 0.25

    def look_up(_: int) -> None:
        for _ in range(200):
            assert bincp.registered()
            with pytest.raises(CertificateError, match="Gaussian can certify"):
                bincp.certify(Gaussian(0.5), Patch(1))

    before = len(bincp.registered())
    with ThreadPoolExecutor(4) as pool:
        done = [*(pool.submit(register_many, i) for i in range(2))]
        done += [pool.submit(look_up, i) for i in range(2)]
        for future in done:
            future.result()
    assert len(bincp.registered()) == before + 100


BROKEN: dict[str, tuple[Any, str]] = {
    "lower above p": (lambda p: min(p + 0.1, 1.0), r"lower\(0\.0\) must be <= p, got 0\.1"),
    "not monotone": (lambda p: 0.0 if p > 0.8 else p / 2, "falls from .* at p = 0.8"),
    "NaN": (lambda p: math.nan, r"lower\(0\.0\) must be .*, got nan"),
    "above 1": ((lambda p: 0.0, lambda p: 1.5), r"upper\(0\.0\) must be .*, got 1\.5"),
    "raises": (lambda p: [][1], r"lower\(0\.0\) raised IndexError"),
    "wrong inverse": (
        (
            bincp.certify(SparseFlip(0.01, 0.6), Flips(1, 3)).lower,
            bincp.certify(SparseFlip(0.01, 0.6), Flips(3, 1)).upper,
        ),
        r"at p = .* and q = .*; is `upper` over the inverted ball\?",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_operators_are_refused_at_registration(name: str) -> None:
    bounds, message = BROKEN[name]
    decorator = bincp.register(Mask, Patch, examples=[EXAMPLE])
    with pytest.raises(CertificateError, match=message):
        decorator(lambda smoothing, ball: bounds)
    for examples in (None, [1], [(*EXAMPLE, 1)]):
        with pytest.raises(TypeError, match=r"`examples` must be .*pairs \(smoothing, ball\), got"):
            bincp.register(Mask, Patch, examples=examples)(mask_patch)
    assert (Mask, Patch) not in {pair[:2] for pair in bincp.registered()}
    decorator(mask_patch)  # the pair is still free
    assert bincp.certify(*EXAMPLE).lower(0.75) == 0.5


@pytest.mark.parametrize("name", BROKEN)
def test_broken_operators_are_refused_at_each_use(name: str) -> None:
    """An operator that is right on its examples, and broken elsewhere."""
    bounds, message = BROKEN[name]

    @bincp.register(Mask, Patch, examples=[EXAMPLE])
    def factory(smoothing: Mask, ball: Patch) -> Any:
        return mask_patch(smoothing, ball) if ball.size == 1 else bounds

    bincp.certify(*EXAMPLE)
    with pytest.raises(CertificateError, match=message):
        bincp.certify(Mask(0.25), Patch(2))


def test_a_certificate_of_a_foreign_factory_is_checked_too() -> None:
    class Lucky(Certificate):
        def lower(self, p: Any) -> Any:
            return 1.0

    bincp.register(Mask, Patch)(lambda smoothing, ball: Lucky.from_regions([0.5, 0.5], [0.5, 0.5]))
    with pytest.raises(CertificateError, match=r"lower\(0\.0\) must be <= p, got 1\.0"):
        bincp.certify(*EXAMPLE)


def test_second_operators_are_refused_and_the_first_stays() -> None:
    bincp.register(Mask, Patch)(mask_patch)
    with pytest.raises(
        ValueError, match=r"\(Mask, Patch\) must not have an operator yet.*mask_patch"
    ):
        bincp.register(Mask, Patch)(lambda smoothing, ball: lambda p: 0.0)
    assert bincp.certify(*EXAMPLE).lower(0.75) == 0.5
    with pytest.raises(ValueError, match=r"the first is bincp\..*\.gaussian"):
        bincp.register(Gaussian, L2)(lambda smoothing, ball: lambda p: p)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ((Mask(0.5), Patch), "`smoothing_type` must be a class, got Mask"),
        ((Mask, "Patch"), "`ball_type` must be a class, got 'Patch'"),
    ],
)
def test_registration_takes_classes(types: tuple[Any, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        bincp.register(*types)


def test_registration_takes_callables_and_examples_of_the_pair() -> None:
    with pytest.raises(TypeError, match=r"`factory` must be callable, got 0\.5"):
        bincp.register(Mask, Patch)(0.5)
    with pytest.raises(TypeError, match=r"`examples` must be of the types \(Mask, Patch\)"):
        bincp.register(Mask, Patch, examples=[EXAMPLE[::-1]])(mask_patch)
    assert (Mask, Patch) not in {pair[:2] for pair in bincp.registered()}


def test_errors_of_a_factory_are_its_own() -> None:
    @bincp.register(Mask, Patch)
    def factory(smoothing: Mask, ball: Patch) -> Any:
        raise ValueError("`size` must be at most 3")

    with pytest.raises(ValueError, match="`size` must be at most 3"):
        bincp.certify(*EXAMPLE)


def test_inverse_and_pickle_of_a_registered_pair() -> None:
    bincp.register(Mask, Patch)(mask_patch)
    certificate = bincp.certify(*EXAMPLE)
    assert certificate.inverse().lower(0.75) == certificate.lower(0.75)
    assert pickle.loads(pickle.dumps(certificate)).lower(0.75) == certificate.lower(0.75)


def test_inverse_of_a_ball_whose_inverse_has_no_operator() -> None:
    @dataclass(frozen=True)
    class Up(Ball):
        def inverse(self) -> Any:
            return Patch(1)

    bincp.register(Mask, Up)(lambda smoothing, ball: lambda p: p / 2)
    certificate = bincp.certify(Mask(0.5), Up())
    assert certificate.lower(0.5) == 0.25
    with pytest.raises(CertificateError, match=r"no certificate for \(Mask, Patch\)"):
        certificate.inverse()


def test_description_of_parameters_that_json_lacks() -> None:
    @dataclass(frozen=True)
    class Weighted(Ball):
        weights: Any
        nested: Patch = Patch(2)
        options: dict = field(
            default_factory=lambda: {1: np.int64(3), "x": (np.float32(0.5), None)}
        )

    class Bare:
        """A ball that is no dataclass has no parameters to tell."""

    for ball_type in (Weighted, Bare):
        bincp.register(Mask, ball_type)(lambda smoothing, ball: lambda p: p / 2)
    described = bincp.certify(Mask(0.5), Weighted(np.array([1, 2]))).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["ball"] == {
        "type": "Weighted",
        "weights": [1, 2],
        "nested": {"type": "Patch", "size": 2},
        "options": {"1": 3, "x": [0.5, None]},
    }
    assert bincp.certify(Mask(0.5), Bare()).describe()["ball"] == {"type": "Bare"}


def test_a_description_holds_every_parameter() -> None:
    """Rules are checked by the description: schemes that differ must be described differently."""

    class Plain(Smoothing):
        """No dataclass, though its base is one."""

        def __init__(self, sigma: float) -> None:
            self.sigma = sigma  # type: ignore[misc]

    class Wider(Mask):
        """Adds to the fields of a dataclass without being one."""

        def __init__(self, keep: float, extra: float) -> None:
            super().__init__(keep)
            object.__setattr__(self, "extra", extra)

    class Slotted:
        __slots__ = ("sigma",)

        def __init__(self, sigma: float) -> None:
            self.sigma = sigma

    class Named(NamedTuple):
        sigma: float

    @dataclass(frozen=True, eq=False)
    class Holder:
        value: Any

    close, long = np.full(4, 0.5), np.zeros(2000)
    close[1] += 1e-9
    long[1000] = 1
    differing = [
        (Plain(0.5), Plain(5.0)),
        (Wider(0.5, 1.0), Wider(0.5, 2.0)),
        (Slotted(0.5), Slotted(5.0)),
        (Named(0.5), Named(5.0)),
        (Holder(np.full(4, 0.5)), Holder(close)),
        (Holder(np.zeros(2000)), Holder(long)),
        (Holder(np.zeros(2000)), Holder(np.zeros(2000, np.float32))),
        (Holder(Plain(0.5)), Holder(Plain(5.0))),
        (Holder(Holder), Holder(Plain)),
    ]
    for schemes in differing:
        if type(schemes[0]) not in {entry[0] for entry in bincp.registered()}:
            bincp.register(type(schemes[0]), Patch)(lambda smoothing, ball: lambda p: p / 2)
        one, other = (bincp.certify(scheme, Patch(1)).describe() for scheme in schemes)
        assert one["smoothing"] != other["smoothing"]
        again = bincp.certify(schemes[0], Patch(1)).describe()
        assert json.loads(json.dumps(one)) == one == again


# ---- entry points ---------------------------------------------------------------------------

PLUGIN = """
    from dataclasses import dataclass
    import bincp

    @dataclass(frozen=True)
    class Stain(bincp.balls.Ball):
        area: float

    @bincp.register(bincp.smoothing.Uniform, Stain,
                    examples=[(bincp.smoothing.Uniform(0.5), Stain(0.1))])
    def uniform_stain(smoothing, ball):
        return lambda p: max(p - ball.area, 0.0)
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python code in a process in which fake distributions are installed."""

    def install(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[bincp.certificates]\n{name} = {name}\n")

    def run(code: str, **sources: str) -> subprocess.CompletedProcess[str]:
        for name, source in sources.items():
            install(name, source)
        path = os.pathsep.join([str(tmp_path), str(Path(bincp.__file__).parents[1])])
        return subprocess.run(
            [sys.executable, "-W", "default", "-c", textwrap.dedent(code)],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )

    return run


def test_entry_points_are_found_when_a_pair_is_first_missing(run: Callable[..., Any]) -> None:
    done = run(
        """
        import sys, bincp
        bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.L1(0.1))
        assert "stains" not in sys.modules  # built-in pairs load nothing
        try:
            bincp.certify(bincp.smoothing.Uniform(0.5), bincp.balls.Flips(1, 1))
        except bincp.CertificateError as error:
            print(error)
        import stains
        print(bincp.certify(bincp.smoothing.Uniform(0.5), stains.Stain(0.25)).lower(0.75))
        """,
        stains=PLUGIN,
    )
    assert "Uniform can certify L1, Linf, L2, Stain" in done.stdout
    assert done.stdout.splitlines()[-1] == "0.5"
    assert done.stderr == ""


def test_threads_that_load_entry_points_at_once_find_the_pair(run: Callable[..., Any]) -> None:
    """Four certify a pair of a package that a fifth imports; the package lists the registry."""
    done = run(
        """
        import threading, bincp, spots

        ready = threading.Barrier(5)
        found = []

        def certify(imports_first):
            ready.wait()
            if imports_first:
                import slow_plugin
            found.append(bincp.certify(bincp.smoothing.Gaussian(0.5), spots.Spot()).lower(0.5))

        threads = [threading.Thread(target=certify, args=(i == 0,), daemon=True) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        print(found)
        """,
        spots="class Spot: pass",
        slow_plugin="""
            import time, bincp, spots

            time.sleep(0.3)
            bincp.registered()

            @bincp.register(bincp.smoothing.Gaussian, spots.Spot)
            def gaussian_spot(smoothing, ball):
                return lambda p: p / 2
        """,
    )
    assert done.stdout == f"{[0.25] * 5}\n"
    assert done.stderr == ""


def test_entry_points_are_listed(run: Callable[..., Any]) -> None:
    done = run("import bincp; print(bincp.registered())", stains=PLUGIN)
    assert "'stains.uniform_stain'" in done.stdout


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("raise RuntimeError('no licence')", "no licence"),
        (PLUGIN.replace("p - ball.area", "p + ball.area"), "CertificateError"),
        (PLUGIN.replace("Stain,", "bincp.balls.L1,").replace("[(", "[] or [("), "must not have"),
    ],
)
def test_broken_entry_points_warn_and_take_nothing_down(
    run: Callable[..., Any], broken: str, reason: str
) -> None:
    done = run(
        """
        import bincp
        listed = [origin for *_, origin in bincp.registered()]
        print(listed)
        print(bincp.certify(bincp.smoothing.Gaussian(0.25), bincp.balls.L2(0.25)).lower(0.9))
        """,
        a_broken_one=broken,
        stains=PLUGIN,
    )
    assert "RuntimeWarning: entry point 'a_broken_one' of bincp.certificates" in done.stderr
    assert reason in done.stderr
    assert "'stains.uniform_stain'" in done.stdout
    assert "'bincp.certificates._builtins.additive.gaussian'" in done.stdout
    assert "a_broken_one" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("0.6108")


def test_a_ball_without_an_inverse_is_told_what_it_lacks() -> None:
    class Bare:
        pass

    bincp.register(Uniform, Bare)(lambda smoothing, ball: lambda p: p)
    with pytest.raises(CertificateError, match=r"Bare must have a method inverse\(\)"):
        bincp.certify(Uniform(0.5), Bare()).inverse()


def test_a_pair_of_one_type_twice_and_of_both_orders_can_be_certified() -> None:
    @dataclass(frozen=True)
    class Both(Ball):
        pass

    for pair in ((Both, Both), (Both, Patch), (Patch, Both)):
        bincp.register(*pair)(lambda smoothing, ball: lambda p: p)
    for pair in ((Both(), Both()), (Both(), Patch(1)), (Patch(1), Both())):
        assert bincp.certify(*pair).lower(0.5) == 0.5


def test_more_flips_than_can_be_convolved_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`ball` must have .*<= 10000000000"):
        bincp.certify(SparseFlip(0.1, 0.2), Flips(10**6, 10**6))
