"""Work that is shared by the threads of one call."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def shares(n: int, n_threads: int, least: int) -> list[slice]:
    """Divide ``n`` elements among threads, evenly, with at least ``least`` for each."""
    n_parts = max(1, min(n_threads, n // max(least, 1)))
    edges = [n * i // n_parts for i in range(n_parts + 1)]
    return [slice(*edge) for edge in pairwise(edges)]


def run_all(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run the jobs at once, the first of them here, and return their results."""
    first, *others = jobs
    if not others:
        return [first()]
    # Imported late, because it costs as much as a module of ours. Each call has its own pool,
    # because a kept pool would not survive a fork; its start costs little beside the work.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(others)) as pool:
        futures = [pool.submit(job) for job in others]
        return [first(), *(future.result() for future in futures)]
