"""Put a part into the folder of its run, under its name."""

from functools import partial
from pathlib import Path

from bincp.sampling._run._manifest import Manifest
from bincp.sampling._run._parts import DamagedError, Part, read_part, write_part
from bincp.sampling._run._publish import publish


def store(folder: Path, manifest: Manifest, number: int, part: Part) -> None:
    """Write a part unless it is there already."""

    def is_complete(_: Path) -> bool:
        return is_stored(folder, manifest, number)

    publish(folder / manifest.layout.name(number), partial(write_part, part=part), is_complete)


def is_stored(folder: Path, manifest: Manifest, number: int) -> bool:
    """Say if a part is there and complete; one of another run is an error."""
    try:
        read_part(folder / manifest.layout.name(number), manifest.digest, number)
    except (FileNotFoundError, DamagedError):
        return False
    return True
