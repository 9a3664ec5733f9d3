"""Data frames of pandas, which is imported only where one is asked for."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return a data frame of columns of equal length."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: pip install pandas") from error
    return pd.DataFrame(dict(columns))
