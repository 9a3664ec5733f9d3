"""Let each allocation of each compiled function fail once, and look for memory that is kept.

test_allocations.py runs it under the allocator of tests/c/failing_malloc.c. For each case and each
n, the n-th allocation fails: the case must raise MemoryError or do without that memory, and
repeating it must not let the number of blocks in use grow.
"""

import ctypes
import gc
import sys
from collections.abc import Callable

import numpy as np

from bincp._core import _binomial, _count, _foreign, _mixture, _noise, _operators, _sequential

ALLOCATOR = ctypes.CDLL(None)
before_failure, failed, in_use = (
    ctypes.c_long.in_dll(ALLOCATOR, name) for name in ("before_failure", "failed", "in_use")
)
before = ctypes.c_long()  # an integer of Python would be a block in use
REPEATS = 4

p = np.linspace(0, 1, 64)
q = 1 - p
out, out2, out3 = np.empty(64), np.empty(64), np.empty(64)
masses = np.array([0.7, 0.3]), np.array([0.2, 0.8])
grid = np.empty((3, 4, 64))
ids, draws = np.arange(3), np.zeros(3, np.int64)
rows, noisy = np.zeros((3, 70), np.float32), np.empty((3, 70), np.float32)
scores, thresholds = np.zeros((5, 7)), np.zeros(5)
counts, decisions = np.empty(5, np.int32), np.empty(5, np.bool_)
min_counts = np.ones(5, np.int64)
accept = np.array([1, 2, 2], np.int32)
reject = np.array([-1, -1, 1], np.int32)
scratch = np.empty(_sequential.scratch_size(2))
left = np.empty((3, len(p)))
state = np.zeros(3, np.int32), np.zeros((3, 2), np.int32), np.full((3, 2), -1, np.int32)
drawn, decided = np.zeros((3, 2, 2), np.uint8), np.zeros((3, 2), np.uint8)
hits, inputs = np.zeros((1, 2), np.uint8), np.zeros(1, np.int64)
kinds = [(2, (0, 1, 3), (0.5, 0.25, 0.25), (0.0, 0.0, 0.0))]
sparse_out = np.empty(9), np.empty(9)
operator = _operators.sparse(3, 5, 0.01, 0.6)
capsule = operator.capsule
log1p = ctypes.cast(ctypes.CDLL(None).log1p, ctypes.c_void_p).value

CASES: dict[str, Callable[[], object]] = {
    "identity": _operators.identity,
    "gaussian": lambda: _operators.gaussian(0.5),
    "uniform": lambda: _operators.uniform(0.5),
    "steps": lambda: _operators.steps(10.0, 3.0),
    "laplace": lambda: _operators.laplace(0.5),
    "laplace_or_uniform": lambda: _operators.laplace_or_uniform(0.5, 0.25),
    "half_power": lambda: _operators.half_power(0.5),
    "exponential_power": lambda: _operators.exponential_power(0.5, 1.0, 1.0),
    "sech_power": lambda: _operators.sech_power(0.5, 1.0, 0.5),
    "pareto": lambda: _operators.pareto(0.5, 2.0, -1.0),
    "regions": lambda: _operators.regions(*masses, 1e-15, 0.0),
    "sparse": lambda: _operators.sparse(3, 5, 0.01, 0.6),
    "sparse_masses": lambda: _operators.sparse_masses(3, 5, 0.01, 0.6, *sparse_out),
    "sparse_grid": lambda: _operators.sparse_grid(0.01, 0.6, p, None, grid),
    "categorical_masses": lambda: _operators.categorical_masses(kinds, np.empty(7)),
    "name": lambda: operator.name,
    "capsule": lambda: operator.capsule,
    "lower": lambda: operator.lower(0.5),
    "lower_fill": lambda: operator.lower_fill(p, out),
    "upper_fill": lambda: operator.upper_fill(p, out),
    "from_functions": lambda: _foreign.from_functions("log1p", (log1p, False, 0), None, None),
    "from_capsule": lambda: _foreign.from_capsule(capsule),
    "capsule_name": lambda: _foreign.capsule_name(capsule),
    "count": lambda: _count.count(scores, thresholds, counts, "float64"),
    "decide": lambda: _count.decide(scores, thresholds, min_counts, decisions, "float64"),
    "cp_table": lambda: _binomial.cp_table(63, 0.1, out, out2),
    "cp_lower_many": lambda: _binomial.cp_lower_many(ids, ids + 5, np.full(3, 0.1), np.empty(3)),
    "failures": lambda: _mixture.failures(3, 9, p, q, out),
    "binomial_means": lambda: _mixture.binomial_means(p, p, q, out),
    "corner_envelope": lambda: _mixture.corner_envelope(q, q, 0.5),
    "add_noise": lambda: _noise.add_noise(0, 1.0, 1, 0, ids, draws, ids, rows, noisy),
    "flip": lambda: _noise.flip(0.1, 0.6, 1, 0, ids, draws, ids, rows, noisy),
    "words": lambda: _noise.words(1, 0, ids, draws, np.empty((3, 70), np.uint64)),
    "exits": lambda: _sequential.exits(accept, reject, p, q, scratch, out, out2, out3),
    "undecided": lambda: _sequential.undecided(accept, reject, p, q, scratch, left),
    "replay": lambda: _sequential.replay(accept[:, None], reject[:, None], hits, inputs, *state),
    "decide_in_order": lambda: _sequential.decide(accept[:, None], reject[:, None], drawn, decided),
}


def attempt(case: Callable[[], object], n: int) -> tuple[bool, bool]:
    """Return whether an allocation failed, and whether the case said so."""
    refused = False
    failed.value = 0
    before_failure.value = n
    try:
        case()
    except MemoryError:
        refused = True
    finally:
        before_failure.value = -1
    happened = failed.value > 0
    forget_draws()
    return happened, refused


def forget_draws() -> None:
    """Let the next replay start anew: an input has as many draws as its boundaries are long."""
    for array in state:
        array.fill(0)


def growth(case: Callable[[], object], n: int) -> int:
    """Return by how many blocks the memory in use grows from one attempt to the next, at most."""
    gc.collect()
    before.value = in_use.value
    attempt(case, n)
    gc.collect()
    return in_use.value - before.value


def main() -> None:
    gc.disable()
    for name, case in CASES.items():
        for _ in range(REPEATS):  # caches of the interpreter fill up
            case()
            forget_draws()
        n = refusals = 0
        while True:
            happened, refused = attempt(case, n)
            if not happened:
                break
            refusals += refused
            kept = min(growth(case, n) for _ in range(REPEATS))
            if kept > 0:
                sys.exit(f"{name}: {kept} blocks are kept when allocation {n} fails")
            n += 1
        print(name, n, refusals)


if __name__ == "__main__":
    main()
