"""The names of the columns of data frames, which arrays do not keep."""

from typing import Any


def names_of(x: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, None where columns have places alone.

    As in scikit-learn, names are strings.
    """
    columns = getattr(x, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(one, str) for one in names) else None


def check_names(name: str, x: Any, known: list[str] | None) -> None:
    """Refuse a data frame whose columns are others, or in another order, than those known."""
    own = names_of(x)
    if known is not None and own not in (None, known):
        raise ValueError(f"`{name}` must have the columns {known}, in this order, got {own}")
