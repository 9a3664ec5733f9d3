"""Compare Triton's kernels with the C code, or look at their compiled code; print JSON.

    TRITON_INTERPRET=1 python tests/kernels/triton_noise.py interpret
    python tests/kernels/triton_noise.py compile

"fuse" compiles noise in floats as the kernels must not be.
"""

import json
import re
import sys

import numpy as np
import torch
import triton
from test_grid_noise import columns_of_ties, integers
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from bincp._core import _noise
from bincp.noise import Keys
from bincp.noise._alias import packed
from bincp.noise._device import _sampler, _triton
from bincp.noise._device._torch import RowKeys
from bincp.noise._samplers import noisy_dtype, sampler_of
from bincp.smoothing import Gaussian, Laplace, Uniform

CPU = torch.device("cpu")
LAWS = {"gaussian": _noise.GAUSSIAN, "laplace": _noise.LAPLACE, "uniform": _noise.UNIFORM}


def differing(scheme, x, seed, phase):
    """Return how many bytes of some rows differ."""
    rng = np.random.default_rng(seed % 2**32)
    keys = Keys(seed, phase, rng.integers(0, 2**56, 3), rng.integers(0, 2**31, 3))
    sources = np.array([1, 0, 1])
    expected = np.empty((3, x.shape[1]), noisy_dtype(x))
    sampler_of(scheme).fill(keys, sources, x, expected)
    law = _sampler._law_of(sampler_of(scheme), CPU)
    found = _sampler.DeviceSampler(law, CPU, _triton).rows(keys, sources, x).numpy()
    return int((found.view(np.uint8) != expected.view(np.uint8)).sum())


def interpreted():
    result = {}
    rng = np.random.default_rng(0)
    schemes = [Gaussian(0.3), Laplace(0.3), Uniform(0.3), Gaussian(1e-37)]
    schemes += [Gaussian(0.25, grid=255), Gaussian(9.7, grid=255), Gaussian(1e-5, grid=255)]
    for scheme in schemes:
        for dtype in sampler_of(scheme).dtypes:
            for d in (1, 65, 4100):
                k = rng.integers(0, 256, (2, d))
                x = k.astype(dtype) if dtype == "uint8" else (k / 255).astype(dtype)
                seed = int(rng.integers(2**64, dtype=np.uint64))
                phase = ("calibration", "test", "tuning")[d % 3]
                result[f"{scheme} {dtype} {d}"] = differing(scheme, x, seed, phase)
    for level in range(5):
        for bits in (1, 8, 16):
            result[f"ties {level} {bits}"] = differing_ties(level, bits)
    return result


def differing_ties(level, bits, n=500):
    """Return how many integers differ, drawn from a table whose columns are ties at a level."""
    key = {"seed": 2**64 - 1 - level, "stream": 1, "id": 2**40 + 5, "draw": 3}
    table = packed(*columns_of_ties(key, level=level, bits=bits, n=n), half=0)
    words = [torch.from_numpy(part.view(np.int32).copy()) for part in (table.entry, table.low)]
    rows = torch.tensor([[0], [key["id"]], [key["draw"]]])
    out = torch.empty(1, n)
    points = torch.zeros(1, n, dtype=torch.int32)
    keys = RowKeys(key["seed"], key["stream"], rows)
    _triton.add_grid_noise(*words, 0, 1, keys, points, out)
    return int((out[0].numpy() != integers(table, **key, n=n)).sum())


def compiled(kernel, types, constants, *, fused=False):
    """Return what is in the PTX code of a kernel for compute capability 9.0."""
    kinds = {"rows": "*i64", "entry": "*i32", "low": "*i32", "scale": "fp32"} | types
    constants = {"BLOCK": _triton.BLOCK} | constants
    names = kernel.arg_names
    source = ASTSource(
        fn=kernel,
        signature={n: "constexpr" if n in constants else kinds.get(n, "i32") for n in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
    )
    options = {"enable_fp_fusion": fused}
    code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
    # Some versions flush subnormal roots and quotients to zero; there are none of either.
    code = re.sub(r"\b(sqrt|div)\.rn\.ftz", r"\1.rn", code)
    return {
        "fused": len(re.findall(r"\bfma\.", code)),
        "flushed": code.count("ftz"),
        "roots and quotients": sorted(set(re.findall(r"(?:sqrt|div)\.\S*f\d+", code))),
    }


def compiled_kernels(*, fused=False):
    result = {}
    for dtype in ("*fp32", "*fp64"):
        for name, law in LAWS.items():
            types = {"x": dtype, "out": dtype}
            found = compiled(_triton._float_noise, types, {"LAW": law}, fused=fused)
            result[f"{name} {dtype}"] = found
        for points in ("*u8", "*i32"):
            types = {"points": points, "out": dtype}
            found = compiled(_triton._grid_noise, types, {"BITS": 11}, fused=fused)
            result[f"grid {points} {dtype}"] = found
    return result


if __name__ == "__main__":
    command = sys.argv[1]
    found = interpreted() if command == "interpret" else compiled_kernels(fused=command == "fuse")
    print(json.dumps(found))
