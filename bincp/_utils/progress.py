"""One progress bar for a task; tqdm is imported only where a bar may be shown."""

import importlib.util
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["Bar", "beside_bars", "check_progress", "progress_bar"]

_DELAY = 2.0  # seconds; a task that is done by then shows nothing


class Bar(Protocol):
    """What a task tells of its progress."""

    def update(self, n: int = 1) -> object: ...
    def set_description(self, desc: str, refresh: bool) -> object: ...


class _NoBar:
    def update(self, n: int = 1) -> None:
        pass

    def set_description(self, desc: str, refresh: bool) -> None:
        pass


def check_progress(progress: object) -> bool | None:
    """Return what `progress` is: True, False or None."""
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"`progress` must be True, False or None, got {progress!r}")
    return progress


def progress_bar(
    progress: bool | None, total: int, task: str, unit: str
) -> AbstractContextManager[Bar]:
    """Return the bar of a task as a context.

    True shows it at once, wherever stderr goes. None shows it after two seconds, on a terminal and
    where tqdm is installed; it vanishes when the task is done. False shows none.
    """
    if not (progress or (progress is None and _is_watched())):
        return nullcontext(_NoBar())
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise ImportError("a progress bar needs tqdm: pip install tqdm") from error

    when = {} if progress else {"delay": _DELAY, "leave": False}
    shown: AbstractContextManager[Bar] = tqdm(
        total=total, desc=task, unit=unit, file=sys.stderr, **when
    )
    return shown


def beside_bars() -> AbstractContextManager[object]:
    """Return a context in which a line may be printed on stderr: bars make way for it."""
    if "tqdm" not in sys.modules:
        return nullcontext()
    from tqdm import tqdm

    clear: AbstractContextManager[object] = tqdm.external_write_mode(file=sys.stderr)
    return clear


def _is_watched() -> bool:
    try:
        terminal = sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed by whoever started the process
        terminal = False
    return terminal and importlib.util.find_spec("tqdm") is not None
