"""Compare the radii of the Box-Muller transform in torch operations and kernels with the C code.

    python tests/radius_words.py                  # all 2^32 words, on the CPU
    python tests/radius_words.py --device cuda    # torch operations and Triton's code, on a GPU
    python tests/radius_words.py --step 4099      # every 4099th word

The tests take some of the words. The C code is compiled from csrc/noise/laws.c; its SHA-256 of all
radii is printed, too. Needs a C compiler.
"""

import argparse
import ctypes
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from bincp.noise._device import _torch

ROOT = Path(__file__).parents[1]
SOURCE = """
#include "noise/laws.c"
void radii(uint32_t first, uint32_t step, size_t n, float *out);
void radii(uint32_t first, uint32_t step, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        float across; /* the angle 0: the radius times the cosine, which is 1 */
        box_muller(first + (uint32_t)i * step, 0, &out[i], &across);
    }
}
"""
FLAGS = ["-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
AT_ONCE = 2**21

Radii = Callable[[torch.Tensor], torch.Tensor]
"""From words, as int64 on a device, to radii."""


def compiled(folder: Path) -> ctypes.CDLL:
    source, library = folder / "radii.c", folder / "radii.so"
    source.write_text(SOURCE)
    files = [source, ROOT / "csrc/noise/philox.c"]
    include = [f"-I{ROOT}/csrc", f"-I{ROOT}/bincp/include"]
    subprocess.run(["cc", *FLAGS, *include, *files, "-o", library, "-lm"], check=True)
    made = ctypes.CDLL(str(library))
    made.radii.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p]
    made.radii.restype = None
    return made


def chunks(step: int) -> Iterator[tuple[int, int]]:
    """Yield the first word and the number of words of each chunk."""
    n = -(-(2**32) // step)
    for start in range(0, n, AT_ONCE):
        yield start * step, min(AT_ONCE, n - start)


def differing(
    step: int, place: torch.device, means: dict[str, Radii]
) -> tuple[dict[str, int], str]:
    """Return how many radii differ by each means, and the SHA-256 of those of the C code."""
    result, digest = dict.fromkeys(means, 0), hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        for first, n in chunks(step):
            expected = np.empty(n, np.float32)
            library.radii(first, step, n, expected.ctypes.data)
            digest.update(expected.astype("<f4").tobytes())
            wanted = torch.from_numpy(expected).to(place).view(torch.int32)
            words = torch.arange(n, device=place) * step + first
            for name, radii in means.items():
                result[name] += int((radii(words).view(torch.int32) != wanted).sum())
    return result, digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    place = torch.device(options.device)
    means: dict[str, Radii] = {"torch operations": _torch.radius_of}
    if place.type == "cuda":
        from radius_kernel import radii

        means["kernel"] = radii
    start = time.perf_counter()
    found, digest = differing(options.step, place, means)
    for name, number in found.items():
        print(f"{name}: {number} of {-(-(2**32) // options.step)} radii differ")
    print(f"SHA-256 of those of the C code: {digest}, {time.perf_counter() - start:.0f} s")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
