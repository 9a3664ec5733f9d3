"""A part on disk: an uncompressed npz file that ends with the checksum of all bytes before it."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from bincp.noise._keys import IntArray
from bincp.sampling._run._data import Digests

_CHECKSUM = 64  # hexadecimal digits
_CHUNK = 2**20


class DamagedError(ValueError):
    """The bytes of a part are not those that were written."""


class Part(NamedTuple):
    """The content of a file: values, labels if there are any, digests of the inputs, and a note."""

    values: npt.NDArray[Any]
    labels: IntArray | None
    digests: Digests
    note: dict[str, Any]


def write_part(stream: BinaryIO, part: Part) -> None:
    """Write a part to an empty file."""
    note = json.dumps(part.note, sort_keys=True).encode("ascii")
    arrays = {"values": part.values, "digests": part.digests, "note": np.frombuffer(note, np.uint8)}
    if part.labels is not None:
        arrays["labels"] = part.labels
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, little, allow_pickle=False)
        archive.comment = b"0" * _CHECKSUM
    checksum = _checksum(stream, stream.tell())
    stream.seek(-_CHECKSUM, 2)
    stream.write(checksum)


def read_part(path: Path, manifest: str, number: int) -> Part:
    """Return a part that is complete, or say what is wrong with the file.

    A DamagedError says that it is damaged, another ValueError that it belongs to another run, and a
    FileNotFoundError that it is not there.
    """
    with open(path, "rb") as stream:
        size = stream.seek(0, 2)
        if size <= _CHECKSUM or _end(stream) != _checksum(stream, size):
            raise DamagedError(f"{path}: damaged, the content does not have its checksum")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            note = json.loads(archive["note"].tobytes())
            labels = archive["labels"] if "labels" in archive.files else None
            part = Part(archive["values"], labels, archive["digests"], note)
    if (note["manifest"], note["part"]) != (manifest, number):
        raise ValueError(f"{path}: must be part {number} of this run, got a part of another one")
    return part


def _end(stream: BinaryIO) -> bytes:
    stream.seek(-_CHECKSUM, 2)
    return stream.read(_CHECKSUM)


def _checksum(stream: BinaryIO, size: int) -> bytes:
    """Return the checksum of all of the file but its last bytes."""
    state, left = hashlib.sha256(), size - _CHECKSUM
    stream.seek(0)
    while left:
        chunk = stream.read(min(left, _CHUNK))
        if not chunk:
            raise DamagedError("the file became shorter while it was read")
        state.update(chunk)
        left -= len(chunk)
    return state.hexdigest().encode("ascii")
