"""Noisy copies of inputs, beside Gaussian noise by the Box-Muller transform."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from bincp.cli._bench_cases import BOX_MULLER, NoiseCase
from bincp.cli._bench_turns import ON_HOST, Figure, rates
from bincp.noise._keys import Keys
from bincp.noise._samplers import sampler_of

N_DRAWS = 16

Place = Any
"""A torch.device that draws noise itself, or None for the compiled code on the CPU."""


def places() -> list[Place]:
    """Return where noise can be drawn: by the CPU, and by each GPU that torch sees."""
    if find_spec("torch") is None:
        return [None]
    import torch

    return [None, *(torch.device("cuda", i) for i in range(torch.cuda.device_count()))]


def device_name(place: Place) -> str:
    """Return how torch names a place, and which GPU that is."""
    if place is None:
        return "cpu"
    import torch

    return f"{place}, {torch.cuda.get_device_name(place)}" if place.type == "cuda" else str(place)


def noise_figure(case: NoiseCase, place: Place, n_inputs: int, seconds: float) -> Figure | None:
    """Return the figure of one scheme, None where the place leaves its noise to the CPU."""
    ours, theirs = _drawing(case, place, n_inputs), _drawing(BOX_MULLER, place, n_inputs)
    if ours is None or theirs is None:
        return None
    clock = ON_HOST if place is None else time.perf_counter
    size = n_inputs * N_DRAWS * case.x(1).size
    what = f"copies of {case.x(1).dtype} inputs under {case.smoothing!r}"
    return Figure(case.kernel, what, "Box-Muller", *rates(ours, theirs, size, seconds, clock))


def _drawing(case: NoiseCase, place: Place, n_inputs: int) -> Callable[[], Any] | None:
    """Return a function that draws all copies."""
    x, sampler = case.x(n_inputs), sampler_of(case.smoothing)
    sources, draws = np.divmod(np.arange(n_inputs * N_DRAWS), N_DRAWS)
    keys = Keys(0, "test", sources, draws)
    if place is None:
        out = np.empty((len(sources), *x.shape[1:]), np.float32)
        return lambda: sampler.fill(keys, sources, x, out)

    import torch

    from bincp.noise._device._sampler import sampler_on

    made = sampler_on(sampler, place)
    if made is None:
        return None
    inputs = torch.from_numpy(x).to(place)

    def draw() -> None:
        made.rows(keys, sources, inputs)
        if place.type == "cuda":
            torch.cuda.synchronize(place)

    return draw
