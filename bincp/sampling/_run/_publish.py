"""Give a complete file its name, whatever other processes do and wherever this one is killed."""

import errno
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL, errno.EACCES)
_TRIES = 5


def publish(
    path: Path,
    write: Callable[[BinaryIO], object],
    is_complete: Callable[[Path], bool],
    *,
    mode: int = 0o666,
) -> None:
    """Write a file and link it to its name; a complete file that is there already is kept.

    The bytes are on the disk before the file has its name. A file that is not complete is damaged,
    and is replaced.
    """
    for _ in range(_TRIES):
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            _write(temporary, write, mode)
            if _name(temporary, path, is_complete):
                _sync_folder(path.parent)
                remove_leftovers(path.parent, lambda other: other == path)
                return
        except OSError as error:  # with the name that the user knows
            raise OSError(error.errno, error.strerror, str(path)) from error
        finally:
            with suppress(OSError):
                os.unlink(temporary)
    raise OSError(errno.EBUSY, "the temporary file was removed again and again", str(path))


def remove_leftovers(folder: Path, is_complete: Callable[[Path], bool]) -> None:
    """Remove the temporary files of complete files.

    That of a process which still writes is removed, too: it will see that the file is there. One
    that may not be removed does no harm: the folder may be read-only or another user's, and Windows
    keeps a file that is open.
    """
    for name in os.listdir(folder):
        owner = _owner_of(name)
        if owner is not None and is_complete(folder / owner):
            with suppress(OSError):
                os.unlink(folder / name)


def is_leftover(name: str) -> bool:
    """Say if a file is the temporary file of another one."""
    return _owner_of(name) is not None


def _owner_of(name: str) -> str | None:
    """Return the name of the file that a temporary file was to become; None for other files."""
    if not (name.startswith(".") and name.endswith(".tmp")):
        return None
    return name[1:].removesuffix(".tmp").rpartition(".")[0] or None


def _write(temporary: Path, write: Callable[[BinaryIO], object], mode: int) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(temporary, flags, mode), "w+b") as stream:
        write(stream)
        stream.flush()
        os.fsync(stream.fileno())


def _name(temporary: Path, path: Path, is_complete: Callable[[Path], bool]) -> bool:
    """Give the file its name; say if there is a complete file of this name now."""
    try:
        os.link(temporary, path)
        return True
    except (FileExistsError, FileNotFoundError):
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    if is_complete(path):
        return True
    try:
        os.replace(temporary, path)
    except FileNotFoundError:  # another process was first, and has removed our file as a leftover
        return is_complete(path)
    return True


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, too, where folders can be synchronised."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
