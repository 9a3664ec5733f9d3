"""Files that the commands read and write, checked before any work is done."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.drawing import canvas_class
from bincp.cli._arguments import UsageError
from bincp.cli._report import one_line


def read_array(path: Path, key: str | None, *usual_keys: str) -> npt.NDArray[Any]:
    """Return the array of a .npy file, mapped into memory, or one array of a .npz file.

    Without a key that is the first of the usual keys that the .npz file has, or its only array.
    """
    with open(path, "rb") as stream:
        if not stream.seekable():
            raise ValueError(f"{path}: must be a file, got a pipe, which cannot be read twice")
        magic = stream.read(6)
        stream.seek(0)
        try:
            if magic == b"\x93NUMPY":
                if key is not None:
                    raise ValueError(f"`--key` must be left out with a .npy file, got {key!r}")
                with np.errstate(all="ignore"):  # NumPy multiplies what a damaged shape says
                    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            if magic[:4] == b"PK\x03\x04":
                with np.load(stream, allow_pickle=False) as archive:
                    chosen = _choose_key(archive.files, key, usual_keys)
                    if archive.files.count(chosen) > 1:
                        raise ValueError(f"must hold one array named {chosen}, got several")
                    return np.asarray(archive[chosen])
        except Exception as error:  # a damaged header makes NumPy raise almost anything
            raise ValueError(f"{path}: {one_line(error)}") from None
    raise ValueError(f"{path}: must be a .npy or .npz file that NumPy wrote, got something else")


def is_run(path: Path) -> bool:
    """Say if a path is the folder of a run of `bincp sample`."""
    return (path / "manifest.json").is_file()


def open_run(path: Path, given: dict[str, Any]) -> Any:
    """Return the run in a folder, which options for files do not fit."""
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} must be left out with a run, got {value}")
    from bincp.sampling import open as open_folder

    return open_folder(path)


def has_array(path: Path, key: str) -> bool:
    """Say if a file that `read_array` has read is a .npz file with this key."""
    with open(path, "rb") as stream:
        if stream.read(4) != b"PK\x03\x04":
            return False
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            return key in archive.files


def _choose_key(keys: list[str], key: str | None, usual_keys: Sequence[str]) -> str:
    holds = f"the file holds {', '.join(keys) or 'no array'}"
    if key is not None:
        if key not in keys:
            raise ValueError(f"`--key` must be the name of an array, got {key!r}; {holds}")
        return key
    for usual in usual_keys:
        if usual in keys:
            return usual
    if len(keys) == 1:
        return keys[0]
    raise ValueError(
        f"must hold an array named {' or '.join(usual_keys)}, or a single array; {holds}"
    )


def output_file(
    path: Path, inputs: Sequence[Path | None], *, suffixes: Sequence[str] | None = None
) -> Path:
    """Return the file that will be written, or refuse it before any work is done."""
    if suffixes is not None and path.suffix not in suffixes:
        raise UsageError(f"the output must end in {' or '.join(suffixes)}, got {path}")
    target = path.resolve()  # a symbolic link stays one
    sources = [source.resolve() for source in inputs if source is not None]
    if target in sources:
        raise UsageError(f"the output must not be one of the inputs, got {path}")
    if any(is_run(source) and target.is_relative_to(source) for source in sources):
        raise UsageError(f"the output must not be in the folder of a run that is read, got {path}")
    if path.exists() and not path.is_file():  # the target of /dev/stdout may be no path at all
        raise UsageError(f"the output must be a file, got {path}")
    if path.exists() and _is_printed_to(path):
        raise UsageError(
            f"the output must not be the file that stdout or stderr goes to, got {path}"
        )
    if not target.parent.is_dir():
        raise UsageError(f"the output must be in a folder that exists, got {path}")
    return target


def _is_printed_to(path: Path) -> bool:
    """Say if a file is open as stdout or stderr, whose text would be lost with the old file."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it may be closed
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return True
    return False


def picture_file(path: Path | None) -> Path | None:
    """Return the file that a picture will be written to, or refuse it before any work is done."""
    formats = sorted(f".{name}" for name in canvas_class().get_supported_filetypes())
    return None if path is None else output_file(path, [], suffixes=formats)
