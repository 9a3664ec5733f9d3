"""Prediction sets for people: lists of labels, and data frames."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bincp._utils.frames import frame
from bincp.noise._keys import IntArray

if TYPE_CHECKING:
    import pandas as pd


class ReadableSets:
    """Prediction sets that can be read as lists of labels."""

    sets: npt.NDArray[np.bool_]
    forward_passes: IntArray

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        n, n_labels = self.sets.shape
        name = f"{type(self).__name__}({n} inputs, {n_labels} labels"
        if not n:
            return f"{name})"
        size, passes = self.sets.sum(axis=1).mean(), self.forward_passes.mean()
        return f"{name}, average size {size:.3g}, {passes:.3g} forward passes an input)"

    def labels(self, names: Sequence[Any] | None = None) -> list[list[Any]]:
        """Return the labels in each set.

        Parameters
        ----------
        names : sequence of length K, optional
            The name of each label, no two equal; by default the labels are their places 0, 1, ...

        Returns
        -------
        list of list
            The names in the set of each input, in the order of the labels.

        Raises
        ------
        TypeError, ValueError
            If `names` is no sequence of K different names.

        Examples
        --------
        >>> import numpy as np
        >>> from bincp.sampling import PredictionSets
        >>> members = np.array([[True, False, True], [False, False, False]])
        >>> prediction = PredictionSets(members, 9 * members, np.array([4, 7]))
        >>> prediction
        PredictionSets(2 inputs, 3 labels, average size 1, 5.5 forward passes an input)
        >>> prediction.labels()
        [[0, 2], []]
        >>> prediction.labels(["cat", "dog", "eel"])
        [['cat', 'eel'], []]
        """
        named = _checked_names(names, self.sets.shape[1])
        return [[named[place] for place in np.flatnonzero(members)] for members in self.sets]

    def to_frame(self, names: Sequence[Any] | None = None) -> "pd.DataFrame":
        """Return a data frame of pandas with a row for each input.

        Parameters
        ----------
        names : sequence of length K, optional
            As in `labels`.

        Returns
        -------
        pandas.DataFrame
            With the columns "labels", "size" and "forward_passes".

        Raises
        ------
        ImportError
            If pandas is not installed.
        TypeError, ValueError
            As in `labels`.

        Examples
        --------
        >>> import numpy as np
        >>> from bincp.sampling import PredictionSets
        >>> members = np.array([[True, False, True], [False, True, False]])
        >>> prediction = PredictionSets(members, 9 * members, np.array([4, 7]))
        >>> prediction.to_frame(["cat", "dog", "eel"])  # doctest: +SKIP
               labels  size  forward_passes
        0  [cat, eel]     2               4
        1       [dog]     1               7
        """
        return frame(
            {
                "labels": self.labels(names),
                "size": self.sets.sum(axis=1),
                "forward_passes": self.forward_passes,
            }
        )


def _checked_names(names: Any, n_labels: int) -> list[Any]:
    if names is None:
        return list(range(n_labels))
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray):
        raise TypeError(f"`names` must be a sequence of the names of all labels, got {names!r}")
    found = list(names.tolist() if isinstance(names, np.ndarray) else names)
    if len(found) != n_labels:
        raise ValueError(
            f"`names` must hold a name for each of {n_labels} labels, got {len(found)}"
        )
    if again := [name for place, name in enumerate(found) if name in found[:place]]:
        raise ValueError(f"`names` must differ, got {again[0]!r} more than once")
    return found
