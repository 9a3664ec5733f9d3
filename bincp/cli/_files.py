"""Files that the commands read and write, checked before any work is done."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp.cli._arguments import UsageError


def read_array(path: Path, key: str | None, usual_key: str) -> npt.NDArray[Any]:
    """Return the array of a .npy file, mapped, not read; or the one of that key of a .npz file."""
    with open(path, "rb") as stream:
        magic = stream.read(6)
        stream.seek(0)
        try:
            if magic == b"\x93NUMPY":
                if key is not None:
                    raise ValueError(f"`--key` must be left out with a .npy file, got {key!r}")
                return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            if magic[:4] == b"PK\x03\x04":
                with np.load(stream, allow_pickle=False) as archive:
                    return np.asarray(archive[_choose_key(archive.files, key, usual_key)])
        except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
            raise ValueError(f"{path}: {error}") from None
    raise ValueError(f"{path}: must be a .npy or .npz file that NumPy wrote, got something else")


def _choose_key(keys: list[str], key: str | None, usual_key: str) -> str:
    if key is None:
        key = keys[0] if len(keys) == 1 else usual_key
    if key not in keys:
        raise ValueError(f"`--key` must be one of {', '.join(keys)}, got {key!r}")
    return key


def output_file(
    path: Path, inputs: Sequence[Path | None], *, suffixes: Sequence[str] | None = None
) -> Path:
    """Return where to write, or refuse before any work is done."""
    if suffixes is not None and path.suffix not in suffixes:
        raise UsageError(f"the output must end in {' or '.join(suffixes)}, got {path}")
    target = path.resolve()  # a symbolic link stays one
    if target in [source.resolve() for source in inputs if source is not None]:
        raise UsageError(f"the output must not be one of the inputs, got {path}")
    if target.exists() and not target.is_file():
        raise UsageError(f"the output must be a file, got {path}")
    if not target.parent.is_dir():
        raise UsageError(f"the output must be in a folder that exists, got {path}")
    return target


def picture_file(path: Path | None) -> Path | None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    formats = sorted(f".{name}" for name in FigureCanvasAgg.get_supported_filetypes())
    return None if path is None else output_file(path, [], suffixes=formats)
