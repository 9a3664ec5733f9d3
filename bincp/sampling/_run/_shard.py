"""Which worker of how many this process is: as told, or as torchrun or Slurm says."""

import logging
from collections.abc import Mapping

from bincp._utils.validation import check_integer

_log = logging.getLogger(__name__)

_ARRAY = ("ID", "MIN", "MAX", "STEP", "COUNT")


def shard_of(shard: object, environment: Mapping[str, str]) -> tuple[int, int]:
    """Return (i, N) for worker i of N, counted from 0."""
    if shard is not None:
        return _checked(shard)
    index, count, source = _process(environment)
    array = _array(environment)
    if array is not None:
        task, tasks = array
        index, count = task * count + index, tasks * count
        source = f"{source}, and task {task} of an array of {tasks}"
    if source:
        _log.info("worker %d of %d, by %s", index, count, source)
    return index, count


def parse_shard(text: str) -> tuple[int, int]:
    """Read i/N."""
    index, slash, count = text.partition("/")
    if not (slash and _is_number(index) and _is_number(count)):
        raise ValueError(f"`shard` must be i/N, such as 0/4, got {text!r}")
    return _checked((int(index), int(count)))


def _checked(shard: object) -> tuple[int, int]:
    if not (isinstance(shard, tuple) and len(shard) == 2):
        raise TypeError(f"`shard` must be a pair (i, N), got {shard!r}")
    count = check_integer("shard[1]", shard[1], low=1)
    return check_integer("shard[0]", shard[0], low=0, high=count - 1), count


def _process(environment: Mapping[str, str]) -> tuple[int, int, str]:
    for index, count in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
        if index in environment and count in environment:
            i, n = (_number(environment, name) for name in (index, count))
            if not i < n:
                raise ValueError(f"{index} must be below {count}, got {i} and {n}")
            return i, n, f"{index} and {count}"
    return 0, 1, ""


def _array(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the number of the task in a Slurm array, from 0, and how many there are."""
    names = [f"SLURM_ARRAY_TASK_{name}" for name in _ARRAY]
    if names[0] not in environment:
        return None
    missing = [name for name in names if name not in environment]
    if missing:
        raise ValueError(f"{missing[0]} must be set as {names[0]} is; give the shard i/N instead")
    task, low, high, step, count = (_number(environment, name) for name in names)
    there = range(low, high + 1, max(step, 1))
    if task not in there or len(there) != count:
        raise ValueError(
            f"a Slurm array must have no holes, got {count} tasks from {low} to {high} in steps of "
            f"{step}; give the shard i/N instead"
        )
    return there.index(task), count


def _number(environment: Mapping[str, str], name: str) -> int:
    if not _is_number(environment[name]):
        raise ValueError(f"{name} must be a number, got {environment[name]!r}")
    return int(environment[name])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
