"""Classes of any kind, such as names, as places in the order of an estimator."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from bincp._utils.arrays import ArrayLike


def listed(classes: Any) -> list[Any]:
    """Return classes as a list, those of an array as numbers and texts of Python."""
    if not isinstance(classes, Iterable):
        raise TypeError(f"`classes` must be a sequence, got {classes!r}")
    return list(classes.tolist() if isinstance(classes, np.ndarray) else classes)


def places(name: str, labels: ArrayLike, classes: Any) -> npt.NDArray[np.int64]:
    """Return the place of each label among the classes."""
    y = labels.detach().cpu().numpy() if hasattr(labels, "detach") else np.asarray(labels)
    if y.ndim != 1:
        raise ValueError(f"`{name}` must have shape (n,), got {y.shape}")
    named = listed(classes)
    known = {one: place for place, one in enumerate(named)}
    if len(known) < len(named):
        raise ValueError(f"`classes` must differ from each other, got {named}")
    found = [known.get(one, -1) for one in y.tolist()]
    if -1 in found:
        at = found.index(-1)
        raise ValueError(
            f"`{name}` must hold classes of the estimator, {list(known)}, "
            f"got {y.tolist()[at]!r} at {at}"
        )
    return np.array(found, np.int64)
