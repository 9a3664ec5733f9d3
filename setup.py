"""Extensions and compiler flags; everything else is in pyproject.toml.

Build switches (environment variables): ``BINCP_NO_CLONES=1`` builds one version of each kernel
instead of one per instruction set, ``BINCP_DEBUG=1`` turns Cython's bounds checks back on,
``BINCP_TRACE=1`` makes line coverage of the ``.pyx`` files possible, ``BINCP_ANNOTATE=1`` writes
the annotated HTML. ``BINCP_SOURCE_URL``, such as ``https://HOST/OWNER/bincp/blob/v0.2.0``, is where
the files of a release can be read: a package index shows the README without them.
"""

import os
import re
import sys
import sysconfig
from glob import glob
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

BINOMIAL = ["numerics/binomial.c"]
COUNTING = ["counting/count.c"]
NOISE = ["noise/philox.c", "noise/laws.c", "noise/grid.c"]
OPERATORS = [
    "numerics/normal.c",
    "numerics/incomplete.c",
    "certificates/laplace.c",
    "certificates/steps.c",
    "certificates/location.c",
    "certificates/knapsack.c",
    "certificates/sparse_regions.c",
    "certificates/categorical_regions.c",
    "certificates/operators.c",
]
KERNELS = {
    "_binomial": [*BINOMIAL, "numerics/confidence.c"],
    "_capi": [*OPERATORS, *COUNTING, *BINOMIAL, *NOISE, "api/capi.c"],
    "_count": COUNTING,
    "_foreign": [*OPERATORS, "certificates/foreign.c"],
    "_graph_noise": ["noise/graph.c"],
    "_mixture": ["rules/mixture.c", *BINOMIAL, "numerics/normal.c"],
    "_noise": [*NOISE, "noise/splitting.c"],
    "_operators": [*OPERATORS, "certificates/combined.c", "numerics/float_mode.c"],
    "_sequential": ["rules/sequential.c"],
    "_sweep": ["regression/interval_scores.c", "regression/sweep.c"],
}

DEBUG, TRACE, ANNOTATE, NO_CLONES = (
    os.environ.get(f"BINCP_{name}") == "1" for name in ("DEBUG", "TRACE", "ANNOTATE", "NO_CLONES")
)
SOURCE_URL = os.environ.get("BINCP_SOURCE_URL")
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
LIMITED_API = not (TRACE or FREE_THREADED)

# These come behind the CFLAGS of the user and undo -ffast-math, -Ofast and their parts, under which
# bounds are wrong; csrc/numerics/strict_floats.h refuses what they do not undo. The linker gets
# them too: -ffast-math makes it add code that sets flush-to-zero for the whole process on import.
STRICT_FLAGS = [
    "-O3",
    "-fno-fast-math",
    "-fno-unsafe-math-optimizations",
    "-fno-finite-math-only",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fsigned-zeros",
]
# No contraction to fused multiply-add: the same input must give the same bound on every machine.
# No errno and no floating-point traps, so that sqrtf vectorises; NaN and infinities stay exact.
UNIX_FLAGS = [
    *STRICT_FLAGS,
    "-std=c11",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
]
WINDOWS = sys.platform == "win32"
FLAGS = ["/O2", "/std:c11", "/fp:precise"] if WINDOWS else UNIX_FLAGS
LINK_FLAGS = [] if WINDOWS else STRICT_FLAGS

MACROS: list[tuple[str, str | None]] = []
if LIMITED_API:
    MACROS.append(("Py_LIMITED_API", "0x030B0000"))
if TRACE:
    MACROS += [("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]
if NO_CLONES:
    MACROS.append(("BINCP_NO_CLONES", "1"))


def extension(module: str, kernels: list[str]) -> Extension:
    """Return the extension ``bincp._core.<module>``: its Cython file and the kernels under it."""
    return Extension(
        f"bincp._core.{module}",
        [f"bincp/_core/{module}.pyx", *(f"csrc/{kernel}" for kernel in kernels)],
        include_dirs=["csrc", "bincp/include"],
        depends=["bincp/include/bincp/bincp.h", *glob("csrc/*/*.h")],
        define_macros=MACROS,
        extra_compile_args=FLAGS,
        extra_link_args=LINK_FLAGS,
        py_limited_api=LIMITED_API,
    )


def readme() -> str:
    """Return the README, whose links and pictures lead to the files at the URL, if it is given."""
    text = Path(__file__).with_name("README.md").read_text("utf-8")
    if SOURCE_URL is None:
        return text

    def absolute(link: re.Match[str]) -> str:
        folder = SOURCE_URL.replace("/blob/", "/raw/") if link[1] else SOURCE_URL
        return f"{link[1]}{link[2]}({folder}/{link[3]})"

    return re.sub(r"(!?)(\[[^\]]*\])\((?!#|\w+:)([^)]*)\)", absolute, text)


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    ext_modules=cythonize(
        [extension(module, kernels) for module, kernels in KERNELS.items()],
        build_dir="build/cython",
        annotate=ANNOTATE,
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": DEBUG,
            "initializedcheck": DEBUG,
            "cdivision": True,
            "freethreading_compatible": True,
            "linetrace": TRACE,
        },
    ),
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)
