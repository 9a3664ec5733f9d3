"""Replace a file as a whole, or leave it as it was."""

import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def replace_file(
    path: str | os.PathLike[str], write: Callable[[BinaryIO], object], *, private: bool = False
) -> None:
    """Write to a new file beside ``path`` and move it there once it is on the disk.

    An existing file keeps its permissions, which the new one has from the start, and is refused if
    it may not be written. A ``private`` file is for its owner alone. A process that is killed while
    it writes leaves the old file, and may leave a hidden one that ends with ``.tmp``.
    """
    try:
        target = Path(path).resolve()  # a symbolic link stays, and what it points to is replaced
    except RuntimeError as error:  # from Python 3.13 on, links in a circle fail as a file below
        raise OSError(f"`path` must lead to a file, got {path}: {error}") from None
    mode = _mode_of(target, path)
    if private:
        mode = 0o600
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")  # threads may write to one path
    try:
        with _created(temporary, mode) as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if str(error.filename) == str(temporary):  # a name that the caller has never seen
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _mode_of(target: Path, path: str | os.PathLike[str]) -> int | None:
    """Return the permissions of an existing file that may be replaced; None if there is none."""
    if not target.exists():
        return None
    if not target.is_file():
        raise OSError(f"`path` must be a file or not exist yet, got {path}")
    mode = stat.S_IMODE(target.stat().st_mode)
    if not (mode & 0o222 and os.access(target, os.W_OK)):  # the superuser may write anything
        raise PermissionError(f"`path` must be a file that may be written, got {path}, read-only")
    return mode


def _created(path: Path, mode: int | None) -> BinaryIO:
    """Open a new file for writing; given a mode, nobody else can read it before it has the mode."""
    if mode is None:
        return open(path, "xb")
    stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o600), "wb")
    try:
        path.chmod(mode)
    except BaseException:
        stream.close()
        raise
    return stream


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, too, where folders can be synchronised."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
