"""Evaluation mode of a module, also where several threads use it at once."""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class _Use:
    """How many runs evaluate a module now, and the mode that it had before the first of them."""

    module: torch.nn.Module
    mode: bool | None  # None: it has none, as a frozen script module
    runs: Counter[int] = field(default_factory=Counter)  # of each thread

    def restore(self) -> None:
        if self.mode is not None:
            self.module.training = self.mode


_uses: dict[int, _Use] = {}
# A module may sample inside its own eval(): the same thread takes the lock again.
_lock = threading.RLock()


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it, which does not live here
    own = threading.get_ident()
    for key, use in list(_uses.items()):
        use.runs = Counter({own: use.runs[own]})
        if not use.runs[own]:  # the run of a thread that does not live here, either
            _uses.pop(key).restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Set evaluation mode; every submodule gets its own mode back when its last run ends.

    Runs of several threads may share the module, parts of it, or a module that holds it. A model
    that is no module has no mode.
    """
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    with _lock:
        for module in modules:
            mode = getattr(module, "training", None)
            _uses.setdefault(id(module), _Use(module, mode)).runs[threading.get_ident()] += 1
    try:
        with _lock:
            _set_evaluation(modules)
        yield
    finally:
        with _lock:
            for module in modules:
                _leave(module)


def _set_evaluation(modules: list[torch.nn.Module]) -> None:
    """Set evaluation mode of the first module, which holds the others."""
    if not any(getattr(module, "training", False) for module in modules):
        return
    try:
        modules[0].eval()
    except NotImplementedError:  # an exported program, whose mode was fixed when it was exported
        for module in modules:
            module.training = False


def _leave(module: torch.nn.Module) -> None:
    use = _uses[id(module)]
    use.runs[threading.get_ident()] -= 1
    if not use.runs.total():
        _uses.pop(id(module)).restore()
