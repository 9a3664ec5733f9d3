"""The seed of a run: a file that processes agree on, and a commitment to it in the manifest."""

import hashlib
import secrets
from pathlib import Path
from typing import Any

from bincp.noise._keys import check_seed
from bincp.sampling._run import _canonical
from bincp.sampling._run._publish import publish

NAME = "seed"
_KIND = "bincp seed"
_COST = 2**12


def agreed_seed(folder: Path, seed: int | None) -> int:
    """Return the seed of a run that has no manifest yet, which all its processes agree on."""
    path = folder / NAME
    own = secrets.randbits(64) if seed is None else seed
    content = _canonical.encode({"format": _KIND, "version": 1, "seed": str(own)})
    if not path.exists():
        publish(path, lambda stream: stream.write(content), Path.exists, mode=0o600)
    stored = _stored(path)
    if seed not in (None, stored):
        raise ValueError(f"`seed` must be the one in {path}, which the run was begun with")
    return stored


def known_seed(folder: Path, seed: int | None, identity: dict[str, Any]) -> int | None:
    """Return the seed of a run that has a manifest; None if it is neither given nor in the file."""
    path = folder / NAME
    if seed is None and not path.exists():
        return None
    known = _stored(path) if seed is None else seed
    if commitment(known, identity) != identity["seed"]:
        whose = f"in {path}" if seed is None else "given"
        raise ValueError(
            f"`seed` must be the one that the run {folder} was begun with, got another one, {whose}"
        )
    return known


def needed_seed(folder: Path, seed: int | None) -> int:
    """Return a seed that is known, or say that it must be given."""
    if seed is None:
        raise ValueError(
            f"`seed` must be given to continue the run {folder}, whose file {NAME!r} is gone, "
            "got None"
        )
    return seed


def commitment(seed: int, identity: dict[str, Any]) -> str:
    """Return a number that only this seed gives; runs that are to be merged have one salt.

    Whoever has it can try the seeds that a person would pick, but not 2**64.
    """
    free = ("first_id", "n_inputs", "first_draw", "n_samples", "batch", "inputs_digest", "seed")
    salt = {name: value for name, value in identity.items() if name not in free}
    key = hashlib.scrypt(
        str(seed).encode(),
        salt=bytes.fromhex(_canonical.digest(salt)),
        n=_COST,
        r=8,
        p=1,
        dklen=32,
    )
    return key.hex()


def _stored(path: Path) -> int:
    content = _canonical.decode(path.read_bytes(), str(path), _KIND)
    return check_seed(int(content["seed"]))
