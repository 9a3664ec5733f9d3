"""Record what the library computes, to the last bit, and compare two such records.

For changes that should change no result::

    python dump.py write before.npz
    python dump.py write after.npz          # with the changed library
    python dump.py compare before.npz after.npz

A record is a file of named arrays. Its inputs are random numbers with fixed seeds, and it uses
public names only. Records are comparable if they come from one machine with the same versions of
Python, NumPy, SciPy and torch: elsewhere last bits may differ. What is meant to change freely is
left out: messages, reprs, the origins of certificates and the names of their operators.
"""

import argparse
import ctypes
import itertools
import json
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy and torch start their threads

import numpy as np
import torch

import bincp
from bincp import attacks, balls, baselines, classification, metrics, noise, radii, sampling, scores
from bincp import smoothing as s

Entries = Iterator[tuple[str, Any]]
"""Names and what they stand for: anything array-like, or a dict or string, kept as JSON text."""

# ---- records -------------------------------------------------------------------------------------


def collect() -> dict[str, np.ndarray]:
    """Return the record of the library that is imported, and print what is in it."""
    record: dict[str, np.ndarray] = {}
    torch.set_num_threads(1)
    for section, entries in SECTIONS.items():
        start, before = time.perf_counter(), len(record)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, value in entries():
                key = f"{section}/{name}"
                if key in record:
                    raise ValueError(f"two entries are named {key}")
                record[key] = as_array(value)
        made = list(record.values())[before:]
        print_row(section, made, time.perf_counter() - start)
    return record


def print_row(section: str, arrays: list[np.ndarray], seconds: float) -> None:
    """Print how much is in a section, and how long it took."""
    n_values = sum(array.size for array in arrays)
    print(f"{section:<16}{len(arrays):>7} arrays{n_values:>9} values{seconds:>7.1f} s", flush=True)


def as_array(value: Any) -> np.ndarray:
    """Return a value as an array that can be stored without pickling."""
    if isinstance(value, dict | str):
        return np.array(json.dumps(plain(value), sort_keys=True, allow_nan=False).encode())
    if isinstance(value, torch.Tensor):
        host = value.detach().cpu()
        value = host.view(torch.int16) if host.dtype == torch.bfloat16 else host
        return value.numpy().copy()
    array = np.array(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"cannot record {array.dtype}: {value!r}")
    return array


def plain(value: Any) -> Any:
    """Return a value as JSON, floats in hexadecimal."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"cannot record {value!r}")


def compare(first: Path, second: Path) -> int:
    """Print how two records differ; return the number of names that do."""
    with np.load(first) as a, np.load(second) as b:
        found = dict.fromkeys(set(a.files) - set(b.files), f"only in {first}")
        found |= dict.fromkeys(set(b.files) - set(a.files), f"only in {second}")
        for name in set(a.files) & set(b.files):
            what = difference(a[name], b[name])
            if what is not None:
                found[name] = what
        n_names = len(set(a.files) | set(b.files))
    for name in sorted(found):
        print(f"{name}: {found[name]}")
    print(f"{len(found)} of {n_names} names differ")
    for section, number in sorted(Counter(name.split("/")[0] for name in found).items()):
        print(f"    {section}: {number}")
    return len(found)


def difference(a: np.ndarray, b: np.ndarray) -> str | None:
    """Say how two arrays differ, bit by bit: NaN equals itself, and 0.0 is not -0.0."""
    if a.dtype.kind == b.dtype.kind == "S":
        return None if a.item() == b.item() else text_difference(a.item(), b.item())
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype} {a.shape} and {b.dtype} {b.shape}"
    other = np.flatnonzero(bits(a) != bits(b))
    if not other.size:
        return None
    at = tuple(int(i) for i in np.unravel_index(other[0], a.shape))
    return f"{other.size} of {a.size} values, the first at {at}: {a[at]!r} and {b[at]!r}"


def bits(array: np.ndarray) -> np.ndarray:
    """Return the bits of the elements as integers."""
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")


def text_difference(a: bytes, b: bytes) -> str:
    """Show where two texts begin to differ."""
    pairs = enumerate(zip(a, b, strict=False))
    at = next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))
    shown = slice(max(at - 40, 0), at + 40)
    return f"...{a[shown]!r} and ...{b[shown]!r}"


# ---- certificates --------------------------------------------------------------------------------

ADDITIVE = [
    s.Gaussian(0.25),
    s.Gaussian(1.7),
    s.Uniform(0.5),
    s.Uniform(2.3),
    s.Laplace(0.5),
    s.Laplace(3),
    s.Expp(0.5, 0.5),
    s.Expp(0.5, 1),
    s.Expp(1, 2),
    s.Expp(0.5, 3.3),
    s.Pareto(0.5, 3),
    s.Pareto(2, 0.7),
    s.UniformBall(2),
    s.UniformBall(0.9),
    s.Exp1(0.5),
    s.Exp1(1.25),
    s.Exp2(0.5),
    s.Exp2(0.5, 2),
    s.ExpInf(0.5),
    s.ExpInf(0.5, 0.5, 1.5),
    s.PowInf(0.5, 50),
    s.PowInf(2, 41.5),
]
NORM_BALLS = [
    balls.L1(0.1, 40),
    balls.L1(0.7, 40),
    balls.L2(0.03, 40),
    balls.L2(0.25, 40),
    balls.Linf(0.01, 40),
    balls.Linf(0.05, 40),
]
NESTED = s.Joint(s.SparseFlip(0.01, 0.6), s.Joint(s.CategoricalFlip(3, 0.1, 1), s.SparseFlip(0, 1)))
PAIRS = [
    *itertools.product(ADDITIVE, NORM_BALLS),
    (s.Gaussian(0.5), balls.L2(0)),
    (s.Gaussian(0.5), balls.L2(0.12)),
    (s.Gaussian(1e-3), balls.L2(0.1)),
    (s.Uniform(0.5), balls.L1(1.5)),
    (s.SparseFlip(0.01, 0.6), balls.Flips(1, 3)),
    (s.SparseFlip(0, 0.6), balls.Flips(2, 1)),
    (s.SparseFlip(0.2, 0.2), balls.Flips(40, 25)),
    (s.CategoricalFlip(4, 0.01, 0.6), balls.CategoricalFlips(1, 2, 1)),
    (s.CategoricalFlip(3, 0.2, 0.2), balls.CategoricalFlips(3, 2, 4)),
    (s.CategoricalFlip(2, 0.1, 0.3), balls.CategoricalFlips(2, 2, 0)),
    (
        s.Joint(s.SparseFlip(0.001, 0.4), s.SparseFlip(0.01, 0.6)),
        balls.Joint(balls.Flips(0, 4), balls.Flips(2, 2)),
    ),
    (
        NESTED,
        balls.Joint(
            balls.Flips(1, 2), balls.Joint(balls.CategoricalFlips(1, 0, 1), balls.Flips(0, 1))
        ),
    ),
    (s.SplittingNoise(0.25), balls.L1(0.03)),
    (s.SplittingNoise(0.3, grid=100, seed=3), balls.L1(0.11)),
    (s.SplittingNoise(0.25, grid=None), balls.L1(0.03)),
    (s.Ablation(45, 784), balls.L0(3)),
    (s.Ablation(3, 20), balls.L0(12)),
    (s.BlockAblation(5, 32, 32), balls.Patch(3, 4)),
    (s.BlockAblation(2, 7, 9), balls.Patch(2, 1)),
    (s.BandAblation(4, 32), balls.Patch(3, 4)),
    (s.BandAblation(2, 11), balls.Patch(5, 1)),
    (s.Deletion(0.9), balls.EditDistance(2)),
    (s.Deletion(0.35), balls.EditDistance(1)),
]


def probabilities() -> np.ndarray:
    """Return probabilities of all sizes: special, tiny, near 1, even and random, in no order."""
    rng = np.random.default_rng(1)
    special = [0, 5e-324, 1e-310, 2.0**-1022, 1e-300, 1e-150, 1e-17, 2.0**-53, 0.1, 0.25, 0.75, 0.9]
    near = [np.nextafter(p, end) for p in (0.25, 0.5, 0.75) for end in (0, 1)]
    small = 10.0 ** -rng.uniform(0, 308, 60)
    large = 1 - 10.0 ** -rng.uniform(0, 16, 60)
    top = [1 - 2.0**-53, 1 - 2.0**-52, 1 - 1e-12, 1, 0.5]
    even = np.linspace(0, 1, 51)
    values = np.concatenate([special, near, small, large, top, even, rng.random(206)])
    return rng.permutation(values)


P = probabilities()
FEW_P = np.concatenate([[0, 5e-324, 1e-300, 0.5, 1 - 2.0**-53, 1], P[::16]])


def registry() -> Entries:
    """Which pairs can be certified; those of other packages are not ours to record."""
    ours = [pair for pair in bincp.registered() if pair[2].startswith("bincp.")]
    yield "pairs", "\n".join(sorted(f"{pair[0].__name__} {pair[1].__name__}" for pair in ours))


def bounds() -> Entries:
    """The bounds of all built-in certificates and their inverses."""
    for number, (scheme, ball) in enumerate(PAIRS):
        name = f"{type(scheme).__name__}-{type(ball).__name__}-{number}"
        certificate = bincp.certify(scheme, ball)
        yield f"{name}/describe", described(certificate)
        yield from all_bounds(name, certificate)
        yield f"{name}/inverse/describe", described(certificate.inverse())
        yield from both_bounds(f"{name}/inverse", certificate.inverse(), P[::4])


def all_bounds(name: str, certificate: bincp.Certificate) -> Entries:
    """The bounds of an array in any order, of a sorted one, of strided float32 and of numbers."""
    yield from both_bounds(name, certificate, P)
    yield from both_bounds(f"{name}/sorted", certificate, np.sort(P[::5]))
    yield from both_bounds(f"{name}/strided", certificate, np.float32(P[:120]).reshape(12, 10)[::3])
    for bound in ("lower", "upper"):
        yield f"{name}/scalar/{bound}", [getattr(certificate, bound)(float(p)) for p in FEW_P]


def both_bounds(name: str, certificate: bincp.Certificate, p: Any) -> Entries:
    """The lower and the upper bounds of probabilities."""
    yield f"{name}/lower", certificate.lower(p)
    yield f"{name}/upper", certificate.upper(p)


def described(certificate: bincp.Certificate) -> dict[str, Any]:
    """Return what a certificate says of itself, without the name of its operator."""
    return without_operator(certificate.describe())


def without_operator(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description without the name of the operator."""
    return {key: value for key, value in description.items() if key != "operator"}


def own_certificates() -> Entries:
    """The bounds of certificates that users make from regions, radii, functions and C code."""
    rng = np.random.default_rng(2)
    for n in (1, 2, 5, 60, 300):
        clean, perturbed = rng.dirichlet(np.ones(n), 2)
        certificate = bincp.Certificate.from_regions(clean, perturbed)
        yield from all_bounds(f"regions-{n}", certificate)
        yield from both_bounds(f"regions-{n}/inverse", certificate.inverse(), P[::4])
    with_zeros = bincp.Certificate.from_regions([0.5, 0, 0.25, 0.25], [0, 0.25, 0.25, 0.5])
    yield from all_bounds("regions-zeros", with_zeros)
    for name, certificate in python_certificates():
        yield f"{name}/describe", described(certificate)
        yield from both_bounds(name, certificate, FEW_P)
        yield from both_bounds(f"{name}/inverse", certificate.inverse(), FEW_P)


def python_certificates() -> Iterator[tuple[str, bincp.Certificate]]:
    """Yield certificates that evaluate functions, with names."""
    make = bincp.Certificate
    yield "radius-half", make.from_radius(normal_radius, 0.25)
    yield "radius-additive", make.from_radius(normal_radius, 0.25, additive=True)
    yield "radius-zero", make.from_radius(normal_radius, 0, additive=True)
    yield "bounds-lower", make.from_bounds(lambda p: max(p - 0.1, 0.0))
    yield "bounds-square", make.from_bounds(lambda p: p * p * (1 - 1e-15))
    both = make.from_bounds(lambda p: max(p - 0.125, 0.0), lambda p: min(p + 0.125, 1.0))
    yield "bounds-both", both
    log1p = ctypes.CDLL(None).log1p
    log1p.restype, log1p.argtypes = ctypes.c_double, (ctypes.c_double,)
    yield "native-log1p", make.from_native(log1p, name="log1p")


def normal_radius(p: float) -> float:
    """Return the certified radius of Gaussian noise, in l2."""
    return 0.25 * NormalDist().inv_cdf(p) if 0 < p < 1 else (p - 0.5) * float("inf")


def all_radii() -> Entries:
    """Certified radii and numbers of flips."""
    p = np.array([0.3, 0.5, 0.51, 0.75, 0.9, 0.999, 1 - 1e-9, 1])
    norms = [
        (s.Gaussian(0.5), balls.L2),
        (s.Gaussian(0.5), balls.L1),
        (s.Uniform(0.5), balls.L1),
        (s.Laplace(0.5), balls.L1),
        (s.Expp(0.5, 3.3), balls.L1),
        (s.SplittingNoise(0.25), balls.L1),
    ]
    for scheme, ball in norms:
        name = f"{type(scheme).__name__}-{ball.__name__}"
        yield f"radius/{name}", radii.certified_radius(scheme, ball, p)
        yield f"radius/{name}/0.3", radii.certified_radius(scheme, ball, p, threshold=0.3)
    cube = radii.certified_radius(s.Gaussian(0.5), lambda r: balls.Linf(r, 784), p)
    yield "radius/Gaussian-Linf", cube
    yield from all_counts(p)


def all_counts(p: np.ndarray) -> Entries:
    """Certified numbers of changes, and grids of flips."""
    sparse = s.SparseFlip(0.01, 0.6)
    families = {
        "additions": (sparse, lambda r: balls.Flips(r, 0)),
        "deletions": (sparse, lambda r: balls.Flips(0, r)),
        "ablation": (s.Ablation(5, 100), balls.L0),
        "edits": (s.Deletion(0.9), balls.EditDistance),
    }
    for name, (scheme, ball) in families.items():
        yield f"count/{name}", radii.certified_count(scheme, ball, p, limit=90)
    for number, scheme in enumerate([sparse, s.SparseFlip(0.1, 0.1), s.SparseFlip(0, 0.4)]):
        yield f"grid/{number}", radii.flip_grid(scheme, FEW_P, 9, 11)
        yield f"frontier/{number}", radii.flip_frontier(scheme, p, 6, 20)
        yield f"frontier/{number}/0.2", radii.flip_frontier(scheme, p, 6, 20, threshold=0.2)


# ---- intervals -----------------------------------------------------------------------------------

ETAS = [0.5, 0.05, 1e-3, "1e-9", Fraction(1, 10**14), 1e-100]


def clopper_pearson() -> Entries:
    """Clopper-Pearson bounds: tables, rows with levels of their own, and single ones."""
    rng = np.random.default_rng(3)
    for side in ("lower", "upper"):
        bound = getattr(bincp, f"clopper_pearson_{side}")
        for m, eta in itertools.product((1, 2, 7, 50, 333, 1024), ETAS):
            yield f"{side}/table/{m}/{eta}", bound(np.arange(m + 1), m, eta)
        trials = rng.integers(1, 5000, 300)
        successes = rng.integers(0, trials + 1)
        yield f"{side}/rows", bound(successes, trials, 10.0 ** -rng.uniform(0.1, 30, 300))
        yield f"{side}/broadcast", bound(successes[:40], 5000, np.array([[1e-3], [0.2]]))
        many = [10**6, 2**31 - 1]
        cases = [(k, m, eta) for m in many for k in (0, 1, m // 3, m - 1, m) for eta in ETAS]
        yield f"{side}/many", [bound(*case) for case in cases]
        yield f"{side}/single", [bound(k, 29, eta) for k in range(30) for eta in ETAS]


def mean_bounds() -> Entries:
    """Bounds on means of bounded samples, and the band of a distribution function."""
    rng = np.random.default_rng(4)
    unit = rng.beta(8, 2, (6, 5, 33))
    for kind, side in itertools.product(("hoeffding", "bernstein"), ("lower", "upper")):
        bound, name = getattr(bincp, f"{kind}_{side}"), f"{kind}/{side}"
        for dtype in ("float16", "float32", "float64"):
            for axis, eta in itertools.product((-1, 0, 1), (0.05, "1e-6")):
                yield f"{name}/{dtype}/{axis}/{eta}", bound(unit.astype(dtype), eta, axis=axis)
        yield f"{name}/bounds", bound(7 * unit - 3, 0.01, bounds=(-3, 5))
        yield f"{name}/vector", bound(unit[0, 0], 0.01)
        yield f"{name}/one", bound(unit[..., :1], 0.01)
        yield f"{name}/bfloat16", bound(torch.tensor(unit).bfloat16(), 0.01)
    bands = [bincp.dkw_band(unit[..., :m], eta) for m in (1, 2, 33) for eta in ETAS]
    yield "dkw", bands


# ---- noise ---------------------------------------------------------------------------------------

RADIAL_AND_WIDE = [
    s.Expp(0.5, 1e6),
    s.Exp1(0.5, k=2),
    s.Exp1(0.5, k=0.5),
    s.Exp2(0.5, k=1.5, j=0.75),
    s.Exp2(0.5, k=30, j=0.5),
    s.ExpInf(0.5, k=2),
    s.ExpInf(0.5, k=0.7, j=0.5),
    s.PowInf(0.5, 800),
]
IDS = np.array([5, 2**56 - 1, 17])
KEYS: list[dict[str, Any]] = [
    {"n_samples": 3, "phase": "test"},
    {"n_samples": 2, "phase": "calibration", "seed": 2**64 - 1, "indices": IDS},
    {"n_samples": 1, "phase": "test", "seed": 12345, "indices": np.array([4, 4, 0])},
]


def noise_cases() -> Iterator[tuple[Any, list[np.ndarray]]]:
    """Yield schemes with inputs that they can smooth, in float64."""
    rng = np.random.default_rng(5)
    vectors = [rng.standard_normal(shape) for shape in ((3, 5), (2, 1, 4, 6), (2, 37), (1, 2))]
    for scheme in [*ADDITIVE, *RADIAL_AND_WIDE]:
        yield scheme, vectors
    rows = [rng.standard_normal((1, 1)), rng.standard_normal((1, 1027))]
    for scheme in (s.Gaussian(0.25), s.Uniform(0.5), s.Laplace(0.5), s.Expp(0.5, 3.3), s.Exp1(2)):
        yield scheme, rows
    yield from flip_cases(rng)
    yield from splitting_cases(rng)
    yield from ablation_cases(rng)
    yield from transformed_cases(rng)


def flip_cases(rng: np.random.Generator) -> Iterator[tuple[Any, list[np.ndarray]]]:
    """Yield the schemes for zeros and ones and for categories."""
    binary = [rng.integers(2, size=shape) for shape in ((3, 5), (2, 3, 7), (1, 1027))]
    for chances in ((0.01, 0.6), (0, 1), (0.3, 0.3)):
        yield s.SparseFlip(*chances), binary
    for k in (2, 3, 10):
        codes = [rng.integers(k, size=shape) for shape in ((3, 5), (2, 3, 31))]
        yield s.CategoricalFlip(k, 0.1, 0.6), codes
    parts = s.Joint(s.SparseFlip(0.1, 0.6), s.CategoricalFlip(3, 0.2, 0.5), n_adjacency=4)
    yield parts, [rng.integers(2, size=shape) for shape in ((3, 9), (2, 4, 5))]
    inner = s.Joint(s.SparseFlip(0.4, 0.4), s.SparseFlip(0.2, 0.9), n_adjacency=3)
    nested = s.Joint(inner, s.CategoricalFlip(4, 0.5, 0.5), n_adjacency=8)
    yield nested, [rng.integers(2, size=(3, 19))]


def splitting_cases(rng: np.random.Generator) -> Iterator[tuple[Any, list[np.ndarray]]]:
    """Yield splitting noise, on a grid and without one."""
    shapes = ((3, 5), (2, 1, 4, 6))
    for scheme in (s.SplittingNoise(0.25), s.SplittingNoise(0.3, grid=100, seed=3)):
        yield scheme, [rng.integers(scheme.grid + 1, size=shape) / scheme.grid for shape in shapes]
    for width in (0.25, 0.9):
        yield s.SplittingNoise(width, grid=None), [rng.random(shape) for shape in shapes]


def ablation_cases(rng: np.random.Generator) -> Iterator[tuple[Any, list[np.ndarray]]]:
    """Yield the schemes that blank out or delete."""
    images = {
        s.Ablation(5, 12): ((3, 12), (2, 3, 3, 4)),
        s.Ablation(12, 12, fill=-1): ((2, 12),),
        s.Ablation(40, 300, fill=0.5): ((2, 300),),
        s.BlockAblation(2, 4, 5): ((3, 4, 5), (2, 3, 4, 5)),
        s.BandAblation(3, 7, fill=-1): ((3, 7), (2, 3, 2, 7)),
    }
    for scheme, shapes in images.items():
        yield scheme, [rng.random(shape) for shape in shapes]
    tokens = rng.integers(1, 100, (3, 15))
    tokens[np.arange(15) >= np.array([[15], [9], [0]])] = 0
    for chance in (0, 0.35, 0.9, 1):
        yield s.Deletion(chance), [tokens]


def transformed_cases(rng: np.random.Generator) -> Iterator[tuple[Any, list[np.ndarray]]]:
    """Yield schemes of selected rows, of transformations, of words, and of a covariance."""
    images = [rng.random(shape) for shape in ((3, 4, 5), (2, 3, 6, 4))]
    for scheme in (s.Hierarchical(s.Gaussian(0.25), q=0.8), s.Translation(2), s.Brightness(0.2)):
        yield scheme, images
    yield s.Staircase(k=4, ratio=0.5), [rng.integers(4, size=shape) for shape in ((3, 5), (2, 31))]
    for scheme in (
        s.AnisotropicGaussian([0.5, 2, 1]),
        s.AnisotropicGaussian(covariance=[[1, 0.5, 0], [0.5, 1, 0], [0, 0, 2]]),
    ):
        yield scheme, [rng.standard_normal((4, 3))]


def all_noise() -> Entries:
    """Noise of all schemes, by seed, phase, ids, draws, shape, dtype and layout of the inputs."""
    for number, (scheme, inputs) in enumerate(noise_cases()):
        cases = itertools.product(enumerate(inputs), ("float32", "float64"), enumerate(KEYS))
        for (i, x), dtype, (j, key) in cases:
            name = f"{type(scheme).__name__}-{number}/{i}/{dtype}/{j}"
            yield name, draws(scheme, x.astype(dtype), key)
        strided = np.asfortranarray(np.repeat(inputs[0], 2, axis=0).astype(np.float32))[::2]
        yield f"{type(scheme).__name__}-{number}/strided", draws(scheme, strided, KEYS[0])


def draws(scheme: Any, x: np.ndarray, key: dict[str, Any]) -> np.ndarray:
    """Draw the noise of a key, with as many of its ids as there are inputs."""
    if "indices" in key:
        key = key | {"indices": key["indices"][: len(x)]}
    if not isinstance(scheme, s.Joint):
        return noise.draw(scheme, x, **key)
    drawn = noise.draw(scheme, x.reshape(len(x), -1), **key)  # its parts are parts of flat inputs
    return drawn.reshape(*drawn.shape[:2], *x.shape[1:])


def copies() -> Entries:
    """All copies of derandomised schemes."""
    rng = np.random.default_rng(6)
    cases = {
        s.SplittingNoise(0.03): rng.integers(256, size=(3, 2, 7)) / 255,
        s.SplittingNoise(0.4, grid=15, seed=2): rng.integers(16, size=(2, 11)) / 15,
        s.BlockAblation(2, 4, 5): rng.random((2, 3, 4, 5)),
        s.BandAblation(3, 7, fill=-1): rng.random((3, 2, 7)),
    }
    for number, (scheme, x) in enumerate(cases.items()):
        for dtype in ("float32", "float64"):
            yield f"{number}/{dtype}", noise.all_copies(scheme, x.astype(dtype))


# ---- counting ------------------------------------------------------------------------------------


def counting() -> Entries:
    """Counts, decisions and order statistics of scores of all dtypes and layouts."""
    rng = np.random.default_rng(7)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        for m in (1, 2, 15, 64, 257, 1000):
            values = tied_scores(rng, (7, m), dtype)
            yield from counts_of(f"{dtype}/{m}", values, -1)
        block = tied_scores(rng, (6, 5, 40), dtype)
        yield from layouts(f"{dtype}", block)
    yield from threads()


def tied_scores(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return scores with ties, infinities, both zeros and subnormal numbers among them."""
    even = rng.integers(-8, 9, shape) / 8
    extremes = np.array([np.inf, -np.inf, -0.0, 1e-7, -1e-7])
    return as_dtype(np.where(rng.random(shape) < 0.1, rng.choice(extremes, shape), even), dtype)


def as_dtype(values: np.ndarray, dtype: str) -> Any:
    """Return scores in a dtype; bfloat16 is a tensor."""
    return torch.tensor(values).bfloat16() if dtype == "bfloat16" else values.astype(dtype)


def layouts(name: str, block: Any) -> Entries:
    """Counts along each axis of an array, and of parts of it that are not contiguous."""
    for axis in range(3):
        yield from counts_of(f"{name}/axis-{axis}", block, axis)
    yield from counts_of(f"{name}/stepped", block[:, ::2, ::3], -1)
    yield from counts_of(f"{name}/shifted", block[1:, :, 1:], -1)
    turned = block.permute(2, 0, 1) if isinstance(block, torch.Tensor) else block.transpose(2, 0, 1)
    yield from counts_of(f"{name}/turned", turned, 0)
    if isinstance(block, np.ndarray):
        yield from counts_of(f"{name}/reversed", block[::-1, :, ::-1], -1)
        yield from counts_of(f"{name}/broadcast", np.broadcast_to(block[:1], (4, 5, 40)), -1)


def counts_of(name: str, values: Any, axis: int) -> Entries:
    """Counts for one threshold and for one a row, and what is made of them."""
    shape = tuple(np.delete(values.shape, axis))
    rows = np.linspace(-1.1, 1.1, max(int(np.prod(shape)), 1)).reshape(shape)
    for label, threshold in {"one": 0.125, "none": 0.3, "rows": rows, "inf": np.inf}.items():
        yield f"{name}/count/{label}", bincp.count_exceedances(values, threshold, axis=axis)
    m = values.shape[axis]
    yield f"{name}/decide", bincp.decide(values, 0.125, (m + 1) // 2, axis=axis)
    least = np.arange(rows.size).reshape(shape) % (m + 2)
    yield f"{name}/decide/rows", bincp.decide(values, rows, least, axis=axis)
    for k in sorted({1, (m + 1) // 2, m}):
        yield f"{name}/largest/{k}", bincp.kth_largest(values, k, axis=axis)


def threads() -> Entries:
    """Counts of so many scores that threads share them: broadcast, so they take no memory."""
    rng = np.random.default_rng(8)
    rows = np.broadcast_to(tied_scores(rng, (64, 256), "float32"), (1024, 64, 256))
    counts = bincp.count_exceedances(rows, 0.125, n_threads=2)
    yield "threads/rows", counts[::73]
    yield "threads/decide", bincp.decide(rows, 0.125, 110, n_threads=2)[::73]
    columns = np.broadcast_to(tied_scores(rng, (2**14, 1, 1), "float32"), (2**14, 4, 256))
    yield "threads/samples", bincp.count_exceedances(columns, 0.125, axis=0, n_threads=2)[:, ::16]
    long = tied_scores(rng, (3, 5000), "float64")
    yield "largest/long", [bincp.kth_largest(long, k) for k in (1, 2500, 5000)]


# ---- calibration ---------------------------------------------------------------------------------

CERTIFIED = {
    "gaussian": (s.Gaussian(0.5), balls.L2(0.12)),
    "steep": (s.Gaussian(0.25), balls.L2(0.2)),
    "uniform": (s.Uniform(0.5), balls.L1(0.05)),
    "laplace": (s.Laplace(0.5), balls.L1(0.1)),
    "sparse": (s.SparseFlip(0.05, 0.7), balls.Flips(0, 2)),
    "splitting": (s.SplittingNoise(0.25), balls.L1(4 / 255)),
    "hopeless": (s.Uniform(0.5), balls.L1(1.5)),
}
TRAINING = ("training-conditional", 0.1)
OPTIONS: dict[str, dict[str, Any]] = {
    "mixture": {},
    "mixture-alpha": {"alpha": "0.05"},
    "mixture-p": {"p": 0.6},
    "mixture-high-p": {"p": "0.9", "alpha": Fraction(1, 5)},
    "mixture-all": {"p": 1},
    "mixture-tau": {"tau": 0.7},
    "training": {"guarantee": TRAINING},
    "training-p": {"guarantee": TRAINING, "p": 0.7},
    "training-tau": {"guarantee": TRAINING, "tau": 0.65},
    "paper": {"correction": "clopper-pearson"},
    "paper-p": {"correction": "clopper-pearson", "p": 0.75, "eta": 0.01},
    "paper-tau": {"correction": "clopper-pearson", "tau": 0.7},
    "ghost": {"correction": "clopper-pearson", "union": "ghost"},
    "ghost-tau": {"correction": "clopper-pearson", "union": "ghost", "tau": 0.7, "eta": "1/50"},
    "none": {"correction": "none"},
    "none-p": {"correction": "none", "p": 0.8, "alpha": 0.2},
    "none-tau": {"correction": "none", "tau": 0.7},
}
SIZES = [
    (200, 32, 32, "float32"),
    (150, 64, 16, "float64"),
    (150, 16, 64, "float32"),
    (60, 5, 5, "float16"),
    (400, 200, 50, "float32"),
    (90, 9, 4, "float16"),
    (250, 300, 300, "float64"),
    (9, 8, 8, "float64"),
    (120, 1, 1, "float64"),
    (300, 100, 100, "bfloat16"),
]
"""Calibration points n, samples m, samples m' at prediction, and the dtype of the scores."""

FITTED = [
    "tau_",
    "min_count_",
    "rank_",
    "success_rank_",
    "n_calibration_",
    "n_samples_",
    "n_test_samples_",
    "n_classes_",
    "dtype_",
    "p_",
    "p_lower_",
    "certified_p_",
]
SAVED = ["format", "alpha", "p", "tau", "correction", "union", "eta", "delta", *FITTED]
"""Keys of saved rules beside the certificate; later ones are not compared."""


def sampled_scores(n: int, m: int, m_test: int, dtype: str) -> tuple[Any, Any]:
    """Return scores (n, m) of true labels and (25, 4, m') of new inputs, between 0 and 1."""
    rng = np.random.default_rng([9, n, m, m_test])
    true = rng.beta(rng.uniform(4, 12, (n, 1)), 2, (n, m))
    new = rng.beta(rng.uniform(0.2, 9, (25, 4, 1)), 2.5, (25, 4, m_test))
    return as_dtype(true, dtype), as_dtype(new, dtype)


def calibration() -> Entries:
    """Decision rules of all corrections, on fixed scores; what they decide, and how they end."""
    for sizes in SIZES:
        *_, m_test, dtype = sizes
        true, new = sampled_scores(*sizes)
        cases = itertools.product(CERTIFIED.items(), OPTIONS.items())
        for (label, pair), (option, settings) in cases:
            rule = bincp.BinCP(bincp.certify(*pair), **settings)
            rule.calibrate(true, n_classes=4, n_test_samples=m_test)
            name = f"{'-'.join(map(str, sizes))}/{label}/{option}"
            yield f"{name}/fitted", attributes(rule, FITTED)
            yield f"{name}/sets", rule.predict_set(new)
            if rule.correction == "mixture" and dtype != "bfloat16":
                yield from boundaries_of(f"{name}/sequential", rule.sequential_rule())


def attributes(rule: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return attributes of a rule; arrays are left to the caller."""
    return {name: getattr(rule, name) for name in names}


def boundaries_of(name: str, rule: bincp.SequentialRule) -> Entries:
    """The boundaries of a rule, and its probabilities."""
    p = np.array([0, 1e-9, 0.1, 0.3, 0.5, 0.62, 0.75, 0.9, 0.999, 1])
    yield f"{name}/boundaries", np.stack([rule.accept, rule.reject])
    yield f"{name}/acceptance", rule.acceptance(p)
    yield f"{name}/draws", rule.expected_draws(p)


def exact_calibration() -> Entries:
    """Rules of exact probabilities."""
    rng = np.random.default_rng(10)
    own, new = rng.integers(70, 128, 200) / 127, rng.integers(0, 128, (60, 4)) / 127
    for label, pair in CERTIFIED.items():
        for option, settings in {"marginal": {}, "training": {"guarantee": TRAINING}}.items():
            for n in (5, 30, 200):
                rule = bincp.BinCP(bincp.certify(*pair), **settings)
                rule.calibrate_exact(own[:n], tau=0.4)
                yield f"{label}/{option}/{n}/fitted", attributes(rule, FITTED)
                yield f"{label}/{option}/{n}/sets", rule.predict_set_exact(new)


def one_sample() -> Entries:
    """The rule of one draw of each input."""
    for label, pair in CERTIFIED.items():
        for alpha, n in itertools.product((0.05, 0.1, "1/3"), (8, 120, 500)):
            true, new = sampled_scores(n, 1, 1, "float32")
            rule = bincp.one_sample(bincp.certify(*pair), alpha=alpha).calibrate(true)
            yield f"{label}/{alpha}/{n}/fitted", attributes(rule, FITTED)
            yield f"{label}/{alpha}/{n}/sets", rule.predict_set(new)


def saved() -> Entries:
    """The files of rules, and what is decided after they are loaded."""
    cases = itertools.product(SIZES[:4], ("gaussian", "sparse"), OPTIONS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rule.json")
        for sizes, label, option in cases:
            true, new = sampled_scores(*sizes)
            rule = bincp.BinCP(bincp.certify(*CERTIFIED[label]), **OPTIONS[option])
            rule.calibrate(true, n_classes=4, n_test_samples=sizes[2]).save(path)
            name = f"{'-'.join(map(str, sizes))}/{label}/{option}"
            yield f"{name}/file", document(path)
            loaded = bincp.BinCP.load(path)
            yield f"{name}/loaded", loaded.predict_set(new[:8])
            counts = np.arange(loaded.n_test_samples_ + 1)[:, None].repeat(4, axis=1)
            yield (
                f"{name}/counts",
                loaded.predict_set_from_counts(counts, n_samples=loaded.n_test_samples_),
            )
        rule = bincp.BinCP(bincp.certify(*CERTIFIED["splitting"]))
        rule.calibrate_exact(np.linspace(0.4, 1, 99), tau=0.4).save(path)
        yield "exact/file", document(path)


def document(path: Path) -> dict[str, Any]:
    """Return what a file says of a rule, in the keys that are compared."""
    read = json.loads(path.read_text())
    kept = {key: read[key] for key in SAVED}
    return kept | {"certificate": without_operator(read["certificate"])}


# ---- rules beside the main one -------------------------------------------------------------------


def sequential() -> Entries:
    """Rules that stop early: boundaries, probabilities, and labels that are followed."""
    rng = np.random.default_rng(11)
    for k, m in ((0, 5), (1, 1), (3, 4), (20, 32), (64, 64), (90, 150)):
        rule = bincp.SequentialRule.curtailed(k, m)
        yield from boundaries_of(f"curtailed/{k}-{m}", rule)
        yield from followed(f"curtailed/{k}-{m}", rule, rng)
    certificate = bincp.certify(*CERTIFIED["gaussian"])
    rule = bincp.BinCP(certificate).calibrate(sampled_scores(200, 40, 40, "float64")[0])
    for spread in (0.1, 1, 2.5, 20):
        own = rule.sequential_rule(spread=spread)
        yield from boundaries_of(f"spread/{spread}", own)
        yield from followed(f"spread/{spread}", own, rng)


def followed(name: str, rule: bincp.SequentialRule, rng: np.random.Generator) -> Entries:
    """Labels of 9 inputs, fed with the rounds that the rule asks for."""
    m = rule.n_test_samples
    hits = rng.random((9, 3, m)) < rng.random((9, 3, 1))
    labels, asked = rule.start((9, 3)), []
    while len(labels.undecided):
        for i, number in zip(*labels.next_round(), strict=True):
            start = labels.draws[i]
            asked.append([i, number])
            labels.update(hits[[i], :, start : start + number], inputs=[i])
    yield f"{name}/asked", np.array(asked, dtype=np.int64).reshape(-1, 2)
    yield f"{name}/followed", np.stack([labels.counts, labels.exits, labels.accepted])
    yield f"{name}/least", rule.min_draws
    counts = hits[..., : m // 2].sum(axis=-1)
    yield f"{name}/update", np.stack(rule.update(counts, m // 2))


PLAN = [
    "n",
    "m",
    "n_test_samples",
    "n_classes",
    "success_rank",
    "rank",
    "min_count",
    "certified_p",
    "losses",
    "wrong_labels",
    "expected_passes",
    "share",
    "worst_draws",
]


def plans() -> Entries:
    """Plans before any model call."""
    settings = {
        "same": {"n": 200, "m": 64, "n_classes": 10},
        "more": {"n": 150, "m": 60, "n_test_samples": 16},
        "fewer": {"n": 150, "m": 16, "n_test_samples": 40, "alpha": 0.05},
        "p": {"n": 300, "m": 100, "p": 0.7, "n_classes": 3},
        "early": {"n": 150, "m": 16, "passes": "auto"},
        "ghost": {"n": 200, "m": 64, "correction": "clopper-pearson", "union": "two-bounds"},
        "none": {"n": 200, "m": 64, "correction": "none"},
        "few": {"n": 7, "m": 16},
    }
    for (label, pair), (option, given) in itertools.product(CERTIFIED.items(), settings.items()):
        plan = bincp.plan(bincp.certify(*pair), **given)
        yield f"{label}/{option}", attributes(plan, PLAN) | {"cause": plan.trivial_cause}


def mondrian() -> Entries:
    """Rules with one threshold a class, some of them without points."""
    rng = np.random.default_rng(12)
    for label, sizes in itertools.product(("gaussian", "sparse"), SIZES[:4]):
        *_, m_test, _ = sizes
        true, new = sampled_scores(*sizes)
        y = rng.choice(4, len(true), p=[0.6, 0.3, 0.1, 0])
        for option in ("mixture", "mixture-tau", "training", "paper", "ghost", "none"):
            certificate = bincp.certify(*CERTIFIED[label])
            rule = bincp.MondrianBinCP(certificate, n_classes=4, **OPTIONS[option])
            rule.calibrate(true, y, n_test_samples=m_test)
            name = f"{'-'.join(map(str, sizes))}/{label}/{option}"
            yield f"{name}/tau", rule.tau_
            yield f"{name}/n", rule.n_calibration_
            yield f"{name}/sets", rule.predict_set(new)
            fitted = [one and attributes(one, FITTED) for one in rule.rules_]
            yield f"{name}/rules", {str(i): one for i, one in enumerate(fitted)}


def missed_any(sets: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the loss 1 for a point with a label that its set misses, 0 for others."""
    return (labels & ~sets).any(axis=1).astype(np.float64)


def risk_control() -> Entries:
    """Rules for points with many labels."""
    rng = np.random.default_rng(13)
    names = [name for name in FITTED if name != "rank_"]
    options = {
        "rate": {},
        "rate-p": {"p": 0.9, "alpha": 0.2, "eta": "1/100"},
        "none": {"correction": "none"},
        "callable": {"loss": missed_any, "alpha": 0.3},
    }
    for n, m, m_test in ((150, 64, 64), (80, 20, 50), (6, 16, 16)):
        labels = rng.random((n, 5)) < 0.4
        p = np.where(labels, rng.beta(8, 2, (n, 5)), rng.beta(2, 8, (n, 5)))
        sampled = np.clip(rng.normal(p[..., None], 0.1, (n, 5, m)), 0, 1)
        new = np.clip(rng.normal(p[:20, :, None], 0.1, (len(p[:20]), 5, m_test)), 0, 1)
        for (label, pair), (option, given) in itertools.product(CERTIFIED.items(), options.items()):
            name, certificate = f"{n}-{m}-{m_test}/{label}/{option}", bincp.certify(*pair)
            rule = bincp.RobustRiskControl(certificate, **given)
            rule.calibrate(sampled, labels, n_test_samples=m_test)
            yield f"{name}/fitted", attributes(rule, [*names, "guarantee"])
            yield f"{name}/sets", rule.predict_set(new)
            known = bincp.RobustRiskControl(certificate, **given)
            known.calibrate_exact(p, labels, tau=0.5)
            yield f"{name}/exact/fitted", attributes(known, [*names, "guarantee"])
            yield f"{name}/exact/sets", known.predict_set_exact(p[:20])


# ---- baselines, metrics and scores ---------------------------------------------------------------


def all_baselines() -> Entries:
    """Thresholds and sets of the methods that the paper compares with."""
    for sizes in ((200, 300, 300, "float32"), (99, 60, 150, "float64"), (6, 20, 20, "float64")):
        true, new = sampled_scores(*sizes)
        name = "-".join(map(str, sizes))
        yield from clean_methods(name, true, new)
        for label in ("gaussian", "sparse", "splitting"):
            certificate = bincp.certify(*CERTIFIED[label])
            yield from mean_methods(f"{name}/{label}", certificate, true, new)


def fit(name: str, rule: Any, new: Any, *more: str) -> Entries:
    """The threshold of a calibrated method, and its sets."""
    names = ("tau_", "rank_", "n_calibration_", "guarantee", *more)
    yield f"{name}/fitted", attributes(rule, names)
    yield f"{name}/sets", rule.predict_set(new)


def clean_methods(name: str, true: np.ndarray, new: np.ndarray) -> Entries:
    """The methods that know of no certificate."""
    one, each = true[:, 0], new[..., 0]
    vanilla = baselines.VanillaCP(alpha=0.1).calibrate(one)
    yield from fit(f"{name}/vanilla", vanilla, each, "dtype_")
    if true.shape[1] == new.shape[2]:
        smoothed = baselines.SmoothedCP(alpha=0.1).calibrate(true)
        yield from fit(f"{name}/smoothed", smoothed, new, "n_samples_", "dtype_")
    for side in ("calibration", "test"):
        given = {"bounds": (0, 1)} if side == "test" else {}
        lipschitz = baselines.LipRCP(2, 0.03, robust_at=side, **given).calibrate(one)
        yield from fit(f"{name}/lipschitz/{side}", lipschitz, each)
    yield from verified_methods(name, one, each)


def verified_methods(name: str, one: np.ndarray, each: np.ndarray) -> Entries:
    """The method with verified bounds, on both sides."""
    rule = baselines.VRCP(alpha=0.2).calibrate(one)
    yield f"{name}/verified/test/fitted", attributes(rule, ("tau_", "rank_", "n_calibration_"))
    yield f"{name}/verified/test/sets", rule.predict_set(each, upper=each + np.float32(0.05))
    rule = baselines.VRCP(alpha=0.2, robust_at="calibration")
    rule.calibrate(one, lower=one - np.float32(0.05))
    yield from fit(f"{name}/verified/calibration", rule, each)


def mean_methods(
    name: str, certificate: bincp.Certificate, true: np.ndarray, new: np.ndarray
) -> Entries:
    """The methods on means of scores and on one score."""
    n, m_test = len(true), new.shape[2]
    tuning = true[n // 2 :]
    for side, span in itertools.product(("calibration", "test"), ((0, 1), (-1, 2))):
        given = {"eta": 0.01, "robust_at": side}
        for correction in ("hoeffding", "bernstein", "none"):
            rule = baselines.RSCP(certificate, correction=correction, bounds=span, **given)
            rule.calibrate(true, n_test_samples=m_test)
            label = f"{name}/rscp/{side}/{span}/{correction}"
            yield from fit(label, rule, new, "n_samples_", "n_test_samples_")
        for correction in ("dkw", "none"):
            rule = baselines.CAS(certificate, correction=correction, bounds=span, **given)
            rule.calibrate(true, n_test_samples=m_test)
            yield from fit(f"{name}/cas/{side}/{span}/{correction}", rule, new)
        known = baselines.RSCP(certificate, bounds=span, **given)
        known.calibrate_exact(true.mean(axis=1, dtype=np.float64))
        yield f"{name}/rscp/{side}/{span}/exact/tau", known.tau_
        means = new.mean(axis=2, dtype=np.float64)
        yield f"{name}/rscp/{side}/{span}/exact/sets", known.predict_set_exact(means)
    ranked = baselines.RankedRSCP(certificate, tuning, seed=4, eta=0.01, temperature=0.02)
    ranked.calibrate(true[: n // 2], n_test_samples=m_test)
    yield from fit(f"{name}/ranked", ranked, new)
    yield from fit(f"{name}/rcp1", baselines.RCP1(certificate).calibrate(true[:, :1]), new[..., :1])


def all_metrics() -> Entries:
    """What is measured on prediction sets."""
    rng = np.random.default_rng(14)
    for n, n_classes in ((1, 1), (50, 3), (700, 10)):
        sets = rng.random((n, n_classes)) < 0.6
        labels = rng.integers(n_classes, size=n)
        sets[labels == 0, 0] |= rng.random((labels == 0).sum()) < 0.8
        name = f"{n}-{n_classes}"
        for key in ("average_set_size", "singleton_rate", "empty_rate"):
            yield f"{name}/{key}", getattr(metrics, key)(sets)
        for key in ("coverage", "class_conditional_coverage", "size_stratified_coverage"):
            yield f"{name}/{key}", getattr(metrics, key)(sets, labels)
        x = rng.standard_normal((n, 4)).round(1)
        for held_out in (0, 0.75):
            worst = metrics.worst_slice_coverage(
                sets, labels, x, n_directions=60, held_out=held_out, seed=3
            )
            yield f"{name}/worst/{held_out}", worst


def all_scores() -> Entries:
    """Scores of probabilities and logits, of arrays and of tensors."""
    rng = np.random.default_rng(15)
    logits = rng.normal(0, 2, (6, 3, 7)).round(1)
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    u, tuning = rng.random((6, 3)), rng.normal(0, 2, 90).round(1)
    for dtype in ("float16", "float32", "float64"):
        given = [values.astype(dtype) for values in (p, logits, tuning)]
        yield from scores_of(f"array/{dtype}", *given, u)
    for dtype in ("bfloat16", "float32", "float64"):
        tensors = [torch.tensor(values).to(getattr(torch, dtype)) for values in (p, logits, tuning)]
        yield from scores_of(f"tensor/{dtype}", *tensors, torch.tensor(u))


def scores_of(name: str, p: Any, logits: Any, tuning: Any, u: Any) -> Entries:
    """All scores of one array or tensor."""
    yield f"{name}/tps", scores.tps(p)
    yield f"{name}/margin", scores.margin(p)
    yield f"{name}/logit", scores.logit(logits)
    for label, numbers in {"zero": 0, "half": 0.5, "each": u}.items():
        yield f"{name}/aps/{label}", scores.aps(p, numbers)
        yield f"{name}/raps/{label}", scores.raps(p, numbers, penalty=0.03, k_reg=2)
        ranked = scores.ptt(logits, tuning, numbers, b=0.4, temperature=0.1)
        yield f"{name}/ptt/{label}", ranked


# ---- models --------------------------------------------------------------------------------------


class Linear(torch.nn.Module):
    """A linear model with fixed weights, which sums feature by feature.

    The last bits of a matrix product may depend on the size of the batch; here none does.
    """

    def __init__(self, n_features: int, n_classes: int = 3) -> None:
        super().__init__()
        rng = np.random.default_rng([16, n_features])
        weight = rng.normal(0, 1, (n_features, n_classes)).astype(np.float32)
        self.weight = torch.nn.Parameter(torch.tensor(weight))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(1)
        logits = rows[:, :1] * self.weight[0]
        for i in range(1, rows.shape[1]):
            logits = logits + rows[:, i : i + 1] * self.weight[i]
        return logits


MODELLED = {
    "gaussian": (s.Gaussian(0.5), (6,), None),
    "uniform": (s.Uniform(0.5), (6,), None),
    "exp2": (s.Exp2(0.5), (2, 3), None),
    "sparse": (s.SparseFlip(0.1, 0.4), (6,), 1),
    "categories": (s.CategoricalFlip(3, 0.1, 0.5), (6,), 1),
    "splitting": (s.SplittingNoise(0.05), (6,), 255),
    "band": (s.BandAblation(2, 5), (2, 3, 5), 255),
    "block": (s.BlockAblation(2, 3, 5), (2, 3, 5), 255),
}
"""Schemes, the shape of an input, and the number of its steps from 0 to 1, if it has any."""


def model_inputs(
    shape: tuple[int, ...], steps: int | None, n: int, dtype: str = "float32"
) -> np.ndarray:
    """Return n inputs, with any number of steps from 0 to 1 or none."""
    rng = np.random.default_rng(17)
    if steps is None:
        return rng.normal(0, 1, (n, *shape)).astype(dtype)
    return (rng.integers(steps + 1, size=(n, *shape)) / steps).astype(dtype)


def model_and_labels(x: np.ndarray) -> tuple[Linear, np.ndarray]:
    """Return a model of inputs and labels that it is mostly right about."""
    model = Linear(x[0].size)
    with torch.no_grad():
        noisy = model(torch.tensor(x)) + torch.tensor(np.random.default_rng(18).normal(size=3))
    return model, noisy.argmax(dim=1).numpy()


def sampled() -> Entries:
    """Scores, counts, votes and exact probabilities of smoothed models."""
    for label, (scheme, shape, steps) in MODELLED.items():
        x = model_inputs(shape, steps, 8)
        model, y = model_and_labels(x)
        for score in ("tps", "aps", "raps", "margin", "logit"):
            given = {"seed": 21, "score": score, "phase": "test"}
            yield f"{label}/{score}", sampling.sample_scores(model, x, scheme, 9, **given)
        yield from counted(label, scheme, model, x, y)
        wide = Linear(x[0].size).double(), model_inputs(shape, steps, 8, "float64")
        yield f"{label}/float64", sampling.sample_scores(*wide, scheme, 5, phase="test", seed=3)
        if label in ("splitting", "band", "block"):
            yield from exact(label, scheme, model, x, y)
    yield from unusual_models()


def counted(label: str, scheme: Any, model: Linear, x: np.ndarray, y: np.ndarray) -> Entries:
    """Scores of labels, counts and votes."""
    own = {"phase": "calibration", "seed": 2**63, "indices": np.arange(8) + 100, "labels": y}
    yield f"{label}/own", sampling.sample_scores(model, x, scheme, 12, **own)
    small = {"phase": "test", "seed": 5, "batch_size": 7}
    yield f"{label}/counts", sampling.count_scores(model, x, scheme, 40, 0.4, **small)
    yield f"{label}/votes", sampling.vote_counts(model, x, scheme, 60, first_draw=11, seed=8)


def exact(label: str, scheme: Any, model: Linear, x: np.ndarray, y: np.ndarray) -> Entries:
    """Exact probabilities of all labels, and of the true ones."""
    for tau, score in itertools.product((0.2, 0.5), ("tps", "margin")):
        given = {"tau": tau, "score": score}
        shares = sampling.exact_probabilities(model, x, scheme, **given)
        yield f"{label}/exact/{tau}/{score}", shares
        shares = sampling.exact_probabilities(model, x, scheme, labels=y, batch_size=9, **given)
        yield f"{label}/exact/{tau}/{score}/own", shares


def unusual_models() -> Entries:
    """A model of normalised inputs, and a function with a score of its own."""
    x = model_inputs((2, 3, 3), 255, 5)
    model = sampling.NormalizedModel(Linear(18), [0.5, 0.4], [0.25, 0.3])
    given = {"phase": "test", "seed": 2}
    yield "normalized", sampling.sample_scores(model, x, s.Gaussian(0.2), 6, **given)

    def own_score(logits: torch.Tensor) -> torch.Tensor:
        return logits - logits.amax(dim=1, keepdim=True)

    call = Linear(18).forward
    own = sampling.sample_scores(call, x, s.Laplace(0.2), 6, score=own_score, **given)
    yield "function", own


CLASSIFIERS: dict[str, dict[str, Any]] = {
    "default": {"n_samples": 16, "seed": 7},
    "aps": {"n_samples": 16, "score": "aps", "seed": 8, "batch_size": 33},
    "weights": {"n_samples": 40, "n_test_samples": 12, "seed": 9},
    "fewer": {"n_samples": 8, "n_test_samples": 24, "seed": 10, "score": "margin"},
    "p": {"n_samples": 16, "p": 0.75, "seed": 2**64 - 1},
    "training": {"n_samples": 16, "guarantee": TRAINING, "seed": 11},
    "ghost": {"n_samples": 64, "correction": "clopper-pearson", "union": "ghost", "seed": 12},
    "none": {"n_samples": 10, "correction": "none", "tau": 0.45, "seed": 13},
}


def classifiers() -> Entries:
    """Prediction sets from models, with all draws, curtailed and sequential."""
    pairs = {
        "gaussian": (s.Gaussian(0.5), balls.L2(0.1), (6,), None),
        "sparse": (s.SparseFlip(0.05, 0.4), balls.Flips(0, 1), (6,), 1),
    }
    for label, (scheme, ball, shape, steps) in pairs.items():
        x = model_inputs(shape, steps, 100)
        model, y = model_and_labels(x)
        for option, given in CLASSIFIERS.items():
            classifier = sampling.RobustClassifier(model, scheme, ball, alpha=0.15, **given)
            classifier.calibrate(x[:70], y[:70])
            name = f"{label}/{option}"
            yield f"{name}/fitted", attributes(classifier.rule, FITTED)
            yield from predicted(name, classifier, x[70:])
        loader = [(x[i : i + 25], y[i : i + 25]) for i in range(0, 100, 25)]
        classifier = sampling.RobustClassifier(
            model, scheme, ball, alpha="0.1", n_samples=12, seed=0
        )
        fitted = attributes(classifier.calibrate(loader).rule, FITTED)
        yield f"{label}/loader/fitted", fitted


def predicted(name: str, classifier: sampling.RobustClassifier, x: np.ndarray) -> Entries:
    """Sets, counts and passes, by all ways to stop."""
    ways = {"all": {"curtail": False}, "curtailed": {}}
    if classifier.rule.correction == "mixture":
        ways["sequential"] = {"sequential": True}
    for way, given in ways.items():
        prediction = classifier.predict(x, indices=np.arange(len(x)), **given)
        yield f"{name}/{way}/sets", prediction.sets
        yield f"{name}/{way}/counts", prediction.counts
        yield f"{name}/{way}/passes", prediction.forward_passes


def classified() -> Entries:
    """Labels with a certified radius, from votes."""
    rng = np.random.default_rng(19)
    for n_draws in (5, 100, 1000):
        p = rng.dirichlet([4, 1, 1, 0.5], 25)
        selection, votes = (np.stack([rng.multinomial(n_draws, row) for row in p]) for _ in "ab")
        yield f"{n_draws}/predict", classification.predict(votes, alpha=0.01)
        yield from certified(f"{n_draws}", selection, votes)


def certified(name: str, selection: np.ndarray, votes: np.ndarray) -> Entries:
    """Labels and radii, and what is certified over single balls."""
    families = {
        "gaussian": (s.Gaussian(0.25), balls.L2),
        "cube": (s.Gaussian(0.25), lambda r: balls.Linf(r, 784)),
        "uniform": (s.Uniform(0.5), balls.L1),
        "laplace": (s.Laplace(0.5), balls.L1),
    }
    truth = np.arange(len(votes)) % 3
    for (label, (scheme, ball)), multiclass in itertools.product(families.items(), (False, True)):
        given = {"alpha": 0.01, "multiclass": multiclass}
        found = classification.certified_labels(selection, votes, scheme, ball, **given)
        at = f"{name}/{label}/{multiclass}"
        yield f"{at}/labels", found.labels
        yield f"{at}/radii", found.radii
        yield f"{at}/p", found.p_lower
        shares = classification.certified_accuracy(found.labels, found.radii, truth, [0, 0.1, 0.3])
        yield f"{at}/accuracy", shares
        for kind in ("sparse", "gaussian"):
            certificate = bincp.certify(*CERTIFIED[kind])
            held = classification.is_certified(selection, votes, certificate, **given)
            yield f"{at}/{kind}", held


def bounded_models() -> Entries:
    """Bounds of networks over boxes of inputs."""
    x = torch.tensor(model_inputs((1, 6, 6), 255, 4)).double()
    for dtype in (torch.float32, torch.float64):
        model = network().to(dtype)
        for r in (0.0, 0.02, 0.3):
            lower, upper = baselines.interval_bounds(model, x - r, x + r)
            yield f"{dtype}/{r}/lower", lower
            yield f"{dtype}/{r}/upper", upper
            yield f"{dtype}/{r}/tps", torch.stack(baselines.tps_bounds(lower, upper))


def network() -> torch.nn.Sequential:
    """Return a small network with all kinds of layers and fixed weights."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1),
        torch.nn.BatchNorm2d(3),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Dropout(),
        torch.nn.Linear(27, 4),
    )
    rng = np.random.default_rng(20)
    for parameter in model.parameters():
        parameter.data = torch.tensor(rng.normal(0, 0.3, parameter.shape)).float()
    return model.eval()


def attacked() -> Entries:
    """Projections, and inputs under attack."""
    rng = np.random.default_rng(22)
    moves = rng.normal(0, 1, (30, 2, 6)) * 10.0 ** rng.uniform(-6, 2, (30, 1, 1))
    norms = {"l1": balls.L1(0.8), "l2": balls.L2(0.5), "linf": balls.Linf(0.2, 12)}
    for name, ball in norms.items():
        yield f"project/{name}", attacks.project(moves, ball)
        yield f"project/{name}/float32", attacks.project(moves.astype(np.float32), ball)
    x = model_inputs((2, 6), 255, 10)
    model, y = model_and_labels(x)
    goals = {"mean": {}, "count": {"tau": 0.5}, "box": {"box": (0, 1), "step_size": 0.1}}
    for (name, ball), (goal, given) in itertools.product(norms.items(), goals.items()):
        found = attacks.pgd(
            model, x, y, s.Gaussian(0.3), ball, seed=31, n_samples=8, steps=6, **given
        )
        yield f"pgd/{name}/{goal}", found
    yield from flipped()


def flipped() -> Entries:
    """Binary inputs under attack."""
    x = model_inputs((2, 6), 1, 10)
    model, y = model_and_labels(x)
    scheme = s.SparseFlip(0.1, 0.3)
    for goal, given in {"mean": {}, "count": {"tau": 0.5}, "aps": {"score": "aps"}}.items():
        found = attacks.random_flips(
            model, x, y, scheme, balls.Flips(2, 1), seed=32, n_samples=6, steps=12, **given
        )
        yield f"flips/{goal}", found


SECTIONS: dict[str, Callable[[], Entries]] = {
    "registry": registry,
    "bounds": bounds,
    "certificates": own_certificates,
    "radii": all_radii,
    "clopper-pearson": clopper_pearson,
    "means": mean_bounds,
    "noise": all_noise,
    "copies": copies,
    "counting": counting,
    "calibration": calibration,
    "exact": exact_calibration,
    "one-sample": one_sample,
    "saved": saved,
    "sequential": sequential,
    "plans": plans,
    "mondrian": mondrian,
    "risk": risk_control,
    "baselines": all_baselines,
    "metrics": all_metrics,
    "scores": all_scores,
    "sampling": sampled,
    "classifiers": classifiers,
    "classification": classified,
    "intervals": bounded_models,
    "attacks": attacked,
}


def main(arguments: list[str] | None = None) -> int:
    """Write a record, or compare two; return 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="record what the library computes")
    write.add_argument("out", type=Path)
    both = commands.add_parser("compare", help="say which names of two records differ")
    both.add_argument("first", type=Path)
    both.add_argument("second", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "compare":
        return 1 if compare(given.first, given.second) else 0
    start = time.perf_counter()
    record = collect()
    np.savez_compressed(given.out, **record)
    print_row("all", list(record.values()), time.perf_counter() - start)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
