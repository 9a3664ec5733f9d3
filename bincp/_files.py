"""Files are replaced whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def replace_file(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write to a file beside ``path`` and move it there, so that no half-written one is left."""
    target = Path(path).resolve()  # a symbolic link stays, and what it points to is replaced
    if target.exists() and not target.is_file():
        raise OSError(f"`path` must be a file or not exist yet, got {path}")
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            write(stream)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
