"""The manifest of a run: what decides the numbers, and how they are cut into parts."""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from bincp._utils.version import __version__
from bincp.sampling._run import _canonical
from bincp.sampling._run._layout import Layout
from bincp.sampling._run._publish import publish

NAME = "manifest.json"
_KIND = "bincp run"


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` says; it is written once and never changed."""

    identity: dict[str, Any]
    """What decides the numbers, by the names of the arguments of `run`."""
    layout: Layout
    made_by: dict[str, str]
    """Versions, which are shown and not compared."""
    digest: str

    kind: ClassVar[str] = _KIND

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a run; a damaged one is an error, and is never replaced."""
        path = folder / NAME
        content = _canonical.decode(path.read_bytes(), str(path), _KIND)
        layout = Layout.of(content["layout"])
        digest = _canonical.digest(content)
        return cls(content["identity"], layout, content["made_by"], digest)

    @classmethod
    def begin(cls, folder: Path, identity: dict[str, Any], layout: Layout) -> "Manifest":
        """Write the manifest, and return the one that is there: another process may be first."""
        content = {
            "format": _KIND,
            "version": 1,
            "identity": identity,
            "layout": layout.content(),
            "made_by": versions(),
        }
        data = _canonical.encode(content)
        publish(folder / NAME, lambda stream: stream.write(data), Path.exists)
        return cls.read(folder)


def check_same(folder: Path, begun: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to continue a run with other arguments, and name each of them with both values."""
    other = differences(begun, now)
    if other:
        raise ValueError(f"the run {folder} was begun with other arguments: {other}")


def differences(one: dict[str, Any], two: dict[str, Any]) -> str:
    """Return in words where two identities differ, in the fields that the second one has."""
    return "; ".join(
        f"`{name}` was {_canonical.readable(one.get(name))!r}, "
        f"got {_canonical.readable(two[name])!r}"
        for name in sorted(two)
        if one.get(name) != two[name]
    )


def versions() -> dict[str, str]:
    """Return the versions of what decides last bits; they are shown and not compared."""
    return {
        "bincp": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }
