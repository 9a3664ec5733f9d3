"""Files are replaced whole or not at all."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def replace_file(path: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write to a new file beside ``path`` and move it there; an existing file keeps its mode."""
    target = Path(path).resolve()  # a symbolic link stays, and what it points to is replaced
    if target.exists() and not target.is_file():
        raise OSError(f"`path` must be a file or not exist yet, got {path}")
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")  # threads may write to one path
    try:
        with open(temporary, "xb") as stream:
            write(stream)
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
